"""`--langsmith`: what is uploaded, that nothing is uploaded twice, and that nothing is sent without it."""

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
from stepcraft.evals.langsmith_upload import LangSmith
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


def test_the_dataset_an_experiment_a_method_and_the_scores(
    langsmith: LangSmithServer, tmp_path: Path
) -> None:
    run(tmp_path)
    assert LangSmith("team").upload(tmp_path, samples(3)) == 6
    [dataset] = langsmith.list("datasets")
    assert dataset["name"].startswith("team ")
    examples = {one["inputs"]["question"]: one for one in langsmith.list("examples")}
    assert examples["Question 2?"]["outputs"] == {"answers": ["2"]}
    experiments = {one["id"]: one for one in langsmith.list("sessions")}
    assert [one["reference_dataset_id"] for one in experiments.values()] == [dataset["id"]] * 2
    assert {
        one["extra"]["metadata"]["settings"].get("temperature") for one in experiments.values()
    } == {
        None,
        1.0,
    }
    assert all(one["end_time"] for one in experiments.values())
    runs = langsmith.list("runs")
    assert {one["reference_example_id"] for one in runs} == {one["id"] for one in examples.values()}
    assert {one["session_id"] for one in runs} == set(experiments)
    traces = {one["trace"] for one in read_outcomes(tmp_path)}
    assert {one["extra"]["metadata"]["trace"] for one in runs} == traces
    scores = {(one["run_id"], one["key"]): one["score"] for one in langsmith.list("feedback")}
    assert all(scores[one["id"], "exact match"] == 0.0 for one in runs)
    assert "opensesame" not in repr(langsmith.kept), "secrets are masked"


def test_nothing_is_uploaded_twice(langsmith: LangSmithServer, tmp_path: Path) -> None:
    run(tmp_path, failing=True)
    langsmith.limit = 6
    with pytest.raises(
        RunStopped, match=r"did not take the evaluation .* start the same command again"
    ):
        LangSmith("team").upload(tmp_path, samples(3))
    langsmith.limit = None
    begun = len(langsmith.list("runs"))
    assert LangSmith("team").upload(tmp_path, samples(3)) == 6 - begun
    once = [one for one in langsmith.requests if one.endswith("200")]
    assert LangSmith("team").upload(tmp_path, samples(3)) == 0
    assert [one for one in langsmith.requests if one.endswith("200")] == once, (
        "nothing is even asked"
    )
    run(tmp_path, retry_errors=True)
    assert LangSmith("team").upload(tmp_path, samples(3)) == 2, "what was run again"
    assert len(langsmith.list("runs")) == 8


def test_a_kill_between_the_request_and_the_line_uploads_nothing_twice(
    langsmith: LangSmithServer, tmp_path: Path
) -> None:
    run(tmp_path)
    LangSmith("team").upload(tmp_path, samples(3))
    kept = {kind: sorted(found) for kind, found in langsmith.kept.items()}
    file = tmp_path / "langsmith.jsonl"
    file.write_text(file.read_text("utf-8").splitlines(keepends=True)[0])
    LangSmith("team").upload(tmp_path, samples(3))
    assert {kind: sorted(found) for kind, found in langsmith.kept.items()} == kept


def test_another_evaluation_of_the_samples_shares_the_dataset(
    langsmith: LangSmithServer, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        run(tmp_path / name)
        assert LangSmith("team").upload(tmp_path / name, samples(3)) == 6
    assert [len(langsmith.list(kind)) for kind in ("datasets", "examples", "sessions", "runs")] == [
        1,
        3,
        4,
        12,
    ]


def test_a_key_that_is_refused_and_none(
    langsmith: LangSmithServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langsmith.utils import get_env_var  # noqa: PLC0415

    run(tmp_path)
    langsmith.refused_key = True
    with pytest.raises(BadInput, match=r"refuses the key \(401\); check LANGSMITH_API_KEY"):
        LangSmith("team").upload(tmp_path, samples(3))
    monkeypatch.delenv("LANGSMITH_API_KEY")
    get_env_var.cache_clear()
    with pytest.raises(BadInput, match="needs a key for http"):
        LangSmith("team")


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
    assert len(langsmith.list("runs")) == 1


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
