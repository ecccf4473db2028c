"""Memories copied to others with their vectors, local and in Weaviate."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from stepcraft import Procedure, open_memory
from stepcraft.memory.transfer import copy

COUNT = 1200
Fresh = Callable[[str], str]


class Counting(DeterministicFakeEmbedding):
    """Counts the procedures that it embedded."""

    texts: int = 0

    def embed_documents(self, texts):
        self.texts += len(texts)
        return super().embed_documents(texts)


def procedures() -> list[Procedure]:
    return [
        Procedure("flour", f"dish {n}", ("Mix.", f"Bake {n}."), metadata={"n": n})
        for n in range(COUNT)
    ]


@pytest.fixture
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    def named(kind: str) -> str:
        if kind == "local":
            return str(tmp_path / f"{uuid.uuid4().hex}.db")
        base, _, options = request.getfixturevalue("weaviate_url").partition("?")
        return f"{base}Copy{uuid.uuid4().hex}?{options}"

    return named


KINDS = [("local", "local"), ("local", "weaviate"), ("weaviate", "local"), ("weaviate", "weaviate")]


@pytest.mark.parametrize(("source", "target"), KINDS)
def test_a_copy_takes_the_vectors_along(fresh: Fresh, source: str, target: str):
    model, other = Counting(size=8), Counting(size=8)
    with (
        open_memory(fresh(source), embeddings=model) as old,
        open_memory(fresh(target), embeddings=other) as new,
    ):
        old.add(procedures())
        report = copy(old, new)
        assert (report.added, report.failed, other.texts) == (COUNT, [], 0)
        assert copy(old, new).present == COUNT
        assert sorted(new, key=lambda item: item.id) == sorted(
            procedures(), key=lambda item: item.id
        )
        for query in ("dish 7", "dish 1100"):
            scores = [
                [hit.score for hit in memory.search(query, 5, alpha=1)] for memory in (old, new)
            ]
            assert scores[1] == pytest.approx(scores[0], abs=1e-5)


def test_a_copy_into_another_template_is_embedded_again(fresh: Fresh):
    other = Counting(size=8)
    with (
        open_memory(fresh("local"), embeddings=Counting(size=8)) as old,
        open_memory(fresh("local"), embeddings=other, template="{output}\n{steps}") as new,
    ):
        old.add(procedures())
        assert copy(old, new).added == other.texts == COUNT


def test_a_copy_of_vectors_needs_no_embedding_model(fresh: Fresh):
    url, model = fresh("local"), Counting(size=8)
    target = fresh("local")
    open_memory(target, embeddings=model).close()
    with open_memory(url, embeddings=model) as old:
        old.add(procedures())
    with open_memory(url, embeddings="none") as old, open_memory(target, embeddings="none") as new:
        assert copy(old, new).added == COUNT


def test_a_procedure_without_a_vector_stays_without(fresh: Fresh):
    odd = Procedure("\u2042", "\u2042", ("\u2042",))
    with (
        open_memory(fresh("local"), embeddings="wordllama") as old,
        open_memory(fresh("weaviate"), embeddings="wordllama") as new,
        open_memory(fresh("local"), embeddings="wordllama") as back,
    ):
        old.add([odd])
        for source, target in ((old, new), (new, back)):
            assert copy(source, target).added == 1
            assert copy(source, target).present == 1
        assert list(back) == [odd]
