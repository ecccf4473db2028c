"""A memory of one's own: three methods are enough for a graph, and what it lacks is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from stepcraft import AddReport, BadInput, Found, Procedure, ProcedureMemory, build_aag
from stepcraft.errors import Failed, MemoryFailure
from stepcraft.memory.outcomes import with_outcome
from tests.kitchen import GOAL, PROCEDURES, cook
from tests.scripted import ScriptedModel


class Shelf(ProcedureMemory):
    """The least that a memory needs."""

    def __init__(self) -> None:
        self.items = {item.id: item for item in PROCEDURES}

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        return [Found(item, 1.0) for item in list(self.items.values())[:k]]

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        self.items |= {item.id: item for item in procedures}
        return AddReport()

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        return self.items.get(id)


def test_three_methods_are_enough() -> None:
    with Shelf() as memory:
        result = build_aag(model=ScriptedModel(cook()), memory=memory).invoke(GOAL)
        assert PROCEDURES[0].output in [passage["title"] for passage in result["evidence"]]
        changed = memory.update(
            PROCEDURES[0].id, lambda stored: with_outcome(stored, succeeded=True)
        )
        assert changed.outcomes[:2] == memory.items[changed.id].outcomes[:2] == (1, 0)
        assert memory.name == "Shelf"
        assert not memory.is_empty()


def test_an_update_that_is_refused_is_not_returned_as_stored() -> None:
    class FullShelf(Shelf):
        def add(
            self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
        ) -> AddReport:
            return AddReport(failed=[Failed(each.id, "the shelf is full") for each in procedures])

    with pytest.raises(MemoryFailure, match=r"was not changed: the shelf is full"):
        FullShelf().update(PROCEDURES[0].id, lambda kept: with_outcome(kept, succeeded=True))


@pytest.mark.parametrize("call", [lambda m: m.count(), list, lambda m: m.delete(["x"])])
def test_what_it_lacks_is_one_sentence(call: Callable[[Shelf], object]) -> None:
    with pytest.raises(BadInput, match=r"Shelf has no (count|__iter__|delete); give Shelf"):
        call(Shelf())


@pytest.mark.parametrize("wrong", [42, object(), [], Shelf])
def test_another_object_is_refused_when_a_graph_is_built(wrong: object) -> None:
    with pytest.raises(BadInput, match=rf"stepcraft\.ProcedureMemory, not {type(wrong).__name__}"):
        build_aag(memory=wrong)
