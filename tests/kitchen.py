"""A small memory and scripts for AAG, shared by the tests of nodes and graphs."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stepcraft import AagContext, Procedure
from stepcraft.memory.local import LocalMemory

GOAL = {"question": "bake a rye bread", "resources": "rye flour, a sourdough starter"}

PAPER = AagContext(paper=True)
OUTPUT_KEYS = {
    *("answer", "steps", "questions", "evidence", "critiques", "names", "warnings", "usage"),
    *("reviews", "remembered"),
}
"""For tests that assert the calls of the paper's method."""

PROCEDURES = [
    Procedure(
        "wheat flour, yeast", "bake a white bread", ("Knead flour and yeast.", "Let it rise.", "Bake it.")
    ),
    Procedure(
        "a jar, rye flour", "feed a sourdough starter", ("Stir rye flour into the jar.", "Wait a day.")
    ),
    Procedure("milk, a starter", "make yoghurt", ("Warm the milk.", "Stir in the starter.")),
    Procedure("a knife, bread", "slice a bread", ("Let the bread cool.", "Cut it.")),
]

CLOCK = Procedure("a clock", "wind a clock", ("Turn the key with `wind_up`.",))

DRAFT = "1. Mix the rye flour with water.\n2. [[Let it rise for an hour.]]\n3. Bake it."
QUESTIONS = (
    "OUTLINE\n- mix\n- rise\n- bake\nQUESTIONS\n"
    "1. How is a sourdough starter fed?\n2. How is bread baked?\n3. How is dough kneaded?\n4. How is bread cooled?"
)
REVISED = "1. Mix the rye flour with water and the sourdough starter.\n2. Let it rise.\n3. Bake it."
CONTENT = "NO UPDATE REQUIRED"


def dish(number: int, **fields: Any) -> Procedure:
    """One of any number of procedures."""
    content = {"output": f"dish {number}", "input": "flour, water", "steps": [f"Mix {number}.", "Bake."]}
    return Procedure(**{**content, **fields})


def small_memory() -> LocalMemory:
    """Four procedures, searched by words alone."""
    memory = LocalMemory(":memory:", embeddings="none", name="kitchen")
    memory.add(PROCEDURES)
    return memory


def edited(number: int) -> str:
    return f"1. Mix.\n2. Edited {number} times."


def cook(critiques: int = 0) -> dict[str, list[Any]]:
    """Replies by node for a run whose critic asks for edits so many times."""
    return {
        "assess": ["FAMILIAR"],
        "draft": [DRAFT],
        "to_query": [QUESTIONS],
        "answer": [f"Answer {number}." for number in range(1, 5)],
        "revise": [REVISED],
        "critic": [f"- Edit {number} the second step." for number in range(1, critiques + 1)] + [CONTENT],
        "edit": [edited(number) for number in range(1, critiques + 1)],
    }


def cooked(node: str, body: Mapping[str, Any]) -> str:
    """What the cook says to a request, whatever was asked before; the critic asks for one edit."""
    asked = body["messages"][1]["content"]
    if node == "answer":
        question = re.findall(r"<question>\n(.*)\n</question>", asked)[0]
        return f"This is how: {question}"
    if node == "critic":
        return CONTENT if "Edited 1 times" in asked else "- Edit the second step."
    return {"draft": DRAFT, "to_query": QUESTIONS, "revise": REVISED, "edit": edited(1)}[node]


def forever(replies: dict[str, list[Any]]) -> Callable[[str, str], Any]:
    """Each node's replies in turn, the last one again and again."""
    queues: dict[str, Iterator[Any]] = {node: iter(given) for node, given in replies.items()}

    def answer(node: str, _prompt: str) -> Any:
        return next(queues[node], replies[node][-1])

    return answer
