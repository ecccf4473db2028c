"""`stepcraft memory copy` and `check` on a SQLite memory and on Weaviate."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stepcraft import Procedure, open_memory
from stepcraft.cli.memory import memory_app
from stepcraft.memory.files import write_jsonl
from tests.kitchen import PROCEDURES


def shell(*arguments: object, code: int = 0) -> str:
    environment = {"STEPCRAFT_EMBEDDINGS": "none"}
    result = CliRunner().invoke(memory_app, [str(argument) for argument in arguments], env=environment)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_jsonl(PROCEDURES, tmp_path / "p.jsonl")
    return tmp_path / "p.jsonl"


@pytest.fixture(params=["local", "weaviate"])
def target(request, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "m.db")
    return request.getfixturevalue("new_collection")()


def test_a_copy_is_the_same_and_a_second_one_changes_nothing(file: Path, target: str):
    assert shell("copy", file, target) == "4 added, 0 already there, 0 updated\n"
    assert shell("copy", file, target) == "0 added, 4 already there, 0 updated\n"
    assert shell("check", target, file) == "4 the same, 0 missing, 0 extra, 0 different\n"


def test_a_copy_that_was_broken_off_is_completed(file: Path, target: str):
    with open_memory(target, embeddings="none") as memory:
        memory.add(PROCEDURES[:2])
    assert shell("copy", file, target) == "2 added, 2 already there, 0 updated\n"
    assert shell("check", target, file).startswith("4 the same")


def test_a_copy_back_into_a_database_is_the_same(file: Path, target: str, tmp_path: Path):
    shell("copy", file, target)
    shell("copy", target, tmp_path / "back.db")
    assert shell("check", tmp_path / "back.db", file).startswith("4 the same")


def test_what_differs_is_named(file: Path, target: str):
    extra = Procedure("water", "ice", ("Freeze.",))
    changed = Procedure(**{**PROCEDURES[1].to_dict(), "source": "a book"})
    with open_memory(target, embeddings="none") as memory:
        memory.add([PROCEDURES[0], changed, PROCEDURES[2], extra])
    told = shell("check", target, file, code=1).splitlines()
    assert [line.split()[0] for line in told[:-1]] == ["missing", "extra", "different"]
    assert told[-1] == "2 the same, 1 missing, 1 extra, 1 different"
    assert json.loads(shell("check", target, file, "--json", code=1)) == {
        "same": 2,
        "missing": [PROCEDURES[3].id],
        "extra": [extra.id],
        "different": [changed.id],
    }


def test_a_file_with_a_broken_record_is_not_compared(file: Path, target: str):
    shell("copy", file, target)
    with file.open("a") as text:
        text.write("broken\n")
    assert "nothing was compared" in shell("check", target, file, code=2)
