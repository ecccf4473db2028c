"""Check the procedures that were written from a document without a model, and merge its parts'."""

from collections.abc import Iterator, Sequence

from stepcraft.building.drafted import Drafted, Flagged, Rejected, Written
from stepcraft.building.parts import HeadingAt, Headings, place_of, shown_heading
from stepcraft.building.read_part import PartRead
from stepcraft.text.addressed import addressed
from stepcraft.text.calls import without_stand_ins
from stepcraft.text.clean import normalised, stems
from stepcraft.text.grounding import Grounds

_ALIKE = 0.6
"""Share of the words of two outputs from which on two parts, under one heading, have the same task."""


def checked(
    parts: Sequence[PartRead],
    text: str,
    headings: Sequence[HeadingAt],
    source: str,
    *,
    strict: bool,
    transcript: bool = False,
) -> tuple[list[Drafted], list[Rejected]]:
    """Return the procedures of a document, and what was rejected.

    A step with a name, call, option or number that the document does not have is flagged; with
    `strict` its procedure is rejected. So is, in any case, a procedure of one step, one whose
    output is its input, and one with a step that is addressed to the model.

    Args:
        parts: What the model wrote of each part.
        text: The document as its readers see it.
        headings: Its headings.
        source: Where it comes from.
        strict: Whether a procedure with a flagged step is rejected.
        transcript: Whether it is the record of a run, whose procedures have names that stand for
            its values, and no heading.
    """
    grounds = Grounds(text)
    procedures: list[Drafted] = []
    rejected: list[Rejected] = []
    for procedure, heading in _merged(parts, [] if transcript else headings, whole=transcript):
        steps = procedure["steps"]
        missing = grounds.missing([*map(without_stand_ins, steps)] if transcript else steps)
        reason, sentence = _objection(procedure)
        if not reason and strict and missing:
            step, names = next(iter(missing.items()))
            reason = f"step {step} has what the document does not have: {', '.join(names)}"
        if reason:
            rejected.append(Rejected(output=procedure["output"], reason=reason, sentence=sentence))
            continue
        flagged = [Flagged(step=step, names=names) for step, names in missing.items()]
        procedures.append(
            {
                **procedure,
                "heading": shown_heading(heading),
                "source": place_of(source, heading),
                "flagged": flagged,
                "verified": None,
                "missing": "",
            }
        )
    readable = normalised(text).casefold()
    for task in (task for part in parts for task in part["rejected"]):
        is_copied = normalised(task["sentence"]).casefold() in readable
        if (entry := task if is_copied else Rejected({**task, "sentence": ""})) not in rejected:
            rejected.append(entry)
    return procedures, rejected


def _objection(procedure: Written) -> tuple[str, str]:
    """Return why this is no procedure, and the sentence that shows it; "" if it may be one."""
    for text in (procedure["output"], procedure["input"], *procedure["steps"]):
        if sentence := addressed(text):
            return "it is addressed to the model that reads the document, not to a person", sentence
    if len(procedure["steps"]) < 2:
        return "it has only one step", ""
    if _same_words(procedure["output"], procedure["input"]):
        return "its output is its input", ""
    return "", ""


def _merged(
    parts: Sequence[PartRead], headings: Sequence[HeadingAt], *, whole: bool
) -> Iterator[tuple[Written, str]]:
    """Yield each procedure with its heading; of the same task under it, the one with more steps.

    Args:
        parts: What the model wrote of each part.
        headings: The headings of the document.
        whole: Whether all of the document is about one task.
    """
    kept: list[tuple[int, Written, str]] = []
    known = Headings(headings)
    for part in parts:
        for procedure in part["procedures"]:
            heading = known.find(procedure["heading"])
            entry = (part["part"], procedure, heading)
            for place, (number, other, above) in enumerate(kept):
                apart = bool(heading or whole) and number != part["part"]
                if above == heading and _same_task(
                    procedure["output"], other["output"], apart=apart
                ):
                    if len(procedure["steps"]) > len(other["steps"]):
                        kept[place] = entry
                    break
            else:
                kept.append(entry)
    yield from ((procedure, heading) for _, procedure, heading in kept)


def _same_task(output: str, other: str, *, apart: bool) -> bool:
    """Tell whether two outputs are the same; those of different parts may be in similar words."""
    left, right = stems(output), stems(other)
    alike = apart and len(left & right) >= _ALIKE * len(left | right)
    return alike or _same_words(output, other)


def _same_words(text: str, other: str) -> bool:
    return normalised(text).casefold() == normalised(other).casefold()
