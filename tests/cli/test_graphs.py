"""`stepcraft aag`, `rat`, `rpg`, `run`, `graphs`, `draw`: what they print and write."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from stepcraft.graphs.registry import GRAPHS
from stepcraft.memory.files import write_jsonl
from tests.cli.shell import data, run
from tests.kitchen import CHANGE, DRAFT, GOAL, LOOK_UP, PROCEDURES, STEPS
from tests.servers.openai_server import OpenAIServer

IDS = {procedure.id for procedure in PROCEDURES}


@pytest.fixture
def kitchen(tmp_path: Path) -> str:
    file = tmp_path / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    return str(file)


@pytest.fixture
def notes(tmp_path: Path) -> str:
    (tmp_path / "rye.md").write_text("# Rye\n\nRye flour makes a dough sticky.\n", "utf-8")
    return f"corpus:{tmp_path / 'rye.md'}"


def test_the_answer_on_stdout_the_rest_on_stderr(kitchen: str) -> None:
    result = run("aag", GOAL["question"], "--using", GOAL["resources"], "--memory", kitchen)
    steps, evidence = result.stdout.split("\nEvidence:\n")
    assert re.fullmatch(r"(\d+\. .+\n)+", steps)
    assert {re.split("  | ", line.strip(), maxsplit=2)[2] for line in evidence.splitlines()} <= {
        procedure.output for procedure in PROCEDURES
    }
    assert "Checking the steps against what was found." in result.stderr.splitlines()
    assert result.stderr.splitlines()[-1].startswith("warning: no language model wrote this")
    assert run("aag", GOAL["question"], "--memory", kitchen, "--quiet").stderr == ""


def test_a_model_changes_and_the_changes_are_shown(
    kitchen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    with OpenAIServer([LOOK_UP, DRAFT, CHANGE, "NO CHANGE"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        options = ["--model", "openai:m", "--memory", kitchen, "--show-changes", "--html", page]
        result = run("aag", GOAL["question"], *options)
    assert result.stdout.startswith(f"1. {STEPS[0]}\n2. {STEPS[1]}\n")
    assert "with water{+ and the sourdough starter+}." in result.stdout
    assert "warning" not in result.stderr
    assert GOAL["question"] in page.read_text("utf-8")


def test_an_answer_is_checked_against_documents(notes: str, tmp_path: Path) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text("\ufeffRye flour makes a dough dry.", "utf-8")
    named = data("rat", "What does rye flour do?", "--draft", draft, "--from", notes)
    assert named["draft"] == "Rye flour makes a dough dry."
    assert ["rye.md" in passage["source"] for passage in named["evidence"]] == [True]
    stdin = data("rat", "And salt?", "--draft", "-", "--from", notes, stdin="Salt slows yeast.")
    assert stdin["draft"] == "Salt slows yeast."


def test_settings_go_to_the_run_and_what_is_trusted_to_the_builder(
    kitchen: str, notes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPCRAFT_MODELS", "small=openai:small")
    settings = [
        "--set",
        "k=1",
        "--set",
        "names=false",
        "--set",
        'node_models={"critic":"extractive"}',
    ]
    answer = data("aag", GOAL["question"], "-m", kitchen, "--from", notes, *settings)
    assert answer["names"] == []
    assert {passage["id"] for passage in answer["evidence"]} & IDS
    assert any("rye.md" in passage["source"] for passage in answer["evidence"])


def test_the_form_of_an_answer(notes: str) -> None:
    answer = data("rpg", "What does rye flour do?", "--kind", "short", "--from", notes)
    assert answer["kind"] == "short"
    options = ["--kind", "long", "--citations", "ids", "--from", notes]
    assert "[1]" not in run("rpg", "What does rye flour do?", *options).stdout.split("Evidence:")[0]


@pytest.mark.parametrize("graph", GRAPHS)
def test_any_graph_runs_and_is_drawn(graph: str, kitchen: str) -> None:
    searches = [] if graph in {"direct", "cot"} else ["--memory", kitchen]
    answer = data("run", graph, GOAL["question"], *searches)
    assert {"answer", "evidence", "warnings", "usage"} <= set(answer)
    assert {passage["id"] for passage in answer["evidence"]} <= IDS
    assert "begin" in run("draw", graph, "--xray").stdout


def test_graphs_lists_each_in_a_line() -> None:
    lines = run("graphs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(GRAPHS)


def test_odd_arguments_are_cleaned(kitchen: str) -> None:
    result = run("aag", "bake \x1b[31m\udcffbread\u202e", "--memory", kitchen, "--json")
    assert not set("\x1b\udcff\u202e") & set(result.output)
    assert json.loads(result.stdout)["answer"]


def test_version() -> None:
    assert run("--version").stdout == f"{version('stepcraft')}\n"
