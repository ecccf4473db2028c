"""Skills folders: what an import makes of them, and that an export loses nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.skills import extras, read_skills, write_skills

CODE = (
    "Write the file:\n\n```python\nprint('1. not a step')\n\n\n# not a heading\n```\n\nand run it."
)
SEVERAL = [
    Procedure("flour, yeast", "bake a white bread", ("Knead.", "Let it rise.", "Bake it.")),
    Procedure("flour", "Bake a white bread!", ("Mix.", "Bake.")),
    Procedure(
        "鸡蛋, un œuf", "做一个煎蛋 \U0001f373", ("打鸡蛋。", CODE), source="kitchen: eggs #3"
    ),
    Procedure("a\nb", "one line\nand another", ("1. nested\n2. list\n- and bullets",)),
    Procedure("x", "y " * 3_000, ("# no heading", "---", "  indented?", "* * *")),
    Procedure(
        "tea",
        "serve tea",
        ("Pour.",),
        id="00000000-0000-4000-8000-000000000001",
        metadata={
            "approved": {"by": "ana", "run": None},
            "votes": [{"vote": 1}],
            "n": 1.5,
            "é": "---\n",
        },
    ),
]

FOREIGN = """\
---
name: pdf-forms
description: Fill in the forms of PDF files. Use when somebody mentions a form.
license: MIT
allowed-tools: Bash(python:*) Read
metadata:
  author: example
  version: 1.10
---
# PDF forms

Some words on forms, of which there are
1. many.

## Requirements

- Python 3
- pypdf

## Instructions

1. Read the fields with `get_fields()`:
   ```python
   reader.get_fields()
   ```
2. Fill them in.
3. Save the file.

## Notes

Forms differ.
"""


def written(folder: Path, text: str, name: str = "skill") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    return path


def one(path: Path) -> Procedure:
    [procedure] = read(path)
    return procedure


def read(folder: Path) -> list[Procedure]:
    outcomes = [outcome for _, outcome in read_skills(folder)]
    assert not [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    return [outcome for outcome in outcomes if isinstance(outcome, Procedure)]


def test_a_round_trip_loses_nothing(tmp_path: Path) -> None:
    assert write_skills(SEVERAL, tmp_path) == len(SEVERAL)
    assert {found.id: found for found in read(tmp_path)} == {kept.id: kept for kept in SEVERAL}


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(
    lambda text: bool(text.strip())
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def procedures(draw: st.DrawFn) -> Procedure:
    try:
        return Procedure(
            draw(TEXTS),
            draw(TEXTS),
            tuple(draw(st.lists(TEXTS, min_size=1, max_size=4))),
            source=draw(st.text(max_size=20)),
            metadata=draw(st.dictionaries(st.text(max_size=10), JSON, max_size=3)),
        )
    except BadInput:  # nothing is left of a text when it is cleaned
        return SEVERAL[0]


@settings(max_examples=30)
@given(procedures())
def test_a_round_trip_of_any_procedure_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, procedure: Procedure
) -> None:
    folder = tmp_path_factory.mktemp("skills")
    write_skills([procedure], folder)
    assert read(folder) == [procedure]


def test_other_agents_can_read_what_is_exported(tmp_path: Path) -> None:
    """The published format: a name like its folder's, a description, and metadata from texts to texts."""
    write_skills(SEVERAL, tmp_path)
    for path in tmp_path.glob("*/SKILL.md"):
        _, front, body = path.read_text("utf-8").split("---\n", 2)
        fields = yaml.safe_load(front)
        assert set(fields) == {"name", "description", "metadata"}
        assert fields["name"] == path.parent.name
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
        assert len(fields["name"]) <= 64
        assert 0 < len(fields["description"]) <= 1024
        assert all(isinstance(value, str) for value in fields["metadata"].values())
        assert "\n## Steps\n\n1. " in body
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[0] == "bake-a-white-bread"
    assert names[1].startswith("bake-a-white-bread-")  # the same words, another procedure


def test_exporting_again_updates_and_leaves_other_files_alone(tmp_path: Path) -> None:
    foreign = written(tmp_path, FOREIGN, "serve-tea")
    bread, tea = SEVERAL[0], SEVERAL[5]
    assert write_skills([bread, tea], tmp_path) == 2
    beside = tmp_path / "bake-a-white-bread" / "notes.txt"
    beside.write_text("mine")
    changed = Procedure("flour", "bake a toast", ("Mix.", "Toast."), id=bread.id)
    assert write_skills([changed, tea], tmp_path) == 2
    assert (foreign.read_text("utf-8"), beside.read_text()) == (FOREIGN, "mine")
    assert one(tmp_path / "bake-a-white-bread") == changed
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bake-a-white-bread",
        "serve-tea",
        f"serve-tea-{tea.id}",
    ]


def test_a_skill_of_another_agent_keeps_its_fields(tmp_path: Path) -> None:
    path = written(tmp_path, FOREIGN)
    found = one(path)
    assert (found.output, found.input) == ("Fill in the forms of PDF files", "Python 3, pypdf")
    assert found.steps == (
        "Read the fields with `get_fields()`:\n```python\nreader.get_fields()\n```",
        "Fill them in.",
        "Save the file.",
    )
    assert found.source == str(path)
    skill = found.metadata["skill"]
    assert (skill["name"], skill["license"]) == ("pdf-forms", "MIT")
    out = tmp_path / "out"
    write_skills([found], out)
    _, front, _ = (out / "pdf-forms" / "SKILL.md").read_text("utf-8").split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["allowed-tools"] == "Bash(python:*) Read"
    assert fields["description"] == skill["description"]
    assert read(out) == [found]


def test_what_somebody_edited_counts_and_the_id_stays(tmp_path: Path) -> None:
    bread = Procedure(
        "flour", "bake a bread", ("Mix.", "Bake."), source="a book", metadata={"n": 1}
    )
    write_skills([bread], tmp_path)
    path = tmp_path / "bake-a-bread" / "SKILL.md"
    path.write_text(path.read_text().replace("2. Bake.", "2. Let it rise.\n3. Bake it."), "utf-8")
    edited = one(path)
    assert edited == Procedure(
        "flour",
        "bake a bread",
        ("Mix.", "Let it rise.", "Bake it."),
        id=bread.id,
        source="a book",
        metadata={"n": 1},
    )


def test_line_ends_and_the_name_of_the_folder_may_change(tmp_path: Path) -> None:
    write_skills([SEVERAL[2]], tmp_path)
    [folder] = tmp_path.iterdir()
    path = folder / "SKILL.md"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    folder.rename(tmp_path / "eggs")
    assert read(tmp_path) == [SEVERAL[2]]


BODIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "numbered headings": (
        "# Deploy\n\nIn words.\n\n## Step 1: Build\n\nRun `make`.\n\n- fast\n\n## Step 2: Ship\n\nRun `ship`.\n",
        ("Build\nRun `make`.\n- fast", "Ship\nRun `ship`."),
    ),
    "headings": (
        "# Reviews\n\nIn words.\n\n## Read\n\nThe diff.\n\n### Write\n\nComments.\n",
        ("Read\nThe diff.", "Write\nComments."),
    ),
    "bullets": ("- Read it.\n- Answer it.\n", ("Read it.", "Answer it.")),
    "prose": ("# Reviews\n\nRead the diff,\nall of it.\n", ("Read the diff,\nall of it.",)),
}


@pytest.mark.parametrize(("body", "steps"), BODIES.values(), ids=BODIES.keys())
def test_the_steps_of_a_text(tmp_path: Path, body: str, steps: tuple[str, ...]) -> None:
    found = one(written(tmp_path, f"---\nname: x\ndescription: Do it. When asked.\n---\n{body}"))
    assert (found.output, found.steps) == ("Do it", steps)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
UNREADABLE = {
    "no front matter": ("# Only a text\n\n1. a\n2. b\n", "no description; say in the front matter"),
    "no description": ("---\nname: x\n---\n1. a\n2. b\n", "no description"),
    "no instructions": ("---\nname: x\ndescription: y\n---\n\n", "step 1 is empty"),
    "no mapping": ("---\n- x\n---\n1. a\n2. b\n", "front matter cannot be read"),
    "broken YAML": ("---\nname: [\n---\n1. a\n2. b\n", "front matter cannot be read"),
    "an object": (
        "---\nname: x\ndescription: !!python/object/apply:os.abort []\n---\n1. a\n2. b\n",
        "no description",
    ),
    "aliases": (f"---\nname: x\ndescription: *i\n{BOMB}---\n1. a\n2. b\n", "cannot be read"),
    "nesting": (
        f"---\nname: x\ndescription: y\nz: {'[' * 3_000}\n---\n1. a\n2. b\n",
        "cannot be read",
    ),
    "another's id": (
        """---\nname: x\ndescription: y\nmetadata:\n  stepcraft-procedure: '{"id": "../../etc", "input": "i", "output": "o", "steps": ["s"]}'\n---\n1. a\n2. b\n""",
        "UUID",
    ),
    "damaged metadata": (
        "---\nname: x\ndescription: y\nmetadata:\n  stepcraft-procedure: '{'\n---\n1. a\n2. b\n",
        "front matter cannot be read",
    ),
    "a list for a text": (
        "---\nname: x\ndescription: y\nmetadata:\n  stepcraft-procedure: [2]\n---\n1. a\n2. b\n",
        "front matter cannot be read",
    ),
    "too long": ("---\nname: x\ndescription: y\n---\n" + "1. a\n" * 250_000, "at most 100,000"),
}


def test_aliases_are_not_multiplied(tmp_path: Path) -> None:
    path = written(tmp_path, f"---\nname: x\ndescription: y\n{BOMB}---\n1. a\n2. b\n")
    assert one(path).metadata == {"skill": {"name": "x", "description": "y"}}


@pytest.mark.parametrize(("text", "reason"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_skill_that_cannot_be_read_is_named_and_the_others_go_in(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = written(tmp_path, text, "broken")
    written(tmp_path, FOREIGN, "pdf-forms")
    (_, failed), (other, skill) = read_skills(tmp_path)
    assert isinstance(failed, Failed)
    assert isinstance(skill, Procedure)
    assert (failed.where, other.parent.name) == (str(path), "pdf-forms")
    assert reason in failed.reason


def test_scripts_and_references_are_told_of(tmp_path: Path) -> None:
    path = written(tmp_path, FOREIGN)
    (path.parent / "scripts").mkdir()
    (path.parent / "reference.md").write_text("1. no step")
    assert extras(path) == ["reference.md", "scripts"]


def test_a_folder_without_skills_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "SKILL.md", tmp_path / "nowhere"):
        with pytest.raises(BadInput, match=re.escape(str(tmp_path))):
            list(read_skills(path))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file: Any = tmp_path / "file"
    file.write_text("")
    with pytest.raises(MemoryFailure, match="file"):
        write_skills(SEVERAL, file / "skills")
