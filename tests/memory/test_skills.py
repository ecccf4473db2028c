"""Skills folders: what an import makes of them, and that an export loses nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from time import process_time
from uuid import UUID

import pytest
import yaml

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Outcomes, Procedure
from stepcraft.memory.skills import body_of, edited, import_skills, read_skills, write_skills
from stepcraft.text.lists import numbered
from tests.kitchen import dish

CODE = (
    "Write the file:\n\n```python\nprint('1. not a step')\n\n\n# not a heading\n```\n\nand run it."
)
BREAD = Procedure("flour, yeast", "bake a white bread", ("Knead.", "Let it rise.", "Bake it."))
SEVERAL = [
    BREAD,
    Procedure("flour", "Bake a white bread!", ("Mix.", "Bake.")),
    Procedure(
        "鸡蛋, un œuf", "做一个煎蛋 \U0001f373", ("打鸡蛋。", CODE), source="kitchen: eggs #3"
    ),
    Procedure("a\nb", "one line\nand another", ("1. nested\n2. list\n- and bullets",)),
    Procedure("x", "y " * 3_000, ("# no heading", "---", "  indented?", "* * *")),
    dish(
        1,
        id=str(UUID(int=1)),
        metadata={"n": 1.5, "é": "---\n"},
        outcomes=Outcomes(1),
        expires="2999-01-01",
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


def read(path: Path) -> list[Procedure]:
    failed: list[Failed] = []
    procedures = list(read_skills(path, failed))
    assert not failed
    return procedures


def test_a_round_trip_loses_nothing_whatever_line_ends_and_folders_become(tmp_path: Path) -> None:
    assert write_skills(SEVERAL, tmp_path, []) == len(SEVERAL)
    for number, path in enumerate(tmp_path.glob("*/SKILL.md")):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        path.parent.rename(tmp_path / str(number))
    assert {item.id: item for item in read(tmp_path)} == {item.id: item for item in SEVERAL}


def test_other_agents_can_read_what_is_exported(tmp_path: Path) -> None:
    """The published format: a name like its folder's, a description, and metadata from texts to texts."""
    write_skills([*SEVERAL, replace(SEVERAL[0], id="", output="x" * 100)], tmp_path, [])
    for path in tmp_path.glob("*/SKILL.md"):
        _, front, body = path.read_text("utf-8").split("---\n", 2)
        fields = yaml.safe_load(front)
        assert set(fields) == {"name", "description", "metadata"}
        assert fields["name"] == path.parent.name
        assert re.fullmatch("(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
        assert 0 < len(fields["description"]) <= 1024
        assert all(isinstance(value, str) for value in fields["metadata"].values())
        assert "\n## Steps\n\n1. " in body


def test_exporting_again_updates_and_leaves_other_files_alone(tmp_path: Path) -> None:
    foreign = written(tmp_path, FOREIGN, "dish-1")
    beside = tmp_path / f"bake-a-white-bread-{BREAD.id[:8]}" / "notes.txt"
    assert write_skills([BREAD, SEVERAL[5]], tmp_path, []) == 2
    beside.write_text("mine")
    changed = dish(2, id=BREAD.id)
    write_skills([changed, SEVERAL[5]], tmp_path, [])
    assert (foreign.read_text("utf-8"), beside.read_text()) == (FOREIGN, "mine")
    assert read(beside.parent) == [changed]
    assert {path.name for path in tmp_path.iterdir()} == {
        beside.parent.name,
        "dish-1",
        f"dish-1-{SEVERAL[5].id[:8]}",
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## Steps", "## Steps\n\nMind the cat."),
        ("description: How to", "description: Use this to"),
        ("metadata:", "license: MIT\nmetadata:"),
        ("metadata:\n", "metadata:\n  author: me\n"),
        ("---\n", "---\n- broken: [\n"),
        ("metadata:\n  stepcraft-procedure: ", "metadata:\n- - stepcraft-procedure\n  - "),
    ],
)
def test_exporting_again_leaves_an_edited_skill_as_it_is(
    tmp_path: Path, before: str, after: str
) -> None:
    other, failed = dish(1), []
    write_skills([BREAD, other], tmp_path, [])
    path = tmp_path / f"bake-a-white-bread-{BREAD.id[:8]}" / "SKILL.md"
    mine = path.read_text("utf-8").replace(before, after, 1)
    path.write_text(mine, "utf-8")
    for changed in (BREAD, dish(2, id=BREAD.id)):
        write_skills([changed, other], tmp_path, failed)
        assert path.read_text("utf-8") == mine


def test_a_skill_is_written_again_after_its_edit_was_imported(tmp_path: Path) -> None:
    write_skills([BREAD], tmp_path, [])
    [path] = tmp_path.glob("*/SKILL.md")
    path.write_text(path.read_text("utf-8") + "9. Eat it.\n", "utf-8")
    failed: list[Failed] = []
    assert write_skills([BREAD], tmp_path, failed) == 0
    assert [failure.where for failure in failed] == [str(path)]
    assert "import it" in failed[0].reason
    [imported] = read(tmp_path)
    assert imported.steps[-1] == "Eat it."
    assert write_skills([imported], tmp_path, failed) == 1
    assert len(failed) == 1
    assert read(tmp_path) == [imported]


def test_a_skill_of_another_agent_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, FOREIGN)
    [skill] = read(path)
    assert (skill.output, skill.input) == ("Fill in the forms of PDF files", "Python 3, pypdf")
    assert skill.steps == (
        "Read the fields with `get_fields()`:\n```python\nreader.get_fields()\n```",
        "Fill them in.",
        "Save the file.",
    )
    assert skill.source == str(path)
    assert skill.metadata["outside_steps"].splitlines() == [
        "Some words on forms, of which there are",
        "1. many.",
        "## Notes",
        "Forms differ.",
    ]


@pytest.mark.parametrize("new", ["Cool.", "Cool: slowly", "Cooler air first", "Cool\n   and rest"])
def test_a_step_to_which_something_is_appended_is_what_it_says(new: str) -> None:
    stored = Procedure(output="bread", input="flour", steps=("Mix", "Cool", "Serve"))
    steps = edited(stored, body_of(stored).replace("2. Cool", f"2. {new}")).steps
    assert steps == ("Mix", new.replace("   ", ""), "Serve")


@pytest.mark.parametrize("place", [1, 10, 11])
@pytest.mark.parametrize("line", ["- Wait.", "Wait.", "```sh\nwait 5\n```"])
def test_a_line_added_below_a_step_belongs_to_it(line: str, place: int) -> None:
    steps = [f"Cool to {number} degrees:\n- slowly" for number in range(12)]
    stored = Procedure(output="bread", input="flour", steps=tuple(steps))
    exported = numbered(steps[: place + 1])
    body = body_of(stored).replace(exported, f"{exported}\n{line}")
    steps[place] += f"\n{line}"
    assert edited(stored, body).steps == tuple(steps)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ("## Steps\n", "## Steps\n\nTell the team.\n", "'Tell the team.'"),
        ("3. Bake it.\n", "3. Bake it.\n\nThen call the team.\n", "'Then call the team.'"),
        ("3. Bake it.\n", "3. Bake it.\n\n## Notes\n\nNever on Fridays.\n", "'## Notes'"),
        ("3. Bake it.\n", "3. Bake it.\n\n## Prerequisites\n\n- an oven\n", "'## Prerequisites'"),
        ("## Steps\n", "## Input\n\nan oven\n\n## Steps\n", "'## Input'"),
    ],
)
def test_an_edited_line_that_belongs_to_no_step_is_named(
    tmp_path: Path, before: str, after: str, lost: str
) -> None:
    write_skills([BREAD], tmp_path, [])
    [path] = tmp_path.glob("*/SKILL.md")
    path.write_text(path.read_text().replace(before, after))
    assert list(read_skills(tmp_path, failed := [])) == []
    assert f"{lost} belongs to no step" in failed[0].reason


def test_a_paragraph_added_to_the_needs_belongs_to_them() -> None:
    body = body_of(BREAD).replace("flour, yeast\n", "flour, yeast\n\nand an oven\n")
    assert edited(BREAD, body) == replace(BREAD, input="flour, yeast\n\nand an oven")


def test_a_list_with_a_remark_in_the_needs_is_kept_as_it_is_written() -> None:
    body = body_of(BREAD).replace("flour, yeast\n", "- flour\n- yeast\n\nAn oven with steam.\n")
    edit = edited(BREAD, body)
    assert edit == replace(BREAD, input="- flour\n- yeast\n\nAn oven with steam.")
    assert edited(edit, body_of(edit).replace("Knead.", "Mix.")).input == edit.input


@pytest.mark.parametrize("title", ["## Workflow", "## Steps to bake", ""])
def test_the_title_of_the_steps_may_be_another_one(title: str) -> None:
    body = body_of(BREAD).replace("## Steps", title).replace("Bake it.", "Bake.")
    assert edited(BREAD, f"{body.rstrip()}\n4. \n").steps == (*BREAD.steps[:-1], "Bake.")


def test_needs_that_read_like_a_step_stay() -> None:
    stored = replace(BREAD, input="1. Knead.\n2. Let it rise.")
    body = body_of(stored).replace("3. Bake it.", "3. Bake.")
    assert edited(stored, body) == replace(stored, steps=("Knead.", "Let it rise.", "Bake."))


def test_what_somebody_edited_counts_and_the_id_stays(tmp_path: Path) -> None:
    bread = replace(BREAD, source="a book", metadata={"n": 1})
    write_skills([bread], tmp_path, [])
    path = next(tmp_path.glob("*/SKILL.md"))
    path.write_text(path.read_text().replace("3. Bake it.", "3. Fold it.\n4. Bake it."), "utf-8")
    assert read(path) == [replace(bread, steps=("Knead.", "Let it rise.", "Fold it.", "Bake it."))]


ODD = (
    CODE,
    "1. nested\n2. list",
    "- a\n- b",
    "Step 2: of the old list",
    "One\n---\nTwo",
    "Text  \nwith a hard break",
    "First\n\n    code\n\nlast",
)


def test_an_edit_changes_nothing_else(tmp_path: Path) -> None:
    odd = Procedure("## odd\n\n- a\n- b", "use a: b\nand c", ODD * 2)
    write_skills([odd], tmp_path, [])
    path = next(tmp_path.glob("*/SKILL.md"))
    exported = path.read_text("utf-8")
    for before, after, changed in (
        ("# use a: b and c\n", "# use c\n", replace(odd, output="use c")),
        ("## Needs\n\n## odd\n\n- a\n- b", "## Needs\n\n- c\n- d", replace(odd, input="c, d")),
        ("## Steps\n\n1. ", "## Steps\n\n1. Go.\n2. ", replace(odd, steps=("Go.", *odd.steps))),
        ("   # not a head", "     # not a head", None),
    ):
        path.write_text(exported.replace(before, after, 1), "utf-8")
        [edited] = read(path)
        assert edited == changed or (not changed and "\n  # not" in edited.steps[0])


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (
            "# Deploy\n\nIn words.\n\n## Step 1: Build\n\nRun `make`.\n\n## Ship\n\nRun `ship`.\n",
            ("Build\n\nRun `make`.", "Ship\n\nRun `ship`."),
        ),
        (
            "## Workflow\n\n### Step 1: Build\n\n1. Make.\n2. Test.\n\n"
            "### Step 2\n\n1. Ship.\n2. Look.\n",
            ("Build\n1. Make.\n2. Test.", "1. Ship.\n2. Look."),
        ),
        (
            "## Before\n\n1. x\n2. y\n\n## Step 1: Build\n\n- Make.\n\n### Test\n\nAll.\n\n"
            "## Step 2: Ship\n\nIt.\n",
            ("Build\n- Make.\n### Test\nAll.", "Ship\nIt."),
        ),
        (
            "## 1. Prepare\n\nLook.\n\n## 2. Build\n\n1. Make.\n2. Test.\n\n## 3. Ship\n\nIt.\n",
            ("Prepare\nLook.", "Build\n1. Make.\n2. Test.", "Ship\nIt."),
        ),
        (
            "## 1. Requirements\n\n- git\n\n## 2. Workflow\n\n### 1. Make\n\nIt.\n\n### 2. Test\n\nAll.\n\n"
            "## 3. Notes\n\nNo.\n",
            ("Make\nIt.", "Test\nAll."),
        ),
        (
            "## Process\n\n- Read it.\n- Answer it.\n\n## Notes\n\n- None.\n",
            ("Read it.", "Answer it."),
        ),
        ("- Read it.\n- Answer it.\n", ("Read it.", "Answer it.")),
        ("# Reviews\n\nRead the diff,\nall of it.\n", ("Read the diff,\nall of it.",)),
    ],
)
def test_the_steps_of_a_text(tmp_path: Path, body: str, steps: tuple[str, ...]) -> None:
    [skill] = read(written(tmp_path, f"---\ndescription: Do it. When asked.\n---\n{body}"))
    assert (skill.output, [" ".join(step.split()) for step in skill.steps]) == (
        "Do it",
        [" ".join(step.split()) for step in steps],
    )


@pytest.mark.parametrize(
    ("needs", "input_"),
    [
        ("You need:\n\n### Tools\n\n- git\n\n### Access\n\n- root\n", "git, root"),
        ("```sh\n## none\nmake\n```\n", "```sh\n## none\nmake\n```"),
        ("Python 3.11\n\n- requests\n- pandas\n", "Python 3.11\n\n- requests\n- pandas"),
        ("- flour\n- yeast\n\nAn oven.\n", "- flour\n- yeast\n\nAn oven."),
        ("**Tools:**\n\n1. git\n2. a shell\n   of any kind\n", "git, a shell\nof any kind"),
    ],
)
def test_the_resources_have_all_of_their_section(tmp_path: Path, needs: str, input_: str) -> None:
    body = f"## Requirements\n\n{needs}\n## Steps\n\n1. a\n2. b\n"
    [skill] = read(written(tmp_path, f"---\ndescription: Do it.\n---\n{body}"))
    assert (skill.input, skill.steps) == (input_, ("a", "b"))


@pytest.mark.parametrize(
    ("needs", "steps"),
    [
        ("Voraussetzungen", "Schritte zum Ausfüllen"),
        ("Requisitos previos", "Pasos"),
        ("Prérequis", "Étapes"),
        ("所需工具", "操作步骤"),
    ],
)
def test_resources_and_steps_are_known_in_other_languages(
    tmp_path: Path, needs: str, steps: str
) -> None:
    body = f"## {needs}\n\n1. git\n2. root\n\n## {steps}\n\n1. a\n2. b\n"
    [skill] = read(written(tmp_path, f"---\ndescription: Do it.\n---\n{body}"))
    assert (skill.input, skill.steps) == ("git, root", ("a", "b"))


LIST = "---\n1. a\n2. b\n"
BOMB = "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# Only a text\n\n1. a\n2. b\n", "no description; say in the front matter"),
        (f"---\ndescription: !!python/object/apply:os.abort []\n{LIST}", "no description"),
        (f"---\na: &a [x]\n{BOMB}description: *i\n{LIST}", "no description"),
        ("---\ndescription: y\n---\n\n", "step 1 is empty"),
        ("---\ndescription: y\n---\n" + "1. a\n" * 110_000, "at most 100,000"),
        (f"---\n- x\n{LIST}", "cannot be read"),
        (f"---\nname: [\n{LIST}", "cannot be read"),
        (f"---\nz: {'[' * 3_000}\n{LIST}", "cannot be read"),
        (f"---\nmetadata:\n  stepcraft-procedure: '{{'\n{LIST}", "cannot be read"),
        (f"---\nmetadata:\n  stepcraft-procedure: [2]\n{LIST}", "cannot be read"),
        (
            "---\nmetadata:\n  stepcraft-procedure: "
            f"""'{{"id": "../../etc", "input": "i", "output": "o", "steps": ["s"]}}'\n{LIST}""",
            "UUID",
        ),
    ],
)
def test_a_skill_that_cannot_be_read_is_named_and_the_others_go_in(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = written(tmp_path, text, "broken")
    written(tmp_path, FOREIGN, "pdf-forms")
    failed: list[Failed] = []
    assert len(list(read_skills(tmp_path, failed))) == 1
    [failure] = failed
    assert failure.where == str(path)
    assert reason in failure.reason


def test_a_folder_without_skills_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "SKILL.md", tmp_path / "nowhere"):
        with pytest.raises(BadInput, match=re.escape(str(tmp_path))):
            list(read_skills(path, []))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(MemoryFailure, match="file"):
        write_skills(SEVERAL, file / "skills", [])


def steps_of(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "SKILL.md").write_text(f"---\nname: x\ndescription: Does it.\n---\n{text}")
    [procedure] = read_skills(folder / "SKILL.md", failed := [])
    assert failed == []
    return procedure.steps


def test_joiners_within_words_stay(tmp_path: Path) -> None:
    goal = "می\u200cخواهم"
    [skill] = read(written(tmp_path, f"---\ndescription: {goal}\n---\n- a\n- b\n"))
    assert skill.output == goal
    assert f"# {goal}\n" in body_of(skill)


def test_headings_in_code_split_no_step(tmp_path: Path):
    text = "1. Fill the template:\n\n```md\n## Summary\n1. first\n## Details\n```\n\n2. Send it.\n"
    assert steps_of(tmp_path, f"# T\n\n## Steps\n\n{text}") == (
        "Fill the template:\n```md\n## Summary\n1. first\n## Details\n```",
        "Send it.",
    )


def test_the_workflow_counts_and_not_a_list_before_it(tmp_path: Path):
    reference = "## Quick reference\n\n1. Fields: see a.md\n2. Others: see b.md\n\n"
    workflow = "## Workflow\n\n### Step 1: Analyse\nRun `a`.\n\n### Step 2: Fill\nRun `b`.\n\n"
    notes = "## Notes\n\nNothing else.\n"
    assert steps_of(tmp_path, reference + workflow + notes) == (
        "Analyse\nRun `a`.",
        "Fill\nRun `b`.",
    )


EXTRACT = "## Extract text\n1. Open it.\n2. Read it.\n"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (f"{EXTRACT}## Process scanned files\nRun `ocr`.\n", ("Open it.", "Read it.")),
        (f"{EXTRACT}## Process and merge\n1. Sort.\n2. Join.\n", ("Open it.", "Read it.")),
        (f"{EXTRACT}## Instructions\n1. Sort.\n2. Join.\n", ("Sort.", "Join.")),
        (f"{EXTRACT}## Workflow: merge\n1. Sort.\n2. Join.\n", ("Sort.", "Join.")),
        (f"{EXTRACT}## Steps for two files\n1. Sort.\n2. Join.\n", ("Sort.", "Join.")),
        (f"{EXTRACT}# Workflow\n1. Sort.\n2. Join.\n", ("Sort.", "Join.")),
        (
            "## Workflow\n### Requirements gathering\nAsk.\n### Input validation\nLook.\n",
            ("Requirements gathering\nAsk.", "Input validation\nLook."),
        ),
    ],
)
def test_a_section_of_the_steps_is_known_by_its_whole_title(
    tmp_path: Path, text: str, steps: tuple[str, ...]
):
    assert steps_of(tmp_path, text) == steps


def test_skills_of_any_depth_and_with_a_colon_in_their_description(tmp_path: Path):
    deep = tmp_path / "plugin" / "skills" / "x"
    deep.mkdir(parents=True)
    front = "---\nname: x\ndescription: Use when: asked. Or not.\n---\n"
    (deep / "SKILL.md").write_text(f"{front}1. a\n2. b\n")
    [procedure] = read_skills(tmp_path, [])
    assert (procedure.output, procedure.steps) == ("Use when: asked", ("a", "b"))


@pytest.mark.parametrize(
    ("description", "output"),
    [
        (">-\n  Open it,\n\n  then merge it. Or not.\n", "Open it, then merge it"),
        ("Use when: asked\n  to merge it. Or not.\n", "Use when: asked to merge it"),
        ("Use it.\nlicense: MIT\n", "Use it"),
        ("|2\n", ""),
    ],
)
def test_a_description_of_several_lines_in_front_matter_that_is_not_yaml(
    tmp_path: Path, description: str, output: str
):
    front = f"name: x\nhint: [pr] [priority]\ndescription: {description}metadata:\n  by: me\n"
    path = written(tmp_path, f"---\n{front}---\n1. a\n2. b\n")
    found = [*read_skills(path, failed := [])]
    assert [each.output for each in found] == [*filter(None, [output])]
    assert len(found) + len(failed) == 1


def test_a_skill_that_is_too_long_is_named_and_neither_read_nor_written(tmp_path: Path):
    text = "---\ndescription: Use it.\n---\n1. a\n2. b\n## Notes\n"
    written(tmp_path, text.ljust(1_000_000, "x"), "a")
    long = written(tmp_path, text.ljust(1_000_001, "x"), "b")
    assert len([*read_skills(tmp_path, failed := [])]) == 1
    assert failed == [Failed(str(long), "it is longer than 1,000,000 bytes")]
    notes = replace(BREAD, metadata={"notes": "é" * 500_000})
    for _ in range(2):
        assert write_skills([notes, dish(1)], tmp_path / "c", failed := []) == 1
        assert [each.reason for each in failed] == ["it is longer than 1,000,000 bytes"]
        assert len([*(tmp_path / "c").iterdir()]) == 1


def test_a_skill_of_many_lines_is_read_in_seconds(tmp_path: Path):
    start = process_time()
    assert steps_of(tmp_path, "\n" * 500_000 + "1. a\n2. b\n") == ("a", "b")
    assert process_time() - start < 10


def test_skills_that_are_symbolic_links_are_read(tmp_path: Path):
    for name in ("skills/a", "shared/b", "shared/c"):
        written(tmp_path, f"---\ndescription: Use {name}.\n---\n1. a\n2. b\n", name)
    (tmp_path / "skills" / "b").symlink_to("../shared/b")
    (tmp_path / "skills" / "a" / "c").symlink_to("../../shared/c")
    (tmp_path / "skills" / "around").symlink_to("..")
    names = ["Use skills/a", "Use shared/c", "Use shared/b"]
    assert [each.output for each in read(tmp_path / "skills")] == names
    assert [each.output for each in read(tmp_path / "skills" / "b")] == ["Use shared/b"]


def test_two_procedures_whose_ids_begin_alike_are_two_skills(tmp_path: Path):
    ids = [f"deadbeef-0000-4000-8000-{number:012}" for number in range(2)]
    both = [replace(dish(number), id=id_) for number, id_ in enumerate(ids)]
    for _ in range(2):
        assert write_skills(both, tmp_path, []) == 2
        assert {item.id for item in read_skills(tmp_path, [])} == {*ids}
    assert write_skills([both[1]], tmp_path, []) == 1
    assert len([*tmp_path.iterdir()]) == 2


def test_a_skill_that_is_no_export_is_left_alone_whatever_its_name(tmp_path: Path):
    own = tmp_path / f"own-{dish(1).id[:8]}"
    own.mkdir()
    (own / "SKILL.md").write_text("---\nname: own\ndescription: Mine.\n---\n1. a\n2. b\n")
    write_skills([dish(1)], tmp_path, [])
    assert "Mine." in (own / "SKILL.md").read_text()
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.parametrize("is_filled", [True, False])
@pytest.mark.parametrize("name", ["a-bake-a-rye-bread", f"rye-bread-{BREAD.id[:8]}", "rye"])
def test_a_copy_that_became_another_skill_does_not_replace_the_original(
    tmp_path: Path, name: str, is_filled: bool
) -> None:
    memory = LocalMemory(":memory:", embeddings="none")
    memory.add([BREAD] * is_filled)
    write_skills([BREAD], tmp_path, [])
    [original] = tmp_path.glob("*/SKILL.md")
    text = original.read_text("utf-8").replace("white bread\n", "rye bread\n")
    copy = written(tmp_path, text, name)
    for _ in range(2):
        [failed] = import_skills(memory, tmp_path).failed
        assert failed.where == str(copy)
        assert failed.reason.startswith(f"it has the id of {original}; delete its `metadata` ")
        assert [*memory] == [BREAD]
    copy.write_text(re.sub("^metadata:\n.*\n", "", text, flags=re.MULTILINE))
    assert (import_skills(memory, tmp_path).failed, memory.count()) == ([], 2)


def test_a_copy_that_was_not_edited_does_not_take_back_an_edit(tmp_path: Path) -> None:
    memory = LocalMemory(tmp_path / "m.db", embeddings="none")
    memory.add([BREAD])
    for folder in ("backup", "skills"):
        write_skills(memory, tmp_path / "all" / folder, [])
    [path] = (tmp_path / "all" / "skills").glob("*/SKILL.md")
    for time in ("an hour", "two hours"):
        text = path.read_text("utf-8")
        path.write_text(f"{text.rstrip()}\n9. Cool it for {time}.\n", "utf-8")
        report = import_skills(memory, tmp_path / "all")
        assert (report.updated, report.failed) == (1, [])
        assert memory.get(BREAD.id).steps[-1] == f"Cool it for {time}."
        memory.update(BREAD.id, lambda kept: replace(kept, tags={"checked": "yes"}))


def test_an_imported_edit_that_others_have_changed_since_is_an_earlier_version(
    tmp_path: Path,
) -> None:
    memory = LocalMemory(":memory:", embeddings="none")
    memory.add([BREAD])
    write_skills(memory, tmp_path, [])
    [path] = tmp_path.glob("*/SKILL.md")
    path.write_text(path.read_text("utf-8").replace("3. Bake it.", "3. Grill it."), "utf-8")
    assert import_skills(memory, tmp_path).updated == 1
    memory.update(BREAD.id, lambda kept: replace(kept, steps=("Fry it.",)))
    report = import_skills(memory, tmp_path)
    assert (report.present, report.updated, report.failed) == (1, 0, [])
    assert memory.get(BREAD.id).steps == ("Fry it.",)
    assert write_skills(memory, tmp_path, []) == 1
    assert read(tmp_path) == [*memory]
    edit = path.read_text("utf-8").replace("1. Fry it.", "1. Knead.\n2. Let it rise.\n3. Grill it.")
    path.write_text(edit, "utf-8")
    assert import_skills(memory, tmp_path).updated == 1
    assert memory.get(BREAD.id).steps == ("Knead.", "Let it rise.", "Grill it.")


@pytest.mark.parametrize("key", ["", "page/1"])
def test_a_skill_that_was_not_edited_takes_back_no_source_and_no_metadata(
    tmp_path: Path, key: str
) -> None:
    memory = LocalMemory(":memory:", embeddings="none")
    stale = {"stale": "old.md no longer teaches it"}
    bread = replace(BREAD, id="", key=key, source="old.md", metadata=stale)
    memory.add([bread])
    write_skills(memory, tmp_path, [])
    facts = {"source": "new.md", "metadata": {"owner": "ana"}}
    memory.update(bread.id, lambda kept: replace(kept, **facts))
    report = import_skills(memory, tmp_path)
    assert (report.present, report.updated, report.failed) == (1, 0, [])
    stored = memory.get(bread.id)
    assert (stored.source, stored.metadata) == (facts["source"], facts["metadata"])
