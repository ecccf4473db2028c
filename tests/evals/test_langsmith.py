"""`--langsmith`: what is uploaded, and that nothing is sent without it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepcraft import RunStopped
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.langsmith import upload
from tests.evals.asked import number_in
from tests.evals.runs import DIRECT, KEY, WARM, questions, run, stepcraft
from tests.servers.langsmith_server import LangSmithServer

METHODS = [DIRECT, WARM]


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangSmithServer]:
    from langsmith.utils import get_env_var  # noqa: PLC0415 - has a cache

    with LangSmithServer() as server:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
        get_env_var.cache_clear()
        yield server
    get_env_var.cache_clear()


def reply(_node: str, prompt: str) -> Any:
    return RuntimeError("no such luck") if number_in(prompt) == "1" else f"2 {KEY}"


def test_each_method_is_an_experiment_in_one_call(
    langsmith: LangSmithServer, tmp_path: Path
) -> None:
    run(tmp_path, reply, methods=METHODS)
    names = upload(tmp_path, "team")
    first, second = langsmith.list("experiments")
    assert [first["experiment_name"], second["experiment_name"]] == names
    settings = {"model": "ScriptedModel", "temperature": 1.0}
    assert second["experiment_metadata"]["settings"] == settings
    rows_of = [{row["row_id"] for row in each["results"]} for each in (first, second)]
    assert rows_of[0] == rows_of[1]
    rows = {row["inputs"]["question"]: row for row in first["results"]}
    right = rows["Question 2?"]
    assert (right["expected_outputs"]["answers"], right["run_name"]) == (["2"], "direct")
    assert {"key": "exact match", "score": 0.0} in right["evaluation_scores"]
    assert first["experiment_start_time"] <= right["start_time"] <= right["end_time"]
    assert (rows["Question 1?"]["error"] or "").startswith("NoAnswer")
    traces = {each["trace"] for each in read_outcomes(tmp_path) if each["method"] == "direct"}
    assert {row["run_metadata"]["trace"] for row in first["results"]} == traces
    assert KEY not in repr(langsmith.kept), "secrets are masked"


def test_an_upload_that_is_refused(langsmith: LangSmithServer, tmp_path: Path) -> None:
    run(tmp_path)
    langsmith.refused_key = True
    with pytest.raises(RunStopped, match=r"did not take 'direct'.*check LANGSMITH_API_KEY"):
        upload(tmp_path, "team")


def keyless(folder: Path) -> str:
    """The command of an evaluation of one question without a model."""
    return f"run {questions(folder, 1)} --methods direct --into {folder / 'run'} --allow-keyless"


def test_the_command_sends_nothing_without_the_option(
    langsmith: LangSmithServer, tmp_path: Path
) -> None:
    command = keyless(tmp_path)
    ran = stepcraft(command)
    assert (ran.exit_code, langsmith.requests) == (0, []), ran.output
    sent = stepcraft(f"{command} --langsmith team")
    assert sent.exit_code == 0, sent.output
    assert len(langsmith.list("experiments")) == 1
