"""Searches in a real Weaviate from event loops."""

import asyncio
import gc
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from stepcraft import open_memory
from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.procedure import Found
from stepcraft.memory.protocol import ProcedureMemory
from tests.kitchen import PROCEDURES
from tests.servers.weaviate_server import WeaviateServer

QUERY = "bake a white bread of wheat flour"


@pytest.fixture
def url(weaviate_url: str) -> str:
    before, mark, after = weaviate_url.partition("/?")
    return f"{before}/Test{uuid.uuid4().hex}{'?' if mark else ''}{after}"


@pytest.fixture
def own_url(own_weaviate: WeaviateServer) -> Iterator[str]:
    yield own_weaviate.url(f"Test{uuid.uuid4().hex}")
    if not own_weaviate.pid:
        own_weaviate.start()


@pytest.fixture(autouse=True)
def _nothing_left_open() -> Iterator[None]:
    """What a client leaves open warns when it is collected, and a warning is an error."""
    yield
    gc.collect()


@contextmanager
def filled(url: str, embeddings: str = "wordllama") -> Iterator[ProcedureMemory]:
    with open_memory(url, embeddings=embeddings) as memory:
        memory.add(PROCEDURES)
        yield memory


async def failures(memory: ProcedureMemory, count: int = 1) -> list[str]:
    """What as many searches at once say."""
    ends = await asyncio.gather(
        *(memory.asearch(QUERY) for _ in range(count)), return_exceptions=True
    )
    assert all(isinstance(end, MemoryFailure) for end in ends)
    return [str(end) for end in ends]


@pytest.mark.parametrize("embeddings", ["wordllama", "none"])
async def test_an_async_search_finds_what_a_search_finds(url: str, embeddings: str):
    with filled(url, embeddings) as memory:
        for query in (QUERY, "yoghurt", "?!", ""):
            for alpha in (None, 0, 1):
                assert await memory.asearch(query, 3, alpha=alpha) == memory.search(
                    query, 3, alpha=alpha
                )
        with pytest.raises(BadInput, match="k must be a whole number from 1"):
            await memory.asearch(QUERY, 0)


def test_event_loops_side_by_side(url: str):
    with filled(url) as memory:
        expected = memory.search(QUERY)
        found: list[list[Found]] = []

        async def ask() -> None:
            found.extend(await asyncio.gather(*(memory.asearch(QUERY) for _ in range(64))))

        threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 64 * 3


def test_it_is_closed_from_the_loop_and_from_outside_also_twice(url: str):
    async def search_and_close(memory: ProcedureMemory) -> None:
        await memory.asearch(QUERY)
        memory.close()
        with pytest.raises(MemoryFailure, match="was closed; open it again"):
            await memory.asearch(QUERY)

    memory = open_memory(url)
    asyncio.run(search_and_close(memory))
    memory.close()


async def test_closing_ends_the_searches_under_way(own_weaviate: WeaviateServer, own_url: str):
    with filled(own_url) as memory:
        await memory.asearch(QUERY)
        own_weaviate.freeze()
        try:
            searches = [asyncio.create_task(memory.asearch(QUERY)) for _ in range(4)]
            await asyncio.sleep(0)
            memory.close()
            for search in searches:
                with pytest.raises(MemoryFailure):
                    await search
        finally:
            own_weaviate.thaw()


async def test_a_search_that_is_given_up_harms_no_other(url: str):
    with filled(url) as memory:
        searches = [asyncio.create_task(memory.asearch(QUERY)) for _ in range(8)]
        await asyncio.sleep(0)  # all have begun, and none can end before this loop runs again
        searches[0].cancel()
        ends = await asyncio.gather(*searches, return_exceptions=True)
        assert isinstance(ends[0], asyncio.CancelledError)
        assert ends[1:] == [memory.search(QUERY)] * 7


async def test_a_server_that_hangs_ends_all_searches_in_time(
    own_weaviate: WeaviateServer, own_url: str
):
    with filled(own_url) as memory:
        before = await memory.asearch(QUERY)
        own_weaviate.freeze()
        try:
            for _ in range(2):
                said = await failures(memory, 64)
                assert all("did not answer within" in each for each in said)
        finally:
            own_weaviate.thaw()
        assert await memory.asearch(QUERY) == before


async def test_embedding_a_query_does_not_block_the_loop(url: str):
    begun, let_go = threading.Event(), threading.Event()

    class Waiting(DeterministicFakeEmbedding):
        def embed_query(self, text):
            if text == QUERY:
                begun.set()
                assert let_go.wait(20), "the loop stood still"
            return super().embed_query(text)

    with open_memory(url, embeddings=Waiting(size=4)) as memory:
        memory.add(PROCEDURES)
        search = asyncio.create_task(memory.asearch(QUERY))
        assert await asyncio.to_thread(begun.wait, 20)
        let_go.set()
        assert len(await search) == 3
