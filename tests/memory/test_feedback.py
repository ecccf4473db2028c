"""Votes: what they are worth, and how they move what a search finds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft import Procedure, open_memory
from stepcraft.memory.feedback import (
    FEEDBACK_WEIGHT,
    adjustment,
    counts,
    reranked,
    with_vote,
)
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Found
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
    assert adjustment(voted(dish(1), up, down)) == pytest.approx(FEEDBACK_WEIGHT * share, abs=1e-4)
    assert adjustment(voted(dish(1), up, down), 0) == 0


def test_a_stale_procedure_moves_down_by_the_whole_weight() -> None:
    stale = replace(dish(1), metadata={"stale": "the page is gone"})
    assert adjustment(stale) == pytest.approx(-FEEDBACK_WEIGHT)
    assert adjustment(voted(stale, 0, 100)) == pytest.approx(-1.963 * FEEDBACK_WEIGHT, abs=1e-4)


@given(up=st.integers(0, 60), down=st.integers(0, 60))
def test_a_further_vote_never_moves_the_other_way(up: int, down: int) -> None:
    rated = replace(dish(1), metadata={"votes": {"up": up, "down": down}})
    assert adjustment(with_vote(rated, 1)) >= adjustment(rated)
    assert abs(adjustment(rated)) <= FEEDBACK_WEIGHT


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


def test_without_votes_a_search_is_as_it_was(memory: ProcedureMemory) -> None:
    plain = memory.search(QUERY, 3)
    for weight in (0, FEEDBACK_WEIGHT, 1):
        documents = ProcedureRetriever(memory=memory, feedback_weight=weight).invoke(QUERY)
        assert [(one.id, one.metadata["score"]) for one in documents] == [
            (hit.procedure.id, hit.score) for hit in plain
        ]


def test_what_is_voted_down_ranks_lower_and_none_is_lost(memory: ProcedureMemory) -> None:
    before = found(memory)
    best = memory.search(QUERY, 1)[0].procedure
    for _ in range(30):
        memory.update(best.id, lambda kept: with_vote(kept, -1))
    assert found(memory, feedback_weight=1) == [*before[1:], found(memory, 4, feedback_weight=0)[3]]
    assert found(memory, feedback_weight=0) == before
    everyone = memory.count()
    assert sorted(found(memory, everyone, feedback_weight=1)) == sorted(
        found(memory, everyone, feedback_weight=0)
    )
    assert found(memory, everyone, feedback_weight=1)[0] != best.output


def test_what_is_voted_up_may_rise_into_the_results(memory: ProcedureMemory) -> None:
    fifth = memory.search(QUERY, 5)[4].procedure
    assert fifth.output not in found(memory)
    for _ in range(30):
        memory.update(fifth.id, lambda kept: with_vote(kept, 1))
    assert found(memory, feedback_weight=1)[0] == fifth.output


def test_equal_scores_keep_their_order() -> None:
    hits = [Found(dish(number), 0.5) for number in range(6)]
    hits[2] = Found(voted(dish(2), 3), 0.5)
    order = [hit.procedure.output for hit in reranked(hits, 4, FEEDBACK_WEIGHT)]
    assert order == ["dish 2", "dish 0", "dish 1", "dish 3"]


def test_a_weight_out_of_bounds() -> None:
    for weight in (-1, 2, float("nan")):
        with pytest.raises(ValueError, match="feedback_weight"):
            ProcedureRetriever(memory=None, feedback_weight=weight)
