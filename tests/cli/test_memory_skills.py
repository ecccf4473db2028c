"""`stepcraft memory`: skills in and out."""

import json
from pathlib import Path

import pytest

from tests.cli.test_memory import SOUP, TEA, Shell

SKILL = "---\nname: greet\ndescription: Greet people. Use at doors.\n---\n1. Smile.\n2. Say hello.\n"


@pytest.fixture
def memory(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def skills(memory: Shell) -> Path:
    """A folder with one skill that can be read, with a script, and one that cannot."""
    folder = memory.folder / "skills"
    for name, text in {"greet": SKILL, "broken": "no front matter"}.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(text)
    (folder / "greet" / "wave.py").write_text("")
    return folder


def test_skills_are_imported_beside_files(memory: Shell, skills: Path) -> None:
    result = memory("import", memory.file("p.jsonl", TEA), str(skills))
    assert result.exit_code == 1
    assert result.stdout == "2 added, 0 already there, 0 updated, 1 failed\n"
    told = result.stderr.splitlines()
    assert told[0] == f"{skills}/greet/SKILL.md: only the text was imported, not wave.py"
    assert told[1].startswith(f"{skills}/broken/SKILL.md: it does not begin with front matter")
    found = json.loads(memory("search", "greet people", "--json").stdout)[0]
    assert (found["output"], found["steps"]) == ("Greet people", ["Smile.", "Say hello."])
    assert found["metadata"]["skill"] == {"name": "greet", "description": "Greet people. Use at doors."}


def test_one_skill_is_imported_by_its_file(memory: Shell, skills: Path) -> None:
    result = memory("import", str(skills / "greet" / "SKILL.md"), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["added"] == 1


def test_a_folder_without_skills_is_refused(memory: Shell) -> None:
    result = memory("import", str(memory.folder))
    assert result.exit_code == 2
    assert "there is no SKILL.md" in result.stderr


def test_export_and_import_lose_nothing(memory: Shell) -> None:
    memory("import", memory.file("p.jsonl", TEA, {**SOUP, "metadata": {"n": [1]}}))
    out = memory.folder / "out"
    first, second = (memory("export", "--format", "skills", str(out)) for _ in range(2))
    assert (first.exit_code, first.stdout) == (0, "")
    assert "2 created, 0 updated, 0 unchanged" in first.stderr
    assert "0 created, 0 updated, 2 unchanged" in second.stderr
    assert sorted(path.name for path in out.iterdir()) == ["potato-soup", "tea"]
    copy = str(memory.folder / "copy.db")
    assert memory("import", str(out), memory=copy).stdout == "2 added, 0 already there, 0 updated\n"
    assert sorted(memory("export", memory=copy).stdout.splitlines()) == sorted(
        memory("export").stdout.splitlines()
    )


@pytest.mark.parametrize(
    "arguments", [("--format", "skills"), ("out",), ("--format", "skills", "--to", "x.jsonl")]
)
def test_an_export_that_cannot_be_meant_is_refused(memory: Shell, arguments: tuple[str, ...]) -> None:
    memory("import", memory.file("p.jsonl", TEA))
    result = memory("export", *arguments)
    assert result.exit_code == 2
    assert "--format skills" in result.stderr
    assert len(result.stderr.splitlines()) == 1
