"""Creative writing: three templates with three subjects each, in our own wording (RAT §4)."""

from collections.abc import Mapping
from typing import Any

from stepcraft.evals.benchmark import Benchmark, Questions
from stepcraft.evals.samples import Sample
from stepcraft_papers.entries import built_in

TEMPLATES = {
    "history": (
        "Tell the history of {} in the order of time, with dates: how it came about, what "
        "happened, and what followed.",
        ("the Suez Canal", "the eruption of Krakatoa in 1883", "the influenza pandemic of 1918"),
    ),
    "survey": (
        "Write a survey of {} for readers who are new to the field: its central ideas, how they "
        "developed, what is in use today, and which questions are open.",
        ("plate tectonics", "error-correcting codes", "reinforcement learning from human feedback"),
    ),
    "portrait": (
        "Write a portrait of {} for the visitors of an exhibition: what it is, where it comes "
        "from, what it is known for, and why it matters.",
        ("the city of Samarkand", "the Trans-Siberian Railway", "the Antikythera mechanism"),
    ),
}
"""The templates, each with the subjects to insert."""


def _unscored(_sample: Sample, _output: Mapping[str, Any]) -> dict[str, float]:
    """Return no score: the texts are judged in pairs."""
    return {}


def _questions() -> Questions:
    samples = [
        Sample(id=f"{name}-{number}", question=template.format(fill))
        for name, (template, fills) in TEMPLATES.items()
        for number, fill in enumerate(fills, 1)
    ]
    return Questions(samples, [_unscored])


WRITING = Benchmark(
    "writing",
    "nine texts to write, for stepcraft eval judge and TrueSkill",
    built_in("writing", _questions),
    source="this package",
    licence="that of this package",
    citation="Wang et al., RAT: Retrieval Augmented Thoughts Elicit Context-Aware Reasoning, 2024",
)
