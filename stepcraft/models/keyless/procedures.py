"""Replies of the keyless model on procedures: steps, changes, critiques, questions, answers."""

import re
from collections.abc import Sequence

from stepcraft.models.keyless.material import Material, best, mentions, nearest, scores
from stepcraft.text.clean import stems, without_markers
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.sentences import sentences

_MAX_STEPS = 12
_COUNT = re.compile(r"\b[1-9]\d?\b")
_HOW_TO = re.compile(r"(?i)\A(?:please\s+)?how (?:to|do i|do you|can i|do we|can we)\s+")
_DEPENDENT = re.compile(
    r"(?i)(?:if|to|for|then|it|its|this|that|these|those|they|otherwise|here|there|also)\b"
)
"""How a sentence begins that cannot be understood without the one before it."""
_NOT_A_NOTE = re.compile(r"(?m)^(?:Q: .*|A: )")


def write_steps(material: Material) -> str:
    """Draft steps, or take those that there are; add what edits or the goal need."""
    steps = read_steps(without_markers(material.text("steps"))) or _draft(material)
    added = missing_steps if material.text("edits") else _known_steps
    for step in added(material, steps):
        steps.insert(nearest(step, steps[:-1] or steps) + 1, step)
    return numbered(steps)


def missing_steps(material: Material, steps: Sequence[str]) -> list[str]:
    """Return the words of a person who rejected the steps, and two steps at most with resources."""
    reason = " ".join(material.text("reason").split())
    unused = _unused(material, "\n".join(steps))[:1]
    added = [step for thing in unused for step in _known_steps(material, steps, thing)[:1]]
    absent = _unused(material, "\n".join([*steps, *added]))
    having = f"Have {', '.join(absent)} ready." if absent else ""
    return [*filter(None, [reason, *added, having])]


def criticise(material: Material) -> str:
    """Ask for one edit for each resource that no step mentions."""
    unused = _unused(material, material.text("steps"))
    edits = [f"- Use the resource {thing}: no step mentions it." for thing in unused]
    return "\n".join(edits) or "NO UPDATE REQUIRED"


def ask(material: Material) -> str:
    """Ask as many different questions about the goal as the format says."""
    goal, count = _purpose(material), int((_COUNT.search(material.form) or ["4"])[0])
    questions = [
        f"How to {goal}?",
        *(f"How does one work with {thing}?" for thing in material.resources),
        *(f"What is step {number} to {goal}?" for number in range(1, count)),
    ]
    return f"QUESTIONS\n{numbered(questions[:count])}"


def answer(material: Material) -> str:
    """Answer with the steps of passages that fit the question best."""
    return " ".join(_known_steps(material, [])) or "The procedures do not say."


def _examples(material: Material) -> dict[str, list[str]]:
    """Return the steps of each procedure among the passages; of prose, the sentences."""
    texts = [passage.text for passage in material.named("passage")]
    return {text: read_steps(text) or sentences(text) for text in texts}


def _draft(material: Material) -> list[str]:
    """Return the steps of the example that fits best, or else an outline."""
    examples = _examples(material)
    wanted = stems(f"{material.question}\n{material.text('resources')}")
    titles = scores(stems(material.question), [text.partition("\n")[0] for text in examples])
    texts = scores(wanted, [*examples])
    fits = [(2 * title + texts[rank]) * 0.85**rank for rank, title in enumerate(titles)]
    if any(fits):
        return [*dict.fromkeys([*examples.values()][fits.index(max(fits))])][:_MAX_STEPS]
    return [*(f"Gather {thing}." for thing in material.resources), f"Try to {_purpose(material)}."]


def _known_steps(material: Material, steps: Sequence[str], thing: str = "") -> list[str]:
    """Return what notes and passages say on the goal, and on a thing, that no step says."""
    text, goal = "\n".join(steps), stems(material.question)
    notes = sentences(_NOT_A_NOTE.sub("", material.text("notes")))
    fitting = [
        step
        for listed in [notes, *_examples(material).values()]
        for step in listed
        if len(stems(step) & goal) > 1 and mentions(step, thing) and not _DEPENDENT.match(step)
    ]
    return best((goal | stems(material.text("resources"))) - stems(text), fitting, 2, text)


def _unused(material: Material, text: str) -> list[str]:
    return [thing for thing in material.resources if not mentions(text, thing)]


def _purpose(material: Material) -> str:
    """Return the goal without "how to" before it or punctuation behind it."""
    return _HOW_TO.sub("", material.question.strip(" .?!:")) or "reach the goal"
