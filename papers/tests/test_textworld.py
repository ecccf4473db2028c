"""The text world: plans are carried out, read from answers and made; its recipes are real ones."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.errors import BadInput
from stepcraft_papers.plan_text import PLAN_FORMAT
from stepcraft_papers.textworld import (
    MAX_ACTIONS,
    Step,
    execute,
    items,
    read_plan,
    solve,
    tasks,
)

PAPERS = Path(__file__).parents[1]
RECIPES = PAPERS.parents[1] / "shared/data/minecraft-data-1.16"
TORCHES = """\
1. mine 3 oak_log
2. craft 12 oak_planks
3. craft 1 crafting_table
4. craft 8 stick
5. craft 1 wooden_pickaxe
6. mine 1 coal
7. craft 4 torch"""


def test_a_plan_that_reaches_its_target() -> None:
    """A count is what the inventory is to hold, not what is added."""
    done = execute(read_plan(TORCHES), ("torch", 3))
    assert (done.executable, done.failed_step, done.reason) == (True, None, "")
    assert done.inventory == {
        "crafting_table": 1,
        "oak_planks": 1,
        "stick": 5,
        "wooden_pickaxe": 1,
        "torch": 4,
    }


@pytest.mark.parametrize(
    ("plan", "step", "reason"),
    [
        ("craft 1 stick", 1, '"craft 1 stick", fails: it lacks 2 oak_planks'),
        ("mine 1 cobblestone", 1, '"mine 1 cobblestone", fails: it lacks 1 wooden_pickaxe'),
        ("mine 1 log\ncraft 5 planks", 2, '"craft 5 oak_planks", fails: it lacks 1 oak_log'),
        (
            "mine 1 log\ncraft 1 wooden_pickaxe\nmine 1 dirt",
            2,
            "it lacks 1 crafting_table, 3 oak_planks, 2 stick",
        ),
        ("mine 1 stone", 1, "there is no such action, but smelt stone"),
        ("mine 999999 dirt", 1, f"a plan may take {MAX_ACTIONS:,} actions"),
    ],
)
def test_the_first_step_that_fails_is_named_with_its_reason(
    plan: str, step: int, reason: str
) -> None:
    done = execute(read_plan(plan), ("torch", 1))
    assert (done.executable, done.failed_step) == (False, step)
    assert done.reason.endswith(f"{reason}.")


def test_smelting_uses_up_one_coal_or_charcoal_for_each_item() -> None:
    glass = [*solve("furnace", 1), ("mine", "sand", 3)]
    done = execute([*glass, ("mine", "coal", 2), ("smelt", "glass", 3)], ("glass", 3))
    assert (done.executable, done.inventory["glass"]) == (False, 2)
    assert done.reason.endswith('"smelt 3 glass", fails: it lacks 1 coal.')
    with_charcoal = [*solve("charcoal", 2), ("mine", "sand", 1), ("smelt", "glass", 1)]
    assert execute(with_charcoal, ("glass", 1)).inventory["charcoal"] == 1


def test_lenient_supplies_table_furnace_and_fuel_and_nothing_else() -> None:
    glass = [("mine", "sand", 2), ("smelt", "glass", 2)]
    assert execute(glass, ("glass", 2)).reason.endswith("it lacks 1 furnace, 1 coal.")
    assert execute(glass, ("glass", 2), lenient=True).inventory == {"glass": 2}
    assert not execute([("craft", "smoker", 1)], ("smoker", 1), lenient=True).executable


@pytest.mark.parametrize(
    ("item", "goal", "problem"), [("oak_plank", 1, "'oak_plank'"), ("dirt", 0, "0 dirt")]
)
def test_a_target_that_is_none_is_refused(item: str, goal: int, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        execute([], (item, goal))
    with pytest.raises(BadInput, match=problem):
        solve(item, goal)


LOG, PLANKS, STICK = (
    Step("mine", "oak_log", 3),
    Step("craft", "oak_planks", 12),
    Step("craft", "stick", 4),
)


@pytest.mark.parametrize(
    "text",
    [
        "1. mine 3 log\n2. craft 12 planks\n3. craft 4 stick",
        "- Mine 3 oak logs (by hand)\n- Craft 12 planks from the logs.\n- Make four sticks",
        "**Step 1:** Mine 3 logs\n**Step 2:** Craft 12 Oak Planks\nFinally, craft 4 sticks",
        "(mine,log,3)\n(craft, planks, 12)\n(craft, stick, 4)",
        "[('mine', 'log', 3), ('craft', 'planks', 12), ('craft', 'stick', 4)]",
        "mine_oak_log 3; craft_oak_planks 12; craft_stick 4",
        "mine(oak_log, 3)\ncraft(oak_planks, 12)\ncraft(stick, 4)",
        "Mine 3 logs, then craft 12 planks and craft 4 sticks.",
        '```json\n[["mine", "log", 3],\n ["craft", "planks", 12], ["craft", "stick", 4]]\n```',
        '{"plan": [{"type": "mine", "item": "oak_log",\n "count": 3}, "craft 12 planks", '
        '{"action": "craft", "object": "stick", "quantity": 4}]}',
        "mine oak_log x 3\ncraft oak_planks: 12\ncraft stick \u00d7 4",
        "Here is how:\n1. mine 3 log\n2. place the table\ncraft 2 torches and 3 sticks\n"
        'craft 1 lava\n["fly", "dirt", 1]\ncraft 12 planks\ncraft 4 stick',
    ],
)
def test_a_plan_is_read_as_people_and_models_write_it(text: str) -> None:
    assert read_plan(text) == (LOG, PLANKS, STICK)


def test_a_step_without_a_number_and_with_one_that_is_no_count() -> None:
    pickaxe, steel = Step("craft", "wooden_pickaxe", 1), Step("craft", "flint_and_steel", 1)
    assert read_plan("Craft a wooden pickaxe at the table\ncraft flint_and_steel") == (
        pickaxe,
        steel,
    )
    for count in ("-3", "3.5", "9999999", "1,000"):
        assert read_plan(f"mine {count} log") == ()
    assert read_plan(PLAN_FORMAT) == (LOG, PLANKS)


@given(
    st.text()
    | st.lists(
        st.sampled_from([*"[](){},.:;-1x \n\"'", "mine", " log", "craft ", "step", "and "])
    ).map("".join)
)
def test_any_text_is_read(text: str) -> None:
    plan = read_plan(text)
    assert all(step.item in items() and step.goal >= 0 for step in plan)
    execute(plan, ("dirt", 1))


def test_there_are_100_tasks_that_grow() -> None:
    lengths = [len(solve(*target)) for target in tasks().values()]
    assert len({item for item, _ in tasks().values()}) == len(tasks()) == 100
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (2, 24)


def test_a_gold_plan_is_executable_and_no_step_of_it_can_be_left_out() -> None:
    for target in tasks().values():
        gold = solve(*target)
        assert execute(gold, target).executable, target
        assert execute(gold, target, lenient=True).executable, target
        assert read_plan("\n".join(f"{n}. {step}" for n, step in enumerate(gold, 1))) == gold
        assert not execute([], target, lenient=True).executable
        for place in range(len(gold)):
            assert not execute(gold[:place] + gold[place + 1 :], target).executable, target


@pytest.mark.skipif(not RECIPES.exists(), reason=f"minecraft-data is not at {RECIPES}")
def test_the_recipes_are_made_from_minecraft_data(tmp_path: Path) -> None:
    script = PAPERS / "textworld_recipes.py"
    subprocess.run([sys.executable, script, RECIPES, "--to", tmp_path / "made.json"], check=True)
    shipped = PAPERS / "stepcraft_papers" / "data" / "minecraft-1.16.json"
    assert (tmp_path / "made.json").read_bytes() == shipped.read_bytes()
