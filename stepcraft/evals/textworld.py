"""A text world of Minecraft 1.16, in which plans are carried out (RAT's evaluation of embodied planning).

The world is an inventory, empty at first, and actions named "<type>_<item>" that change it. Crafting recipes are those
of minecraft-data; what can be mined with which tool and what can be smelted is a table of our own. A plan is a list of
steps (type, item, count): the action is repeated until the inventory holds that many of the item, what it held before
included. A plan is executable if the inventory holds the target at its end.
"""

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import get_args

from stepcraft.errors import BadInput
from stepcraft.evals._minecraft import ActionType, Step, Variant, items, world
from stepcraft.evals._plan_text import PLAN_FORMAT, Plan, read_plan

__all__ = [
    "MAX_ACTIONS",
    "PLAN_FORMAT",
    "Execution",
    "Plan",
    "Step",
    "Task",
    "Variant",
    "execute",
    "items",
    "read_plan",
    "solve",
    "tasks",
    "world",
]

MAX_ACTIONS = 10_000
"""How many actions a plan may take."""
_TASKS = 100
_WOODS = ("spruce", "birch", "jungle", "acacia", "dark_oak", "crimson", "warped")
_COLOURS = (
    *("orange", "magenta", "light_blue", "yellow", "lime", "pink", "gray", "light_gray"),
    *("cyan", "purple", "blue", "brown", "green", "red", "black"),
)


@dataclass(frozen=True)
class Execution:
    """What became of a plan."""

    executable: bool
    """Whether the inventory holds the target."""
    failed_step: int | None
    """The number of the first step that failed, from 1; None where none did."""
    reason: str
    """Why the plan is not executable, in a sentence; "" where it is."""
    inventory: Mapping[str, int]
    """What is held at the end."""
    taken: tuple[tuple[str, int], ...]
    """The actions done, in order, each with how often it was repeated."""


@dataclass(frozen=True)
class Task:
    """An item to obtain from an empty inventory."""

    id: str
    item: str
    count: int
    question: str
    """The task as a sentence."""

    @property
    def target(self) -> tuple[str, int]:
        """The item and how many of it the inventory must hold."""
        return self.item, self.count


def execute(
    plan: Iterable[tuple[str, str, int]], target: tuple[str, int], *, lenient: bool = False
) -> Execution:
    """Carry out a plan from an empty inventory, until a step fails or the target is held after a step.

    An action takes the first of its variants whose precondition and tool are in the inventory; else it fails, and the
    inventory stays as it is.

    Args:
        plan: Steps (type, item, count). What the world does not know is a step that fails, not an error.
        target: An item, and how many of it.
        lenient: Whether a crafting table, a furnace and fuel are at hand throughout; they are not in the inventory.

    Raises:
        BadInput: The target is no item of the game, or fewer than 1 of it.
    """
    item, wanted = _checked(target)
    inventory: Counter[str] = Counter()
    taken: list[tuple[str, int]] = []
    failed, reason = None, ""
    for number, step in enumerate(map(Step._make, plan), 1):
        room = MAX_ACTIONS - sum(times for _, times in taken)
        times, why = _carry_out(step, inventory, room, lenient=lenient)
        if times:
            taken.append((f"{step.type}_{step.item}", times))
        if inventory[item] >= wanted:
            break
        if why:
            failed, reason = number, f'Step {number}, "{step}", fails: {why}.'
            break
    executable = inventory[item] >= wanted
    if not executable and not reason:
        reason = f"The plan ends with {inventory[item]} of {wanted} {item}."
    return Execution(executable, failed, reason, MappingProxyType(dict(+inventory)), tuple(taken))


def _carry_out(step: Step, inventory: Counter[str], room: int, *, lenient: bool) -> tuple[int, str]:
    """Do a step's action as often as needed; return how often it was done, and why not to the end."""
    variants = world().get(f"{step.type}_{step.item}", ())
    if not variants:
        return 0, _unknown(step)
    if lenient:
        variants = tuple(variant.supplied() for variant in variants)
    times = 0
    while inventory[step.item] < step.goal:
        if times == room:
            return times, f"a plan may take {MAX_ACTIONS:,} actions"
        variant = next((variant for variant in variants if not variant.lacks(inventory)), None)
        if variant is None:
            missing = min(
                (variant.lacks(inventory) for variant in variants),
                key=lambda lack: (len(lack), sum(lack.values())),
            )
            return (
                times,
                f"it lacks {_listed(f'{count} {item}' for item, count in missing.items())}",
            )
        inventory.subtract(variant.precondition)
        inventory.update(variant.output)
        times += 1
    return times, ""


def _unknown(step: Step) -> str:
    """Return why there is no such action."""
    types = get_args(ActionType)
    if step.type not in types:
        return f'"{step.type}" is no type of action: there are {_listed(types)}'
    if step.item not in items():
        near = difflib.get_close_matches(step.item, sorted(items()), 1)
        return f"there is no item {step.item}" + (f", the nearest is {near[0]}" if near else "")
    others = {"mine": "mined", "craft": "crafted", "smelt": "smelted"}
    said = [said for kind, said in others.items() if f"{kind}_{step.item}" in world()]
    can = f"it can be {_listed(said, 'or')}" if said else "there is no way to it in this world"
    return f"{step.item} cannot be {others[step.type]}; {can}"


def _listed(names: Iterable[str], last: str = "and") -> str:
    *first, end = names
    return f"{', '.join(first)} {last} {end}" if first else end


def _checked(target: tuple[str, int]) -> tuple[str, int]:
    item, count = target
    if item not in items():
        near = difflib.get_close_matches(str(item), sorted(items()), 1)
        hint = f"; did you mean {near[0]!r}?" if near else "; use a name such as 'oak_planks'"
        raise BadInput(f"Minecraft 1.16 has no item {item!r}{hint}")
    if count < 1:
        raise BadInput(f"a target of {count} {item} is held already; ask for 1 or more")
    return item, count


@cache
def _cheapest() -> Mapping[str, Variant]:
    """Return for each item that can be had from nothing the variant that costs least.

    An action costs 1, and what it needs. No recipe gives back more than went in, so that following these variants
    from an item never leads back to it.
    """
    costs: dict[str, float] = {}
    best: dict[str, Variant] = {}
    changed = True
    while changed:
        changed = False
        for variants in world().values():
            for variant in variants:
                needs = {**variant.tool, **variant.precondition}
                if not needs.keys() <= costs.keys():
                    continue
                spent = sum(count * costs[item] for item, count in needs.items())
                for item, count in variant.output.items():
                    cost = (1 + spent) / count
                    if cost < costs.get(item, math.inf) - 1e-9:
                        costs[item], best[item], changed = cost, variant, True
    return MappingProxyType(best)


def solve(item: str, count: int) -> tuple[Step, ...]:
    """Return a plan for a target from an empty inventory, by backward chaining; no step of it can be left out.

    Each item has one step, with all that later steps use up and hold.

    Raises:
        BadInput: The target is no item of the game, fewer than 1 of it, or cannot be had in this world.
    """
    _checked((item, count))
    best = _cheapest()
    if item not in best:
        raise BadInput(f"there is no way to {item} in this world; take an item of a task")
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for need in (*best[name].tool, *best[name].precondition):
            if need not in order:
                visit(need)
        order[name] = None

    visit(item)
    used: Counter[str] = Counter({item: count})
    held: Counter[str] = Counter()
    steps: list[Step] = []
    for name in reversed(order):
        variant = best[name]
        total = used[name] + held[name]
        repeats = math.ceil(total / variant.output[name])
        used.update({need: amount * repeats for need, amount in variant.precondition.items()})
        held |= Counter(variant.tool)
        steps.append(Step(variant.type, name, total))
    return tuple(reversed(steps))


@cache
def tasks() -> tuple[Task, ...]:
    """Return 100 tasks, from the shortest plan to the longest.

    They are spread evenly over all that can be crafted and smelted, one of each family: of the items that differ in
    their wood or colour only, that of oak or white.
    """
    found = sorted((len(solve(item, 1)), item) for item in _families())
    chosen = [found[number * (len(found) - 1) // (_TASKS - 1)][1] for number in range(_TASKS)]
    return tuple(_task(number, item) for number, item in enumerate(chosen))


def _families() -> Iterator[str]:
    for item, variant in _cheapest().items():
        other = item.removeprefix("stripped_").startswith(
            tuple(f"{word}_" for word in (*_WOODS, *_COLOURS))
        )
        if variant.type != "mine" and not other:
            yield item


def _task(number: int, item: str) -> Task:
    count = 1 + number % 3
    question = f"Which steps lead from an empty inventory in Minecraft 1.16 to {count} \u00d7 {item.replace('_', ' ')}?"
    return Task(f"textworld-{number + 1}", item, count, question)
