"""Skills folders: `NAME/SKILL.md` with YAML front matter, as agents read them.

An export puts the whole procedure into the front matter, under `metadata`. A body that nobody
edited since gives the same procedure again; an edited one wins, and the id stays.
"""

import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from stepcraft.errors import AddReport, BadInput, Failed, MemoryFailure
from stepcraft.files import named_path, open_regular
from stepcraft.memory.procedure import Procedure
from stepcraft.text.clean import clean, normalised
from stepcraft.text.lists import numbered, read_bullets, read_steps
from stepcraft.text.markdown import lines
from stepcraft.text.sentences import sentences

FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_BYTES = 1_000_000
"""The largest SKILL.md that is read."""

_PROCEDURE, _BODY = "stepcraft-procedure", "stepcraft-body"
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*")
_NUMBERED = re.compile(r" {0,3}\d{1,3}[.)][ \t]+\S")
_NUMBERED_TITLE = re.compile(r"\A(?:step\s+)?\d{1,3}(?:\s*[.:)–—-]\s*|\s+|\Z)", re.IGNORECASE)
_NEEDS = re.compile(
    r"(needs?|inputs?|require(s|ments?)|prerequisites?|before you (start|begin)|what you need)"
    r"\W*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Skill:
    """A skill of a folder."""

    path: Path
    """Its SKILL.md."""
    procedure: Procedure
    extras: tuple[str, ...]
    """The other files and folders of the skill, which a procedure does not hold."""


def is_skills_path(path: Path) -> bool:
    """Tell whether a path is that of skills, not of records: a folder, or a SKILL.md."""
    return path.name == FILE or path.is_dir()


def read_skills(path: str | Path) -> Iterator[Skill | Failed]:
    """Yield the skills of a folder of skills, of a skill's folder, or of a SKILL.md.

    Raises:
        BadInput: There is no SKILL.md.
    """
    root = named_path(path)
    paths = [root] if root.name == FILE else [root / FILE, *sorted(root.glob(f"*/{FILE}"))]
    files = [file for file in paths if file.is_file()]
    if not files:
        raise BadInput(
            f"there is no {FILE} in {root} or in a folder below it; name a folder of skills"
        )
    for file in files:
        extras = sorted(
            f"{other.name}/" if other.is_dir() else other.name
            for other in file.parent.iterdir()
            if other.name[0] != "." and other.name != FILE and not (other / FILE).is_file()
        )
        try:
            yield Skill(file, _procedure(file), tuple(extras))
        except (BadInput, OSError) as error:
            yield Failed(str(file), getattr(error, "strerror", None) or str(error))


def write_skills(procedures: Iterable[Procedure], folder: str | Path) -> AddReport:
    """Write procedures as skills, one folder each; the report counts the files.

    A procedure that the folder holds from an earlier export is written where it is; all else is
    left alone.

    Raises:
        BadInput: No folder can have this path.
        MemoryFailure: A file cannot be written.
    """
    root, report = named_path(folder), AddReport()
    try:
        root.mkdir(parents=True, exist_ok=True)
        places: dict[str, Path] = {}
        for file in sorted(root.glob(f"*/{FILE}")):
            with suppress(BadInput, OSError):  # somebody else's
                places |= {stored.id: file for stored in [_parts(file)[2]] if stored}
        taken = {entry.name.casefold() for entry in root.iterdir()}
        for procedure in procedures:
            file = places.get(procedure.id) or root / _free_name(procedure, taken) / FILE
            taken.add(file.parent.name)
            places[procedure.id] = file
            text = _skill_text(procedure, file.parent.name).encode()
            before = file.read_bytes() if file.exists() else None
            if before == text:
                report.present += 1
                continue
            report.added += before is None
            report.updated += before is not None
            file.parent.mkdir(exist_ok=True)
            draft = file.with_name(f".{FILE}.{uuid.uuid4().hex}")
            draft.write_bytes(text)
            draft.replace(file)
    except MemoryFailure:  # of the memory that is exported; it is an OSError, too
        raise
    except OSError as error:
        reason = f"{error.filename or root} cannot be written: {error.strerror}"
        raise MemoryFailure(reason) from error
    return report


class _TextLoader(yaml.BaseLoader):  # type: ignore[misc]  # PyYAML has no types
    """Reads scalars as texts, so that a version 1.10 stays what it is."""

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - PyYAML has no types
        """Refuse an alias, as aliases of aliases can stand for gigabytes."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it holds an alias (*name)")
        return super().compose_node(parent, index)


def _parts(path: Path) -> tuple[dict[str, Any], str, Procedure | None]:
    """Return the front matter, the body, and the procedure that an export put into the front."""
    with open_regular(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BadInput(f"it is larger than {MAX_BYTES // 1_000:,} kB; shorten it")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        match = _FRONT.match(text)
        front: Any = yaml.load(match[1], Loader=_TextLoader) if match else None  # noqa: S506 - safe
        metadata: Any = front.get("metadata") if isinstance(front, dict) else None
        exported: Any = metadata.get(_PROCEDURE) if isinstance(metadata, dict) else None
        stored = None if exported is None else Procedure.from_dict(json.loads(exported))
    except UnicodeDecodeError as error:
        raise BadInput("it is not UTF-8; save it as UTF-8") from error
    except yaml.YAMLError as error:
        raise BadInput(f"its front matter is not YAML: {normalised(str(error))[:200]}") from error
    except (ValueError, TypeError, RecursionError, AttributeError) as error:
        raise BadInput(f"its front matter, or {_PROCEDURE} in it, is damaged: {error}") from error
    if not match or not isinstance(front, dict):
        raise BadInput(
            'it does not begin with front matter that is a mapping; put "---", name:, description: '
            'and "---" first'
        )
    return front, text[match.end() :], stored


def _procedure(path: Path) -> Procedure:
    front, body, stored = _parts(path)
    if stored and front["metadata"].get(_BODY) == _digest(body):
        return stored
    description = front.get("description")
    if not isinstance(description, str) or not normalised(description):
        raise BadInput(
            "it has no description; say in the front matter what the skill does and when to use it"
        )
    sections = _sections(body)
    needs = next((text for _, title, text in sections if _NEEDS.match(title)), "")
    items = ", ".join(read_bullets(needs)) or normalised(needs)
    steps = _steps([section for section in sections if not _NEEDS.match(section[1])])
    if not steps:
        raise BadInput(
            "it has no instructions; write its steps as a numbered list below the front matter"
        )
    fields = {
        "output": sentences(normalised(description))[0].rstrip("."),
        "input": items or str(front.get("compatibility") or "nothing in particular"),
        "steps": steps,
    }
    if not stored:
        skill = {"name": path.parent.name, **front}
        return Procedure.from_dict({**fields, "source": str(path), "metadata": {"skill": skill}})
    title = next((title for level, title, _ in sections if level == 1), stored.output)
    return Procedure.from_dict({**stored.to_dict(), **fields, "output": title})


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _sections(body: str) -> list[tuple[int, str, str]]:
    """Return the level and title of each heading with the text below it; first that without one."""
    sections = [(0, "", "")]
    for line, is_code in lines(body):
        heading = None if is_code else _HEADING.fullmatch(line.rstrip())
        if heading and heading[2]:
            sections.append((len(heading[1]), heading[2], ""))
        else:
            level, title, text = sections[-1]
            sections[-1] = (level, title, text + line)
    return sections


def _steps(sections: list[tuple[int, str, str]]) -> list[str]:
    """Read the longest numbered list; else headings, else bullets, else paragraphs."""
    titled = [(title, text) for level, title, text in sections if level > 1 and text.strip()]
    numbered_titles = [each for each in titled if _NUMBERED_TITLE.match(each[0])]
    texts = [text for *_, text in sections]
    longest = max(texts, key=_count_numbers)
    if len(numbered_titles) > 1:
        titled = numbered_titles
    elif _count_numbers(longest) > 1:
        return read_steps(longest)
    if len(titled) > 1:
        return [
            f"{_NUMBERED_TITLE.sub('', title) or title}\n{text.strip()}" for title, text in titled
        ]
    bullets = [read_bullets(text) for text in texts]
    return [
        step
        for items, text in zip(bullets, texts, strict=True)
        for step in (items if len(items) > 1 else _paragraphs(text))
    ]


def _count_numbers(text: str) -> int:
    return sum(not is_code and bool(_NUMBERED.match(line)) for line, is_code in lines(text))


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs, a block of code with the one before it."""
    paragraphs, follows = list[str](), False
    for line, is_code in lines(text):
        if line.strip() or is_code:
            if not (paragraphs and (follows or is_code)):
                paragraphs.append("")
            paragraphs[-1] += line
        follows = bool(line.strip()) or is_code
    return [paragraph.strip() for paragraph in paragraphs]


def _skill_text(procedure: Procedure, name: str) -> str:
    """Return the SKILL.md of a procedure, with the front matter of the skill that it was."""
    body = (
        f"\n# {normalised(procedure.output)}\n\n## Needs\n\n{procedure.input}\n\n"
        f"## Steps\n\n{numbered(procedure.steps)}\n"
    )
    skill = _skill(procedure)
    how_to = f"How to {procedure.output}, using {procedure.input}"
    description = normalised(str(skill.get("description") or how_to))
    if len(description) > MAX_DESCRIPTION:
        description = f"{description[: MAX_DESCRIPTION - 1].rstrip()}…"
    exported = {
        _PROCEDURE: json.dumps(procedure.to_dict(), ensure_ascii=False),
        _BODY: _digest(body),
    }
    metadata: Any = skill.get("metadata")
    front = {"name": "", "description": "", **skill} | {
        "name": name,
        "description": description,
        "metadata": {**(metadata if isinstance(metadata, dict) else {}), **exported},
    }
    dumped = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=float("inf"))
    return f"---\n{dumped}---\n{body}"


def _skill(procedure: Procedure) -> dict[str, Any]:
    skill: Any = procedure.metadata.get("skill")
    return skill if isinstance(skill, dict) else {}


def _free_name(procedure: Procedure, taken: set[str]) -> str:
    """Return a name in lower-case letters, digits and hyphens that no other folder has."""
    words = clean(str(_skill(procedure).get("name") or procedure.output))
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:MAX_NAME].rstrip("-")
    slug = slug or "procedure"
    longer = f"{slug[: MAX_NAME - 9].rstrip('-')}-{procedure.id[:8]}"
    return next(name for name in (slug, longer, procedure.id) if name not in taken)
