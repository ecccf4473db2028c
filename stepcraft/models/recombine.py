"""Procedures, answers and edits put together from the sentences of what is given, without a language model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stepcraft.lists import read_steps
from stepcraft.models._fit import fit, is_alike, mentions, place, stems, weight, weights
from stepcraft.text import sentences, without_markers

CONTENT = "NO UPDATE REQUIRED"
NOT_SAID = "The procedures do not say."
MOST_STEPS = 12
MOST_ADDED = 3

_APART = re.compile(r"[,;\n\uff0c\u3001](?![^()`]{0,200}\))")
_NOTE = re.compile(r"^(?=[QA]: )", re.MULTILINE)
_ASKING = re.compile(r"(?:please\s+)?(?:how (?:to|do i|do you|can i|do we|can we)\s+)", re.IGNORECASE)
_UNUSED = re.compile(r"Use the resource (.+): no step mentions it\.", re.DOTALL)
_REMOVE = re.compile(r"(?:remove|delete|drop) step (\d{1,3})\b", re.IGNORECASE)
_ADD = re.compile(
    r"(?:add|insert) (?:a |another )?step (?:that |to |which |: ?)?(\S.*)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True)
class Example:
    """A procedure as it stands in the evidence."""

    title: str
    steps: tuple[str, ...]


def read_example(text: str) -> Example:
    """A procedure from its text: a title, then the steps; plain prose gives its sentences as steps."""
    title, _, rest = text.partition("\n")
    steps = read_steps(rest) or read_steps(text)
    if steps:
        return Example(title.strip(), tuple(without_markers(step) for step in steps))
    return Example("", tuple(sentences(without_markers(text))))


def read_notes(text: str) -> list[str]:
    """The sentences of the answers in notes that are stacked as "Q: …" and "A: …"."""
    parts = [part for part in _NOTE.split(text) if part.strip() and not part.startswith("Q: ")]
    return [sentence for part in parts for sentence in sentences(without_markers(part.removeprefix("A: ")))]


def things(resources: str) -> list[str]:
    """The resources of a comma-separated text, each once."""
    parts = (" ".join(part.split()).removeprefix("and ").strip(" .") for part in _APART.split(resources))
    return list(dict.fromkeys(part for part in parts if part))


def draft(goal: str, resources: str, examples: Sequence[Example]) -> list[str]:
    """Steps for a goal: those of the example that fits best, and what others add that the goal asks for."""
    examples = [example for example in examples if example.steps]
    weighing = weights([step for example in examples for step in (example.title, *example.steps)])
    wanted = stems(f"{goal} {resources}")
    ranked = sorted(
        (
            (_example_fit(example, goal, wanted, weighing) * 0.95**rank, -rank)
            for rank, example in enumerate(examples)
        ),
        reverse=True,
    )
    if not ranked or not ranked[0][0]:
        return outline(goal, resources)
    order = [examples[-rank] for _, rank in ranked]
    steps = list(dict.fromkeys(order[0].steps))[:MOST_STEPS]
    others = [step for example in order[1:] for step in example.steps]
    return add(steps, others, wanted, weighing)


def _example_fit(example: Example, goal: str, wanted: frozenset[str], weighing: dict[str, float]) -> float:
    steps = sum(fit(wanted, step, weighing) for step in example.steps) / len(example.steps)
    return 2 * fit(stems(goal), example.title, weighing) + steps


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


def add(
    steps: list[str], candidates: Sequence[str], wanted: frozenset[str], weighing: dict[str, float]
) -> list[str]:
    """The steps with at most three of the candidates that have wanted words which no step has yet."""
    steps = list(steps)
    for _ in range(MOST_ADDED):
        missing = wanted - stems("\n".join(steps))
        best = max(candidates, key=lambda text: _gain(text, missing, wanted, weighing), default="")
        if len(steps) >= MOST_STEPS or not _gain(best, missing, wanted, weighing):
            break
        candidates = [text for text in candidates if text != best]
        if not is_alike(best, steps):
            steps.insert(place(best, steps, weighing), best)
    return steps


def _gain(text: str, missing: frozenset[str], wanted: frozenset[str], weighing: dict[str, float]) -> float:
    """What a text would add; one shared word is chance, two are a reason."""
    own = stems(text)
    if not own & missing or len(own & wanted) < 2:
        return 0.0
    return weight(own & missing, weighing) + 0.5 * fit(wanted, text, weighing)


def revise(goal: str, resources: str, steps: Sequence[str], knowledge: Sequence[str]) -> list[str]:
    """The steps, and what the knowledge adds to them for the goal."""
    weighing = weights([*steps, *knowledge])
    kept = [shown for step in steps if (shown := without_markers(step))]
    return add(kept, knowledge, stems(f"{goal} {resources}"), weighing)


def criticise(resources: str, steps: Sequence[str]) -> str:
    """One edit for each resource that no step mentions, or that nothing is to be changed."""
    text = "\n".join(steps)
    unused = [thing for thing in things(resources) if not mentions(text, thing)]
    return "\n".join(f"- Use the resource {thing}: no step mentions it." for thing in unused) or CONTENT


def edit(steps: Sequence[str], edits: Sequence[str], knowledge: Sequence[str]) -> list[str]:
    """The steps after the edits that can be understood; the others are passed over."""
    weighing = weights([*steps, *knowledge])
    changed: list[str | None] = list(steps)
    for wish in edits:
        if (match := _REMOVE.match(wish)) and 0 < int(match[1]) <= len(steps):
            changed[changed.index(steps[int(match[1]) - 1])] = None
    kept = [step for step in changed if step is not None] or list(steps)
    for wish in edits:
        if wanted := _wished(wish, kept, knowledge):
            kept.insert(place(wanted, kept, weighing), wanted)
    return kept


def _wished(wish: str, steps: Sequence[str], knowledge: Sequence[str]) -> str:
    """The step that an edit asks for, in the words of the knowledge if it has any; "" for none."""
    if match := _UNUSED.fullmatch(wish.strip()):
        thing = match[1]
        telling = [text for text in knowledge if mentions(text, thing) and not is_alike(text, steps)]
        best = max(telling, key=lambda text: len(stems(text) & stems(thing)), default=f"Use {thing}.")
        return "" if mentions("\n".join(steps), thing) else best
    match = _ADD.match(wish)
    return f"{match[1][:1].upper()}{match[1][1:]}" if match and not is_alike(match[1], steps) else ""


def questions(goal: str, resources: str, count: int) -> list[str]:
    """So many different questions about a goal and its resources."""
    aim = purpose(goal)
    asked = [
        f"How to {aim}?",
        *(f"How is {thing} set up and used?" for thing in things(resources)),
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
