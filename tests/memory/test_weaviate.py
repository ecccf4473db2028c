"""Memories in a real Weaviate."""

import asyncio
import gc
from pathlib import Path

import pytest

from benchmarks.memory import procedures, queries
from stepcraft import AagContext, build_aag, open_memory
from stepcraft.errors import AddStopped, BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.memory.feedback import counts, with_vote
from stepcraft.memory.files import import_file
from stepcraft.memory.local import LocalMemory
from stepcraft.retrieval.opening import opened_memory
from tests.kitchen import GOAL, PROCEDURES, dish
from tests.servers.weaviate_server import collection_of

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


@pytest.fixture
def url(new_collection) -> str:
    return new_collection()


@pytest.mark.skipif(not RECIPES.exists(), reason=f"the recipes are not at {RECIPES}")
def test_the_same_recipes_are_found_as_in_a_local_database(url: str):
    with open_memory(url, embeddings="wordllama") as kept, open_memory(RECIPES) as local:
        first = import_file(kept, RECIPES)
        assert (first.added, first.failed) == (333, [])
        assert import_file(kept, RECIPES).present == 333
        for goal in GOALS:
            ours, theirs = (
                [hit.procedure.id for hit in memory.search(goal, 5, alpha=1)]
                for memory in (kept, local)
            )
            assert ours == theirs


def test_a_collection_that_somebody_else_made_is_refused(url: str, weaviate_client):
    weaviate_client.collections.create(name := collection_of(url))
    with pytest.raises(MemoryFailure, match=f"{name} .* stepcraft did not make it"):
        open_memory(url)


def test_a_missing_collection_is_not_made_when_so_told(url: str):
    with pytest.raises(BadInput, match="there is no collection Test"):
        opened_memory(url)


def test_a_collection_that_was_dropped_meanwhile(url: str, weaviate_client):
    with open_memory(url, embeddings="none") as memory:
        memory.add(PROCEDURES)
        weaviate_client.collections.delete(name := collection_of(url))
        with pytest.raises(MemoryFailure, match=rf"{name}.* failed: "):
            memory.search("tea")


def test_a_fault_that_names_connections_is_no_outage(new_collection, weaviate_client):
    """The collection is called so."""
    url = new_collection().replace("/Test", "/Connections")
    with open_memory(url, embeddings="none") as memory:
        weaviate_client.collections.delete(collection_of(url))
        client = memory._connection._client
        with pytest.raises(MemoryFailure, match="Connections"):
            memory.search("tea")
        assert memory._connection._client is client


def test_tenants_are_kept_apart(new_collection):
    url = new_collection(tenant="a")
    with open_memory(url) as ours, open_memory(url[:-1] + "b") as theirs:
        ours.add([dish(1)])
        theirs.add([dish(2), dish(3)])
        assert [hit.procedure.output for hit in ours.search("dish", 5)] == ["dish 1"]
        assert (ours.count(), theirs.count()) == (1, 2)
    with pytest.raises(BadInput, match="no tenant 'c'"):
        open_memory(url[:-1] + "c", create=False)
    with pytest.raises(BadInput, match="has tenants; add"):
        open_memory(url.replace("&tenant=a", ""))


def test_a_tenant_in_a_collection_without_tenants_is_refused(url: str):
    open_memory(url).close()
    with pytest.raises(BadInput, match=r"has no tenants; leave out \?tenant="):
        open_memory(f"{url}&tenant=a")


@pytest.mark.parametrize("quantizer", ["rq", "bq"])
def test_a_quantizer_and_replicas_are_kept_to(new_collection, weaviate_client, quantizer):
    url = new_collection(quantizer=quantizer, replicas="1")
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
        assert memory.search("yoghurt", 1, alpha=1)[0].procedure.output == "make yoghurt"
    config = weaviate_client.collections.use(collection_of(url)).config.get()
    kept = config.vector_config["default"].vector_index_config.quantizer
    assert quantizer in type(kept).__name__.lower()
    assert config.replication_config.factor == 1


def index_of(client, url: str) -> tuple[int, int, int]:
    config = client.collections.use(collection_of(url)).config.get()
    index = config.vector_config["default"].vector_index_config
    return index.ef, index.ef_construction, index.max_connections


def test_the_index_is_made_for_procedures_of_one_domain_unless_the_url_says_otherwise(
    new_collection, weaviate_client
):
    open_memory(url := new_collection()).close()
    assert index_of(weaviate_client, url) == (1024, 256, 64)
    open_memory(
        url := new_collection(ef="300", ef_construction="128", max_connections="16")
    ).close()
    assert index_of(weaviate_client, url) == (300, 128, 16)


def test_ef_of_a_collection_is_changed(new_collection, weaviate_client):
    open_memory(url := new_collection()).close()
    with open_memory(f"{url}&ef=700&max_connections=32", create=False) as memory:
        memory.add([dish(1)])
    assert index_of(weaviate_client, url) == (700, 256, 64)
    open_memory(url).close()
    assert index_of(weaviate_client, url) == (700, 256, 64), "a URL without ef leaves it as it is"


def test_near_procedures_of_one_domain_are_found_by_default(url: str):
    """The index of Weaviate's default settings finds 0.90 of the nearest ten among these."""
    known = procedures(10_000)
    with (
        open_memory(url, embeddings="wordllama") as memory,
        LocalMemory(":memory:", embeddings="wordllama") as exact,
    ):
        memory.add(known)
        exact.add(known)
        found = [
            len(
                {hit.procedure.id for hit in memory.search(query, 10, alpha=1)}
                & {hit.procedure.id for hit in exact.search(query, 10, alpha=1)}
            )
            for query in queries(known)
        ]
    assert sum(found) / (10 * len(found)) >= 0.98


def test_a_collection_that_takes_nothing_more_says_so_and_what_is_in(url: str, weaviate_client):
    name = collection_of(url)
    shards = weaviate_client.collections.use(name).config

    def shut_at(count: int) -> None:
        if count == 4000:
            shards.update_shards("READONLY")

    with open_memory(url, embeddings="none") as memory:
        try:
            with pytest.raises(
                AddStopped, match=r"takes nothing more \(.*store is read-only.*4,000 procedures"
            ) as stop:
                memory.add((dish(number) for number in range(9000)), progress=shut_at)
            assert (stop.value.done, stop.value.report.added) == (4000, 4000)
            with pytest.raises(ReadOnlyMemory, match="make room on the disk"):
                memory.add([dish(9000)])
            with pytest.raises(
                MemoryFailure, match=rf"0 procedures were deleted.*keeps the others in {name}"
            ):
                memory.delete([dish(1).id])
            assert memory.add([dish(1)]).present == 1
        finally:
            shards.update_shards("READY")
        again = memory.add(dish(number) for number in range(9000))
        assert (again.present, again.added) == (4000, 5000)
        assert len({item.id for item in memory}) == 9000


def test_a_procedure_over_the_message_limit_costs_only_itself(url: str):
    huge = dish(2, metadata={"scan": "x" * 120_000_000})
    with open_memory(url, embeddings="none") as memory:
        report = memory.add([dish(1), huge, dish(3)])
        assert (report.added, [failed.where for failed in report.failed]) == (2, [huge.id])
        assert memory.count() == 2


def test_a_vote_needs_no_embeddings_and_keeps_the_vector(url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
        before = memory.search("yoghurt", 1, alpha=1)[0]
    with open_memory(url, embeddings="none") as memory:
        memory.update(before.procedure.id, lambda kept: with_vote(kept, 1))
        with pytest.raises(MemoryFailure, match="open it with them to add"):
            memory.update(before.procedure.id, lambda kept: dish(3, id=kept.id))
    with open_memory(url, embeddings="wordllama") as memory:
        after = memory.search("yoghurt", 1, alpha=1)[0]
    assert (after.procedure.id, after.score) == (before.procedure.id, before.score)
    assert counts(after.procedure) == (1, 0)


def test_the_best_by_words_are_the_same_however_few_are_wanted(url: str):
    with open_memory(embeddings="none") as bundled, open_memory(url, embeddings="none") as memory:
        memory.add(bundled)
        for query in (
            "add long-term memory to a chat agent",
            "stream tokens of a model",
            "deploy to the cloud",
        ):
            best = memory.search(query, 50, alpha=0)
            for k in (1, 3, 13):
                assert memory.search(query, k, alpha=0) == best[:k]


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
    aag = build_aag(memory=url)
    context = AagContext(k=2)
    result = await aag.ainvoke(GOAL, context=context)
    assert "bake a white bread" in [passage["title"] for passage in result["evidence"]]
    assert not [warning for warning in result["warnings"] if "search failed" in warning]
    assert result["steps"] == aag.invoke(GOAL, context=context)["steps"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("weaviate://host:8080", "not understood"),
        ("weaviate://host:8080/my-dishes", "not understood.*a collection of letters, digits and _"),
        ("weaviate:///Dishes", "not understood"),
        ("weaviate://host:99999/Dishes", "is no URL; check its host and port"),
        ("weaviate://host/Dishes?port=1", "has port=1.*the options are grpc"),
        ("weaviate://host/Dishes?grpc=no", "has grpc=no"),
        ("weaviate://host/Dishes?tls=perhaps", "has tls=perhaps"),
        ("weaviate://host/Dishes?quantizer=zip", "has quantizer=zip.*'rq'"),
        ("weaviate://host/Dishes?ef=0", "has ef=0"),
        ("weaviate+embedded:///tmp/Dishes?ef_construction=high", "has ef_construction=high"),
        ("weaviates://host/Dishes", "no memory goes by weaviates"),
        ("weaviate+embedded://folder/Dishes", "is not understood"),
    ],
)
def test_a_url_that_is_not_understood_is_named(url, reason):
    with pytest.raises(BadInput, match=reason):
        open_memory(url)


def test_a_key_in_the_url_is_refused_and_not_shown():
    with pytest.raises(BadInput, match="set WEAVIATE_API_KEY") as refused:
        open_memory("weaviate://geheim@host/Dishes")
    assert "geheim" not in str(refused.value)
