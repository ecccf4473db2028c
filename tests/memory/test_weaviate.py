"""Memories in a real Weaviate."""

import asyncio
import gc
import threading
import uuid
from pathlib import Path

import numpy as np
import pytest
import weaviate
from langchain_core.embeddings import DeterministicFakeEmbedding
from weaviate.classes.config import DataType, Property

from stepcraft import AagContext, Procedure, build_aag, open_memory
from stepcraft.errors import AddStopped, BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.memory.files import import_file
from stepcraft.memory.store import ProcedureMemory, shared_memory
from stepcraft.memory.weaviate import WeaviateMemory
from tests.kitchen import GOAL, PROCEDURES

RECIPES = Path(__file__).parents[3] / "shared" / "data" / "recipes" / "recipes.jsonl"
GOALS = (
    "potato soup",
    "bread without yeast",
    "fish with lemon",
    "a sweet dessert",
    "pancakes for breakfast",
    "chicken curry",
    "tomato sauce for pasta",
    "a drink with ginger",
    "vegetarian stew with beans",
    "chocolate cake",
)


def procedure(number: int, **fields) -> Procedure:
    content = {"output": f"dish {number}", "input": "flour, water", "steps": [f"Mix {number}.", "Bake."]}
    return Procedure(**content | fields)


def named(base: str, **options: str) -> str:
    """The URL of a collection of its own."""
    before, mark, after = base.partition("/?")
    pairs = "".join(f"&{name}={value}" for name, value in options.items())
    return f"{before}/Test{uuid.uuid4().hex}{'?' if mark else ''}{after}{pairs}"


@pytest.fixture
def url(weaviate_url: str) -> str:
    return named(weaviate_url)


@pytest.fixture
def client(weaviate_url: str):
    host, _, grpc_port = weaviate_url.removeprefix("weaviate://127.0.0.1:").partition("/?grpc=")
    with weaviate.connect_to_local(
        "127.0.0.1", int(host), int(grpc_port), skip_init_checks=True
    ) as connected:
        yield connected


@pytest.fixture(params=["wordllama", "none"])
def memory(url: str, request):
    with open_memory(url, embeddings=request.param) as memory:
        yield memory


def test_adding_twice_is_adding_once(memory: ProcedureMemory):
    report = memory.add([procedure(1), procedure(2)])
    assert (report.added, report.present, report.updated, report.failed) == (2, 0, 0, [])
    again = memory.add([procedure(1), procedure(3), procedure(2, source="a book"), procedure(3)])
    assert (again.added, again.present, again.updated) == (1, 2, 1)
    assert memory.count() == 3
    assert memory.get(procedure(2).id) == procedure(2, source="a book")
    assert {item.output for item in memory} == {"dish 1", "dish 2", "dish 3"}


def test_an_id_of_ones_own_changes_a_procedure_in_place(memory: ProcedureMemory):
    first = procedure(1)
    memory.add([first])
    memory.add([procedure(9, id=first.id)])
    assert [found.procedure.output for found in memory.search("dish 9")] == ["dish 9"]
    assert memory.count() == 1


def test_delete_says_how_many_there_were(memory: ProcedureMemory):
    memory.add([procedure(1), procedure(2)])
    assert memory.delete([procedure(1).id, procedure(7).id, "no id"]) == 1
    assert memory.get(procedure(1).id) is None
    assert memory.get("no id") is None
    assert memory.count() == 1


def test_every_field_is_kept_when_opened_again(url: str):
    whole = procedure(1, source="s", metadata={"a": [1, {"b": None}], "ä": "长"})
    with open_memory(url) as memory:
        memory.add([whole])
    with open_memory(url, create=False) as memory:
        assert list(memory) == [whole]
        assert memory.name == url


def test_progress_is_told_and_the_same_id_in_two_batches_ends_as_the_last(memory: ProcedureMemory):
    told: list[int] = []
    last = procedure(5, source="the last")
    report = memory.add([*(procedure(number) for number in range(2500)), last], progress=told.append)
    assert (report.added, report.updated, report.failed) == (2500, 1, [])
    assert told == [1000, 2000, 2501]
    assert memory.get(last.id) == last
    assert len({item.id for item in memory}) == 2500


def test_scores_fall_and_words_alone_need_a_shared_word(memory: ProcedureMemory):
    memory.add(PROCEDURES)
    for alpha in (0, 0.4, 1):
        found = memory.search("bake a white bread of wheat flour", 4, alpha=alpha)
        assert found[0].procedure.output == "bake a white bread"
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert [hit.procedure.output for hit in memory.search("yoghurt", 4, alpha=0)] == ["make yoghurt"]
    assert memory.search("?!", 4, alpha=0) == []
    assert memory.search("", 4, alpha=0) == []


@pytest.mark.parametrize(("k", "alpha"), [(0, None), (3, 7), (3, -1)])
def test_k_and_alpha_out_of_bounds_are_refused(memory: ProcedureMemory, k, alpha):
    with pytest.raises(BadInput):
        memory.search("x", k, alpha=alpha)


@pytest.mark.skipif(not RECIPES.exists(), reason=f"the recipes are not at {RECIPES}")
def test_the_same_recipes_are_found_as_in_a_local_database(url: str):
    with open_memory(url, embeddings="wordllama") as kept, open_memory(RECIPES) as local:
        first = import_file(kept, RECIPES)
        assert (first.added, first.failed) == (333, [])
        assert import_file(kept, RECIPES).present == 333
        for goal in GOALS:
            ours, theirs = (
                [hit.procedure.id for hit in memory.search(goal, 5, alpha=1)] for memory in (kept, local)
            )
            assert ours == theirs


def test_a_collection_keeps_to_its_embeddings_and_its_template(url: str):
    with open_memory(
        url, embeddings=DeterministicFakeEmbedding(size=4), template="{output}\n{steps}"
    ) as first:
        first.add([procedure(1)])
    with pytest.raises(
        MemoryFailure, match="made with embeddings 'DeterministicFakeEmbedding', not 'wordllama'"
    ):
        open_memory(url, embeddings="wordllama")
    with pytest.raises(
        MemoryFailure, match=r"made with embeddings 'DeterministicFakeEmbedding'.*give them as"
    ):
        open_memory(url)
    with pytest.raises(MemoryFailure, match="made with template"):
        open_memory(url, embeddings="none", template="{steps}")
    with open_memory(url, embeddings="none") as by_words:
        assert by_words.template == "{output}\n{steps}"
        assert len(by_words.search("dish")) == 1
        with pytest.raises(MemoryFailure, match="open it with them to add"):
            by_words.add([procedure(2)])
    with open_memory(url, embeddings=DeterministicFakeEmbedding(size=8)) as longer:
        with pytest.raises(MemoryFailure, match=r"4 dimensions.*gives 8"):
            longer.search("dish")
        with pytest.raises(MemoryFailure, match=r"4 dimensions.*gives 8"):
            longer.add([procedure(2)])


def test_an_embedding_that_is_not_finite_costs_its_procedure(url: str):
    class Sick(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            return [[float("nan")] * 4 if "dish 2" in text else [1.0, 2, 3, 4] for text in texts]

    with open_memory(url, embeddings=Sick(size=4)) as memory:
        report = memory.add([procedure(1), procedure(2), procedure(3)])
        assert (report.added, [failed.where for failed in report.failed]) == (2, [procedure(2).id])
        assert "not finite" in report.failed[0].reason
        assert memory.count() == 2


def test_a_text_without_known_words_is_found_by_its_words(url: str):
    odd = Procedure(output="⁂", input="⁂", steps=["⁂"])
    with open_memory(url, embeddings=DeterministicFakeEmbedding(size=4)) as memory:
        assert memory.add([odd]).added == 1
        assert memory.get(odd.id) == odd


def test_a_collection_of_another_shape_is_refused_with_what_differs(url: str, client):
    name = url.partition("?")[0].rpartition("/")[2]
    client.collections.create(name, properties=[Property(name="input", data_type=DataType.INT)])
    with pytest.raises(MemoryFailure, match=r"input is int, not text; it has no property output \(text\)"):
        open_memory(url)


def test_a_missing_collection_is_not_made_when_so_told(url: str):
    with pytest.raises(BadInput, match="there is no collection Test"):
        shared_memory(url)


def test_tenants_are_kept_apart(weaviate_url: str):
    url = named(weaviate_url, tenant="a")
    with open_memory(url) as ours, open_memory(url[:-1] + "b") as theirs:
        ours.add([procedure(1)])
        theirs.add([procedure(2), procedure(3)])
        assert [hit.procedure.output for hit in ours.search("dish", 5)] == ["dish 1"]
        assert (ours.count(), theirs.count()) == (1, 2)
    with pytest.raises(BadInput, match="no tenant 'c'"):
        open_memory(url[:-1] + "c", create=False)
    with pytest.raises(BadInput, match="names no tenant"):
        open_memory(url.replace("&tenant=a", ""))


def test_a_tenant_in_a_collection_without_tenants_is_refused(url: str):
    open_memory(url).close()
    with pytest.raises(BadInput, match="leave out tenant=a"):
        open_memory(f"{url}&tenant=a")


@pytest.mark.parametrize("quantizer", ["rq", "bq"])
def test_a_quantizer_and_replicas_are_kept_to(weaviate_url: str, client, quantizer):
    url = named(weaviate_url, quantizer=quantizer, replicas="1")
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
        assert memory.search("yoghurt", 1, alpha=1)[0].procedure.output == "make yoghurt"
    config = client.collections.use(url.partition("?")[0].rpartition("/")[2]).config.get()
    kept = config.vector_config["default"].vector_index_config.quantizer
    assert quantizer in type(kept).__name__.lower()
    assert config.replication_config.factor == 1


def test_a_collection_that_takes_nothing_more_says_so_and_what_is_in(url: str, client):
    name = url.partition("?")[0].rpartition("/")[2]
    shards = client.collections.use(name).config

    def shut_at(count: int) -> None:
        if count == 3000:
            shards.update_shards("READONLY")

    with open_memory(url, embeddings="none") as memory:
        try:
            with pytest.raises(
                AddStopped, match=r"takes nothing more \(.*store is read-only.*add again"
            ) as stop:
                memory.add((procedure(number) for number in range(9000)), progress=shut_at)
            assert 3000 <= stop.value.done <= stop.value.report.added <= memory.count() < 9000
            assert stop.value.in_doubt == ()
            assert all("read-only" in failed.reason for failed in stop.value.report.failed)
            with pytest.raises(ReadOnlyMemory, match="make room on the disk"):
                memory.add([procedure(9000)])
            assert memory.add([procedure(1)]).present == 1
        finally:
            shards.update_shards("READY")
        again = memory.add(procedure(number) for number in range(9000))
        assert again.present >= stop.value.report.added
        assert again.present + again.added == len({item.id for item in memory}) == 9000


def test_what_the_server_refuses_is_in_the_report_with_the_reason_and_not_in_a_log(url: str, caplog):
    good, short = np.ones(4, np.float32) / 2, np.ones(3, np.float32)
    with WeaviateMemory(url, embeddings=DeterministicFakeEmbedding(size=4)) as memory:
        report = memory.add_with_vectors([(procedure(1), good), (procedure(2), good)])
        assert (report.added, report.failed) == (2, [])
        report = memory.add_with_vectors([(procedure(3), good), (procedure(4), short)])
        assert (report.added, [failed.where for failed in report.failed]) == (1, [procedure(4).id])
        assert "length" in report.failed[0].reason
        assert not caplog.records
        assert memory.add([procedure(3), procedure(4)]).present == 1
        assert [hit.procedure.id for hit in memory.search(procedure(4).text(), 1, alpha=1)] == [
            procedure(4).id
        ]


def test_a_procedure_over_the_message_limit_costs_only_itself(url: str):
    huge = procedure(2, metadata={"scan": "x" * 120_000_000})
    with open_memory(url, embeddings="none") as memory:
        report = memory.add([procedure(1), huge, procedure(3)])
        assert (report.added, [failed.where for failed in report.failed]) == (2, [huge.id])
        assert memory.count() == 2


def test_threads_share_a_memory(url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
        expected = memory.search("bake bread", 2)
        found: list[object] = []
        threads = [
            threading.Thread(target=lambda: found.extend(memory.search("bake bread", 2) for _ in range(20)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 160


def test_searches_from_several_event_loops(url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
        retriever = memory.as_retriever(2)

        async def searches():
            return await asyncio.gather(*(retriever.ainvoke("make yoghurt") for _ in range(16)))

        for _ in range(2):
            assert [documents[0].metadata["title"] for documents in asyncio.run(searches())] == [
                "make yoghurt"
            ] * 16


def test_a_memory_that_nobody_closes_is_let_go_without_a_warning(url: str):
    open_memory(url, embeddings="none").count()
    gc.collect()
    with open_memory(url) as memory:
        memory.close()
        with pytest.raises(MemoryFailure, match="was closed"):
            memory.count()


async def test_aag_runs_on_it(url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
    aag = build_aag()
    context = AagContext(memory=url, k=2)
    result = await aag.ainvoke(GOAL, context=context)
    assert "bake a white bread" in [passage["title"] for passage in result["evidence"]]
    assert not [warning for warning in result["warnings"] if "search failed" in warning]
    assert result["steps"] == aag.invoke(GOAL, context=context)["steps"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("weaviate://host:8080", "names no collection"),
        ("weaviate://host:8080/my-dishes", "names no collection"),
        ("weaviate:///Dishes", "not understood"),
        ("weaviate://host:99999/Dishes", "Port out of range"),
        ("weaviate://host/Dishes?port=1", "no option 'port'"),
        ("weaviate://host/Dishes?grpc=no", "must be a number"),
        ("weaviate://host/Dishes?tls=yes", "true or false"),
        ("weaviate://host/Dishes?quantizer=zip", "no quantizer 'zip'"),
        ("weaviates://host/Dishes", "no memory goes by weaviates"),
        ("weaviate+embedded://folder/Dishes", "three slashes"),
    ],
)
def test_a_url_that_is_not_understood_is_named(url, reason):
    with pytest.raises(BadInput, match=reason):
        open_memory(url)


def test_a_key_in_the_url_is_refused_and_not_shown():
    with pytest.raises(BadInput, match="set WEAVIATE_API_KEY") as refused:
        open_memory("weaviate://geheim@host/Dishes")
    assert "geheim" not in str(refused.value)
