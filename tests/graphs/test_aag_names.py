"""AAG looks up the names in its steps, without a model."""

from collections.abc import Iterator
from typing import Any

import pytest

from stepcraft import Procedure, build_aag
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.report import page
from tests.kitchen import CONTENT, cook
from tests.report.reports import Reader
from tests.scripted import ScriptedModel

BREAD = Procedure("flour", "bake a rye bread", ("Call `oven.heat_up(220)`.", "Bake it."))
OTHER = Procedure("a `timer_tool`", "wind a clock", ("Turn the key with `wind_up`.",))
GOAL_WITH_NAME = {"question": "bake a rye bread with `dough_kit`", "resources": "`rye_flour`"}
STEPS = "1. Use `dough_kit` and `rye_flour`.\n2. Call `oven.heat_up(200)`.\n3. Set the `timer_tool`; `set_heat(3)`."


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with LocalMemory(":memory:", embeddings="none") as opened:
        opened.add([BREAD, OTHER])
        yield opened


def run(memory: ProcedureMemory, context: dict[str, Any] | None = None, **replies: list[Any]) -> Any:
    model = ScriptedModel(cook() | {"revise": [STEPS]} | replies)
    graph = build_aag(model=model, memory=memory)
    return graph.invoke(GOAL_WITH_NAME, context={"k": 1, **(context or {})}), model


def checked(name: str, step: int, *found_in: str) -> dict[str, Any]:
    return {"name": name, "step": step, "found_in": [*found_in], "verified": bool(found_in)}


def test_each_name_with_where_it_was_found(memory: LocalMemory) -> None:
    result, _ = run(memory)
    assert result["names"] == [
        checked("dough_kit", 1, "goal"),
        checked("rye_flour", 1, "resources"),
        checked("oven.heat_up", 2, BREAD.id),
        checked("timer_tool", 3, OTHER.id),
        checked("set_heat", 3),
    ]
    seen = Reader(page("aag", GOAL_WITH_NAME, result, []))
    shown = next(text for text in seen.texts("section") if text.startswith("Names in the code"))
    assert "set_heat (step 3) found nowhere" in shown
    assert "dough_kit (step 1) in the goal" in shown
    assert "oven.heat_up (step 2) bake a rye bread" in shown


async def test_on_a_loop(memory: LocalMemory) -> None:
    model = ScriptedModel(cook() | {"revise": [STEPS]})
    result = await build_aag(model=model, memory=memory).ainvoke(GOAL_WITH_NAME)
    assert [name["name"] for name in result["names"] if not name["verified"]] == ["set_heat"]


def test_the_critic_is_told_of_an_unverified_name_once(memory: LocalMemory) -> None:
    result, model = run(
        memory,
        critic=["- Step 1: more.", "- Step 1: less.", CONTENT],
        edit=["1: Use `new_kit`.", "1: Use it."],
    )
    told = [
        call.prompt.partition("<names>")[2].partition("</names>")[0].split()
        for call in model.calls
        if call.node == "critic"
    ]
    assert told == [["set_heat"], ["new_kit"], []]
    assert [name["name"] for name in result["names"]] == ["oven.heat_up", "timer_tool", "set_heat"]


def test_without_a_critic_the_names_are_still_looked_up(memory: LocalMemory) -> None:
    result, model = run(memory, {"critic": False})
    assert len(result["names"]) == 5
    assert "critic" not in model.nodes


@pytest.mark.parametrize("context", [{"names": False}, {"paper": True}])
def test_off(memory: LocalMemory, context: dict[str, Any]) -> None:
    result, model = run(memory, context)
    assert result["names"] == []
    assert "<names>" not in model.calls[-1].prompt


def test_a_memory_that_is_not_read_leaves_the_evidence(memory: LocalMemory) -> None:
    class Remote:
        """A memory somewhere else, of which every procedure would have to be fetched."""

        def __getattr__(self, name: str) -> Any:
            return getattr(memory, name)

        def __iter__(self) -> Iterator[Procedure]:
            raise AssertionError("a remote memory is not read as a whole")

    result, _ = run(Remote())  # type: ignore[arg-type]
    assert [name["name"] for name in result["names"] if not name["verified"]] == ["timer_tool", "set_heat"]
