"""Methods in inspect_ai, and its logs as an evaluation."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")

import inspect_ai
from inspect_ai.log import EvalLog

from stepcraft.evals.directory import read_configuration, read_outcomes
from stepcraft.evals.inspect import import_logs, task
from stepcraft.evals.methods import Method
from stepcraft.evals.summary import summarise
from tests.evals.asked import number_in, samples
from tests.evals.runs import run
from tests.scripted import ScriptedModel


def number(_node: str, prompt: str) -> str:
    return "no idea" if number_in(prompt) == "1" else number_in(prompt)


def evaluated(folder: Path, method: Method, **options: Any) -> EvalLog:
    [log] = inspect_ai.eval(
        task(method, samples(4), **options),
        model="none/none",
        log_dir=str(folder),
        display="none",
    )
    return log


@pytest.mark.filterwarnings("ignore")
def test_the_round_trip_has_the_same_answers_and_scores(tmp_path: Path) -> None:
    method = Method("direct", "direct", options={"model": ScriptedModel(number)})
    log = evaluated(tmp_path / "logs", method)
    assert log.status == "success", log.error
    assert log.results
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means["exact match"] == 0.75
    other = evaluated(tmp_path / "logs", method, name="again")
    import_logs([log.location, other.location], tmp_path / "run")
    theirs = {(each["method"], each["id"]): each for each in read_outcomes(tmp_path / "run")}
    assert len(theirs) == 8
    for mine in run(tmp_path / "ours", number, 4):
        read = theirs["direct", mine["id"]]
        assert all(read[name] == mine[name] for name in ("output", "scores", "usage"))
        assert read["sample"]["question"] == mine["sample"]["question"]
    assert list(read_configuration(tmp_path / "run")["methods"]) == ["direct", "again"]
    import_logs([log.location, other.location], tmp_path / "run")
    assert len(list(read_outcomes(tmp_path / "run"))) == 8, "what is there stays"


@pytest.mark.filterwarnings("ignore")
def test_a_log_that_is_none_of_ours(tmp_path: Path) -> None:
    from inspect_ai import Task  # noqa: PLC0415
    from inspect_ai.dataset import Sample  # noqa: PLC0415
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: PLC0415
    from inspect_ai.scorer import includes  # noqa: PLC0415

    questions = [
        Sample(id="a", input="Say default.", target="Default"),
        Sample(id="b", input="Other?", target="x"),
    ]
    reply = ModelOutput.from_content("mockllm/model", "Default output")
    reply.usage = ModelUsage(input_tokens=7, output_tokens=2, total_tokens=9)
    [log] = inspect_ai.eval(
        Task(name="theirs", dataset=questions, scorer=includes(), epochs=2),
        model=get_model("mockllm/model", custom_outputs=[reply] * 4),
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    import_logs([log.location], tmp_path / "run")
    outcomes = {each["id"]: each for each in read_outcomes(tmp_path / "run")}
    assert sorted(outcomes) == ["a", "a#2", "b", "b#2"]
    assert (outcomes["a#2"]["sample"]["answers"], outcomes["a#2"]["sample"]["task"]) == (
        ["Default"],
        "a",
    )
    assert [outcomes[id_]["scores"]["includes"] for id_ in ("a", "b")] == [1.0, 0.0]
    assert outcomes["a"]["output"]["answer"].startswith("Default output")
    [method] = summarise(tmp_path / "run").methods
    assert (method.model, method.scores["includes"].mean) == ("mockllm/model", 0.5)
    assert (method.costs["tokens in"], method.costs["tokens out"]) == (7, 2)
