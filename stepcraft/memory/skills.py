"""Skill folders: `NAME/SKILL.md` with YAML front matter, in the form that agents read.

An export puts the whole procedure into the front matter, under `metadata`. Later edits to the body
take precedence, and the id stays the same.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from stepcraft.errors import AddReport, BadInput, Conflict, Failed, MemoryFailure
from stepcraft.files import named_path, open_regular
from stepcraft.memory.files import OUTSIDE, json_line
from stepcraft.memory.history import (
    content_of,
    had_text,
    is_earlier,
    reason,
    same_text,
    with_text,
)
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.text.clean import normalised, one_line
from stepcraft.text.lists import (
    STEP_TITLES,
    numbered,
    outside_steps,
    read_bullets,
    read_steps,
    without_number,
)
from stepcraft.text.markdown import lines
from stepcraft.text.sentences import sentences

FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_BYTES = 1_000_000
"""The maximum length of a SKILL.md in bytes; the steps of a procedure are much shorter."""

_PROCEDURE = "stepcraft-procedure"
_TOO_LONG = f"it is longer than {MAX_BYTES:,} bytes"
_EDITED = (
    "it was edited; import it if the steps were changed, and delete it to have it written again"
)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^(\w[\w-]*):[ \t]+(\S.*(?:\n(?:[ \t].*)?)*)$", re.MULTILINE)
_BLOCK = re.compile(r"\A[>|][-+\d]*[ \t]*(?:\n|\Z)")
"""The sign before a text on indented lines."""
_TITLE = re.compile(r"\A\s*# (.+)")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+)")
_MORE = (
    r"(?:\s*[^\w\s].*"
    r"|\s+(?:(?:to|for|of|and|from|in|with|when|below|you|zu[mr]?|f\u00fcr|pour|para|per)\b|\d).*"
    r"|\s+(?:steps|instructions|workflow|flow|overview|summary|guide|checklist)(?:\W.*)?)?"
)
"""What may follow in a title: "Steps to bake" has steps, "Process files" has none."""
_WORKFLOW = re.compile(
    rf"\W*(?:(?:\d+\W+)?(?:workflow|{STEP_TITLES})|process(?!\s+and)){_MORE}", re.IGNORECASE
)
_NEEDS = re.compile(
    r"(?:\d+\W+)?(?:needs|inputs?|requirements|prerequisites|ingredients|voraussetzungen|zutaten"
    r"|ben\u00f6tigt\w*|requisitos(?:\s+previos)?|ingredientes|pr\u00e9-?requis|ingr\u00e9dients"
    rf"|requisiti|ingredienti|\u524d\u63d0\u6761\u4ef6|\u6240\u9700\w*)(?:{_MORE}"
    r"|\s+(?:list|files?|data|parameters|arguments|format|requirements|required|needed)(?:\W.*)?)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:step )?(\d{1,3})\b", re.IGNORECASE)
_STEP = re.compile(r"step \d{1,3}\b", re.IGNORECASE)

_log = logging.getLogger(__name__)


class Skill(NamedTuple):
    """A skill as read from its file."""

    file: Path
    front: dict[str, Any]
    """The front matter."""
    procedure: Procedure
    exported: Procedure | None
    """The procedure that an export stored in the file."""


class Section(NamedTuple):
    """A heading and the text up to the next heading."""

    level: int
    """The level of the heading, or 0 for text before any heading."""
    title: str
    text: str


def read_skills(path: str | Path, failed: list[Failed]) -> Iterator[Procedure]:
    """Yield the procedures in a folder of skills, or in a single skill.

    Args:
        path: The folder, or a SKILL.md.
        failed: Receives the files that are not skills.

    Raises:
        BadInput: There is no SKILL.md.
    """
    return (skill.procedure for skill in _skills(path, failed))


def import_skills(
    memory: ProcedureMemory,
    path: str | Path,
    *,
    progress: Callable[[int], None] | None = None,
) -> AddReport:
    """Add the procedures in a folder of skills, or in a single skill, to a memory.

    If the memory still has an exported procedure, editing its skill changes only its text; other
    changes since the export are kept. A skill fails if the text has changed in the memory too, or
    if it is a rewritten copy that still has the id of the original.

    Args:
        memory: The memory.
        path: The folder, or a SKILL.md.
        progress: Called with the number of procedures added so far.

    Raises:
        BadInput: There is no SKILL.md.
        ReadOnlyMemory, MemoryFailure: The memory cannot be changed.
    """
    report, added = AddReport(), list[Procedure]()
    edits: list[tuple[Skill, Procedure | None]] = []
    skills = sorted(_skills(path, report.failed), key=_order)
    originals = {skill.procedure.id: skill for skill in skills}
    stored = memory.get_many(originals)
    for skill in skills:
        original, kept = originals[skill.procedure.id], stored.get(skill.procedure.id)
        match _outcome(skill, original, kept):
            case "to add":
                new = skill.procedure
                if skill.exported and kept and same_text(new, kept):
                    new = replace(new, source=kept.source, metadata=kept.metadata)
                added.append(new)
            case "edited":
                is_again = kept and _is_editor(skill, kept)
                edits.append((skill, kept if is_again else skill.exported))
            case "present":
                report.present += 1
            case "earlier":
                _log.warning("%s: the memory has a later version, which is kept", skill.file)
                report.present += 1
            case "copy":
                remedy = "delete its `metadata` to import it as another procedure"
                problem = f"it has the id of {original.file}; {remedy}"
                report.failed.append(Failed(str(skill.file), problem))
    report.include(memory.add(added, progress=progress))
    for (file, _, procedure, _), base in edits:
        try:
            with reason("its skill was edited", by=str(file.resolve())):
                memory.update(procedure.id, partial(with_text, new=procedure), made_from=base)
            report.updated += 1
        except Conflict as error:
            advice = "export it to another folder, and edit it there"
            report.failed.append(Failed(str(file), f"{error}; {advice}"))
    return report


def _order(skill: Skill) -> tuple[bool, ...]:
    """Return a sort key: exported skills come last, after any copies with the same id."""
    file, _, procedure, exported = skill
    if not exported:
        return (False,)
    is_named = file.parent.name.endswith((procedure.id[:8], procedure.id.replace("-", "")))
    return True, is_named, same_text(procedure, exported)


def _outcome(
    skill: Skill, original: Skill, kept: Procedure | None
) -> Literal["to add", "edited", "present", "earlier", "copy"]:
    """Return how an import treats a skill.

    Args:
        skill: The skill, which is a copy if its folder and text both differ from the original's.
        original: The skill that keeps the shared id; it can be the skill itself.
        kept: The procedure that the memory has under this id.
    """
    file, _, procedure, exported = skill
    if not exported:
        return "earlier" if kept and had_text(kept, procedure) else "to add"
    is_elsewhere = file.parent.name != original.file.parent.name
    is_copy = is_elsewhere and not same_text(procedure, original.procedure)
    if not kept:
        return "copy" if is_copy else "to add"
    is_edited = _is_editor(skill, kept) or not same_text(procedure, exported)
    is_old = not is_edited and exported != kept and is_earlier(exported, kept)
    if is_old or _was_imported(skill, kept):
        return "earlier"
    if same_text(procedure, kept):
        return "present" if is_edited else "to add"
    if is_copy:
        return "copy"
    return "edited" if is_edited or _is_changed(kept, exported) else "to add"


def _is_changed(kept: Procedure, exported: Procedure) -> bool:
    """Return whether a stored procedure has changed since an export."""
    known = {each["at"] for each in exported.versions}
    is_new = any(each["at"] not in known for each in kept.versions[:1])
    return is_new and not is_earlier(kept, exported)


def _is_editor(skill: Skill, kept: Procedure) -> bool:
    """Return whether the last change to a procedure's text was an edit of this skill."""
    text = content_of(kept)
    editors = (each["by"] for each in kept.versions if content_of(each) != text)
    return next(editors, "") == str(skill.file.resolve())


def _was_imported(skill: Skill, kept: Procedure) -> bool:
    """Return whether a skill says what an import of it stored, and others have changed since."""
    file, _, procedure, exported = skill
    if not exported or had_text(exported, procedure) or _is_editor(skill, kept):
        return False  # somebody has put the earlier text back
    said, editor = content_of(procedure), str(file.resolve())
    return had_text(kept, procedure) and any(
        content_of(new) == said and before["by"] == editor
        for new, before in pairwise(kept.versions)
    )


def _skills(path: str | Path, failed: list[Failed]) -> Iterator[Skill]:
    root = named_path(path)
    # A skill's own folder may be a symbolic link; `**` does not follow links.
    found = {root / FILE, *root.rglob(f"*/{FILE}")}
    paths = [root] if root.name == FILE else sorted(found)
    files = [file for file in paths if file.is_file()]
    if not files:
        raise BadInput(
            f"there is no {FILE} in {root} or in a folder below it; name a folder of skills"
        )
    for file in files:
        try:
            yield _skill(file)
        except (BadInput, OSError) as error:
            failed.append(Failed(str(file), str(error)))


def write_skills(procedures: Iterable[Procedure], folder: str | Path, failed: list[Failed]) -> int:
    """Write procedures as skills, one folder each, and return how many were written.

    A procedure that an earlier export put into the folder is updated in place, unless its skill
    was edited; everything else is left alone.

    Args:
        procedures: The procedures.
        folder: The folder.
        failed: Receives the skills that were edited since they were exported, and those that would
            be too long to be read.

    Raises:
        BadInput: The path is not valid for a folder.
        MemoryFailure: A file cannot be written.
    """
    root, written = named_path(folder), 0
    try:
        root.mkdir(parents=True, exist_ok=True)
        places = {place.name.rpartition("-")[2]: place for place in root.glob("*-*")}
        for procedure in procedures:
            short = procedure.id[:8]
            if short in places and _exported_id(places[short]) != procedure.id:
                short = procedure.id.replace("-", "")
            name = f"{_name(procedure, MAX_NAME - 1 - len(short))}-{short}"
            place = places.setdefault(short, root / name)
            file = place / FILE
            content = _skill_text(procedure, place.name).encode()
            is_long = len(content) > MAX_BYTES
            if is_long or _is_edited(file, procedure):
                failed.append(Failed(str(file), _TOO_LONG if is_long else _EDITED))
                continue
            place.mkdir(exist_ok=True)
            file.write_bytes(content)
            written += 1
    except MemoryFailure:  # from the memory being exported; it is an OSError too
        raise
    except OSError as error:
        raise MemoryFailure(f"{root} cannot be written: {error.strerror}") from error
    return written


def _exported_id(folder: Path) -> str:
    """Return the id of the procedure that was exported to a folder, or "" if there is none."""
    try:
        stored = _parts(folder / FILE)[2]
    except (BadInput, OSError):
        return ""
    return stored.id if stored else ""


def _is_edited(path: Path, procedure: Procedure) -> bool:
    """Return whether a skill says something that neither its export nor the procedure says.

    An edit that was imported before others changed the procedure is in the procedure's history.
    """
    if not path.exists():
        return False
    try:
        skill = _skill(path)
    except BadInput:
        return True
    _, front, said, stored = skill
    is_known = same_text(said, procedure) or _was_imported(skill, procedure)
    if stored is None or not (same_text(said, stored) or is_known):
        return True
    own = [_front_of(each, path.parent.name) for each in (stored, procedure)]
    return not (
        front.keys() == own[0].keys()
        and front["metadata"].keys() == own[0]["metadata"].keys()
        and _description(front) in map(_description, own)
    )


def _parts(path: Path) -> tuple[dict[str, Any], str, Procedure | None]:
    """Return the front matter, the body, and the procedure that an export stored in the file."""
    with open_regular(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BadInput(_TOO_LONG)
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        match = _FRONT.match(text)
        front = _front(match[1]) if match else {}
        exported = (front.get("metadata") or {}).get(_PROCEDURE)
        stored = Procedure.from_dict(json.loads(exported)) if exported else None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = normalised(str(error))[:200]
        raise BadInput(f"its front matter cannot be read: {problem}") from error
    return front, text[match.end() :] if match else text, stored


def _description(front: Mapping[str, Any]) -> str:
    description = front.get("description")
    # Only if it is a string: aliases of aliases (*name) can expand to gigabytes.
    return one_line(description) if isinstance(description, str) else ""


def _front(text: str) -> dict[str, Any]:
    """Read front matter, falling back to reading it line by line if it is not valid YAML."""
    try:
        # The base loader reads all values as strings, so that a version such as 1.10 is kept.
        return yaml.load(text, yaml.BaseLoader) or {}  # noqa: S506
    except yaml.YAMLError:
        fields = {name: _BLOCK.sub("", value) for name, value in _FIELD.findall(text)}
        if "description" not in fields:
            raise
        return fields


def _skill(file: Path) -> Skill:
    front, body, stored = _parts(file)
    if stored:
        is_edited = body != body_of(stored)
        return Skill(file, front, edited(stored, body) if is_edited else stored, stored)
    description = _description(front)
    if not description:
        raise BadInput(
            "it has no description; say in the front matter what the skill does and when to use it"
        )
    _, input_, steps, outside = _content(body)
    procedure = Procedure(
        output=sentences(description)[0].rstrip("."),
        source=str(file),
        input=input_,
        steps=tuple(steps),
        metadata={OUTSIDE: "\n".join(outside)} if outside else {},
    )
    return Skill(file, front, procedure, None)


def edited(stored: Procedure, body: str) -> Procedure:
    """Return a procedure with the edits to its `body_of` text; all else is unchanged.

    Raises:
        BadInput: A line belongs to no step, or the result is not a valid procedure.
    """
    needs = re.escape(f"## Needs\n\n{stored.input}\n\n") + r"\n*(?=#{1,6} |\d{1,3}[.)] )"
    body, has_needs = re.subn(needs, "", body, count=1)
    marks = {f"{stored.id} {place}": step for place, step in enumerate(stored.steps)}
    for mark in sorted(marks, key=lambda mark: -len(marks[mark])):
        for digits in (1, 2, 3):
            body = _as_exported(marks[mark], digits).sub(rf"\g<1>{mark}", body)

    def unmarked(text: str) -> str:
        return re.sub(rf"{stored.id} \d+", lambda mark: marks.get(mark[0], mark[0]), text)

    title, input_, steps, outside = _content(body, stored.input if has_needs else "")
    if outside:
        raise BadInput(f"{unmarked(outside[0])!r} belongs to no step; begin it with a number")
    return replace(
        stored,
        output=stored.output if title == one_line(stored.output) else title or stored.output,
        input=unmarked(input_),
        steps=tuple(map(unmarked, steps)),
    )


def _as_exported(step: str, digits: int) -> re.Pattern[str]:
    """Return a pattern that matches a step as exported, with a number of this many digits."""
    first, *rest = numbered([step]).removeprefix("1. ").split("\n")
    rows = [re.escape(first), *(re.escape(" " * (digits - 1) + row) for row in rest)]
    text = r"\n".join(row if row.strip("\\ ") else " *" for row in rows)
    return re.compile(rf"^(\d{{{digits}}}\. ){text}(?=\n+\S|\s*\Z)", re.MULTILINE)


def _content(body: str, input_: str = "") -> tuple[str, str, list[str], list[str]]:
    """Return the title, the resources, the steps, and the lines around them in a skill's body.

    Args:
        body: The body.
        input_: The resources if they are known; a section of resources is then one of the others.
    """
    title = _TITLE.match(body)
    sections = _sections(_TITLE.sub("", body))
    if not input_:
        place = _named(sections, _NEEDS)
        needs = sections[place]
        del sections[place]
        input_ = (needs[0].text + _text(needs[1:])).strip() if needs else ""
        items = read_bullets(input_)
        beside = (line.strip("*_") for line in outside_steps(input_, items))
        is_list = all(line.startswith("#") or line.endswith((":", "\uff1a")) for line in beside)
        input_ = (is_list and ", ".join(items)) or input_ or "nothing in particular"
    steps = _steps(sections)
    return title[1] if title else "", input_, steps, outside_steps(_text(sections), steps)


def _steps(sections: Sequence[Section]) -> list[str]:
    """Return the steps: numbered sections, or else the first list, all subsections, or bullets.

    If a section has a title such as "Workflow" or "Steps", only that section is read. Otherwise,
    sections are numbered if they are called "Step 1" or if their numbers count up.
    """
    workflow = sections[_named(sections, _WORKFLOW)]
    parts = workflow or sections
    _, *inner = parts
    tops = _numbered(inner, _NUMBERED if workflow else _STEP)
    if len(tops) < 2 and not workflow:
        tops = _numbered(inner, _NUMBERED)
        tops = tops if _counts_up([top.title for top, *_ in tops]) else []
    if len(tops) > 1:
        return [*map(_step, tops)]
    for part in parts:
        rows = [row for row, is_code in lines(part.text) if not (is_code or row[:1].isspace())]
        if sum(row != without_number(row) for row in rows) > 1:
            return read_steps(part.text)
    titled = [_step([part]) for part in parts if part.level > parts[0].level and part.text.strip()]
    body = _text(parts).strip()
    return titled if len(titled) > 1 else read_bullets(body) or [body]


def _numbered(sections: Sequence[Section], title: re.Pattern[str]) -> list[Sequence[Section]]:
    """Return sections whose titles match, all of one level, each with the sections below it."""
    places = [at for at, each in enumerate(sections) if title.match(each.title)]
    level = sections[places[0]].level if places else 0
    return [sections[_below(sections, at)] for at in places if sections[at].level == level]


def _counts_up(titles: Sequence[str]) -> bool:
    """Return whether the numbers of titles count up from 1, or from 2 if the first was needs."""
    counts = [int(number[1]) for number in map(_NUMBERED.match, titles) if number]
    return counts in ([*range(1, len(titles) + 1)], [*range(2, len(titles) + 2)])


def _step(sections: Sequence[Section]) -> str:
    """Return a section and its subsections as a single step."""
    top, *below = sections
    return f"{without_number(top.title)}\n{top.text.strip()}\n{_text(below)}".strip()


def _named(sections: Sequence[Section], title: re.Pattern[str]) -> slice:
    """Return the slice with the first section whose title matches and the sections below it."""
    places = (at for at, each in enumerate(sections) if title.fullmatch(each.title))
    return next((_below(sections, at) for at in places), slice(0))


def _below(sections: Sequence[Section], at: int) -> slice:
    """Return the slice with a section and the sections below it."""
    level = sections[at].level
    after = (end for end in range(at + 1, len(sections)) if sections[end].level <= level)
    return slice(at, next(after, len(sections)))


def _text(sections: Iterable[Section]) -> str:
    return "".join(
        f"{'#' * level} {title}\n{text}" if level else text for level, title, text in sections
    ).lstrip("\n ")


def _sections(body: str) -> list[Section]:
    found: list[tuple[int, str, list[str]]] = [(0, "", [])]
    for row, is_code in lines(body):
        heading = None if is_code else _HEADING.match(row)
        if heading:
            found.append((len(heading[1]), heading[2].strip(), []))
        else:
            found[-1][2].append(row)
    return [Section(level, title, "".join(rows)) for level, title, rows in found]


def body_of(procedure: Procedure) -> str:
    """Return a procedure as Markdown that `edited` can read."""
    return (
        f"\n# {one_line(procedure.output)}\n\n## Needs\n\n{procedure.input}\n\n"
        f"## Steps\n\n{numbered(procedure.steps)}\n"
    )


def _skill_text(procedure: Procedure, name: str) -> str:
    front = yaml.safe_dump(
        _front_of(procedure, name), sort_keys=False, allow_unicode=True, width=float("inf")
    )
    return f"---\n{front}---\n{body_of(procedure)}"


def _front_of(procedure: Procedure, name: str) -> dict[str, Any]:
    """Return the front matter of an exported procedure."""
    description = one_line(f"How to {procedure.output}, using {procedure.input}")
    return {
        "name": name,
        "description": description[:MAX_DESCRIPTION],
        "metadata": {_PROCEDURE: json_line(procedure)},
    }


def _name(procedure: Procedure, length: int) -> str:
    """Return the start of a skill's name, in lower-case letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", procedure.output.lower())[:length].strip("-")
    return name or "procedure"
