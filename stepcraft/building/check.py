"""Check the procedures that were written from a document without a model, and merge its parts'."""

from collections.abc import Iterator, Mapping, Sequence

from stepcraft.building.drafted import Drafted, Flagged, Rejected, Written
from stepcraft.building.parts import find_heading, place_of, shown_heading
from stepcraft.building.read_part import PartRead
from stepcraft.text.calls import without_stand_ins
from stepcraft.text.clean import normalised, stems
from stepcraft.text.grounding import Grounds

_ALIKE = 0.6
"""Share of the words of two outputs from which on two parts, under one heading, have one task."""


def checked(
    parts: Sequence[PartRead],
    text: str,
    headings: Sequence[str],
    source: str,
    *,
    strict: bool,
    transcript: bool = False,
) -> tuple[list[Drafted], list[Rejected]]:
    """Return the procedures of a document, and what was rejected.

    A step with a name, call, option or number that the document does not have is flagged; with
    `strict` its procedure is rejected. So is, in any case, a procedure of one step, and one whose
    output is its input.

    Args:
        parts: What the model wrote of each part.
        text: The document, with its title.
        headings: Its headings.
        source: Where it comes from.
        strict: Whether a procedure with a flagged step is rejected.
        transcript: Whether it is the record of a run, whose procedures have names that stand for
            its values, and no heading.
    """
    grounds, readable = Grounds(text), _folded(text)
    procedures: list[Drafted] = []
    rejected: list[Rejected] = []
    for procedure, heading in _merged(parts, [] if transcript else headings, whole=transcript):
        steps = procedure["steps"]
        missing = grounds.missing([*map(without_stand_ins, steps)] if transcript else steps)
        if reason := _objection(procedure, missing if strict else {}):
            rejected.append(Rejected(output=procedure["output"], reason=reason, sentence=""))
            continue
        draft = Drafted(
            **procedure,
            source=place_of(source, heading),
            flagged=[Flagged(step=step, names=names) for step, names in missing.items()],
            verified=None,
            missing="",
        )
        procedures.append({**draft, "heading": shown_heading(heading)})
    for task in (task for part in parts for task in part["rejected"]):
        sentence = task["sentence"] if _folded(task["sentence"]) in readable else ""
        if (entry := Rejected({**task, "sentence": sentence})) not in rejected:
            rejected.append(entry)
    return procedures, rejected


def _objection(procedure: Written, missing: Mapping[int, list[str]]) -> str:
    """Return why this is no procedure, "" if it may be one."""
    if len(procedure["steps"]) < 2:
        return "it has only one step"
    if _folded(procedure["output"]) == _folded(procedure["input"]):
        return "its output is its input"
    for step, names in missing.items():
        return f"step {step} has what the document does not have: {', '.join(names)}"
    return ""


def _merged(
    parts: Sequence[PartRead], headings: Sequence[str], *, whole: bool
) -> Iterator[tuple[Written, str]]:
    """Yield each procedure with its heading; of the same task under it, the one with more steps.

    Args:
        parts: What the model wrote of each part.
        headings: The headings of the document.
        whole: Whether all of the document is about one task.
    """
    entries: list[tuple[int, Written, str]] = []
    for part in parts:
        for procedure in part["procedures"]:
            heading = find_heading(procedure["heading"], headings)
            entry = (part["part"], procedure, heading)
            for place, (number, other, above) in enumerate(entries):
                apart = bool(heading or whole) and number != part["part"]
                if above == heading and _same_task(procedure, other, apart=apart):
                    entries[place] = max(
                        entries[place], entry, key=lambda each: len(each[1]["steps"])
                    )
                    break
            else:
                entries.append(entry)
    yield from ((procedure, heading) for _, procedure, heading in entries)


def _same_task(procedure: Written, other: Written, *, apart: bool) -> bool:
    """Tell whether two outputs are the same; those of different parts may be in similar words."""
    left, right = stems(procedure["output"]), stems(other["output"])
    alike = apart and len(left & right) >= _ALIKE * len(left | right)
    return alike or _folded(procedure["output"]) == _folded(other["output"])


def _folded(text: str) -> str:
    return normalised(text).casefold()
