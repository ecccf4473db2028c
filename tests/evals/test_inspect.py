"""Methods in inspect_ai."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepcraft.errors import NoAnswer
from stepcraft.evals.methods import AnyMethod, Method, OwnMethod
from tests.evals.asked import number_in, samples
from tests.evals.runs import run
from tests.scripted import ScriptedModel

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

# inspect_ai leaves a stream of its hooks open for each sample (`inspect_ai.hooks._hooks`).
pytestmark = pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning")


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect those streams here, where the warning is ignored, and not in a later test."""
    pytest.importorskip("inspect_ai")  # takes a second, for which other tests need not wait
    yield
    gc.collect()


def number(_node: str, prompt: str) -> str:
    return "no idea" if number_in(prompt) == "1" else number_in(prompt)


def evaluated(folder: Path, method: AnyMethod) -> EvalLog:
    import inspect_ai  # noqa: PLC0415 - as above

    from stepcraft.evals.inspect import task  # noqa: PLC0415 - as above

    [log] = inspect_ai.eval(
        task(method, samples(4)), model="none/none", log_dir=str(folder), display="none"
    )
    return log


def test_a_task_has_the_same_answers_and_scores_as_an_evaluation(tmp_path: Path) -> None:
    method = Method("direct", "direct", options={"model": ScriptedModel(number)})
    log = evaluated(tmp_path / "logs", method)
    assert log.status == "success", log.error
    assert log.results
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means["exact match"] == 0.75
    theirs = {each.id: each for each in log.samples or ()}
    for mine in run(tmp_path / "ours", number, 4):
        logged = theirs[mine["id"]]
        assert all(logged.store[name] == mine[name] for name in ("output", "usage"))
        assert logged.output.completion == mine["output"]["answer"]
        assert logged.output.model == "ScriptedModel"
        assert (logged.scores or {})["score_output"].value == mine["scores"]


def test_a_run_without_an_answer_scores_as_in_an_evaluation(tmp_path: Path) -> None:
    def answer(given: dict[str, str]) -> str:
        if number_in(given["question"]) == "1":
            raise NoAnswer("nothing was found")
        return number_in(given["question"]).replace("2", "")

    method = OwnMethod("mine", answer)
    log = evaluated(tmp_path / "logs", method)
    assert log.status == "success", log.error
    theirs = {each.id: (each.scores or {})["score_output"].value for each in log.samples or ()}
    ours = run(tmp_path / "ours", asked=4, methods=[method])
    assert theirs == {each["id"]: each["scores"] for each in ours}
    assert [each["scores"]["exact match"] for each in ours] == [1, 0, 0, 1]


def test_steps_without_an_answer_are_the_completion(tmp_path: Path) -> None:
    method = OwnMethod("mine", lambda _given: {"steps": ["Mix.", "Bake."]})
    [first, *_] = evaluated(tmp_path, method).samples or ()
    assert (first.output.completion, first.output.model) == ("Mix.\nBake.", "none")
