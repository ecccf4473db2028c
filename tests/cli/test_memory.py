"""`stepcraft memory`: its commands, their output and exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stepcraft.cli.memory import memory_app

TEA = {"output": "tea", "input": "leaves", "steps": ["Boil.", "Pour."]}
SOUP = {"output": "potato soup", "input": "potatoes", "steps": ["Peel.", "Boil."], "source": "a book"}


class Shell:
    """Runs `stepcraft memory` on a database in a folder, without embeddings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = str(folder / "m.db")

    def __call__(self, *arguments: str, stdin: str | bytes | None = None, memory: str | None = None):
        result = CliRunner().invoke(
            memory_app,
            [*arguments, "--memory", memory or self.db],
            input=stdin,
            env={"STEPCRAFT_EMBEDDINGS": "none"},
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    def file(self, name: str, *lines: object) -> str:
        path = self.folder / name
        path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
        return str(path)


@pytest.fixture
def memory(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def filled(memory: Shell) -> Shell:
    assert memory("import", memory.file("p.jsonl", TEA, SOUP)).exit_code == 0
    return memory


def test_importing_twice_adds_once(memory: Shell):
    file = memory.file("p.jsonl", TEA, SOUP)
    first, second = memory("import", file), memory("import", file)
    assert (first.exit_code, first.stdout, first.stderr) == (0, "2 added, 0 already there, 0 updated\n", "")
    assert second.stdout == "0 added, 2 already there, 0 updated\n"
    assert memory("count").stdout == "2\n"


def test_broken_lines_are_named_and_the_rest_goes_in(memory: Shell):
    file = memory.file("p.jsonl", TEA, "broken", {**TEA, "steps": []}, SOUP, '{"output": "cut')
    result = memory("import", file)
    assert result.exit_code == 1
    assert result.stdout == "2 added, 0 already there, 0 updated, 3 failed\n"
    assert [line.split(": ")[0] for line in result.stderr.splitlines()] == [
        f"{file}:{line}" for line in (2, 3, 5)
    ]
    told = json.loads(memory("import", file, "--json").stdout)
    assert (told["added"], told["present"], len(told["failed"])) == (0, 2, 3)


def test_several_files_and_a_mapping(memory: Shell):
    mapped = memory.file("p.csv", "title,ingredients,directions", 'bread,flour,"1. Knead.\n2. Bake."')
    result = memory("import", mapped, "--map", "output=title,input=ingredients,steps=directions")
    assert result.stdout.startswith("1 added")
    result = memory("import", memory.file("p.jsonl", TEA), mapped)
    assert result.exit_code == 1
    assert result.stdout.startswith("1 added")
    assert "--map" in result.stderr


@pytest.mark.parametrize("mapping", ["output", "output=", "goal=title"])
def test_a_mapping_that_is_not_understood_is_wrong_use(memory: Shell, mapping):
    result = memory("import", memory.file("p.jsonl", TEA), "--map", mapping)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_file_makes_no_database(memory: Shell):
    result = memory("import", "nowhere.jsonl")
    assert result.exit_code == 2
    assert result.stderr == "stepcraft: there is no file nowhere.jsonl; check the name\n"
    assert not Path(memory.db).exists()


@pytest.mark.parametrize("text", ['{"a": 1}', "", "title,steps"])
def test_a_file_without_procedures_makes_no_database(memory: Shell, text: str):
    assert memory("import", memory.file("p.csv" if "," in text else "p.jsonl", text)).exit_code == 2
    (memory.folder / "skills").mkdir()
    assert memory("import", str(memory.folder / "skills")).exit_code == 2
    assert not Path(memory.db).exists()


def test_the_help_of_a_change_names_no_memory_that_cannot_be_changed():
    for command in ("import", "add", "remove"):
        shown = CliRunner().invoke(memory_app, [command, "--help"], env={"COLUMNS": "200"}).stdout
        [option] = [line for line in shown.splitlines() if "--memory" in line]
        assert "a .db file" in option
        assert ".jsonl" not in option
        assert "ship with" not in shown


def test_add_takes_options_or_json(memory: Shell):
    assert memory("add", "-o", "tea", "-i", "leaves", "-s", "Boil.", "-s", "Pour.").stdout.startswith(
        "1 added"
    )
    assert memory("add", stdin=json.dumps(TEA)).stdout.startswith("0 added, 1 already there")
    assert memory("add", stdin="{").exit_code == 2
    assert memory("add", stdin="[]").exit_code == 2
    assert memory("add", stdin=b"\xff\xfe\x00").exit_code == 2
    assert memory("add", "-o", "tea", "-s", "Boil.").stderr == "stepcraft: input is empty; give it a text\n"


def test_search_list_and_show(filled: Shell):
    found = filled("search", "soup of potatoes", "-k", "1").stdout
    assert found.startswith("1.000  ")
    assert found.endswith("  potato soup\n")
    assert json.loads(filled("search", "soup", "--json").stdout)[0]["output"] == "potato soup"
    listed = filled("list").stdout.splitlines()
    assert [line.split("  ")[1] for line in listed] == ["tea", "potato soup"]
    shown = filled("show", listed[1].split()[0]).stdout
    assert "1. Peel.\n2. Boil.\n" in shown
    assert "a book" in shown
    assert json.loads(filled("show", listed[0].split()[0], "--json").stdout)["steps"] == TEA["steps"]
    assert [item["output"] for item in json.loads(filled("list", "--json").stdout)] == ["tea", "potato soup"]


def test_remove_takes_all_or_none(filled: Shell):
    tea, soup = (line.split()[0] for line in filled("list").stdout.splitlines())
    assert filled("remove", tea, "zzzz").exit_code == 2
    assert filled("count").stdout == "2\n"
    assert filled("remove", tea, soup).stdout == "2 removed\n"
    assert filled("count").stdout == "0\n"


def test_a_beginning_that_several_share_is_refused(filled: Shell):
    filled("add", stdin=json.dumps({**TEA, "output": "x", "id": "00000000-0000-0000-0000-000000000001"}))
    filled("add", stdin=json.dumps({**TEA, "output": "y", "id": "00000000-0000-0000-0000-000000000002"}))
    result = filled("show", "0000")
    assert result.exit_code == 2
    assert "2 procedures have" in result.stderr
    assert filled("show", "").exit_code == 2


def test_export_can_be_imported(filled: Shell):
    lines = filled("export").stdout
    assert [json.loads(line)["output"] for line in lines.splitlines()] == ["tea", "potato soup"]
    to = str(filled.folder / "out.jsonl")
    assert filled("export", "--to", to).exit_code == 0
    assert Path(to).read_text() == lines
    assert filled("import", to).stdout == "0 added, 2 already there, 0 updated\n"


def test_an_export_never_takes_the_place_of_a_memory(filled: Shell):
    assert "no .jsonl file" in filled("export", "--to", filled.db).stderr
    text = filled.file("p.jsonl", TEA, "broken")
    link = filled.folder / "link.jsonl"
    link.symlink_to(text)
    for to in (text, str(link)):
        result = filled("export", "--to", to, memory=text)
        assert result.exit_code == 2
        assert result.stderr.endswith(f"{to} is the memory that is exported; name another file\n")
    assert filled("count").stdout == "2\n"
    assert Path(text).read_text().endswith("broken")


def test_what_cannot_be_opened_ends_with_one_line(memory: Shell):
    for url in ("nowhere.db", "redis://x", "nowhere.jsonl", str(memory.folder)):
        result = memory("count", memory=url)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
    assert memory("add", stdin=json.dumps(TEA), memory=memory.file("p.jsonl", TEA)).exit_code == 1
    assert memory("search", "x", "--alpha", "3", memory=memory.file("p.jsonl", TEA)).exit_code == 2


def test_markup_in_a_procedure_is_shown_as_it_is(memory: Shell):
    memory("add", "-o", "[red]tea[/red] [link=x]", "-i", "\x1b[31mleaves", "-s", "[bold]Boil.")
    assert "[red]tea[/red] [link=x]" in memory("list").stdout
    shown = memory("show", memory("list").stdout.split()[0]).stdout
    assert "[bold]Boil." in shown
    assert "\x1b" not in shown


def test_the_commands_load_nothing_heavy_before_they_run():
    code = (
        "import sys, stepcraft.cli.memory\n"
        "print([name for name in ('numpy', 'langchain_core', 'langgraph', 'wordllama', 'pydantic') if name in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
