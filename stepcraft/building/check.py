"""Check the procedures that were written from a document without a model, and merge its parts'."""

from collections.abc import Sequence
from typing import Any

from stepcraft.building.drafted import Drafted, Flagged, Rejected, Written
from stepcraft.building.parts import find_heading, place_of, shown_heading
from stepcraft.building.read_part import PartRead
from stepcraft.building.settings import ExtractContext
from stepcraft.llm.node import State
from stepcraft.llm.resources import Resources
from stepcraft.sources.corpus.content import markdown_headings
from stepcraft.text.calls import without_stand_ins
from stepcraft.text.clean import normalised, stems
from stepcraft.text.grounding import Grounds

_ALIKE = 0.6
"""Share of the words of two outputs from which on two parts, under one heading, have one task."""


def check(state: State, resources: Resources[ExtractContext]) -> dict[str, Any]:
    """Return the procedures of a document, and what was rejected.

    A step with a name, call, option or number that the document does not have is flagged; with
    `strict` its procedure is rejected. So is, in any case, a procedure of one step, and one whose
    output is its input.
    """
    is_transcript = state["kind"] == "transcript"
    settings, text = resources.settings(state), f"{state['title']}\n{state['text']}"
    # A page that is one task has it under its title; a transcript has names that stand for its
    # values, and no heading.
    headings = [state["title"], *(heading.text for heading in markdown_headings(state["text"]))]
    grounds, readable = Grounds(text), _folded(text)
    drafts: list[Drafted] = []
    rejected: list[Rejected] = []
    for _, procedure, heading in _merged(state["written"], [] if is_transcript else headings):
        steps = procedure["steps"]
        missing = grounds.missing([*map(without_stand_ins, steps)] if is_transcript else steps)
        flagged = [Flagged(step=step, names=names) for step, names in missing.items()]
        reason = ""
        if len(steps) < 2:
            reason = "it has only one step"
        elif _folded(procedure["output"]) == _folded(procedure["input"]):
            reason = "its output is its input"
        elif flagged and settings.strict:
            names = ", ".join(flagged[0]["names"])
            reason = f"step {flagged[0]['step']} has what the document does not have: {names}"
        if reason:
            rejected.append(Rejected(output=procedure["output"], reason=reason, sentence=""))
            continue
        drafts.append(
            {
                **procedure,
                "heading": shown_heading(heading),
                "source": place_of(state["source"], heading),
                "flagged": flagged,
                "verified": None,
                "missing": "",
            }
        )
    written: list[PartRead] = state["written"]
    for part in written:
        for task in part["rejected"]:
            is_copied = _folded(task["sentence"]) in readable
            entry: Rejected = task if is_copied else {**task, "sentence": ""}
            rejected += [] if entry in rejected else [entry]
    return {
        "drafts": drafts,
        "procedures": [] if settings.verify else drafts,
        "rejected": rejected,
    }


def _merged(parts: Sequence[PartRead], headings: Sequence[str]) -> list[tuple[int, Written, str]]:
    """Return each procedure with the number of its part and its heading.

    Of the same task under a heading, it is the one with more steps.
    """
    entries: list[tuple[int, Written, str]] = []
    for number, part in enumerate(parts):
        for procedure in part["procedures"]:
            heading = find_heading(procedure["heading"], headings)
            for place, (before, other, above) in enumerate(entries):
                apart = bool(heading) and number != before
                if above == heading and _same_task(procedure, other, apart=apart):
                    if len(procedure["steps"]) > len(other["steps"]):
                        entries[place] = number, procedure, heading
                    break
            else:
                entries.append((number, procedure, heading))
    return entries


def _same_task(procedure: Written, other: Written, *, apart: bool) -> bool:
    """Tell whether two outputs are the same; those of different parts may be in similar words."""
    if not apart:
        return _folded(procedure["output"]) == _folded(other["output"])
    words, others = stems(procedure["output"]), stems(other["output"])
    return len(words & others) >= _ALIKE * len(words | others)


def _folded(text: str) -> str:
    return normalised(text).casefold()
