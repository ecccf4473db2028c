"""Memories in a Postgres store, given or opened by their URL."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

from stepcraft import open_memory
from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.outcomes import with_outcome
from tests.kitchen import PROCEDURES, dish


@contextmanager
def store_of(
    url: str, dims: int = 8, *, setup: bool = True, **index: Any
) -> Iterator[PostgresStore]:
    """The store in a database, as a graph is given it."""
    settings: Any = {
        "dims": dims,
        "embed": DeterministicFakeEmbedding(size=dims),
        "fields": ["text"],
        **index,
    }
    with PostgresStore.from_conn_string(url, index=settings) as store:
        if setup:
            store.setup()
        yield store


@pytest.fixture(scope="module")
def database(new_database: Callable[[], str]) -> str:
    """A database with pgvector's default index, and many procedures in one namespace."""
    url = new_database()
    with store_of(url) as store, open_memory("store:many", store=store) as memory:
        memory.add(dish(number) for number in range(1500))
    return url


def outputs(found: Any) -> list[str]:
    return [hit.procedure.output for hit in found]


def test_a_small_namespace_is_found_beside_a_large_one(database: str) -> None:
    with store_of(database) as store, open_memory("store:few", store=store) as memory:
        memory.add(PROCEDURES)
        found = memory.search("bake a white bread", 4)
        assert sorted(outputs(found)) == sorted(procedure.output for procedure in PROCEDURES)
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        assert memory.search(PROCEDURES[2].text(), 1)[0].procedure == PROCEDURES[2]
    with store_of(database) as store, open_memory("store:many", store=store) as memory:
        assert memory.search(dish(7).text(), 3)[0].procedure == dish(7)
        assert len({item.id for item in memory}) == 1500


def test_embeddings_of_another_length_are_a_clear_error(database: str) -> None:
    said = r"store:many: .*(expected 8 dimensions, not 16|dimensions 8 and 16)"
    with store_of(database, 16) as store, open_memory("store:many", store=store) as memory:
        with pytest.raises(MemoryFailure, match=said):
            memory.add([dish(9999)])
        with pytest.raises(MemoryFailure, match=said):
            memory.search("dish")
        assert outputs(memory.search("7", 1, alpha=0)) == ["dish 7"]
    with pytest.raises(MemoryFailure, match="has vectors of 8 dimensions, and wordllama gives 256"):
        open_memory(f"store+{database}/many", embeddings="wordllama")


def test_a_store_that_was_not_set_up_says_what_to_do(new_database: Callable[[], str]) -> None:
    with (
        store_of(new_database(), setup=False) as store,
        open_memory("store:", store=store) as memory,
    ):
        for call in (memory.count, lambda: memory.add(PROCEDURES), lambda: memory.search("bread")):
            with pytest.raises(MemoryFailure, match=r"call setup\(\) of the store once"):
                call()


def test_a_url_opens_what_a_graph_has_as_its_store(new_database: Callable[[], str]) -> None:
    url, fake = new_database(), DeterministicFakeEmbedding(size=8)
    with open_memory(f"store+{url}/team/recipes", embeddings=fake) as memory:
        memory.add(PROCEDURES)
    with store_of(url) as store, open_memory("store:team/recipes", store=store) as memory:
        assert memory.search(PROCEDURES[1].text(), 1)[0].procedure == PROCEDURES[1]
        memory.add([dish(1)])
    with open_memory(f"store+{url}/team/recipes", embeddings="none", create=False) as memory:
        assert outputs(memory.search("dish", 1)) == ["dish 1"]
        assert memory.count() == 5


def test_search_is_hybrid_also_without_our_table(
    new_database: Callable[[], str],
) -> None:
    """The vectors of this model say nothing: only words can find the yoghurt."""
    url, fake = new_database(), DeterministicFakeEmbedding(size=256)
    with store_of(url, 256) as store, open_memory("store:dishes", store=store) as plain:
        plain.add([*PROCEDURES, *(dish(number) for number in range(50))])
    with open_memory(f"store+{url}/dishes", embeddings=fake, create=False) as mirrored:
        expected = outputs(mirrored.search("the YOGHURT of a starter", 3))
        assert expected[0] == "make yoghurt"
    for _ in range(2):
        with open_memory(f"store+{url}/dishes", embeddings=fake) as memory:
            assert outputs(memory.search("the YOGHURT of a starter", 3)) == expected


def test_the_tables_of_the_store_stay_as_langgraph_made_them(
    new_database: Callable[[], str],
) -> None:
    columns = (
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_name LIKE 'store%' ORDER BY 1, 2"
    )
    url = new_database()
    with store_of(url) as store, psycopg.connect(url, autocommit=True) as connection:
        before = connection.execute(columns).fetchall()
        store.put(("others",), "note", {"text": "a note"})
        # Another agent reads and writes meanwhile, and holds its locks.
        with connection.transaction():
            connection.execute("SELECT * FROM store; LOCK TABLE store IN ROW EXCLUSIVE MODE")
            fake = DeterministicFakeEmbedding(size=8)
            with open_memory(f"store+{url}/dishes", embeddings=fake) as memory:
                memory.add(PROCEDURES)
                assert outputs(memory.search("yoghurt", 1, alpha=0)) == ["make yoghurt"]
        assert connection.execute(columns).fetchall() == before


def test_a_role_that_may_not_create_tables_writes_into_an_existing_store(
    new_database: Callable[[], str],
) -> None:
    url, role = new_database(), f"cook_{uuid.uuid4().hex}"
    with store_of(url), psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role}")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        place = f"store+{url}/dishes?options=-c%20role%3D{role}"
        try:
            with open_memory(place, embeddings=DeterministicFakeEmbedding(size=8)) as memory:
                memory.add(PROCEDURES)
                assert outputs(memory.search("yoghurt", 1, alpha=0)) == ["make yoghurt"]
        finally:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


def test_another_embedding_model_is_refused_with_the_command_that_embeds_anew(
    new_database: Callable[[], str],
) -> None:
    class Other(DeterministicFakeEmbedding):
        pass

    url = f"store+{new_database()}/dishes"
    with open_memory(url, embeddings=DeterministicFakeEmbedding(size=8)) as memory:
        memory.add(PROCEDURES)
    with pytest.raises(MemoryFailure, match=r"with embeddings 'Determ.*, not 'Other'.*memory copy"):
        open_memory(url, embeddings=Other(size=8))
    with open_memory(url.replace("dishes", "others"), embeddings=Other(size=8)) as memory:
        memory.add(PROCEDURES)


def test_an_embedding_model_that_another_has_recorded_since_is_noticed(
    new_database: Callable[[], str],
) -> None:
    class Other(DeterministicFakeEmbedding):
        pass

    url, fake = f"store+{new_database()}/dishes", DeterministicFakeEmbedding(size=8)
    with (
        open_memory(url, embeddings=Other(size=8)) as early,
        open_memory(url, embeddings=fake) as memory,
        open_memory(url, embeddings=fake) as another,
    ):
        assert early.search("yoghurt") == []
        memory.add(PROCEDURES)
        another.add([dish(1)])
        for opened in (memory, another):
            assert outputs(opened.search(dish(1).text(), 1)) == ["dish 1"]
        for call in (lambda: early.search("yoghurt"), lambda: early.add([dish(2)])):
            with pytest.raises(MemoryFailure, match=r"with embeddings 'Determ.*, not 'Other'"):
                call()
        assert outputs(early.search("yoghurt", 1, alpha=0)) == ["make yoghurt"]
        assert memory.count() == 5


def test_words_follow_what_others_write_into_the_store(new_database: Callable[[], str]) -> None:
    url, fake = new_database(), DeterministicFakeEmbedding(size=8)
    with (
        open_memory(f"store+{url}/dishes", embeddings=fake) as memory,
        store_of(url) as store,
        open_memory("store:dishes", store=store) as other,
    ):
        memory.add(PROCEDURES)
        other.add([dish(1)])
        assert outputs(memory.search("dish", 1, alpha=0)) == ["dish 1"]
        other.update(dish(1).id, lambda kept: replace(kept, output="a stew"))
        assert outputs(memory.search("stew", 1, alpha=0)) == ["a stew"]
        other.delete([dish(1).id])
        assert memory.search("stew", 1, alpha=0) == []
        memory.delete([item.id for item in PROCEDURES])
        assert memory.search("yoghurt", 1, alpha=0) == []


def test_words_of_an_earlier_version_are_made_anew(new_database: Callable[[], str]) -> None:
    url = new_database()
    with open_memory(f"store+{url}/dishes", embeddings="none") as memory:
        memory.add([*PROCEDURES, dish(1, output="Apfelkuchen backen")])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE stepcraft_words SET version = 0")
        connection.execute("UPDATE stepcraft_words SET words = to_tsvector('english', 'outdated')")
    for _ in range(2):
        with open_memory(f"store+{url}/dishes", create=False) as memory:
            assert outputs(memory.search("Kuchen", 3, alpha=0)) == ["Apfelkuchen backen"]
            assert memory.search("outdated", 3, alpha=0) == []
            assert memory.count() == 5


def test_what_was_made_without_vectors_stays_so(new_database: Callable[[], str]) -> None:
    url = f"store+{new_database()}"
    with pytest.raises(
        MemoryFailure, match="has no store yet; fill it with `stepcraft memory copy"
    ):
        open_memory(url, create=False)
    with open_memory(url, embeddings="none") as memory:
        memory.add(PROCEDURES)
    with open_memory(url) as memory:
        assert outputs(memory.search("yoghurt")) == ["make yoghurt"]
    with pytest.raises(
        MemoryFailure, match=r"has vectors of no dimensions, and wordllama gives 256: .*'none'"
    ):
        open_memory(url, embeddings="wordllama")


async def test_an_async_store_is_searched_with_all_threads_of_the_loop_in_use(
    database: str,
) -> None:
    """An embedding model without an async method takes one of them."""
    settings: Any = {"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]}
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    async with AsyncPostgresStore.from_conn_string(database, index=settings) as store:
        memory = open_memory("store:many", store=store)
        async with asyncio.timeout(30):
            found = await asyncio.gather(*(memory.asearch(dish(n).text(), 1) for n in range(5)))
        assert [outputs(hits) for hits in found] == [[f"dish {n}"] for n in range(5)]


def test_lost_connections_are_made_again(new_database: Callable[[], str]) -> None:
    url = new_database()
    with open_memory(f"store+{url}", embeddings="none") as memory:
        memory.add(PROCEDURES)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert memory.count() == len(PROCEDURES)
        assert outputs(memory.search("yoghurt", 1)) == ["make yoghurt"]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("store+postgresql://ann:hunter22@db/kitchen", "a password does not belong into a URL; set PGPASSWORD"),
        ("store+postgresql://db", r"store\+postgresql://db names no database; write store\+postgresql://host"),
        ("store+postgresql://ann:hunter22/x@db/kitchen", "a password does not belong into a URL; set"),
        ("store+postgresql://ann:hunter22%off@db/kitchen", "a password does not belong into a URL; set"),
        ("store+postgresql://db/kitchen?password=hunter22%off", "a password does not belong into a"),
        ("STORE+POSTGRESQL://db", "names no database"),
        ("store+postgresql:db/kitchen", "postgresql:db/kitchen is no URL"),
        ("store+postgresql://db/kitchen?colour=red", "is no URL.*colour"),
        ("store+postgresql://db/kitchen/langgraph/x", "nor the first one be 'langgraph'"),
    ],
)  # fmt: skip
def test_a_wrong_url_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as refused:
        open_memory(url)
    assert "hunter22" not in str(refused.value)


def test_no_vote_of_another_process_is_lost(new_database: Callable[[], str]) -> None:
    """Memories of two URLs share no lock of this process."""
    url = f"store+{new_database()}/dishes"
    with (
        open_memory(url, embeddings="none") as one,
        open_memory(f"{url}?sslmode=prefer", embeddings="none") as other,
    ):
        one.add([dish(1)])

        def vote(number: int) -> None:
            memory = other if number % 2 else one
            memory.update(dish(1).id, lambda kept: with_outcome(kept, succeeded=True))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(vote, range(40)))
        kept = other.get(dish(1).id)
        assert kept
        assert kept.outcomes[:2] == (40, 0)


def test_a_vote_needs_no_embeddings_and_another_text_does(new_database: Callable[[], str]) -> None:
    url = f"store+{new_database()}/dishes"
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add([dish(1), dish(2)])
    with open_memory(url, embeddings="none") as memory:
        memory.update(dish(1).id, lambda kept: with_outcome(kept, succeeded=True))
        with pytest.raises(
            MemoryFailure, match="open it with the embeddings that it was made with"
        ):
            memory.update(dish(1).id, lambda kept: dish(3, id=kept.id))
    with open_memory(url, embeddings="wordllama") as memory:
        assert outputs(memory.search("dish 1", 1, alpha=1)) == ["dish 1"]
        assert memory.search("dish 1", 1)[0].procedure.outcomes[:2] == (1, 0)


def test_a_database_out_of_reach_is_named_at_once(postgres_url: str) -> None:
    with pytest.raises(MemoryFailure, match=r"localhost:9/kitchen cannot be opened: .*refused"):
        open_memory("store+postgresql://localhost:9/kitchen")
    with pytest.raises(MemoryFailure, match='database "nosuch" does not exist'):
        open_memory(f"store+{postgres_url.rpartition('/')[0]}/nosuch")
