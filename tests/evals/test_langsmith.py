"""`--langsmith`: what is uploaded, and that nothing is sent without it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft import BadInput, RunStopped
from stepcraft.cli import app
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.langsmith import upload
from stepcraft.evals.methods import Method
from tests.evals.asked import samples
from tests.scripted import ScriptedModel
from tests.servers.langsmith_server import LangSmithServer

METHODS = [
    Method("direct", "direct"),
    Method("direct:temperature=1", "direct", {"temperature": 1.0}),
]


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangSmithServer]:
    from langsmith.utils import get_env_var  # noqa: PLC0415 - its cache holds what other tests had set

    with LangSmithServer() as server:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "opensesame-opensesame")
        get_env_var.cache_clear()
        yield server
    get_env_var.cache_clear()


def run(directory: Path, *, failing: bool = False, **options: Any) -> None:
    def reply(_node: str, prompt: str) -> Any:
        return (
            RuntimeError("no such luck")
            if failing and "Question 1?" in prompt
            else "2 opensesame-opensesame"
        )

    model = ScriptedModel(reply)
    methods = [replace(method, options={"model": model}) for method in METHODS]
    asyncio.run(evaluate(methods, samples(3), directory, **options))


def test_each_method_is_an_experiment_in_one_call(
    langsmith: LangSmithServer, tmp_path: Path
) -> None:
    run(tmp_path, failing=True)
    names = upload(tmp_path, "team")
    assert [one["experiment_name"] for one in langsmith.list("experiments")] == names
    first, second = langsmith.list("experiments")
    assert first["dataset_name"] == second["dataset_name"]
    assert [one["experiment_metadata"]["settings"] for one in (first, second)] == [
        {"model": "ScriptedModel"},
        {"model": "ScriptedModel", "temperature": 1.0},
    ]
    assert {row["row_id"] for row in first["results"]} == {
        row["row_id"] for row in second["results"]
    }
    rows = {row["inputs"]["question"]: row for row in first["results"]}
    right = rows["Question 2?"]
    assert (right["expected_outputs"]["answers"], right["run_name"]) == (["2"], "direct")
    assert {"key": "exact match", "score": 0.0} in right["evaluation_scores"]
    assert first["experiment_start_time"] <= right["start_time"] <= right["end_time"]
    assert (rows["Question 1?"]["error"] or "").startswith("NoAnswer")
    traces = {one["trace"] for one in read_outcomes(tmp_path) if one["method"] == "direct"}
    assert {row["run_metadata"]["trace"] for row in first["results"]} == traces
    assert "opensesame" not in repr(langsmith.kept), "secrets are masked"


def test_an_upload_that_is_refused_and_one_without_a_key(
    langsmith: LangSmithServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langsmith.utils import get_env_var  # noqa: PLC0415

    run(tmp_path)
    langsmith.refused_key = True
    with pytest.raises(RunStopped, match=r"did not take 'direct'.*check LANGSMITH_API_KEY"):
        upload(tmp_path, "team")
    monkeypatch.delenv("LANGSMITH_API_KEY")
    get_env_var.cache_clear()
    with pytest.raises(BadInput, match="needs a key; set LANGSMITH_API_KEY"):
        upload(tmp_path, "team")


def keyless(folder: Path) -> list[str]:
    """The command of an evaluation of one question without a model."""
    file = folder / "questions.jsonl"
    file.write_text('{"question": "How do I pause a graph?", "contains": ["interrupt"]}\n')
    return [
        *("eval", "run", str(file), "--methods", "direct"),
        *("--into", str(folder / "run"), "--allow-keyless"),
    ]


def test_the_command_sends_nothing_without_the_option(
    langsmith: LangSmithServer, tmp_path: Path
) -> None:
    command = keyless(tmp_path)
    ran = CliRunner().invoke(app, command)
    assert (ran.exit_code, langsmith.requests) == (0, []), ran.output
    sent = CliRunner().invoke(app, [*command, "--langsmith", "team"])
    assert sent.exit_code == 0, sent.output
    assert len(langsmith.list("experiments")) == 1


def test_tracing_that_leads_nowhere_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langsmith.utils import get_env_var  # noqa: PLC0415

    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    get_env_var.cache_clear()
    command = keyless(tmp_path)
    ran = CliRunner().invoke(app, command)
    get_env_var.cache_clear()
    assert ran.exit_code == 0, ran.output
