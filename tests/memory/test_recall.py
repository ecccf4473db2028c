"""Whether the bundled memory finds the procedure that a goal in other words asks for."""

import json
from pathlib import Path

import pytest

from stepcraft.memory.local import LocalMemory
from stepcraft.memory.open import open_memory

GOALS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "benchmarks" / "paraphrases.jsonl")
    .read_text("utf-8")
    .splitlines()
]


@pytest.fixture(scope="module")
def bundled():
    pytest.importorskip("wordllama")
    with open_memory(embeddings="wordllama") as memory:
        yield memory


def found(memory: LocalMemory, asker: str, alpha: float | None = None) -> int:
    """How many of the asker's 60 goals have their procedure among the first three."""
    return sum(
        goal["id"]
        in {hit.procedure.metadata["id"] for hit in memory.search(goal["goal"], 3, alpha=alpha)}
        for goal in GOALS
        if goal["asker"] == asker
    )


def test_goals_in_the_terms_of_the_documentation_find_their_procedure(bundled):
    assert found(bundled, "user") >= 57


def test_the_default_finds_more_goals_than_words_or_vectors_alone(bundled):
    by_default, words, vectors = (
        found(bundled, "user", alpha) + found(bundled, "newcomer", alpha) for alpha in (None, 0, 1)
    )
    assert by_default > max(words, vectors)
