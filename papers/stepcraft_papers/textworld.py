"""A text world based on Minecraft 1.16 to carry out plans in (RAT §4, embodied planning).

The world is an inventory, empty at first, and actions named "<type>_<item>" that change it. The
crafting recipes are those of minecraft-data; our own table says what can be mined with which tool
and what can be smelted. A plan is a list of steps (type, item, count): the action is repeated until
the inventory contains that number of the item. A plan is executable if the inventory contains the
target at the end.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from stepcraft.errors import BadInput
from stepcraft.evals.benchmark import Benchmark, Questions
from stepcraft.evals.samples import Sample
from stepcraft_papers.entries import built_in
from stepcraft_papers.plan_text import PLAN_FORMAT, read_steps

ActionType = Literal["mine", "craft", "smelt"]
MAX_ACTIONS = 10_000
"""The maximum number of actions in a plan."""
_TABLE, _FURNACE, _FUELS = "crafting_table", "furnace", ("coal", "charcoal")
_TASKS = 100
_WOODS = ("spruce", "birch", "jungle", "acacia", "dark_oak", "crimson", "warped")
_COLOURS = (
    *("orange", "magenta", "light_blue", "yellow", "lime", "pink", "gray", "light_gray"),
    *("cyan", "purple", "blue", "brown", "green", "red", "black"),
)
_SPECIES = ("oak_", "white_")
"""The wood and the colour assumed for a name that does not specify them."""
_SYNONYMS = {"wood": "oak_log", "workbench": "crafting_table", "cobble": "cobblestone"}


class Step(NamedTuple):
    """A step of a plan."""

    type: str
    item: str
    goal: int
    """The number of this item that the inventory should contain after the step."""

    def __str__(self) -> str:
        return f"{self.type} {self.goal} {self.item}"


@dataclass(frozen=True)
class Variant:
    """One way to do an action; its item fields map each item to a count."""

    output: Mapping[str, int]
    type: ActionType
    precondition: Mapping[str, int]
    """The items that it uses up."""
    tool: Mapping[str, int]
    """The items that must be held but are not used up."""

    def lacks(self, inventory: Mapping[str, int]) -> Counter[str]:
        """Return the items that an inventory is short of, and how many of each are missing."""
        return (Counter(self.tool) | Counter(self.precondition)) - Counter(inventory)

    def supplied(self) -> "Variant":
        """Return the variant if a crafting table, a furnace and fuel are provided."""
        fuels = _FUELS if self.type == "smelt" else ()
        used = {item: count for item, count in self.precondition.items() if item not in fuels}
        tools = {item: n for item, n in self.tool.items() if item not in {_TABLE, _FURNACE}}
        return Variant(self.output, self.type, used, tools)


def _data(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(
        (files("stepcraft_papers") / "data" / name).read_text("utf-8")
    )
    return data


@cache
def items() -> frozenset[str]:
    """Return the names of all items in the game, including those that no action produces."""
    return frozenset(_data("minecraft-1.16.json")["items"])


@cache
def world() -> Mapping[str, tuple[Variant, ...]]:
    """Return the variants of every action, by action name "<type>_<item>".

    Mining gives one item; a better tool than necessary also works. Smelting gives one item and uses
    up one coal or charcoal.
    """
    actions: dict[str, list[Variant]] = {}

    def add(kind: ActionType, item: str, count: int, used: Mapping[str, int], *tools: str) -> None:
        variant = Variant({item: count}, kind, used, dict.fromkeys(tools, 1))
        actions.setdefault(f"{kind}_{item}", []).append(variant)

    rules = _data("minecraft-rules.json")
    for rule in rules["mine"]:
        for item in rule["items"].split():
            for tools in [[tool] for tool in rule["tools"]] or [[]]:
                add("mine", item, 1, {rule["from"]: 1} if "from" in rule else {}, *tools)
    for item, recipes in _data("minecraft-1.16.json")["recipes"].items():
        for count, used, on_table in recipes:
            add("craft", item, count, used, *[_TABLE] * on_table)
    for item, sources in rules["smelt"].items():
        for source in sources.split():
            for fuel in _FUELS:
                add("smelt", item, 1, {source: 1, fuel: 1}, _FURNACE)
    return {name: tuple(variants) for name, variants in actions.items()}


@dataclass(frozen=True)
class Execution:
    """The result of carrying out a plan."""

    executable: bool
    """Whether the inventory contains the target at the end."""
    failed_step: int | None
    """The number of the first step that failed, from 1, or None if none failed."""
    reason: str
    """Why the plan is not executable, or "" if it is."""
    inventory: Mapping[str, int]
    """The items held at the end."""


def execute(
    plan: Iterable[tuple[str, str, int]], target: tuple[str, int], *, lenient: bool = False
) -> Execution:
    """Carry out a plan from an empty inventory, until a step fails or the target is held.

    An action uses the first of its variants whose precondition and tool are in the inventory. If
    there is none, the action fails and the inventory stays unchanged.

    Args:
        plan: Steps (type, item, count).
        target: An item and the number of it that is wanted.
        lenient: Whether a crafting table, a furnace and fuel are always available without being in
            the inventory.

    Raises:
        BadInput: The target is not an item in the game, or its count is less than 1.
    """
    item, wanted = _checked(target)
    inventory: Counter[str] = Counter()
    room, failed, reason = MAX_ACTIONS, None, ""
    for number, step in enumerate(map(Step._make, plan), 1):
        actions, problem = _carry_out(step, inventory, room, lenient=lenient)
        room -= actions
        if inventory[item] >= wanted:
            break
        if problem:
            failed, reason = number, f'Step {number}, "{step}", fails: {problem}.'
            break
    executable = inventory[item] >= wanted
    if not executable and not reason:
        reason = f"The plan ends with {inventory[item]} of {wanted} {item}."
    return Execution(executable, failed, reason, dict(+inventory))


def _carry_out(step: Step, inventory: Counter[str], room: int, *, lenient: bool) -> tuple[int, str]:
    """Repeat a step's action as needed; return how often it was done, and why it then failed."""
    variants = world().get(f"{step.type}_{step.item}", ())
    if not variants:
        kinds = [kind for kind in ("mine", "craft", "smelt") if f"{kind}_{step.item}" in world()]
        return 0, f"there is no such action{''.join(f', but {kind} {step.item}' for kind in kinds)}"
    if lenient:
        variants = tuple(variant.supplied() for variant in variants)
    actions = 0
    while inventory[step.item] < step.goal:
        if actions == room:
            return actions, f"a plan may take {MAX_ACTIONS:,} actions"
        variant = next((variant for variant in variants if not variant.lacks(inventory)), None)
        if variant is None:
            lacks = [variant.lacks(inventory) for variant in variants]
            missing = min(lacks, key=lambda lack: (len(lack), lack.total()))
            listed = ", ".join(f"{count} {item}" for item, count in missing.items())
            return actions, f"it lacks {listed}"
        inventory.subtract(variant.precondition)
        inventory.update(variant.output)
        actions += 1
    return actions, ""


def _checked(target: tuple[str, int]) -> tuple[str, int]:
    item, count = target
    if item not in items():
        raise BadInput(f"Minecraft 1.16 has no item {item!r}; use a name such as 'oak_planks'")
    if count < 1:
        raise BadInput(f"a target of {count} {item} is held already; ask for 1 or more")
    return item, count


@cache
def _cheapest() -> Mapping[str, Variant]:
    """Return the cheapest variant for each item that can be obtained from an empty inventory.

    An action costs 1 plus the cost of what it needs. No recipe gives back more than went in, so
    following these variants from an item never leads back to it.
    """
    costs: dict[str, float] = {}
    best: dict[str, Variant] = {}
    changed = True
    while changed:
        changed = False
        for variant in (variant for variants in world().values() for variant in variants):
            needs = {**variant.tool, **variant.precondition}
            if not needs.keys() <= costs.keys():
                continue
            spent = sum(count * costs[item] for item, count in needs.items())
            for item, count in variant.output.items():
                cost = (1 + spent) / count
                if cost < costs.get(item, math.inf) - 1e-9:
                    costs[item], best[item], changed = cost, variant, True
    return best


def solve(item: str, count: int) -> tuple[Step, ...]:
    """Return a plan for a target from an empty inventory, by backward chaining.

    Each item has a single step, which covers everything that later steps use up or hold. No step
    can be left out.

    Raises:
        BadInput: The target is not an item in the game or cannot be obtained, or its count is less
            than 1.
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
    tools: Counter[str] = Counter()
    steps: list[Step] = []
    for name in reversed(order):
        variant = best[name]
        total = used[name] + tools[name]
        repeats = math.ceil(total / variant.output[name])
        used.update({need: amount * repeats for need, amount in variant.precondition.items()})
        tools |= Counter(variant.tool)
        steps.append(Step(variant.type, name, total))
    return tuple(reversed(steps))


def read_plan(text: str) -> tuple[Step, ...]:
    """Return the steps in an answer, with their item names mapped to items in the game.

    Informal names such as "Oak Logs" are understood.
    """
    return tuple(
        Step(kind, item, count) for kind, name, count in read_steps(text) if (item := _item(name))
    )


def _item(name: str) -> str:
    """Return the item that a name refers to, or "" if there is none."""
    for form in (name, name.removesuffix("s"), name.removesuffix("es"), f"{name}s"):
        for item in (form, _SYNONYMS.get(form, ""), *(species + form for species in _SPECIES)):
            if item in items():
                return item
    return ""


@cache
def tasks() -> Mapping[str, tuple[str, int]]:
    """Return the targets of 100 tasks by task id, from the shortest plan to the longest.

    They are spread evenly over all items that can be crafted or smelted, with one item per family:
    of the items that differ only in their wood or colour, the oak or white one.
    """
    ordered = sorted((len(solve(item, 1)), item) for item in _families())
    places = [number * (len(ordered) - 1) // (_TASKS - 1) for number in range(_TASKS)]
    return {
        f"textworld-{number + 1}": (ordered[place][1], 1 + number % 3)
        for number, place in enumerate(places)
    }


def _families() -> Iterator[str]:
    others = tuple(f"{word}_" for word in (*_WOODS, *_COLOURS))
    for item, variant in _cheapest().items():
        if variant.type != "mine" and not item.removeprefix("stripped_").startswith(others):
            yield item


def executability(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Score whether an answer's plan works: strictly, and with table, furnace and fuel given."""
    target = tasks()[sample.get("task", sample["id"])]
    plan = read_plan("\n".join(output.get("steps") or []) or str(output.get("answer") or ""))
    return {
        name: float(execute(plan, target, lenient=lenient).executable)
        for name, lenient in (("executable", False), ("executable, lenient", True))
    }


def _questions() -> Questions:
    question = (
        "Which steps lead from an empty inventory in Minecraft 1.16 to {} \u00d7 {}?\n"
        + PLAN_FORMAT
    )
    samples = [
        Sample(id=name, question=question.format(count, item.replace("_", " ")))
        for name, (item, count) in tasks().items()
    ]
    return Questions(samples, [executability])


TEXTWORLD = Benchmark(
    "textworld",
    "100 crafting tasks of Minecraft 1.16, carried out in a text world",
    built_in("textworld", _questions),
    source="this package",
    licence="that of this package; recipes from minecraft-data (MIT)",
    citation="Wang et al., RAT: Retrieval Augmented Thoughts Elicit Context-Aware Reasoning, 2024",
)
