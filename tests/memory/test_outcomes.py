"""Outcomes: what they are worth, and how they move what a search finds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from stepcraft import BadInput, Procedure, open_memory
from stepcraft.memory.credit import record_outcome
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.outcomes import (
    OUTCOME_WEIGHT,
    adjustment,
    keeps_failing,
    with_outcome,
)
from stepcraft.memory.procedure import Outcomes
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.retriever import ProcedureRetriever
from tests.kitchen import dish

QUERY = "add long-term memory to a chat agent"


def tried(procedure: Procedure, successes: int = 0, failures: int = 0) -> Procedure:
    for number in range(successes + failures):
        procedure = with_outcome(procedure, succeeded=number < successes)
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
    ("successes", "failures", "share"),
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
def test_one_outcome_moves_little_and_many_up_to_the_weight(
    successes: int, failures: int, share: float
) -> None:
    assert adjustment(tried(dish(1), successes, failures), OUTCOME_WEIGHT) == pytest.approx(
        OUTCOME_WEIGHT * share, abs=1e-4
    )
    assert adjustment(tried(dish(1), successes, failures), 0) == 0


def test_a_stale_procedure_moves_down_by_the_whole_weight() -> None:
    stale = replace(dish(1), metadata={"stale": "the page is gone"})
    assert adjustment(stale, OUTCOME_WEIGHT) == pytest.approx(-OUTCOME_WEIGHT)
    assert adjustment(tried(stale, 0, 100), 1) == pytest.approx(-1.963, abs=1e-3)


def test_a_run_counts_once() -> None:
    once = with_outcome(dish(1), succeeded=True, run="a")
    assert with_outcome(once, succeeded=True, run="a") == once
    twice = with_outcome(once, succeeded=True, run="b")
    assert with_outcome(twice, succeeded=True, run="a") == twice
    assert twice.outcomes[:2] == (2, 0)
    assert twice.outcomes.last_used.startswith("20")


@pytest.mark.parametrize(
    "odd", [None, "2", [{"vote": 1}], {"successes": "2"}, {"successes": -1, "failures": 0.5}]
)
def test_what_somebody_else_stored_as_outcomes_counts_for_nothing(odd: object) -> None:
    procedure = Procedure.from_dict({**dish(1).to_dict(), "outcomes": odd})
    assert procedure.outcomes == Outcomes()
    assert Procedure.of_kept({**dish(1).to_dict(), "outcomes": odd}) == procedure
    assert tried(procedure, failures=1).outcomes[:2] == (0, 1)


@pytest.mark.parametrize(
    ("successes", "failures", "expected"),
    [(0, 0, False), (0, 3, False), (0, 4, True), (1, 4, False), (1, 7, True), (9, 1, False)],
)
def test_what_keeps_failing(successes: int, failures: int, expected: bool) -> None:
    assert keeps_failing(tried(dish(1), successes, failures)) is expected


def found(memory: ProcedureMemory, k: int = 3, **options: float) -> list[str]:
    retriever = ProcedureRetriever(memory=memory, k=k, **options)
    titles = [document.metadata["title"] for document in retriever.invoke(QUERY)]
    assert titles == [
        document.metadata["title"] for document in asyncio.run(retriever.ainvoke(QUERY))
    ]
    return titles


@pytest.mark.parametrize("weight", [0, OUTCOME_WEIGHT, 1])
def test_without_outcomes_a_search_is_as_it_was(memory: ProcedureMemory, weight: float) -> None:
    documents = ProcedureRetriever(memory=memory, outcome_weight=weight).invoke(QUERY)
    assert [(document.id, document.metadata["score"]) for document in documents] == [
        (hit.procedure.id, hit.score) for hit in memory.search(QUERY, 3)
    ]


def test_outcomes_move_what_is_found_and_lose_nothing(memory: ProcedureMemory) -> None:
    before = found(memory, 5)
    best, *_, fifth = (hit.procedure for hit in memory.search(QUERY, 5))
    memory.update(best.id, lambda kept: tried(kept, failures=30))
    assert found(memory, outcome_weight=1) == before[1:4]
    memory.update(fifth.id, lambda kept: tried(kept, successes=30))
    assert found(memory, outcome_weight=1) == [before[4], *before[1:3]]
    assert found(memory, outcome_weight=0) == before[:3]
    everyone = memory.count()
    assert sorted(found(memory, everyone)) == sorted(found(memory, everyone, outcome_weight=0))


def test_what_keeps_failing_is_found_only_where_nothing_else_is(memory: ProcedureMemory) -> None:
    best, second = (hit.procedure for hit in memory.search(QUERY, 2))
    memory.update(best.id, lambda kept: tried(kept, failures=4))
    assert best.output not in found(memory, 5)
    memory.delete([each.id for each in memory if each.id not in {best.id, second.id}])
    assert found(memory, 5) == [second.output, best.output]


def test_what_has_expired_is_not_found(memory: ProcedureMemory) -> None:
    best, second = (hit.procedure for hit in memory.search(QUERY, 2))
    memory.update(best.id, lambda kept: replace(kept, expires="2020-02-29"))
    memory.update(second.id, lambda kept: replace(kept, expires="2999-12-31"))
    assert found(memory, 1) == [second.output]


@pytest.mark.parametrize("outcome_weight", [0, 0.1])
def test_what_has_expired_crowds_out_nothing(
    memory: ProcedureMemory, outcome_weight: float
) -> None:
    best = memory.search(QUERY, 1)[0].procedure
    memory.add(replace(best, id=str(UUID(int=n)), expires="2020-02-29") for n in range(60))
    assert len(found(memory, 3, outcome_weight=outcome_weight)) == 3


@pytest.mark.parametrize("day", ["soon", "2020-02-30", 5])
def test_a_day_that_is_none_is_refused(day: Any) -> None:
    with pytest.raises(BadInput, match="expires"):
        dish(1, expires=day)


def test_outcomes_of_any_size_leave_searches_as_they_are(memory: ProcedureMemory) -> None:
    best = memory.search(QUERY, 1)[0].procedure
    huge = Outcomes.of({"successes": 10**400})
    memory.update(best.id, lambda kept: replace(kept, outcomes=huge))
    assert found(memory, 1) == [best.output]


def test_the_outcome_of_a_run_is_credited_to_what_it_was_shown(memory: ProcedureMemory) -> None:
    hits = [hit.procedure for hit in memory.search(QUERY, 2)]
    result = {"evidence": [{"id": each.id} for each in hits] + [{"id": "page.md#1"}]}
    assert [each.id for each in record_outcome(memory, result, succeeded=False, run="1")] == [
        each.id for each in hits
    ]
    record_outcome(memory, result, succeeded=False, run="1")
    record_outcome(memory, [hits[0].id], succeeded=True, run="2")
    assert [memory.get(each.id).outcomes[:2] for each in hits] == [(1, 1), (0, 1)]


def test_the_outcome_of_a_run_is_credited_to_what_it_remembered(memory: ProcedureMemory) -> None:
    found, remembered = (hit.procedure.id for hit in memory.search(QUERY, 2))
    result = {"evidence": [{"id": found}], "remembered": remembered}
    assert {each.id for each in record_outcome(memory, result, succeeded=True)} == {
        found,
        remembered,
    }


def test_the_outcome_of_a_run_is_credited_to_one_id(memory: ProcedureMemory) -> None:
    shown = memory.search(QUERY, 1)[0].procedure.id
    assert [each.id for each in record_outcome(memory, shown, succeeded=True)] == [shown]
    assert memory.get(shown).outcomes[:2] == (1, 0)


@pytest.mark.parametrize("evidence", [[{"text": "wiki"}], ["wiki"], "wiki", {"wiki": 1}, True])
def test_evidence_of_another_graph_is_ignored(memory: ProcedureMemory, evidence: object) -> None:
    shown = memory.search(QUERY, 1)[0].procedure.id
    result = {"evidence": evidence, "shown_procedures": [shown]}
    assert [each.id for each in record_outcome(memory, result, succeeded=True)] == [shown]


def test_a_weight_out_of_bounds(memory: ProcedureMemory) -> None:
    for weight in (-1, 2, float("nan")):
        with pytest.raises(ValueError, match="outcome_weight"):
            ProcedureRetriever(memory=memory, outcome_weight=weight).invoke(QUERY)
