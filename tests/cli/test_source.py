"""`stepcraft source check`: output, errors and exit status."""

import json
from contextlib import chdir
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stepcraft.cli import app


@pytest.fixture
def shell(tmp_path: Path):
    """Return a function that runs `stepcraft source check` in a folder with one file."""
    (tmp_path / "tea.md").write_text("# Tea\n\n## Green [bold]\nSteep for two minutes.\nNot longer.\n")
    environment = {"XDG_CACHE_HOME": str(tmp_path / ".cache"), "STEPCRAFT_EMBEDDINGS": "none"}

    def run(*arguments: str):
        with chdir(tmp_path):
            return CliRunner().invoke(app, ["source", "check", *arguments], env=environment)

    return run


def test_check_shows_what_is_found(shell):
    result = shell("corpus:tea.md", "green tea")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "1.000  Tea › Green [bold]  (tea.md:4)\n       Steep for two minutes.\n"


def test_json(shell):
    (found,) = json.loads(shell("corpus:tea.md", "green tea", "--json", "-k", "3").stdout)
    assert found["text"] == "Steep for two minutes.\nNot longer."
    assert (found["score"], found["title"], found["source"]) == (1, "Tea › Green [bold]", "tea.md:4")
    assert json.loads(shell("corpus:tea.md", "potatoes", "--json").stdout) == []


def test_nothing_found_is_no_failure(shell):
    result = shell("corpus:tea.md", "potatoes")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing found\n")


def test_what_could_not_be_read_is_told(shell, tmp_path: Path):
    (tmp_path / "data").write_bytes(b"\0")
    result = shell("corpus:tea.md,data", "green tea")
    assert result.exit_code == 0
    assert result.stderr == "not all of the corpus could be read: data: it is binary\n"


def test_modules_of_the_folder_are_found(shell, tmp_path: Path):
    (tmp_path / "own_source.py").write_text("from tests.sources.own import fixed\n")
    assert shell("own_source:fixed", "tea", "-k", "2").stdout.count("Tea of kind") == 4


def test_modules_of_the_folder_are_sources_of_every_command(tmp_path: Path):
    (tmp_path / "another_source.py").write_text("from tests.sources.own import fixed\n")
    with chdir(tmp_path):
        result = CliRunner().invoke(app, ["run", "rag", "Which teas?", "--from", "another_source:fixed"])
    assert "Tea of kind" in result.stdout


@pytest.mark.parametrize(
    ("spec", "status"),
    [("corpus:nowhere", 2), ("nothing", 2), ("memory:nowhere.db", 2), ("tests.sources.own:failing", 1)],
)
def test_errors_are_one_line(shell, spec, status):
    result = shell(spec, "tea")
    assert result.exit_code == status
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
