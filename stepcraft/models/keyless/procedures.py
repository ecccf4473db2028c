"""The keyless model's replies about procedures: steps, and anything missing from them."""

import re
from collections.abc import Sequence

from stepcraft.models.keyless.material import Material, best, mentions
from stepcraft.text.clean import stems
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.sentences import sentences

_MAX_STEPS = 12
_HOW_TO = re.compile(r"(?i)\A(?:please\s+)?how (?:to|do i|do you|can i|do we|can we)\s+")
_DEPENDENT = re.compile(
    r"(?i)(?:if|to|for|then|it|its|this|that|these|those|they|otherwise|here|there|also)\b"
)
"""The opening word of a sentence that cannot be understood without the preceding one."""


def write_steps(material: Material) -> str:
    """Write the steps of the procedure ranked first, or an outline if no procedure matches."""
    wanted = stems(f"{material.question}\n{material.text('resources')}")
    matching = [steps for text, steps in _examples(material).items() if wanted & stems(text)]
    if matching:
        steps = [*dict.fromkeys(matching[0])][:_MAX_STEPS]
    else:
        purpose = _HOW_TO.sub("", material.question.strip(" .?!:")) or "reach the goal"
        steps = [*(f"Gather {thing}." for thing in material.resources), f"Try to {purpose}."]
    return numbered(steps)


def missing_steps(material: Material, steps: Sequence[str]) -> list[str]:
    """Return steps to add: the reason for a rejection, and up to two steps for unused resources."""
    reason = " ".join(material.text("reason").split())
    text, goal = "\n".join(steps), stems(material.question)
    unused = [thing for thing in material.resources if not mentions(text, thing)]
    fitting = [
        step
        for example in _examples(material).values()
        for step in example
        if unused and mentions(step, unused[0]) and len(stems(step) & goal) > 1
        if not _DEPENDENT.match(step)
    ]
    added = best(goal, fitting, 1, text)
    absent = [thing for thing in unused if not mentions("".join(added), thing)]
    having = f"Have {', '.join(absent)} ready." if absent else ""
    return [*filter(None, [reason, *added, having])]


def _examples(material: Material) -> dict[str, list[str]]:
    """Return each passage's text with its steps or, if it has none, its sentences."""
    texts = [passage.text for passage in material.named("passage")]
    return {text: read_steps(text) or sentences(text) for text in texts}
