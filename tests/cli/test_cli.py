"""`stepcraft aag`, `run`, `graphs` and `draw`: output, errors and exit status."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft.cli import app
from stepcraft.memory.files import write_jsonl
from tests.kitchen import GOAL, OUTPUT_KEYS, PROCEDURES
from tests.report.reports import Reader

PROGRESS = re.compile(
    r" +\d+\.\d s  (begin|retrieve|draft|to_query|answer|revise|check_names|critic|edit)\b.*"
)


@pytest.fixture
def kitchen(tmp_path: Path) -> str:
    file = tmp_path / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    return str(file)


def stepcraft(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def bake(kitchen: str, *arguments: str) -> Any:
    using = ["--using", GOAL["resources"], "--memory", kitchen]
    return stepcraft("aag", GOAL["question"], *using, *arguments)


def test_steps_and_procedures_on_stdout_the_rest_on_stderr(kitchen: str) -> None:
    result = bake(kitchen, "--set", "questions=true", "--set", "examples=true")
    assert result.exit_code == 0
    steps, used = result.stdout.split("\nProcedures used:\n")
    assert re.fullmatch(r"(\d+\. .+\n)+", steps)
    assert re.fullmatch(r"(  \d\.\d\d  .+\n)+", used)
    assert {line[8:] for line in used.splitlines()} <= {procedure.output for procedure in PROCEDURES}
    *progress, warning = result.stderr.splitlines()
    assert all(PROGRESS.fullmatch(line) for line in progress)
    assert [line.split()[2] for line in progress].count("answer") == 4
    assert warning.startswith("warning: no language model wrote this")


def test_json(kitchen: str) -> None:
    result = bake(kitchen, "--json", "--set", "paper=true")
    told = json.loads(result.stdout)
    assert set(told) == OUTPUT_KEYS
    assert told["answer"].startswith(f"1. {told['steps'][0]}")
    assert (result.exit_code, told["usage"]["calls"] >= 8) == (0, True)


def test_quiet(kitchen: str) -> None:
    result = bake(kitchen, "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("1. ")


def settings(*values: str) -> list[str]:
    return [part for value in values for part in ("--set", value)]


def test_settings(kitchen: str) -> None:
    given = settings(
        "k=1",
        "examples=true",
        "questions=true",
        "n_questions=2",
        "critic=false",
        'node_models={"draft": "extractive"}',
        "alpha=0",
    )
    told = json.loads(bake(kitchen, "--json", *given).stdout)
    assert [len(asked["evidence"]) <= 1 for asked in told["questions"]] == [True, True]
    assert sorted(told["usage"]["nodes"]) == ["answer", "draft", "revise", "to_query"]


@pytest.mark.parametrize("command", [["aag"], ["run", "aag"]])
def test_aag_answers_from_a_source_beside_its_memory(
    kitchen: str, tmp_path: Path, command: list[str]
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "rye.md").write_text(
        "# Rye\n\nRye flour makes the dough of a rye bread sticky.\n", encoding="utf-8"
    )
    given = [GOAL["question"], "--memory", kitchen, "--from", f"corpus:{notes}", "--json"]
    told = json.loads(stepcraft(*command, *given).stdout)
    assert any("rye.md" in found["source"] for found in told["evidence"])
    assert {found["id"] for found in told["evidence"]} & {procedure.id for procedure in PROCEDURES}


def test_graphs_lists_each_in_a_line() -> None:
    lines = stepcraft("graphs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("aag", "rat", "rpg", "direct", "cot", "rag", "few_shot", "react")
    ]
    assert all(len(line) > 20 for line in lines)


@pytest.mark.parametrize("graph", ["direct", "cot", "rag", "few_shot", "react", "rat", "rpg"])
def test_run(kitchen: str, graph: str) -> None:
    spec = ["--from", f"memory:{kitchen}"] if graph in {"rag", "react", "rat", "rpg"} else []
    spec = ["--memory", kitchen] if graph == "few_shot" else spec
    result = stepcraft("run", graph, GOAL["question"], *spec, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["answer"]
    assert {"answer", "evidence", "warnings", "usage"} <= set(told)
    assert {used["id"] for used in told["evidence"]} <= {procedure.id for procedure in PROCEDURES}


def test_run_shows_its_steps_and_what_it_rests_on(kitchen: str) -> None:
    result = stepcraft("run", "few_shot", GOAL["question"], "--memory", kitchen, "--set", "k=2")
    assert re.fullmatch(r"(?s).+\n\nExamples:\n(  0\.00  .+\n){2}", result.stdout)
    assert [line.split()[2:] for line in result.stderr.splitlines()[:3]] == [
        ["begin"],
        ["sample", "2", "examples"],
        ["answer"],
    ]


@pytest.mark.parametrize(("graph", "status"), [("rag", 0), ("react", 1)])
def test_strict(kitchen: str, graph: str, status: int) -> None:
    result = stepcraft("run", graph, GOAL["question"], "--memory", kitchen, "--strict")
    assert result.exit_code == status
    if status:
        assert "--strict asks for all of it: the model takes no tools" in result.stderr


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere/page.html", "there is no folder {folder}/nowhere; create it first"),
        ("", "Is a directory; name a file"),
    ],
)
def test_a_page_that_cannot_be_written(tmp_path: Path, name: str, reason: str) -> None:
    html = tmp_path / name
    result = stepcraft("run", "cot", "x", "--html", str(html))
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert last == f"stepcraft: {html} cannot be written: {reason.format(folder=tmp_path)}"


@pytest.mark.parametrize(("graph", "sections"), [("cot", ["answer"]), ("rag", ["answer", "evidence"])])
def test_the_page_of_a_baseline(kitchen: str, tmp_path: Path, graph: str, sections: list[str]) -> None:
    spec = ["--from", f"memory:{kitchen}"] if graph == "rag" else []
    html = tmp_path / "page.html"
    result = stepcraft("run", graph, GOAL["question"], *spec, "--html", str(html))
    assert result.exit_code == 0, result.stderr
    seen = Reader(html.read_text("utf-8"))
    assert [part.attributes["id"] for part in seen.all("section")] == ["warnings", *sections, "cost"]
    assert seen.texts("h1") == [GOAL["question"]]


def test_the_memory_of_the_environment(kitchen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRAFT_MEMORY", kitchen)
    told = json.loads(stepcraft("aag", GOAL["question"], "--json").stdout)
    assert {used["id"] for used in told["evidence"]} <= {procedure.id for procedure in PROCEDURES}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["aag", ""], "the question is empty; say what is wanted"),
        (["aag", " \n\t "], "the question is empty; say what is wanted"),
        (["aag", "x" * 60_000], "question has 60,000 characters; at most 50,000 are taken, so shorten it"),
        (
            ["aag", "x", "--set", "max_update=1"],
            "there is no setting 'max_update'; did you mean 'max_updates'?",
        ),
        (["aag", "x", "--set", "zzz=1"], "there is no setting 'zzz'; there are model, "),
        (["aag", "x", "--set", "k=0"], "k='0' cannot be used: it should be greater than or equal to 1"),
        (["aag", "x", "--set", "k=many"], "k='many' cannot be used: it should be a valid integer"),
        (["aag", "x", "--set", "k"], "--set 'k' has no value; write --set field=value"),
        (["aag", "x", "--set", "node_models={"], "node_models='{' cannot be used"),
        (["aag", "x", "--set", 'node_models={"critics": "extractive"}'], "node_models names 'critics'"),
        (["aag", "x", "--model", "nosuch:model"], "the model 'nosuch:model' cannot be used"),
        (["aag", "x", "--model", "nosuch"], "the model 'nosuch' cannot be used"),
        (["aag", "x", "--model", "openai:gpt-5-mini"], "the model 'openai:gpt-5-mini' cannot be used"),
        (["aag", "x", "--memory", "/no/such.jsonl"], "there is no file /no/such.jsonl"),
        (["aag", "x", "--memory", "redis://x"], "no memory goes by redis:"),
        (["aag", "x", "--memory", "store:"], "store: names LangGraph's store"),
        (["draw", "aga"], "there is no graph 'aga'; did you mean 'rag'? there is aag, rat, rpg, direct"),
        (["run", "nosuch", "x"], "there is no graph 'nosuch'; there is aag, rat, rpg, direct"),
        (["run", "direct", "x", "--from", "memory"], "direct takes no --from, for it searches nothing"),
        (["run", "rat", "x", "--memory", "m.db"], "rat takes no --memory, for it searches nothing"),
        (["run", "aag", "x", "--kind", "short"], "aag takes no --kind; leave it out"),
        (["run", "rpg", "x", "--using", "y"], "rpg takes no --using; leave it out"),
        (["run", "direct", "x", "--kind", "brief"], "kind='brief' cannot be used: it should be one of long"),
        (["run", "direct", " "], "the question is empty; say what is wanted"),
        (["run", "rag", "x", "--set", "k=0"], "k='0' cannot be used: it should be greater than or equal"),
        (["run", "rag", "x", "--from", "nosuch"], "'nosuch' is no source of evidence; name corpus:PATH"),
        (["run", "few_shot", "x", "--memory", "/no.jsonl"], "there is no file /no.jsonl"),
        (
            ["run", "few_shot", "x", "--set", "seed=abc"],
            "seed='abc' cannot be used: it should be a valid int",
        ),
        (["run", "react", "x", "--set", "max_searches=0"], "max_searches='0' cannot be used"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], sentence: str) -> None:
    result = stepcraft(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith(f"stepcraft: {sentence}")


def test_a_missing_key_says_which(kitchen: str) -> None:
    assert "OPENAI_API_KEY" in bake(kitchen, "--model", "openai:gpt-5-mini").stderr


@pytest.mark.parametrize("arguments", [[], ["aag"], ["aag", "x", "--bogus"], ["nosuch"], ["draw"]])
def test_wrong_use_is_status_2(arguments: list[str]) -> None:
    result = stepcraft(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.output


def test_odd_arguments_are_cleaned(kitchen: str) -> None:
    goal = "bake \x1b[31m\udcffbread\u202e"
    result = stepcraft("aag", goal, "--memory", kitchen, "--json", "--set", "questions=false")
    assert result.exit_code == 0
    assert not set("\x1b\udcff\u202e") & set(result.output)


@pytest.mark.parametrize("graph", ["rat", "rpg", "direct", "cot", "rag", "few_shot", "react"])
def test_draw_any(graph: str) -> None:
    assert "  begin -" in stepcraft("draw", graph, "--xray").stdout


def test_draw() -> None:
    plain = stepcraft("draw", "aag")
    assert plain.exit_code == 0
    for node in ("draft", "to_query", "retrieve", "answer", "revise", "critic", "edit"):
        assert f"  {node} -" in plain.stdout
    assert "subgraph step" in stepcraft("draw", "rat", "--xray").stdout
    assert "subgraph" not in stepcraft("draw", "rat").stdout


def test_version() -> None:
    result = stepcraft("--version")
    assert (result.exit_code, result.stdout) == (0, f"{version('stepcraft')}\n")
