"""Skills folders: `NAME/SKILL.md` with YAML front matter, as agents read them, to procedures and back.

An export puts what the fields of the format cannot hold under `metadata`, whose keys begin with `stepcraft-`. A file that
nobody changed since gives the same procedure again; of one that somebody edited, the text counts, and the id stays.
"""

import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from stepcraft.errors import AddReport, AddStopped, BadInput, Failed, MemoryFailure
from stepcraft.files import named_path, open_regular
from stepcraft.memory.procedure import Procedure, is_uuid
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.text.clean import clean, normalised
from stepcraft.text.lists import numbered, read_bullets, read_steps
from stepcraft.text.markdown import lines
from stepcraft.text.sentences import sentences

FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_BYTES = 1_000_000
"""The largest SKILL.md that is read."""

_ID, _SOURCE, _METADATA, _EXACT, _DIGEST = (
    f"stepcraft-{name}" for name in ("id", "source", "metadata", "exact", "digest")
)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.*)")
_CLOSING_HASHES = re.compile(r"(?<![ \t])[ \t]++#++\Z")
_NUMBERED = re.compile(r" {0,3}\d{1,3}[.)][ \t]+\S")
_NUMBERED_HEADING = re.compile(r"(?:step\s+)?\d{1,3}(?:[.:)]|\s|\Z)", re.IGNORECASE)
_NEEDS = re.compile(
    r"(?:needs?|inputs?|requirements?|requires|prerequisites?|before you (?:start|begin)|what you need)\W*\Z",
    re.IGNORECASE,
)
_STEPS = re.compile(
    r"(?:steps?|instructions?|workflow|procedure|process|how to(?: use)?|usage)\W*\Z", re.IGNORECASE
)
_NOTHING = "nothing in particular"


@dataclass(frozen=True)
class Skill:
    """A skill of a folder."""

    path: Path
    """Its SKILL.md."""
    procedure: Procedure
    extras: tuple[str, ...]
    """The other files and folders of the skill, which a procedure does not hold."""


@dataclass
class SkillsReport(AddReport):
    """The outcome of an import of skills."""

    extras: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By the path of a SKILL.md, the files and folders beside it that were not imported."""


@dataclass
class Exported:
    """The outcome of an export of skills."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0


def is_skills_path(path: Path) -> bool:
    """Whether a path is that of skills rather than of records: a folder, or a SKILL.md."""
    return path.name == FILE or path.is_dir()


def read_skills(path: str | Path) -> Iterator[Skill | Failed]:
    """Read the skills of a folder, or the one of a SKILL.md, in order of their names; one that cannot be read is a Failed.

    Args:
        path: a folder with one folder a skill in it, the folder of a skill, or a SKILL.md.

    Raises:
        BadInput: there is no SKILL.md.
    """
    given = named_path(path)
    files = [given] if given.name == FILE else [given / FILE, *sorted(given.glob(f"*/{FILE}"))]
    files = [file for file in files if file.is_file()]
    if not files:
        raise BadInput(
            f"there is no {FILE} in {given} or in a folder below it; name a folder of skills"
        )
    for file in files:
        try:
            extras = sorted(
                f"{other.name}/" if other.is_dir() else other.name
                for other in file.parent.iterdir()
                if other.name[0] != "." and other.name != FILE and not (other / FILE).is_file()
            )
            yield Skill(file, _procedure(file), tuple(extras))
        except BadInput as error:
            yield Failed(str(file), str(error))
        except OSError as error:
            yield Failed(str(file), f"it cannot be read: {error.strerror}")


def import_skills(
    memory: ProcedureMemory, path: str | Path, *, progress: Callable[[int], None] | None = None
) -> SkillsReport:
    """Add the skills of a folder to a memory; those that cannot be read, and what is not imported, are in the report.

    Raises:
        BadInput: as `read_skills`; nothing was added.
        AddStopped, MemoryFailure: as `ProcedureMemory.add`.
    """
    report, unread = SkillsReport(), list[Failed]()
    paths: dict[str, Path] = {}

    def readable() -> Iterator[Procedure]:
        for skill in read_skills(path):
            if isinstance(skill, Failed):
                unread.append(skill)
                continue
            paths[skill.procedure.id] = skill.path
            if skill.extras:
                report.extras[str(skill.path)] = skill.extras
            yield skill.procedure

    def named(failed: list[Failed]) -> list[Failed]:
        return [
            *unread,
            *(Failed(str(paths.get(one.where, one.where)), one.reason) for one in failed),
        ]

    try:
        added = memory.add(readable(), progress=progress)
    except AddStopped as stop:
        stop.report.failed = named(stop.report.failed)
        raise
    report.include(added)
    report.failed = named(added.failed)
    return report


def write_skills(procedures: Iterable[Procedure], folder: str | Path) -> Exported:
    """Write procedures as skills, one folder each.

    A procedure that the folder holds from an earlier export is written where it is; other files and folders are left alone.
    Folders of procedures that are not given stay.

    Raises:
        BadInput: no folder can have this path.
        MemoryFailure: a file cannot be written.
    """
    root, exported = named_path(folder), Exported()
    try:
        root.mkdir(parents=True, exist_ok=True)
        known = {id_: file for file in sorted(root.glob(f"*/{FILE}")) if (id_ := _id_in(file))}
        taken = {entry.name.casefold() for entry in root.iterdir()}
        for procedure in procedures:
            file = known.get(procedure.id)
            if file is None:
                name = _free_name(procedure, taken)
                taken.add(name)
                known[procedure.id] = file = root / name / FILE
            text = _skill_text(procedure, file.parent.name)
            if not file.exists():
                exported.created += 1
                file.parent.mkdir(exist_ok=True)
            elif file.read_bytes() == text.encode():
                exported.unchanged += 1
                continue
            else:
                exported.updated += 1
            draft = file.with_name(f".{FILE}.{uuid.uuid4().hex}")
            draft.write_bytes(text.encode())
            draft.replace(file)
    except OSError as error:
        raise MemoryFailure(
            f"{error.filename or root} cannot be written: {error.strerror}"
        ) from error
    return exported


class _TextLoader(yaml.BaseLoader):  # type: ignore[misc]  # PyYAML has no types
    """Reads scalars as texts, so that a version 1.10 stays what it is, and refuses aliases, which can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - PyYAML has no types
        """Refuse an alias.

        Raises:
            YAMLError: the next node is one.
        """
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it holds an alias (*name)")
        return super().compose_node(parent, index)


def _parts(path: Path) -> tuple[dict[str, Any], str]:
    """The front matter of a file, and its text.

    Raises:
        BadInput: it has none, or it cannot be read.
    """
    with open_regular(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BadInput(f"it is larger than {MAX_BYTES // 1_000:,} kB; shorten it")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BadInput("it is not UTF-8; save it as UTF-8") from error
    found = _FRONT.match(text)
    if not found:
        raise BadInput(
            'it does not begin with front matter; put "---", name, description and "---" first'
        )
    try:
        front: object = yaml.load(found[1], Loader=_TextLoader)  # noqa: S506 - it derives from the safe one
    except (yaml.YAMLError, RecursionError) as error:
        raise BadInput(
            f"its front matter is not YAML: {' '.join(str(error).split())[:200] or 'it is nested too deeply'}"
        ) from error
    if not isinstance(front, dict):
        raise BadInput("its front matter is not a mapping; write name: and description:")
    return {str(name): value for name, value in cast("dict[object, Any]", front).items()}, text[
        found.end() :
    ]


def _procedure(path: Path) -> Procedure:
    """The procedure of a SKILL.md.

    Raises:
        BadInput: it cannot be read, or has no description or no instructions.
        OSError: the file cannot be opened.
    """
    front, body = _parts(path)
    description = front.get("description")
    if not isinstance(description, str) or not normalised(description):
        raise BadInput(
            "it has no description; say in the front matter what the skill does and when to use it"
        )
    ours: dict[str, str] = {}
    if isinstance(kept := front.pop("metadata", None), dict):
        for name, value in cast("dict[object, object]", kept).items():
            if not str(name).startswith("stepcraft-"):
                front.setdefault("metadata", {})[str(name)] = value
            elif isinstance(value, str):
                ours[str(name)] = value
            else:
                raise BadInput(
                    f"its {name} is no text; export the procedure again, or take the line out"
                )
    elif kept:
        front["metadata"] = kept
    output, needs, steps = _read_body(front, body, exported=_ID in ours)
    if _ID not in ours:
        skill = {"name": path.parent.name, **front}
        return Procedure(needs, output, tuple(steps), source=str(path), metadata={"skill": skill})
    metadata = _object(ours.get(_METADATA) or "{}")
    front_digest, body_digest = _digests(front, body)
    exported_front, _, exported_body = ours.get(_DIGEST, "").partition(".")
    if exported_front != front_digest:
        metadata = {**metadata, "skill": front}
    if exported_body == body_digest:
        exact = _object(ours.get(_EXACT) or "{}")
        output, needs, steps = (
            exact.get(name, value)
            for name, value in (("output", output), ("input", needs), ("steps", steps))
        )
    return Procedure(
        needs, output, tuple(steps), id=ours[_ID], source=ours.get(_SOURCE, ""), metadata=metadata
    )


def _object(text: object) -> dict[str, Any]:
    """The object of JSON in a text.

    Raises:
        BadInput: there is none.
    """
    try:
        found: object = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"what it keeps for stepcraft is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadInput(
            "what it keeps for stepcraft is no object of JSON; export the procedure again"
        )
    return cast("dict[str, Any]", found)


def _digests(front: Mapping[str, Any], body: str) -> tuple[str, str]:
    """What tells whether somebody edited the front matter, its name apart, or the body."""
    fields = {name: value for name, value in front.items() if name != "name"}
    texts = (json.dumps(fields, sort_keys=True, ensure_ascii=False), body)
    first, second = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        for text in texts
    )
    return first, second


@dataclass
class _Section:
    """A heading of Markdown, and what stands below it up to the next one."""

    level: int
    """0 for what stands before the first heading."""
    title: str
    text: str


def _sections(body: str) -> list[_Section]:
    found: list[tuple[int, str, list[str]]] = [(0, "", [])]
    for line, code in lines(body):
        heading = None if code else _HEADING.fullmatch(line.rstrip())
        if heading and (title := _CLOSING_HASHES.sub("", heading[2]).strip()):
            found.append((len(heading[1]), title, []))
        else:
            found[-1][2].append(line)
    sections = [_Section(level, title, "".join(text)) for level, title, text in found]
    return [section for section in sections if section.title or section.text.strip()]


def _read_body(
    front: Mapping[str, Any], body: str, *, exported: bool
) -> tuple[str, str, list[str]]:
    """The output, the input and the steps of a skill.

    Raises:
        BadInput: it has no instructions.
    """
    sections = _sections(body)
    title = next((section.title for section in sections if section.level == 1), "")
    described = (sentences(normalised(front["description"])) or [front["description"]])[0].rstrip(
        "."
    )
    needed = next((section for section in sections if _NEEDS.match(section.title)), None)
    needs = ""
    if needed:
        needs = needed.text.strip() if exported else ", ".join(_items(needed.text))
    needs = needs or str(front.get("compatibility") or "").strip() or _NOTHING
    steps = _steps([section for section in sections if section is not needed])
    if not steps:
        raise BadInput(
            "it has no instructions; write its steps as a numbered list below the front matter"
        )
    return (title if exported and title else described), needs, steps


def _items(text: str) -> list[str]:
    return read_bullets(text) or [" ".join(text.split())] if text.strip() else []


def _steps(sections: list[_Section]) -> list[str]:
    """A numbered list; else numbered headings, else a step for each heading, else one for each paragraph."""
    lists = [
        section
        for section in sections
        if (count := _numbers(section.text)) > 1 or (count and _STEPS.match(section.title))
    ]
    headed = [section for section in sections if _NUMBERED_HEADING.match(section.title)]
    if len(headed) > 1 and not any(_STEPS.match(section.title) for section in lists):
        return [_joined(_unnumbered(section.title), section.text) for section in headed]
    if lists:
        named = [section for section in lists if _STEPS.match(section.title)]
        chosen = max(named or lists, key=lambda section: _numbers(section.text))
        return read_steps(chosen.text)
    filled = [section for section in sections if section.text.strip()]
    titled = [section for section in filled if section.level > 1]
    if len(titled) > 1:
        return [_joined(section.title, section.text) for section in titled]
    steps: list[str] = []
    for section in filled:
        bullets = read_bullets(section.text)
        steps += bullets if len(bullets) > 1 else _paragraphs(section.text)
    return steps


def _numbers(text: str) -> int:
    return sum(not code and _NUMBERED.match(line) is not None for line, code in lines(text))


def _unnumbered(title: str) -> str:
    return (
        re.sub(r"\A(?:step\s+)?\d{1,3}\s*[.:)\u2013\u2014-]*\s*", "", title, flags=re.IGNORECASE)
        or title
    )


def _joined(title: str, text: str) -> str:
    return f"{title}\n{text.strip()}".strip()


def _paragraphs(text: str) -> list[str]:
    """The paragraphs, a block of code with the one before it."""
    found: list[list[str]] = []
    is_open = False
    for line, code in lines(text):
        if not line.strip() and not code:
            is_open = False
            continue
        if not (found and (is_open or code)):
            found.append([])
        found[-1].append(line)
        is_open = True
    return ["".join(paragraph).strip() for paragraph in found]


def _skill_text(procedure: Procedure, name: str) -> str:
    """The SKILL.md of a procedure."""
    skill = procedure.metadata.get("skill")
    given = cast("dict[str, Any]", skill) if isinstance(skill, dict) else {}
    front: dict[str, Any] = {"name": name, "description": "", **given} | {"name": name}
    described = str(front["description"] or "")
    how_to = f"How to {procedure.output}, using {procedure.input}"
    front["description"] = _cut(described if normalised(described) else how_to, MAX_DESCRIPTION)
    body = (
        f"\n# {normalised(procedure.output)}\n\n## Needs\n\n{procedure.input}\n\n"
        f"## Steps\n\n{numbered(procedure.steps)}\n"
    )
    as_read = yaml.load(_dumped(front), Loader=_TextLoader)  # noqa: S506 - it derives from the safe one
    foreign: object = front.get("metadata")
    kept: dict[str, Any] = {
        **(foreign if isinstance(foreign, dict) else {}),
        _ID: procedure.id,
        _SOURCE: procedure.source,
        _METADATA: json.dumps(dict(procedure.metadata), ensure_ascii=False)
        if procedure.metadata
        else "",
        _EXACT: _unreadable(procedure, as_read, body),
        _DIGEST: ".".join(_digests(as_read, body)),
    }
    front["metadata"] = {
        key: value for key, value in kept.items() if value or not key.startswith("stepcraft-")
    }
    return f"---\n{_dumped(front)}---\n{body}"


def _dumped(front: Mapping[str, Any]) -> str:
    written: str = yaml.safe_dump(
        dict(front), sort_keys=False, allow_unicode=True, width=float("inf")
    )
    return written


def _unreadable(procedure: Procedure, front: Mapping[str, Any], body: str) -> str:
    """What the body does not give back as it was, as JSON; "" if it gives back all."""
    wanted: dict[str, Any] = {
        "output": procedure.output,
        "input": procedure.input,
        "steps": list(procedure.steps),
    }
    try:
        found = dict(zip(wanted, _read_body(front, body, exported=True), strict=True))
    except BadInput:
        found = {}
    lost = {name: value for name, value in wanted.items() if found.get(name) != value}
    return json.dumps(lost, ensure_ascii=False) if lost else ""


def _id_in(file: Path) -> str:
    """The id of the procedure that a file was exported from; "" if it is somebody else's."""
    try:
        kept = _parts(file)[0].get("metadata")
    except (BadInput, OSError):
        return ""
    id_ = str(cast("dict[str, Any]", kept).get(_ID, "")) if isinstance(kept, dict) else ""
    return str(uuid.UUID(id_)) if is_uuid(id_) else ""


def _free_name(procedure: Procedure, taken: set[str]) -> str:
    """A name in lower-case letters, digits and hyphens that no other folder has."""
    skill = procedure.metadata.get("skill")
    wished = cast("dict[str, Any]", skill).get("name") if isinstance(skill, dict) else None
    plain = (
        unicodedata.normalize("NFKD", clean(str(wished or procedure.output)))
        .encode("ascii", "ignore")
        .decode()
    )
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "procedure"
    if len(slug) > MAX_NAME:
        slug = slug[: MAX_NAME + 1].rpartition("-")[0] or slug[:MAX_NAME]
    endings = ("", f"-{procedure.id[:8]}", f"-{procedure.id}")
    names = (slug[: MAX_NAME - len(ending)].rstrip("-") + ending for ending in endings)
    return next((name for name in names if name not in taken), procedure.id)


def _cut(text: str, limit: int) -> str:
    line = normalised(text)
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
