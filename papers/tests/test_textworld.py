"""The text world: plans are carried out, read from answers and made by backward chaining; its recipes are real ones."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.errors import BadInput
from stepcraft.evals.textworld import (
    MAX_ACTIONS,
    PLAN_FORMAT,
    Step,
    execute,
    items,
    read_plan,
    solve,
    tasks,
    world,
)

ROOT = Path(__file__).parents[2]
RECIPES = ROOT.parent / "shared" / "data" / "minecraft-data-1.16"
RELEASED = ROOT.parent / "shared" / "data" / "mc-textworld" / "action_lib.json"
TORCHES = """\
1. mine 3 oak_log
2. craft 12 oak_planks
3. craft 1 crafting_table
4. craft 8 stick
5. craft 1 wooden_pickaxe
6. mine 1 coal
7. craft 4 torch"""


def steps(text: str) -> tuple[Step, ...]:
    plan = read_plan(text)
    assert plan.unread == ()
    return plan.steps


def test_a_plan_that_reaches_its_target():
    done = execute(steps(TORCHES), ("torch", 3))
    assert (done.executable, done.failed_step, done.reason) == (True, None, "")
    assert done.inventory == {
        "crafting_table": 1,
        "oak_planks": 1,
        "stick": 5,
        "wooden_pickaxe": 1,
        "torch": 4,
    }
    assert done.taken[:2] == (("mine_oak_log", 3), ("craft_oak_planks", 3))


def test_a_count_is_what_the_inventory_holds_and_not_what_is_added():
    done = execute([("mine", "dirt", 2), ("mine", "dirt", 2), ("mine", "dirt", 3)], ("dirt", 3))
    assert done.taken == (("mine_dirt", 2), ("mine_dirt", 1))


@pytest.mark.parametrize(
    ("plan", "step", "reason"),
    [
        ("craft 1 stick", 1, 'Step 1, "craft 1 stick", fails: it lacks 2 oak_planks.'),
        (
            "mine 1 cobblestone",
            1,
            'Step 1, "mine 1 cobblestone", fails: it lacks 1 wooden_pickaxe.',
        ),
        (
            "mine 2 log\ncraft 8 planks\ncraft 4 stick\ncraft 1 wooden_pickaxe",
            4,
            'Step 4, "craft 1 wooden_pickaxe", fails: it lacks 1 crafting_table.',
        ),
        (
            "mine 1 log\ncraft 5 planks",
            2,
            'Step 2, "craft 5 oak_planks", fails: it lacks 1 oak_log.',
        ),
        (
            "mine 1 stone",
            1,
            'Step 1, "mine 1 stone", fails: stone cannot be mined; it can be smelted.',
        ),
    ],
)
def test_the_first_step_that_fails_is_named_with_its_reason(plan: str, step: int, reason: str):
    done = execute(steps(plan), ("torch", 1))
    assert (done.executable, done.failed_step, done.reason) == (False, step, reason)


def test_a_step_that_fails_leaves_the_state_as_it_is():
    done = execute(
        [("mine", "oak_log", 1), ("craft", "wooden_pickaxe", 1), ("mine", "dirt", 1)], ("dirt", 1)
    )
    assert done.inventory == {"oak_log": 1}
    assert done.failed_step == 2
    assert done.reason.endswith("fails: it lacks 1 crafting_table, 3 oak_planks and 2 stick.")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (("fly", "dirt", 1), '"fly" is no type of action: there are mine, craft and smelt'),
        (("mine", "dirtt", 1), "there is no item dirtt, the nearest is dirt"),
        (("mine", "bedrock", 1), "bedrock cannot be mined; there is no way to it in this world"),
        (("mine", "dirt", 10**9), f"a plan may take {MAX_ACTIONS:,} actions"),
    ],
)
def test_what_the_world_does_not_know_is_a_step_that_fails(step: tuple[str, str, int], reason: str):
    assert (
        execute([step], ("stick", 1)).reason
        == f'Step 1, "{step[0]} {step[2]} {step[1]}", fails: {reason}.'
    )


def test_a_plan_that_ends_too_early_says_what_is_held():
    done = execute([("mine", "dirt", 2)], ("dirt", 5))
    assert (done.failed_step, done.reason) == (None, "The plan ends with 2 of 5 dirt.")


def test_smelting_uses_up_one_coal_or_charcoal_for_each_item():
    glass = [*solve("furnace", 1), ("mine", "sand", 3)]
    done = execute([*glass, ("mine", "coal", 2), ("smelt", "glass", 3)], ("glass", 3))
    assert (done.executable, done.inventory["glass"]) == (False, 2)
    assert done.reason.endswith('"smelt 3 glass", fails: it lacks 1 coal.')
    with_charcoal = [*solve("charcoal", 2), ("mine", "sand", 1), ("smelt", "glass", 1)]
    assert execute(with_charcoal, ("glass", 1)).inventory["charcoal"] == 1


def test_lenient_supplies_table_furnace_and_fuel_and_nothing_else():
    glass = [("mine", "sand", 2), ("smelt", "glass", 2)]
    assert execute(glass, ("glass", 2)).reason.endswith("it lacks 1 furnace and 1 coal.")
    assert execute(glass, ("glass", 2), lenient=True).inventory == {"glass": 2}
    assert not execute([], ("furnace", 1), lenient=True).executable
    assert not execute([("craft", "smoker", 1)], ("smoker", 1), lenient=True).executable
    bare = [("mine", "iron_ore", 1), ("smelt", "iron_ingot", 1)]
    assert "pickaxe" in execute(bare, ("iron_ingot", 1), lenient=True).reason
    assert "coal" in execute([("craft", "torch", 1)], ("torch", 1), lenient=True).reason


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (("oak_plank", 1), "did you mean 'oak_planks'?"),
        (("", 1), "use a name such as"),
        (("dirt", 0), "ask for 1 or more"),
    ],
)
def test_a_target_that_is_none_is_refused(target: tuple[str, int], said: str):
    with pytest.raises(BadInput, match=said.replace("?", r"\?")):
        execute([], target)
    with pytest.raises(BadInput):
        solve(*target)


def test_what_cannot_be_had_has_no_plan():
    with pytest.raises(BadInput, match="there is no way to packed_ice"):
        solve("packed_ice", 1)


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
        "**Step 1:** Mine 3 logs\n**Step 2:** Craft 12 Oak Planks\n**Step 3:** Finally, craft 4 sticks",
        "(mine, log, 3)\n(craft, planks, 12)\n(craft, stick, 4)",
        "[('mine', 'log', 3), ('craft', 'planks', 12), ('craft', 'stick', 4)]",
        "mine_oak_log 3; craft_oak_planks 12; craft_stick 4",
        "mine(oak_log, 3)\ncraft(oak_planks, 12)\ncraft(stick, 4)",
        "Mine 3 logs, then craft 12 planks and craft 4 sticks.",
        '```json\n[["mine", "log", 3],\n ["craft", "planks", 12], ["craft", "stick", 4]]\n```',
        '{"plan": [{"type": "mine", "item": "oak_log", "count": 3}, "craft 12 planks", {"action": "craft", "object": "stick", "quantity": 4}]}',
        "mine oak_log x 3\ncraft oak_planks: 12\ncraft stick \u00d7 4",
    ],
)
def test_a_plan_is_read_as_people_and_models_write_it(text: str):
    plan = read_plan(text)
    assert (plan.steps, plan.unread) == ((LOG, PLANKS, STICK), ())


def test_without_a_number_the_count_is_one():
    assert steps("Craft a wooden pickaxe at the table\nmine cobblestone") == (
        Step("craft", "wooden_pickaxe", 1),
        Step("mine", "cobblestone", 1),
    )


def test_what_cannot_be_read_is_named():
    plan = read_plan(
        'Here is how:\n1. mine 3 log\n2. place the table\n3. craft 2 torches and 3 sticks\n["fly", "dirt", 1]'
    )
    assert plan.steps == (LOG,)
    assert plan.unread == (
        "Here is how:",
        "2. place the table",
        "3. craft 2 torches and 3 sticks",
        '["fly", "dirt", 1]',
    )
    assert read_plan(
        '[["mine", "log", 3], ["craft", "lava", 1], {"type": "mine", "item": "moon"}]'
    ).unread == (
        '["craft", "lava", 1]',
        '{"type": "mine", "item": "moon"}',
    )


@pytest.mark.parametrize("number", ["-3", "3.5", "9999999", "1,000"])
def test_a_number_that_is_no_count_is_not_guessed(number: str):
    assert read_plan(f"mine {number} log").steps == ()


def test_the_format_that_a_model_is_told_is_read():
    assert read_plan(PLAN_FORMAT).steps == (LOG, PLANKS)


@given(
    st.text()
    | st.lists(
        st.sampled_from([*"[](){},.:;-1x \n\"'", "mine", " log", "craft ", "step", "and "])
    ).map("".join)
)
def test_any_text_is_read(text: str):
    plan = read_plan(text)
    assert all(step.item in items() and step.goal >= 0 for step in plan.steps)
    execute(plan.steps, ("dirt", 1))


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "[\n",
        "[1,\n",
        ",",
        "mine",
        "mine 1 log, ",
        "- ",
        "1.",
        '["a",',
        "step ",
        "( ",
        '{"a":',
        "9",
    ],
)
def test_a_long_text_is_read_in_time(piece: str):
    start = time.perf_counter()
    read_plan(piece * (100_000 // len(piece)))
    assert time.perf_counter() - start < 2


def test_there_are_100_tasks_that_grow():
    found = tasks()
    lengths = [len(solve(*task.target)) for task in found]
    assert (
        len({task.item for task in found}) == len({task.id for task in found}) == len(found) == 100
    )
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (2, 24)
    assert found[2].question == (
        "Which steps lead from an empty inventory in Minecraft 1.16 to 3 \u00d7 oak planks?"
    )
    assert [found[place].target for place in (0, 49, 99)] == [
        ("blaze_powder", 1),
        ("brick", 2),
        ("lodestone", 1),
    ]


def test_the_gold_plan_of_each_task_is_executable_and_the_empty_plan_is_not():
    for task in tasks():
        gold = solve(*task.target)
        strict = execute(gold, task.target)
        assert (strict.executable, strict.failed_step, strict.reason) == (True, None, ""), task
        assert execute(gold, task.target, lenient=True).executable, task
        assert (
            read_plan("\n".join(f"{number}. {step}" for number, step in enumerate(gold, 1))).steps
            == gold
        )
        for lenient in (False, True):
            empty = execute([], task.target, lenient=lenient)
            assert (empty.executable, empty.reason) == (
                False,
                f"The plan ends with 0 of {task.count} {task.item}.",
            )


def test_no_step_of_a_gold_plan_can_be_left_out():
    for task in tasks():
        gold = solve(*task.target)
        for place, left_out in enumerate(gold):
            done = execute(gold[:place] + gold[place + 1 :], task.target)
            assert not done.executable, (task, left_out)
            if place < len(gold) - 1:
                assert done.failed_step is not None
                assert done.failed_step > place
                assert (
                    f'Step {done.failed_step}, "{gold[done.failed_step]}", fails: it lacks'
                    in done.reason
                )


def test_all_that_can_be_had_has_an_executable_plan():
    made = {name.partition("_")[2] for name in world()}
    unreached = set()
    for item in made:
        try:
            plan = solve(item, 3)
        except BadInput:
            unreached.add(item)
        else:
            assert execute(plan, (item, 3)).executable, item
    assert unreached == {"packed_ice", "blue_ice"}, "ice needs an enchanted tool"


def test_the_rules_name_items_of_the_game():
    named = {
        item
        for variants in world().values()
        for variant in variants
        for item in (*variant.output, *variant.precondition, *variant.tool)
    }
    assert named <= items()


@pytest.mark.skipif(not RECIPES.exists(), reason=f"minecraft-data is not at {RECIPES}")
def test_the_recipes_are_made_from_minecraft_data(tmp_path: Path):
    script = ROOT / "scripts" / "textworld_recipes.py"
    subprocess.run([sys.executable, script, RECIPES, "--to", tmp_path / "made.json"], check=True)
    shipped = ROOT / "stepcraft" / "evals" / "data" / "minecraft-1.16.json"
    assert (tmp_path / "made.json").read_bytes() == shipped.read_bytes()


@pytest.mark.skipif(
    not RELEASED.exists(), reason=f"the released action library is not at {RELEASED}"
)
def test_what_can_be_crafted_is_what_the_released_library_crafts():
    """Item by item; five items have other or further recipes in its version of the game."""
    released = json.loads(RELEASED.read_text("utf-8"))
    recipes = {
        name: {
            (
                *variant["output"].items(),
                frozenset(variant["precondition"].items()),
                frozenset(variant["tool"]),
            )
            for variant in variants
        }
        for name, variants in released.items()
        if name.startswith("craft_")
    }
    ours = {
        name: {
            (
                *variant.output.items(),
                frozenset(variant.precondition.items()),
                frozenset(variant.tool),
            )
            for variant in variants
        }
        for name, variants in world().items()
        if name.startswith("craft_")
    }
    assert ours.keys() == recipes.keys()
    assert len(ours) == 562
    for name, variants in ours.items():
        given = {output for output, _, _ in variants}
        assert given == {output for output, _, _ in recipes[name]}, name
    assert {name for name in ours if ours[name] != recipes[name]} == {
        "craft_brewing_stand",
        "craft_quartz_slab",
        "craft_quartz_stairs",
        "craft_red_sandstone_slab",
        "craft_sandstone_slab",
    }
    for name in ("craft_brewing_stand", "craft_red_sandstone_slab", "craft_sandstone_slab"):
        assert ours[name] < recipes[name]
