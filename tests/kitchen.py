"""A small memory and a script for AAG, shared by tests."""

from __future__ import annotations

from typing import Any

from stepcraft import Procedure
from stepcraft.errors import AddReport, Failed
from stepcraft.memory.local import LocalMemory
from tests.scripted import block

GOAL = {"question": "bake a rye bread", "resources": "rye flour, a sourdough starter"}

PROCEDURES = [
    Procedure(
        "wheat flour, yeast",
        "bake a white bread",
        ("Knead flour and yeast.", "Let it rise.", "Bake it."),
    ),
    Procedure(
        "a jar, rye flour",
        "feed a sourdough starter",
        ("Stir rye flour into the jar.", "Wait a day."),
    ),
    Procedure("milk, a starter", "make yoghurt", ("Warm the milk.", "Stir in the starter.")),
    Procedure("a knife, bread", "slice a bread", ("Let the bread cool.", "Cut it.")),
]

CLOCK = Procedure("a clock", "wind a clock", ("Turn the key with `wind_up`.",))

LOOK_UP = "- feed a sourdough starter\n- knead bread"
GAPS = "NOTHING"
DRAFT = "1. Mix the rye flour with water.\n2. Let it rise.\n3. Bake it with `oven.heat()`."
CHANGE = block(1, "with water", "with water and the sourdough starter")
STEPS = [
    "Mix the rye flour with water and the sourdough starter.",
    "Let it rise.",
    "Bake it with `oven.heat()`.",
]


def dish(number: int, **fields: Any) -> Procedure:
    """Return one of any number of procedures."""
    content = {
        "output": f"dish {number}",
        "input": "flour, water",
        "steps": [f"Mix {number}.", "Bake."],
    }
    return Procedure(**{**content, **fields})


def small_memory() -> LocalMemory:
    """Return four procedures, searched by words alone."""
    memory = LocalMemory(":memory:", embeddings="none", name="kitchen")
    memory.add(PROCEDURES)
    return memory


class FullMemory(LocalMemory):
    """Takes no procedure, and says why."""

    def add(self, *_: Any, **__: Any) -> AddReport:
        return AddReport(failed=[Failed("1", "the disk is full")])


def cook(rounds: int = 1) -> list[str]:
    """Return the replies for a run whose critic asks for one change, and is content then."""
    return [LOOK_UP, DRAFT, *[CHANGE] * rounds, "NO CHANGE"]
