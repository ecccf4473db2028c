"""`stepcraft aag`, `rat`, `rpg`, `run`, `graphs`, `draw`: what they print and write."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from stepcraft.graphs.registry import GRAPHS, graph_names
from tests.cli.shell import data, run
from tests.kitchen import CHANGE, DRAFT, GAPS, LOOK_UP, PROCEDURES, STEPS
from tests.scripted import block
from tests.servers.openai_server import OpenAIServer

IDS = {procedure.id for procedure in PROCEDURES}
AAG = "aag 'bake a rye bread' --using 'rye flour, a starter' --memory kitchen.jsonl"


@pytest.fixture(autouse=True)
def notes(here: Path, kitchen: Path) -> None:
    (here / "rye.md").write_text("# Rye\n\nRye flour makes a dough sticky.\n")


def test_the_answer_on_stdout_the_rest_on_stderr() -> None:
    result = run(AAG)
    steps, evidence = result.stdout.split("\nEvidence:\n")
    assert re.fullmatch(r"(\d+\. .+\n)+", steps)
    assert {re.split("  | ", line.strip(), maxsplit=2)[2] for line in evidence.splitlines()} <= {
        procedure.output for procedure in PROCEDURES
    }
    assert "Checking the steps against the evidence." in result.stderr.splitlines()
    assert result.stderr.splitlines()[-1].startswith("warning: no language model was used")
    assert run(f"{AAG} --quiet").stderr == ""


def test_a_model_changes_and_the_changes_are_shown(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer([LOOK_UP, GAPS, DRAFT, CHANGE, "NO CHANGE"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        result = run(f"{AAG} --model openai:m --show-changes --html page.html")
    assert result.stdout.startswith(f"1. {STEPS[0]}\n2. {STEPS[1]}\n")
    assert "with water{+ and the sourdough starter+}." in result.stdout
    assert "warning" not in result.stderr
    assert "bake a rye bread" in (here / "page.html").read_text("utf-8")


def test_an_answer_is_checked_against_documents(here: Path) -> None:
    (here / "draft.md").write_text("\ufeffRye flour makes a dough dry.", "utf-8")
    checked = data("rat 'What does rye flour do?' --draft draft.md --from corpus:rye.md")
    assert checked["first_draft"] == "Rye flour makes a dough dry."
    assert [passage["source"] for passage in checked["evidence"]] == ["rye.md:3"]
    crlf = "A cre\u0301pe.\r\n\r\nRye makes a dough dry.\r\n"
    (here / "crlf.md").write_bytes(crlf.encode())
    assert data("rat 'What is dry?' --draft crlf.md --from corpus:rye.md")["answer"] == crlf

    stdin = data("rat 'And salt?' --draft - --from corpus:rye.md", stdin="Salt slows yeast.")
    assert stdin["first_draft"] == "Salt slows yeast."


def test_the_verdicts_are_shown_by_part(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "draft.md").write_text("Rye makes a dough dry. It needs 3 hours.\n\nRye is a cereal.\n")
    reply = f"1.1 contradicted p1\n1.2 not found\n2.1 supported p1, p9\n{block(1, 'dry', 'sticky')}"
    command = "rat 'What does rye flour do?' --draft draft.md --from corpus:rye.md --model openai:m"
    with OpenAIServer([reply] * 3) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        lines = run(f"{command} --show-checks").stdout.splitlines()
        as_json = run(f"{command} --show-checks --json")
        silent = run(command).stdout
    shown = [
        "Part 1:",
        "  CONTRADICTED Rye makes a dough dry. [1] (changed since)",
        "  NOT FOUND    It needs 3 hours.",
        "",
        "Part 2:",
        "  supported    Rye is a cereal. [1]",
    ]
    assert lines[lines.index("Part 1:") :] == shown
    assert [each["part"] for each in json.loads(as_json.stdout)["checks"]] == [1, 1, 2]
    assert "\n".join(shown) in as_json.stderr
    assert "Part 1" not in silent


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{AAG} --show-checks", "This graph does not report verdicts."),
        ("run chat 'What is rye?' --show-checks", "This graph does not report verdicts."),
        ("run chat 'What is rye?' --show-changes", "This graph does not report changes."),
        ("run direct 'What is rye?' --show-changes", "This graph does not report changes."),
        ("rat x --draft - --from corpus:rye.md --show-changes", "Nothing was changed."),
    ],
)
def test_a_graph_without_verdicts_or_changes_says_so(command: str, said: str) -> None:
    draft = "Rye flour makes a dough sticky."
    assert run(command, stdin=draft).stdout.endswith(f"\n{said}\n")
    assert f"\n{said}\n" in run(f"{command} --json", stdin=draft).stderr


def test_settings_go_to_the_run_and_what_is_trusted_to_the_builder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPCRAFT_MODELS", "small=openai:small")
    settings = """--set k=1 --set names=false --set 'node_models={"critic":"extractive"}'"""
    answer = data(f"{AAG} --from corpus:rye.md {settings}")
    assert answer["names"] == []
    assert {passage["id"] for passage in answer["evidence"]} & IDS
    assert any("rye.md" in passage["source"] for passage in answer["evidence"])


def test_the_form_of_an_answer() -> None:
    rpg = "rpg 'What does rye flour do?' --from corpus:rye.md"
    assert data(f"{rpg} --kind short")["form"] == "short"
    assert "[1]" in data(f"{rpg} --kind long")["answer"]


@pytest.mark.parametrize("graph", GRAPHS)
def test_any_graph_runs_and_is_drawn(graph: str) -> None:
    memory = "" if graph == "direct" else "--memory kitchen.jsonl"
    answer = data(f"run {graph} 'bake a rye bread' {memory}")
    assert {"answer", "evidence", "warnings", "usage"} <= set(answer)
    assert {passage["id"] for passage in answer["evidence"]} <= IDS
    assert "begin" in run(f"draw {graph} --xray").stdout


def test_graphs_lists_each_in_a_line() -> None:
    assert [line.split()[0] for line in run("graphs").stdout.splitlines()] == graph_names()


def test_odd_arguments_are_cleaned() -> None:
    result = run("aag 'bake \x1b[31m\udcffbread\u202e' --memory kitchen.jsonl --json")
    assert not set("\x1b\udcff\u202e") & set(result.output)
    assert json.loads(result.stdout)["answer"]


def test_version() -> None:
    assert run("--version").stdout == f"{version('stepcraft')}\n"
