"""Votes: what they are worth, and how they move what a search finds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from stepcraft import Procedure, open_memory
from stepcraft.memory.feedback import (
    FEEDBACK_WEIGHT,
    adjustment,
    counts,
    with_vote,
)
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.retriever import ProcedureRetriever
from tests.kitchen import dish

QUERY = "add long-term memory to a chat agent"


def voted(procedure: Procedure, up: int = 0, down: int = 0) -> Procedure:
    for _ in range(up):
        procedure = with_vote(procedure, 1)
    for _ in range(down):
        procedure = with_vote(procedure, -1)
    return procedure


@pytest.fixture
def memory() -> Iterator[ProcedureMemory]:
    with (
        open_memory(embeddings="none") as bundled,
        LocalMemory(":memory:", embeddings="none") as opened,
    ):
        opened.add(bundled)
        yield opened


@pytest.mark.parametrize(
    ("up", "down", "share"),
    [
        (0, 0, 0),
        (1, 0, 0.207),
        (0, 1, -0.207),
        (10, 0, 0.722),
        (100, 0, 0.963),
        (5, 5, 0),
        (0, 100, -0.963),
    ],
)
def test_one_vote_moves_little_and_many_up_to_the_weight(up: int, down: int, share: float) -> None:
    assert adjustment(voted(dish(1), up, down), FEEDBACK_WEIGHT) == pytest.approx(
        FEEDBACK_WEIGHT * share, abs=1e-4
    )
    assert adjustment(voted(dish(1), up, down), 0) == 0


def test_a_stale_procedure_moves_down_by_the_whole_weight() -> None:
    stale = replace(dish(1), metadata={"stale": "the page is gone"})
    assert adjustment(stale, FEEDBACK_WEIGHT) == pytest.approx(-FEEDBACK_WEIGHT)
    assert adjustment(voted(stale, 0, 100), 1) == pytest.approx(-1.963, abs=1e-3)


def test_a_tool_call_votes_once() -> None:
    once = with_vote(dish(1), 1, call="a")
    assert with_vote(once, 1, call="a") == once
    assert counts(with_vote(once, 1, call="b")) == (2, 0)


@pytest.mark.parametrize("odd", [None, "2", [{"vote": 1}], {"up": "2"}, {"up": -1, "down": 0.5}])
def test_what_somebody_else_keeps_under_votes_counts_for_nothing(odd: object) -> None:
    procedure = replace(dish(1), metadata={"votes": odd})
    assert counts(procedure) == (0, 0)
    assert counts(with_vote(procedure, -1)) == (0, 1)


def found(memory: ProcedureMemory, k: int = 3, **options: float) -> list[str]:
    retriever = ProcedureRetriever(memory=memory, k=k, **options)
    titles = [document.metadata["title"] for document in retriever.invoke(QUERY)]
    assert titles == [
        document.metadata["title"] for document in asyncio.run(retriever.ainvoke(QUERY))
    ]
    return titles


@pytest.mark.parametrize("weight", [0, FEEDBACK_WEIGHT, 1])
def test_without_votes_a_search_is_as_it_was(memory: ProcedureMemory, weight: float) -> None:
    documents = ProcedureRetriever(memory=memory, feedback_weight=weight).invoke(QUERY)
    assert [(document.id, document.metadata["score"]) for document in documents] == [
        (hit.procedure.id, hit.score) for hit in memory.search(QUERY, 3)
    ]


def test_votes_move_what_is_found_and_lose_nothing(memory: ProcedureMemory) -> None:
    before = found(memory, 5)
    best, *_, fifth = (hit.procedure for hit in memory.search(QUERY, 5))
    memory.update(best.id, lambda kept: voted(kept, down=30))
    assert found(memory, feedback_weight=1) == before[1:4]
    memory.update(fifth.id, lambda kept: voted(kept, up=30))
    assert found(memory, feedback_weight=1) == [before[4], *before[1:3]]
    assert found(memory, feedback_weight=0) == before[:3]
    everyone = memory.count()
    assert sorted(found(memory, everyone)) == sorted(found(memory, everyone, feedback_weight=0))


def test_votes_of_any_size_leave_searches_as_they_are(memory: ProcedureMemory) -> None:
    best = memory.search(QUERY, 1)[0].procedure
    memory.update(best.id, lambda kept: replace(kept, metadata={"votes": {"up": 10**400}}))
    assert found(memory, 1) == [best.output]


def test_a_weight_out_of_bounds() -> None:
    for weight in (-1, 2, float("nan")):
        with pytest.raises(ValueError, match="feedback_weight"):
            ProcedureRetriever(memory=None, feedback_weight=weight).invoke(QUERY)
