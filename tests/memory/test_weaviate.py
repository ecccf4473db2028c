"""Memories in a real Weaviate."""

import gc
import json
import re
import time

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableConfig, RunnableLambda

from benchmarks.memory import procedures, queries
from stepcraft import AagContext, build_aag, open_memory
from stepcraft.errors import AddStopped, BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.outcomes import with_outcome
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.retrieval.opening import opened_memory
from tests.kitchen import GOAL, PROCEDURES, dish
from tests.servers.weaviate_server import collection_of


@pytest.fixture
def url(new_collection) -> str:
    return new_collection()


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


@pytest.mark.timeout(400)  # a busy machine takes over two minutes for the import
def test_near_procedures_of_one_domain_are_found_by_default(url: str):
    """The index of Weaviate's default settings finds 0.90 of the nearest ten among these.

    With ours it is 0.99, and less in an index that a busy machine builds.
    """
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
    assert sum(found) / (10 * len(found)) >= 0.95


def test_a_collection_that_takes_nothing_more_says_so_and_what_is_in(url: str, weaviate_client):
    name = collection_of(url)
    shards = weaviate_client.collections.use(name).config

    def shut_at(count: int) -> None:
        if count == 4000:
            shards.update_shards("READONLY")
            # The server answers before it has shut the shard, and half-writes a batch meanwhile.
            while any(shard.status != "READONLY" for shard in shards.get_shards()):
                time.sleep(0.05)

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
        # A server that is shut in the middle of a batch may have stored what it reports as refused.
        assert again.present >= 4000
        assert again.present + again.added == 9000
        assert len({item.id for item in memory}) == 9000


def test_a_repeated_import_whose_embedding_fails_loses_nothing(url: str):
    class Embedding(DeterministicFakeEmbedding):
        is_refused: bool = False

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if self.is_refused:
                raise ConnectionError("429")
            return super().embed_documents(texts)

    embedding = Embedding(size=8)
    known = [dish(number) for number in range(6)]
    with open_memory(url, embeddings=embedding) as memory:
        memory.add(known)
        memory.update(known[3].id, lambda stored: with_outcome(stored, succeeded=True))
        embedding.is_refused = True
        assert memory.add(known).present == 6
        with pytest.raises(MemoryFailure, match="429"):
            memory.add([dish(3, id=known[3].id, steps=("Wait.",)), dish(7)])
        embedding.is_refused = False
        assert {item.id for item in memory} == {item.id for item in known}
        assert memory.get(known[3].id).outcomes[:2] == (1, 0)
        assert memory.add([*known, dish(7)]).present == 6


def test_tenants_see_nothing_of_each_other(new_collection):
    url = new_collection()
    ada, bob = (f"{url}&tenant={name}" for name in ("tenant-ada", "tenant-bob"))
    with open_memory(ada, embeddings="none") as hers, open_memory(bob, embeddings="none") as his:
        hers.add([dish(1)])
        his.add([dish(2)])
        assert (list(hers), list(his)) == ([dish(1)], [dish(2)])
        assert his.search("dish 1", 3) == his.search("dish", 3)
        assert his.get(dish(1).id) is None
        assert his.delete([dish(1).id]) == 0
    with pytest.raises(MemoryFailure, match=r"has tenants: name one as \?tenant=NAME"):
        open_memory(url)
    plain = new_collection()
    open_memory(plain, embeddings="none").close()
    with pytest.raises(MemoryFailure, match="has no tenants: leave tenant= out"):
        open_memory(f"{plain}&tenant=tenant-ada")


def test_the_tenant_of_a_url_is_the_user_of_the_run(new_collection):
    url = f"{new_collection()}&tenant={{user}}"

    def memory_of(user: str) -> ProcedureMemory:
        config: RunnableConfig = {"configurable": {"user": user}}
        return RunnableLambda(lambda _: opened_memory(url, embeddings="none", create=True)).invoke(
            None, config
        )

    memory_of("ada").add([dish(1)])
    for forged in ("bob", "Ada", " ada", "ada/", "{user}", "*", "ada\0", "a" * 200):
        assert list(memory_of(forged)) == []
    assert list(memory_of("ada")) == [dish(1)]


def test_a_collection_is_made_with_the_replicas_and_quantization_of_the_url(
    url: str, weaviate_client
):
    with open_memory(f"{url}&replicas=1&quantization=rq", embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
        assert memory.search("yoghurt", 1)[0].procedure.output == "make yoghurt"
    config = weaviate_client.collections.use(collection_of(url)).config.get()
    assert "RQ" in type(config.vector_config["default"].vector_index_config.quantizer).__name__
    assert config.replication_config.factor == 1


def test_procedures_that_are_more_than_a_message_may_hold_are_sent_in_several(url: str):
    large = [dish(number, metadata={"scan": "x" * 60_000_000}) for number in (1, 2)]
    with open_memory(url, embeddings="none") as memory:
        assert memory.add(large).added == memory.count() == 2


def test_a_vote_needs_no_embeddings_and_keeps_the_vector(url: str):
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(PROCEDURES)
        before = memory.search("yoghurt", 1, alpha=1)[0]
    with open_memory(url, embeddings="none") as memory:
        memory.update(before.procedure.id, lambda kept: with_outcome(kept, succeeded=True))
        with pytest.raises(MemoryFailure, match="open it with them to add"):
            memory.update(before.procedure.id, lambda kept: dish(3, id=kept.id))
    with open_memory(url, embeddings="wordllama") as memory:
        after = memory.search("yoghurt", 1, alpha=1)[0]
    assert (after.procedure.id, after.score) == (before.procedure.id, before.score)
    assert after.procedure.outcomes[:2] == (1, 0)


def test_words_of_an_earlier_version_are_made_anew_and_nothing_else_changes(
    url: str, weaviate_client
):
    # It takes a second, for which other tests need not wait.
    from weaviate.classes.config import (  # noqa: PLC0415
        Configure,
        DataType,
        Property,
        Tokenization,
    )

    word = Tokenization.WORD
    collection = weaviate_client.collections.create(
        collection_of(url),
        description=json.dumps({"embeddings": "wordllama"}),
        properties=[
            *(
                Property(name=name, data_type=DataType.TEXT, tokenization=word)
                for name in ("input", "output", "source", "metadata", "cjk")
            ),
            Property(name="steps", data_type=DataType.TEXT_ARRAY, tokenization=word),
        ],
        vector_config=Configure.Vectors.self_provided(),
    )
    items = [*PROCEDURES, dish(1, output="Apfelkuchen backen", metadata={"by": "ada"})]
    vectors = resolve_embeddings("wordllama").embed_documents([item.text() for item in items])
    for item, vector in zip(items, vectors, strict=True):
        fields = {name: getattr(item, name) for name in ("input", "output", "source")}
        metadata = json.dumps(dict(item.metadata))
        properties = {**fields, "steps": [*item.steps], "metadata": metadata}
        collection.data.insert(properties, uuid=item.id, vector=vector.tolist())
    for _ in range(2):
        with open_memory(url) as memory:
            assert memory.search("Kuchen", 3, alpha=0)[0].procedure == items[-1]
            assert memory.search("yoghurts starter", 3, alpha=0)[0].procedure == PROCEDURES[2]
            assert {item.id: item for item in memory} == {item.id: item for item in items}
            [hit] = memory.search(items[-1].text(), 1, alpha=1)
            assert (hit.procedure, hit.score) == (items[-1], pytest.approx(1, abs=1e-4))


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
    aag, context = build_aag(memory=url), AagContext(k=2)
    result = await aag.ainvoke(GOAL, context=context)
    assert "bake a white bread" in [passage["title"] for passage in result["evidence"]]
    assert result["steps"] == aag.invoke(GOAL, context=context)["steps"]


@pytest.mark.parametrize(
    "url",
    [
        "weaviate://host:8080",
        "weaviate://host:8080/my-dishes",
        "weaviate:///Dishes",
        "weaviate://host:99999/Dishes",
        "weaviate://host/Dishes?port=1",
        "weaviate://host/Dishes?grpc=no",
        "weaviate://host/Dishes?tls=perhaps",
        "weaviates://host/Dishes",
        "weaviate+embedded:///folder/Dishes",
        "weaviate://host/folder/Dishes",
        "weaviate://host/Dishes?tenant=a/b",
        "weaviate://host/Dishes?tenant=a&tenant=b",
        "weaviate://host/Dishes#tenant=a",
        "weaviate://host:0/Dishes",
        "weaviate://host/Dishes?grpc=-1",
        "weaviate://host/Dishes?replicas=0",
        "weaviate://host/Dishes?quantization=zip",
    ],
)
def test_a_url_that_is_not_understood_is_named(url):
    with pytest.raises(BadInput, match=re.escape(url)):
        open_memory(url)


@pytest.mark.parametrize("host", ["host", "host:808O", "[host"])
def test_a_key_in_the_url_is_refused_and_not_shown(host: str):
    with pytest.raises(BadInput, match="set WEAVIATE_API_KEY") as refused:
        open_memory(f"weaviate://geheim@{host}/Dishes")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("option", ["api_key", "key", "token", "client_secret", "password"])
def test_a_key_in_an_option_of_the_url_is_refused_and_not_shown(option: str):
    with pytest.raises(BadInput, match="set WEAVIATE_API_KEY") as refused:
        open_memory(f"weaviate+cloud://host/Dishes?tls=true&{option}=geheim")
    assert "geheim" not in str(refused.value)
