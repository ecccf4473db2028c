"""Procedures, answers and edits put together from the sentences of what is given, without a language model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stepcraft.models.keyless.fit import fit, is_alike, mentions, place, stems, weight, weights
from stepcraft.models.keyless.material import Example, things
from stepcraft.text.clean import without_markers
from stepcraft.text.sections import CONTENT, NOT_SAID

MOST_STEPS = 12
MOST_ADDED = 3
_ON_TOPIC = 0.35

_ASKING = re.compile(r"(?:please\s+)?(?:how (?:to|do i|do you|can i|do we|can we)\s+)", re.IGNORECASE)
_HAVING = "Have {} ready."
_LEANING = re.compile(
    r"(?:if|to|for|then|it|its|this|that|these|those|they|otherwise|here|there|also)\b", re.IGNORECASE
)
_UNUSED = re.compile(r"Use the resource (.+): no step mentions it\.", re.DOTALL)
_REMOVE = re.compile(r"(?:remove|delete|drop) step (\d{1,3})\b", re.IGNORECASE)
_ADD = re.compile(
    r"(?:add|insert) (?:a |another )?step(?: that| to| which|:)? (\S.*)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True)
class Wanted:
    """The words that a text should have, and what each weighs."""

    goal: frozenset[str]
    resources: frozenset[str]
    weighing: dict[str, float]

    def gain(self, text: str, missing: frozenset[str]) -> float:
        """What a text adds of what is missing; nothing if it has too little to do with the goal."""
        own = stems(text)
        about = weight(own & self.goal, self.weighing) + 0.5 * weight(own & self.resources, self.weighing)
        if (
            _LEANING.match(text)
            or len(own & self.goal) < 2
            or about < _ON_TOPIC * weight(self.goal, self.weighing)
        ):
            return 0.0
        return weight(own & missing, self.weighing)


def draft(goal: str, resources: str, examples: Sequence[Example]) -> list[str]:
    """Steps for a goal: those of the example that fits best, and what others add that the goal asks for."""
    examples = [example for example in examples if example.steps]
    weighing = weights([step for example in examples for step in (example.title, *example.steps)])
    wanted = Wanted(stems(goal), stems(resources), weighing)
    ranked = sorted(
        ((_example_fit(example, wanted) * 0.85**rank, -rank) for rank, example in enumerate(examples)),
        reverse=True,
    )
    if not ranked or not ranked[0][0]:
        return outline(goal, resources)
    order = [examples[-rank] for _, rank in ranked]
    steps = list(dict.fromkeys(order[0].steps))[:MOST_STEPS]
    others = [step for example in order[1:] for step in example.steps]
    return add(steps, others, wanted)


def _example_fit(example: Example, wanted: Wanted) -> float:
    words = wanted.goal | wanted.resources
    steps = sum(fit(words, step, wanted.weighing) for step in example.steps) / len(example.steps)
    return 2 * fit(wanted.goal, example.title, wanted.weighing) + steps


def outline(goal: str, resources: str) -> list[str]:
    """A small outline for a goal that nothing is known about."""
    aim = purpose(goal)
    gathered = [f"Gather {thing}." for thing in things(resources)[: MOST_STEPS - 1]]
    last = (
        f"With {'that' if len(gathered) == 1 else 'these'}, {aim}."
        if gathered
        else f"{aim[:1].upper()}{aim[1:]}."
    )
    return [*gathered, last]


def purpose(goal: str) -> str:
    """The goal on one line, without "how to" before it or a mark after it."""
    line = " ".join(without_markers(goal).split()).strip(" .?!:")
    return _ASKING.sub("", line, count=1) if _ASKING.match(line) else line or "reach the goal"


def add(steps: list[str], candidates: Sequence[str], wanted: Wanted) -> list[str]:
    """The steps with at most three of the candidates that say something about the goal that no step says."""
    steps = list(steps)
    for _ in range(MOST_ADDED):
        missing = wanted.goal | wanted.resources
        missing -= stems("\n".join(steps))
        gain, best = max(((wanted.gain(text, missing), text) for text in candidates), default=(0.0, ""))
        if not gain or len(steps) >= MOST_STEPS:
            break
        candidates = [text for text in candidates if text != best]
        if not is_alike(best, steps):
            steps.insert(place(best, steps, wanted.weighing), best)
    return steps


def revise(goal: str, resources: str, steps: Sequence[str], knowledge: Sequence[str]) -> list[str]:
    """The steps, and what the knowledge adds to them for the goal."""
    weighing = weights([*steps, *knowledge])
    return add(list(steps), knowledge, Wanted(stems(goal), stems(resources), weighing))


def criticise(resources: str, steps: Sequence[str]) -> str:
    """One edit for each resource that no step mentions, or that nothing is to be changed."""
    text = "\n".join(steps)
    unused = [thing for thing in things(resources) if not mentions(text, thing)]
    return "\n".join(f"- Use the resource {thing}: no step mentions it." for thing in unused) or CONTENT


def edit(goal: str, steps: Sequence[str], edits: Sequence[str], knowledge: Sequence[str]) -> list[str]:
    """The steps after the edits that can be understood; the others are passed over."""
    weighing = weights([*steps, *knowledge])
    removed = {int(match[1]) for wish in edits if (match := _REMOVE.match(wish))}
    kept = [step for number, step in enumerate(steps, 1) if number not in removed] or list(steps)
    for wish in edits:
        if wanted := _wished(wish, goal, kept, knowledge):
            kept.insert(0 if wanted.startswith("Have ") else place(wanted, kept, weighing), wanted)
    return kept


def _wished(wish: str, goal: str, steps: Sequence[str], knowledge: Sequence[str]) -> str:
    """The step that an edit asks for; "" for none."""
    if match := _UNUSED.fullmatch(wish.strip()):
        return "" if mentions("\n".join(steps), match[1]) else _using(match[1], goal, steps, knowledge)
    match = _ADD.match(wish)
    return f"{match[1][:1].upper()}{match[1][1:]}" if match and not is_alike(match[1], steps) else ""


def _using(thing: str, goal: str, steps: Sequence[str], knowledge: Sequence[str]) -> str:
    """A step that uses a resource, in the words of the knowledge if it has any that fit the goal."""

    def shared(text: str) -> int:
        return len(stems(text) & stems(f"{thing} {goal}"))

    telling = [
        text for text in knowledge if mentions(text, thing) and stems(text) & stems(goal) - stems(thing)
    ]
    telling = [text for text in telling if not _LEANING.match(text) and not is_alike(text, steps)]
    return max(telling, key=shared, default=_HAVING.format(thing))


def questions(goal: str, resources: str, count: int) -> list[str]:
    """So many different questions about a goal and its resources."""
    aim = purpose(goal)
    asked = [
        f"How to {aim}?",
        *(f"How does one work with {thing}?" for thing in things(resources)),
        f"What is needed to {aim}?",
        f"What is done first to {aim}?",
        f"How is the result checked after one did {aim}?",
        f"What can go wrong when one wants to {aim}?",
    ]
    asked += [f"What is step {number} to {aim}?" for number in range(2, count)]
    return list(dict.fromkeys(asked))[: max(1, count)]


def answer(question: str, examples: Sequence[Example]) -> str:
    """The steps that fit a question best, at most three of one procedure, or that nothing is said."""
    weighing = weights([step for example in examples for step in (example.title, *example.steps)])
    wanted = stems(question)
    best = max(examples, key=lambda example: _answer_fit(example, wanted, weighing), default=Example("", ()))
    scored = [(fit(wanted, step, weighing), -number) for number, step in enumerate(best.steps)]
    telling = [pair for pair in scored if pair[0]]
    if not telling or len(wanted & stems("\n".join((best.title, *best.steps)))) < min(2, len(wanted)):
        return NOT_SAID
    chosen = sorted(-number for _, number in sorted(telling, reverse=True)[:3])
    return " ".join(" ".join(best.steps[number].split()) for number in chosen)


def _answer_fit(example: Example, wanted: frozenset[str], weighing: dict[str, float]) -> float:
    fits = sorted((fit(wanted, step, weighing) for step in example.steps), reverse=True)
    return fit(wanted, example.title, weighing) + sum(fits[:3])
