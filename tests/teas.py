"""Procedures for the same task in other words, and a model that says which they are."""

from stepcraft import Procedure
from tests.scripted import ScriptedModel

GREEN = Procedure(
    "water, tea leaves, a pot",
    "make a pot of green tea",
    (
        "Heat the water to 80 degrees.",
        "Pour the water over the tea leaves in the pot.",
        "Wait 2 minutes and strain the tea.",
    ),
    source="tea.md",
)
BREWED = Procedure(
    "tea leaves, hot water",
    "brew green tea in a pot",
    (
        "Heat water to 80 degrees.",
        "Put the tea leaves in the pot and pour the water over them.",
        "Strain the tea; rinse the pot.",
    ),
    source="kitchen.md",
)
LEAF = Procedure(
    "leaves, water, a pot",
    "prepare green tea from leaves",
    (
        "Heat the water to 80 degrees.",
        "Pour it over the leaves in the pot.",
        "Strain the tea into the warmed cup.",
    ),
    source="leaf.md",
)
ICED = Procedure(
    "water, tea leaves, ice, a pot",
    "make a pot of iced green tea",
    ("Heat the water to 80 degrees.", "Pour the water over the tea leaves in the pot.", "Add ice."),
    source="ice.md",
)
BREAD = Procedure(
    "flour, yeast", "bake white bread", ("Knead flour with yeast.", "Bake for 40 minutes.")
)

MERGED = """\
DIFFERENCE: NONE
VERDICT: SAME
OUTPUT: make a pot of green tea
INPUT: water, tea leaves, a pot
STEPS:
1. Heat the water to 80 degrees.
2. Pour the water over the tea leaves in the pot.
3. Strain the tea.
4. Rinse the pot."""
SAME = "DIFFERENCE: NONE\nVERDICT: SAME"
DIFFERENT = "DIFFERENCE: the ice.\nVERDICT: DIFFERENT"


def taster(same: str = MERGED, *, latency: float = 0.0) -> ScriptedModel:
    """To it, what has ice differs from what has none, and all other teas are the same."""

    def say(_node: str, prompt: str) -> str:
        material = prompt.partition("</reply_format>")[2]
        return DIFFERENT if " ice" in material else same

    return ScriptedModel(say, latency=latency)
