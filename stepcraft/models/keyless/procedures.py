"""Replies of the keyless model in AAG: steps, critiques, questions and short answers made of procedures."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepcraft.models.keyless.material import Example, Material, fit, is_alike, mentions, weight, weights
from stepcraft.text.clean import normalised, stems, without_markers
from stepcraft.text.lists import numbered, read_bullets, read_steps
from stepcraft.text.sections import CONTENT, NOT_SAID, UNCHANGED, UNFAMILIAR

MAX_STEPS = 12
MAX_ADDED = 3
_ON_TOPIC = 0.35

_COUNT = re.compile(r"\b(\d{1,2})\b")
_HOW_TO = re.compile(r"(?:please\s+)?(?:how (?:to|do i|do you|can i|do we|can we)\s+)", re.IGNORECASE)
_HAVING = "Have {} ready."
_DEPENDENT = re.compile(
    r"(?:if|to|for|then|it|its|this|that|these|those|they|otherwise|here|there|also)\b", re.IGNORECASE
)
"""How a sentence begins that cannot be understood without the one before it."""
_UNUSED = re.compile(r"Use the resource (.+): no step mentions it\.", re.DOTALL)
_REMOVE = re.compile(r"(?:remove|delete|drop) step (\d{1,3})\b", re.IGNORECASE)
_ADD = re.compile(
    r"(?:add|insert) (?:a |another )?step(?: that| to| which|:)? (\S.*)", re.IGNORECASE | re.DOTALL
)


def write_steps(material: Material) -> str:
    """Draft steps; with a `steps` section, revise them; with an `edits` section as well, apply those edits."""
    return numbered(_rewritten(material))


def assess(_material: Material) -> str:
    """It knows nothing but its evidence."""
    return UNFAMILIAR


def compare(material: Material) -> str:
    """Two procedures are for the same task where their outputs are equal; merged where the one has all steps of the other."""
    texts = [section.text for section in material.named("procedure")]
    heads = [normalised(text.partition("\n")[0]).casefold() for text in texts]
    if len(set(heads)) > 1:
        return "DIFFERENCE: their outputs are not equal\nVERDICT: DIFFERENT"
    steps = [frozenset(read_steps(text.partition("\nSTEPS:\n")[2])) for text in texts]
    whole = next((text for text, own in zip(texts, steps, strict=True) if own >= steps[0] | steps[-1]), "")
    lines = ["DIFFERENCE: NONE", "VERDICT: SAME"]
    return "\n".join([*lines, whole] if whole and "STEPS:" in material.instructions else lines)


def write_patch(material: Material) -> str:
    """The changes that `write_steps` makes: steps that it adds and removes."""
    steps, rewritten = material.steps, _rewritten(material)
    staying = set(rewritten)
    lines = [f"{number}-" for number, step in enumerate(steps, 1) if step not in staying]
    number = 0
    for step in rewritten:
        while number < len(steps) and steps[number] not in staying:
            number += 1
        if number < len(steps) and step == steps[number]:
            number += 1
        else:
            lines.append(f"{number}+: " + step.replace("\n", "\n   "))
    return "\n".join(lines) or UNCHANGED


def _rewritten(material: Material) -> list[str]:
    goal, steps = material.text("goal"), material.steps
    if steps and (edits := read_bullets(material.text("edits"))):
        return _edit(goal, steps, edits, material.knowledge)
    if not steps:
        return _draft(goal, material)
    knowledge = material.knowledge
    weighing = weights([*steps, *knowledge])
    return _add(steps, knowledge, _Wanted(stems(goal), stems(material.text("resources")), weighing))


def criticise(material: Material) -> str:
    """Ask for one edit for each resource that no step mentions; without any, nothing is to be changed."""
    text = "\n".join(material.steps)
    unused = [thing for thing in material.resources if not mentions(text, thing)]
    return "\n".join(f"- Use the resource {thing}: no step mentions it." for thing in unused) or CONTENT


def ask(material: Material) -> str:
    """Ask as many different questions about the goal as the format says, 4 if it does not say.

    With procedures at hand, only about the resources that they do not mention.
    """
    purpose = _purpose(material.text("goal") or material.text("question"))
    if material.examples:
        known = "\n".join("\n".join((example.title, *example.steps)) for example in material.examples)
        unused = [thing for thing in material.resources if not mentions(known, thing)]
        return numbered([f"How does one work with {thing}?" for thing in unused] or [f"How to {purpose}?"])
    count = int(match[1]) if (match := _COUNT.search(material.instructions)) else 4
    asked = [
        *(f"How does one work with {doubt}?" for doubt in read_bullets(material.text("doubts"))),
        f"How to {purpose}?",
        *(f"How does one work with {thing}?" for thing in material.resources),
        f"What is needed to {purpose}?",
        f"What is done first to {purpose}?",
        f"How is the result checked after one did {purpose}?",
        f"What can go wrong when one wants to {purpose}?",
        *(f"What is step {number} to {purpose}?" for number in range(2, count)),
    ]
    return numbered(list(dict.fromkeys(asked))[: max(1, count)])


def answer(material: Material) -> str:
    """Answer with the steps that fit the question best, at most three of one procedure, or that nothing is said."""
    examples = material.examples
    wanted = stems(material.text("question") or material.text("goal"))
    weighing = _weights_of(examples)

    def fits(example: Example) -> float:
        steps = sorted((fit(wanted, step, weighing) for step in example.steps), reverse=True)
        return fit(wanted, example.title, weighing) + sum(steps[:3])

    best = max(examples, key=fits, default=Example("", ()))
    scored = [
        (score, -number) for number, step in enumerate(best.steps) if (score := fit(wanted, step, weighing))
    ]
    if not scored or len(wanted & stems("\n".join((best.title, *best.steps)))) < min(2, len(wanted)):
        return NOT_SAID
    chosen = sorted(-number for _, number in sorted(scored, reverse=True)[:3])
    return " ".join(" ".join(best.steps[number].split()) for number in chosen)


@dataclass(frozen=True)
class _Wanted:
    """The stems that steps should have, and the weight of each."""

    goal: frozenset[str]
    resources: frozenset[str]
    weighing: Mapping[str, float]

    def gain(self, text: str, missing: frozenset[str]) -> float:
        """Return what a text adds of the missing stems; 0 if it has too little to do with the goal."""
        own = stems(text)
        about = weight(own & self.goal, self.weighing) + 0.5 * weight(own & self.resources, self.weighing)
        too_far = len(own & self.goal) < 2 or about < _ON_TOPIC * weight(self.goal, self.weighing)
        return 0.0 if too_far or _DEPENDENT.match(text) else weight(own & missing, self.weighing)


def _draft(goal: str, material: Material) -> list[str]:
    """Take the steps of the example that fits best, and add what others know about the goal."""
    examples = [one for one in (*material.examples, Example("", tuple(material.notes))) if one.steps]
    wanted = _Wanted(stems(goal), stems(material.text("resources")), _weights_of(examples))

    def fits(example: Example) -> float:
        steps = sum(fit(wanted.goal | wanted.resources, step, wanted.weighing) for step in example.steps)
        return 2 * fit(wanted.goal, example.title, wanted.weighing) + steps / len(example.steps)

    scored = ((fits(example) * 0.85**rank, -rank) for rank, example in enumerate(examples))
    ranked = sorted(scored, reverse=True)
    if not ranked or not ranked[0][0]:
        return _outline(goal, material.resources)
    best, *others = [examples[-rank] for _, rank in ranked]
    steps = list(dict.fromkeys(best.steps))[:MAX_STEPS]
    return _add(steps, [step for example in others for step in example.steps], wanted)


def _outline(goal: str, resources: Sequence[str]) -> list[str]:
    """Return a small outline for a goal that the evidence says nothing about."""
    purpose = _purpose(goal)
    gathered = [f"Gather {thing}." for thing in resources[: MAX_STEPS - 1]]
    if not gathered:
        return [f"{purpose[:1].upper()}{purpose[1:]}."]
    return [*gathered, f"With {'that' if len(gathered) == 1 else 'these'}, {purpose}."]


def _purpose(goal: str) -> str:
    """Return the goal on one line, without "how to" before it or punctuation after it."""
    line = " ".join(without_markers(goal).split()).strip(" .?!:")
    return _HOW_TO.sub("", line, count=1) if _HOW_TO.match(line) else line or "reach the goal"


def _add(steps: Sequence[str], candidates: Sequence[str], wanted: _Wanted) -> list[str]:
    """Return the steps with at most `MAX_ADDED` candidates that say about the goal what no step says."""
    steps = list(steps)
    for _ in range(MAX_ADDED):
        missing = (wanted.goal | wanted.resources) - stems("\n".join(steps))
        gain, best = max(((wanted.gain(text, missing), text) for text in candidates), default=(0.0, ""))
        if not gain or len(steps) >= MAX_STEPS:
            break
        candidates = [text for text in candidates if text != best]
        if not is_alike(best, map(stems, steps)):
            steps.insert(_place(best, steps, wanted.weighing), best)
    return steps


def _place(text: str, steps: Sequence[str], weighing: Mapping[str, float]) -> int:
    """Return where to insert a text: after the step that shares most with it, never at the end."""
    shared = [fit(stems(text), step, weighing) for step in steps]
    if not any(shared):
        return max(0, len(steps) - 1)
    return min(shared.index(max(shared)) + 1, max(1, len(steps) - 1))


def _edit(goal: str, steps: Sequence[str], edits: Sequence[str], knowledge: Sequence[str]) -> list[str]:
    """Apply the edits that can be understood, and ignore the others."""
    weighing = weights([*steps, *knowledge])
    removed = {int(match[1]) for edit in edits if (match := _REMOVE.match(edit))}
    kept = [step for number, step in enumerate(steps, 1) if number not in removed] or list(steps)
    for edit in edits:
        if step := _step_for(edit, goal, kept, knowledge):
            kept.insert(0 if step.startswith("Have ") else _place(step, kept, weighing), step)
    return kept


def _step_for(edit: str, goal: str, steps: Sequence[str], knowledge: Sequence[str]) -> str:
    """Return the step that an edit asks for, in the words of the knowledge where they fit; "" for none."""
    if added := _ADD.match(edit):
        return "" if is_alike(added[1], map(stems, steps)) else f"{added[1][:1].upper()}{added[1][1:]}"
    unused = _UNUSED.fullmatch(edit.strip())
    if not unused or mentions("\n".join(steps), unused[1]):
        return ""
    thing = unused[1]
    about = stems(f"{thing} {goal}")
    telling = [
        text
        for text in knowledge
        if mentions(text, thing) and stems(text) & stems(goal) - stems(thing)
        and not _DEPENDENT.match(text) and not is_alike(text, map(stems, steps))
    ]  # fmt: skip
    return max(telling, key=lambda text: len(stems(text) & about), default=_HAVING.format(thing))


def _weights_of(examples: Sequence[Example]) -> dict[str, float]:
    return weights([text for example in examples for text in (example.title, *example.steps)])
