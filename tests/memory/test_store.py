"""Memories in LangGraph's own store."""

import random

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.memory import InMemoryStore

from stepcraft.errors import MemoryFailure
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from tests.kitchen import PROCEDURES, dish

DISHES = [
    Procedure(
        output="potato soup",
        input="potatoes",
        steps=["Boil."],
        source="a book",
        metadata={"x": [1]},
    ),
    Procedure(output="bread", input="flour", steps=["Knead.", "Bake."]),
    Procedure(output="fish curry", input="fish", steps=["Fry."]),
]


@pytest.fixture(params=[False, True], ids=["by words", "by the store's index"])
def store(request):
    index = (
        {"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]}
        if request.param
        else None
    )
    return InMemoryStore(index=index)


@pytest.mark.parametrize("beside", ["kitchen", "kitchen/wall/x", "kitchenette", "kitchen/walls"])
def test_namespaces_are_memories_of_their_own(store, beside):
    with (
        open_memory("store:kitchen/wall", store=store) as ours,
        open_memory(f"store:{beside}", store=store) as theirs,
    ):
        theirs.add(DISHES)
        assert (list(ours), ours.is_empty(), ours.search("soup")) == ([], True, [])
        ours.add(DISHES[:1])
        assert [hit.procedure for hit in ours.search("potato soup", 3)] == DISHES[:1]
        assert (ours.count(), theirs.count(), ours.is_empty()) == (1, 3, False)


def test_words_find_what_others_put_there(store):
    ours, theirs = (open_memory("store:", store=store) for _ in range(2))
    ours.add(DISHES)
    assert [found.procedure.output for found in theirs.search("soup", 3, alpha=0)] == [
        "potato soup"
    ]
    ours.delete([DISHES[0].id])
    ours.add([Procedure(output="fish soup", input="fish", steps=["Boil."])])
    assert [found.procedure.output for found in theirs.search("soup", 3, alpha=0)] == ["fish soup"]
    ours.close()
    theirs.close()


def test_items_that_are_no_procedures_are_passed_over(store):
    store.put(("procedures",), "note", {"text": "potato soup"})
    with open_memory("store:", store=store) as memory:
        assert memory.is_empty()
        memory.add(DISHES)
        assert memory.count() == 3
        assert memory.get("note") is None
        assert len(memory.search("potato soup", 5, alpha=0)) == 1


def test_an_item_without_a_vector_leaves_the_search_by_vectors_to_the_others():
    index = {"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]}
    store = InMemoryStore(index=index)
    with open_memory("store:", store=store) as memory:
        memory.add(DISHES)
        found = memory.search("zeppelin", 3)
        assert len(found) == 3
        for namespace in (("procedures",), ("procedures", "notes")):
            store.put(namespace, "note", {"content": "likes soup"})
        assert memory.search("zeppelin", 3) == found


def test_pages_that_overlap_are_read_again():
    class Loose(InMemoryStore):
        """Orders what its order does not tell apart in another way for each page, as a database may."""

        def search(self, namespace_prefix, /, *, limit=10, offset=0, **options):
            found = super().search(namespace_prefix, limit=100_000, **options)
            random.Random(offset).shuffle(found)
            return found[offset : offset + limit]

    with open_memory("store:", store=Loose()) as memory:
        memory.add(dish(number) for number in range(2500))
        names = [item.output for item in memory]
        assert sorted(names) == sorted(f"dish {number}" for number in range(2500))


def test_a_store_that_fails_is_named():
    class Broken(InMemoryStore):
        def batch(self, ops):
            raise ConnectionError("gone")

    with open_memory("store:", store=Broken()) as memory:
        with pytest.raises(MemoryFailure, match="store:procedures: ConnectionError: gone"):
            memory.add(DISHES)
        with pytest.raises(MemoryFailure):
            memory.search("x")


@pytest.mark.parametrize("is_embedded", [False, True])
def test_a_store_that_refuses_names_of_tags_is_searched_by_them(is_embedded: bool):
    class Picky(InMemoryStore):
        """Accepts only letters in a filter, as SqliteStore does."""

        def search(self, namespace_prefix, /, *, filter=None, **options):  # noqa: A002
            if filter and not all(map(str.isalpha, filter)):
                raise ValueError(f"Invalid filter key: {min(filter)!r}")
            return super().search(namespace_prefix, filter=filter, **options)

    index = {"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]}
    with open_memory("store:", store=Picky(index=index if is_embedded else None)) as memory:
        memory.add(dish(number, tags={"größe": "ab"[number % 300 > 0]}) for number in range(600))
        for alpha in (None, 0, 1):
            found = memory.search("dish", 5, alpha=alpha, where={"größe": "a"})
            assert sorted(hit.procedure.output for hit in found) == ["dish 0", "dish 300"]
            assert memory.search("dish", where={"oven": "a"}, alpha=alpha) == []


def test_search_is_hybrid():
    """The vectors of this model say nothing: only words can find the soup."""
    index = {"dims": 256, "embed": DeterministicFakeEmbedding(size=256), "fields": ["text"]}
    with open_memory("store:", store=InMemoryStore(index=index)) as memory:
        memory.add([*DISHES, *PROCEDURES, *(dish(number) for number in range(50))])
        assert memory.search("YOGHURT", 1)[0].procedure.output == "make yoghurt"
        both = memory.search("YOGHURT", 50)
        assert len(both) == 50
        assert both[0].score - both[1].score > 0.1
