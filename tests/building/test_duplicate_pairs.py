"""The default threshold, on pairs of procedures that are for the same task, and on near ones that are not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepcraft import Procedure, open_memory
from stepcraft.building.duplicates import NEAREST, nearest_alike
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.records import records

PAIRS = [
    one.values or {}
    for one in records(Path(__file__).parents[1] / "data" / "duplicate_pairs.jsonl")
]


@pytest.fixture(scope="module", params=["none", "wordllama"])
def memory(request: pytest.FixtureRequest) -> Iterator[ProcedureMemory]:
    with open_memory("", embeddings=request.param) as memory:
        yield memory


def procedure(memory: ProcedureMemory, given: Any) -> Procedure:
    """A procedure of the pairs: the id of a bundled one, or its fields."""
    found = memory.get(given) if isinstance(given, str) else Procedure(**given)
    assert found
    return found


def test_those_for_the_same_task_are_compared(memory: ProcedureMemory):
    missed: list[str] = []
    for pair in PAIRS:
        first, second = (procedure(memory, pair[name]) for name in ("first", "second"))
        if pair["same"] and first not in nearest_alike(memory, second):
            missed.append(second.output)
    assert (len(PAIRS), missed) == (57, [])


def test_few_others_are_compared(memory: ProcedureMemory):
    found = [len(nearest_alike(memory, one)) for one in memory]
    assert max(found) <= NEAREST
    assert sum(found) / len(found) < 1.5
