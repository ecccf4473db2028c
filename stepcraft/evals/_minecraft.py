"""The world of the text world: the items of Minecraft 1.16, and the actions that give them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

ActionType = Literal["mine", "craft", "smelt"]
TABLE, FURNACE, FUELS = "crafting_table", "furnace", ("coal", "charcoal")


class Step(NamedTuple):
    """A step of a plan."""

    type: str
    """"mine", "craft" or "smelt"."""
    item: str
    """The item that it gives, such as "oak_planks"."""
    goal: int
    """How many of it the inventory is to hold after the step."""

    def __str__(self) -> str:
        return f"{self.type} {self.goal} {self.item}"


@dataclass(frozen=True)
class Variant:
    """One way to do an action; each field that names items maps them to their number."""

    output: Mapping[str, int]
    type: ActionType
    precondition: Mapping[str, int]
    """What it uses up."""
    tool: Mapping[str, int]
    """What must be held, and stays."""

    def lacks(self, inventory: Mapping[str, int]) -> dict[str, int]:
        """Return what an inventory has too few of, with how many are missing."""
        needs = dict(self.tool)
        for item, count in self.precondition.items():
            needs[item] = max(count, needs.get(item, 0))
        return {
            item: count - inventory.get(item, 0)
            for item, count in needs.items()
            if inventory.get(item, 0) < count
        }

    def supplied(self) -> "Variant":
        """Return the variant where a crafting table, a furnace and fuel are at hand."""
        used = {
            item: count
            for item, count in self.precondition.items()
            if self.type != "smelt" or item not in FUELS
        }
        held = {item: count for item, count in self.tool.items() if item not in {TABLE, FURNACE}}
        return Variant(self.output, self.type, used, held)


def _data(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((files("stepcraft.evals") / "data" / name).read_text("utf-8"))
    return read


@cache
def items() -> frozenset[str]:
    """Return the names of all items of the game, also of those that no action gives."""
    return frozenset(_data("minecraft-1.16.json")["items"])


@cache
def world() -> Mapping[str, tuple[Variant, ...]]:
    """Return the variants of every action, by its name "<type>_<item>".

    Mining gives one item; a better tool than needed will do. Smelting gives one item and uses up one coal or charcoal.
    """
    actions: dict[str, list[Variant]] = {}

    def add(kind: ActionType, item: str, count: int, used: Mapping[str, int], *held: str) -> None:
        variant = Variant({item: count}, kind, used, dict.fromkeys(held, 1))
        actions.setdefault(f"{kind}_{item}", []).append(variant)

    rules = _data("minecraft-rules.json")
    for rule in rules["mine"]:
        for item in rule["items"].split():
            for tools in [[tool] for tool in rule["tools"]] or [[]]:
                add("mine", item, 1, {rule["from"]: 1} if "from" in rule else {}, *tools)
    for item, recipes in _data("minecraft-1.16.json")["recipes"].items():
        for count, used, on_table in recipes:
            add("craft", item, count, used, *[TABLE] * on_table)
    for item, sources in rules["smelt"].items():
        for source in sources.split():
            for fuel in FUELS:
                add("smelt", item, 1, {source: 1, fuel: 1}, FURNACE)
    return MappingProxyType({name: tuple(variants) for name, variants in actions.items()})
