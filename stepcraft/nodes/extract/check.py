"""Check the procedures that were written from a document, without a model, and merge those of its parts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepcraft.nodes.extract.drafted import Drafted, Flagged, Rejected
from stepcraft.nodes.extract.extract import PartRead, Written
from stepcraft.nodes.extract.parts import HeadingAt, Headings, place_of, shown_heading
from stepcraft.progress import Said, counted
from stepcraft.text.addressed import addressed
from stepcraft.text.clean import normalised, stems
from stepcraft.text.grounding import Grounds

_ALIKE = 0.6
"""Part of the words of two outputs that are the same task, found in two parts under one heading."""


def checked(
    found: Sequence[PartRead], text: str, headings: Sequence[HeadingAt], source: str, *, strict: bool
) -> tuple[list[Drafted], list[Rejected]]:
    """The procedures of a document, and what was rejected.

    A step with a name, call, option or number that the document does not have is flagged; with `strict` its procedure is
    rejected. So is, in any case, a procedure of one step, one whose output is its input, and one with a step that is
    addressed to the model.

    Args:
        found: What each part was found to hold.
        text: The document as its readers see it.
        headings: Its headings.
        source: Where it comes from.
        strict: Whether a procedure with a flagged step is rejected.
    """
    grounds = Grounds(text)
    procedures: list[Drafted] = []
    rejected: list[Rejected] = []
    for written, heading in _merged(found, headings):
        missing = grounds.missing(written["steps"])
        reason, sentence = _objection(written)
        if not reason and strict and missing:
            step, names = next(iter(missing.items()))
            reason = f"step {step} has what the document does not have: {', '.join(names)}"
        if reason:
            rejected.append(Rejected(output=written["output"], reason=reason, sentence=sentence))
            continue
        procedures.append(
            Drafted(
                output=written["output"],
                input=written["input"],
                steps=written["steps"],
                heading=shown_heading(heading),
                source=place_of(source, heading),
                flagged=[Flagged(step=step, names=names) for step, names in missing.items()],
                verified=None,
                missing="",
            )
        )
    seen = normalised(text).casefold()
    for part in found:
        for one in part["rejected"]:
            quoted = one["sentence"] if normalised(one["sentence"]).casefold() in seen else ""
            if {**one, "sentence": quoted} not in rejected:
                rejected.append({**one, "sentence": quoted})
    return procedures, rejected


def _objection(written: Written) -> tuple[str, str]:
    """Why this is no procedure, and the sentence that shows it; "" if it may be one."""
    for step in (written["output"], written["input"], *written["steps"]):
        if sentence := addressed(step):
            return "it is addressed to the model that reads the document, not to a person", sentence
    if len(written["steps"]) < 2:
        return "it has only one step", ""
    if normalised(written["output"]).casefold() == normalised(written["input"]).casefold():
        return "its output is its input", ""
    return "", ""


def _merged(found: Sequence[PartRead], headings: Sequence[HeadingAt]) -> Iterator[tuple[Written, str]]:
    """Yield each procedure with its heading; of a task that was found twice under it, the one with more steps."""
    kept: list[tuple[int, Written, str]] = []
    known = Headings(headings)
    for part in found:
        for written in part["procedures"]:
            heading = known.find(written["heading"])
            twin = next(
                (
                    place
                    for place, (number, other, above) in enumerate(kept)
                    if above == heading
                    and _same(written, other, apart=bool(heading) and number != part["part"])
                ),
                None,
            )
            if twin is None:
                kept.append((part["part"], written, heading))
            elif len(written["steps"]) > len(kept[twin][1]["steps"]):
                kept[twin] = (part["part"], written, heading)
    yield from ((written, heading) for _, written, heading in kept)


def _same(one: Written, other: Written, *, apart: bool) -> bool:
    """Whether two procedures under one heading reach the same; in similar words, too, where they come from different parts."""
    if normalised(one["output"]).casefold() == normalised(other["output"]).casefold():
        return True
    left, right = stems(one["output"]), stems(other["output"])
    return apart and len(left & right) >= _ALIKE * len(left | right)


def describe(_state: Mapping[str, Any], update: Mapping[str, Any]) -> Said:
    """What is left, and how much of it has a flag."""
    procedures: Sequence[Drafted] = update["procedures"].value
    flagged = sum(bool(procedure["flagged"]) for procedure in procedures)
    rejected = len(update["rejected"])
    return Said(
        f"Kept {counted(len(procedures), 'procedure')}, {flagged} of them with a flag; rejected {counted(rejected, 'task')}.",
        {"procedures": len(procedures), "rejected": rejected},
    )
