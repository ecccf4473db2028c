"""The agent that learns in the text world: its world, its tools, and what each arm remembers."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from stepcraft.memory.local import LocalMemory
from stepcraft_papers.experience import Room, World, play, table, tasks_of
from stepcraft_papers.textworld import solve, world
from tests.scripted import ToolModel

TORCH = World(7, ["torch"])


def test_the_plan_of_every_task_reaches_it_by_the_tools() -> None:
    rounds = tasks_of(10)
    assert [len(each) for each in rounds] == [10, 10, 10]
    items = [item for each in rounds for item in each]
    assert len(set(items)) == 30
    here = World(3, items)
    assert all(len(moves(here, target)) >= 3 for target in items)


def test_what_the_third_round_costs_even_with_a_perfect_memory() -> None:
    """A thing that no earlier task made costs a failed call, which says what it is made from."""
    shown, calls, failed = set[str](), list[int](), list[int]()
    for target in (item for each in tasks_of(10) for item in each):
        plan = solve(target, 1)
        variants = {item: world()[f"{kind}_{item}"] for kind, item, _ in plan if item not in shown}
        calls.append(len(plan))
        failed.append(
            sum(all(it.precondition or it.tool for it in each) for each in variants.values())
        )
        shown |= variants.keys()
    assert (sum(calls[20:]) / 10, sum(failed[20:]) / 10) == (10.7, 2.2)


def test_names_are_made_up_and_drawn_by_the_seed() -> None:
    first, same, other = World(1), World(1), World(2)
    assert (first.names, first.verbs) == (same.names, same.verbs)
    assert first.names != other.names
    assert not {*first.names.values()} & {*first.items}
    assert len({*first.names.values(), *first.verbs.values()}) == len(first.names) + 3


def test_a_failure_says_what_lacks_and_changes_nothing() -> None:
    room = Room(TORCH, "torch")
    said = room.act(TORCH.verbs["craft"], TORCH.names["torch"])
    assert "you lack" in said
    assert TORCH.names["stick"] in said
    assert (room.inventory(), room.is_reached) == ("You hold nothing.", False)
    assert "There is no" in room.act("dance", "torch")
    shown = room.look()
    assert all(name in shown for name in TORCH.names.values())


def moves(world: World, target: str) -> list[tuple[str, str]]:
    """Return the actions that reach a target, one by one."""
    room, done = Room(world, target), list[tuple[str, str]]()
    for kind, item, goal in solve(target, 1):
        while room.held[item] < goal:
            done.append((world.verbs[kind], world.names[item]))
            assert room.act(*done[-1]).startswith("Done. ")
    assert room.is_reached
    return done


def knowing(world: World) -> Any:
    """Return a script that acts out the plan of its task in this world, then says so."""
    plans = {world.names[item]: moves(world, item) for item in world.items}

    def reply(node: str, prompt: str) -> Any:
        if node != "model":
            return "A note."
        target = prompt.partition("Get hold of one ")[2].partition(".")[0]
        done = prompt.count("You hold")
        if target not in plans or done == len(plans[target]):
            return "It is reached, or I do not know how."
        action, item = plans[target][done]
        args = {"action": action, "item": item}
        return AIMessage("", tool_calls=[{"name": "act", "args": args, "id": str(done)}])

    return reply


@pytest.mark.parametrize("arm", ["none", "notes"])
def test_an_arm_plays_all_rounds(arm: Any) -> None:
    items = [item for each in tasks_of(2) for item in each]
    model = ToolModel(knowing(World(5, items)))
    seen: list[Any] = []
    played = play(arm, model, seed=5, number=2, on_task=seen.append)
    assert seen == played
    assert [each.round for each in played] == [1, 1, 2, 2, 3, 3]
    assert [each.task for each in played] == items
    # Without a memory every task has names of its own, of which nothing is known.
    assert [each.succeeded for each in played] == [arm == "notes"] * 6
    if arm == "notes":
        assert model.calls[-1].prompt.count("A note.") == 5
        assert played[0].model_calls == played[0].tool_calls + 2
    rows = table([vars(each) for each in played])
    assert [row[:4] for row in rows] == [
        (arm, number, "2", "2" if arm == "notes" else "0") for number in ("1", "2", "3")
    ]


def test_outcomes_are_credited_to_the_procedures_of_a_memory() -> None:
    items = [item for each in tasks_of(1) for item in each]
    world = World(5, items)
    learned = (
        "PROCEDURE\nHeading: x\nOutput: get hold of one {}\nInput: nothing\n"
        "1. Call `act(action=<action>, item=<item>)`.\n2. Call `act(action=<other>)`.\n"
    )
    plan = knowing(world)

    def reply(node: str, prompt: str) -> Any:
        if node == "extract":
            target = prompt.partition("Get hold of one ")[2].partition(".")[0]
            return learned.format(target)
        if node == "compare":
            return "DIFFERENCE: another item\nVERDICT: DIFFERENT"
        return plan(node, prompt)

    with LocalMemory(":memory:", embeddings="none") as memory:
        played = play("memory", ToolModel(reply), seed=5, number=1, memory=memory)
        assert [each.succeeded for each in played] == [True] * 3
        assert memory.count() == 3
        assert sum(each.outcomes.successes for each in memory) > 0
