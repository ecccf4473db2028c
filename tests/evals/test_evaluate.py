"""Evaluations into a directory: what is asked, what is kept, and what is refused."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepcraft import BadInput, RunStopped
from stepcraft.errors import NoAnswer
from stepcraft.evals.directory import read_configuration, read_outcomes, run_directory
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import OwnMethod, read_methods
from stepcraft.evals.progress import Budget, Progress
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.samples import Sample
from stepcraft.evals.summary import summarise
from tests.evals.asked import COUNT, number_in, samples
from tests.evals.runs import DIRECT, WARM, run, stopped
from tests.scripted import ScriptedModel

ROOT = Path(__file__).parents[2]
FLOUR = Sample(id="1", question="bake", resources="flour")


def three() -> ScriptedModel:
    return ScriptedModel(lambda *_: "3", latency=0.05)


def used_up(most: int, done: int, total: int) -> Any:
    reason = f"the budget of {most} calls is used up: {done} of {total} samples are done"
    return pytest.raises(RunStopped, match=reason)


def test_every_method_answers_every_sample_once(tmp_path: Path) -> None:
    model, seen = three(), list[Progress]()
    outcomes = run(tmp_path, model, 5, [DIRECT, WARM], concurrency=4, on_progress=seen.append)
    assert [outcome["method"] for outcome in outcomes] == [DIRECT.name, WARM.name] * 5
    assert [each["id"] for each in outcomes if each["scores"]["exact match"]] == ["3", "3"]
    assert (seen[-1].done, seen[-1].total, seen[-1].failed, seen[-1].calls) == (10, 10, 0, 10)
    assert run(tmp_path, model, 5, [DIRECT, WARM]) == outcomes
    assert len(model.calls) == 10


def test_a_budget_stops_it_and_the_rest_is_done_later(tmp_path: Path) -> None:
    model = three()
    for _ in range(2):
        with used_up(3, 3, 9):
            run(tmp_path, model, 9, budget=Budget(calls=3))
        assert len(model.calls) == 3, "where it is used up nothing is begun"
    run(tmp_path, model, 9, concurrency=4)
    assert len(model.calls) == 9
    assert len(run(tmp_path, model, 9, budget=Budget(calls=3))) == 9, "there is nothing to stop"


def test_samples_under_way_count_a_call_each(tmp_path: Path) -> None:
    model = three()
    with used_up(2, 2, 4):
        run(tmp_path / "less", model, 4, concurrency=4, budget=Budget(calls=2))
    assert len(model.calls) == 2
    run(tmp_path / "enough", model, 4, concurrency=4, budget=Budget(calls=4))
    assert len(model.calls) == 2 + 4


def test_a_budget_stops_the_retry_of_samples_that_failed(tmp_path: Path) -> None:
    is_failing, model = True, three()

    async def answer(given: Mapping[str, str]) -> str:
        reply = await model.ainvoke("?")
        if is_failing and number_in(given["question"]) > "1":
            raise RuntimeError("no such luck")
        return reply.text

    mine = OwnMethod("mine", answer)
    run(tmp_path, asked=6, methods=[mine])
    is_failing = False
    with used_up(8, 4, 6):
        run(tmp_path, asked=6, methods=[mine], retry_errors=True, budget=Budget(calls=8))
    assert len(model.calls) == 8


def test_a_sample_that_fails_costs_that_sample(tmp_path: Path) -> None:
    is_failing = True

    def reply(_node: str, prompt: str) -> Any:
        is_wrong = is_failing and number_in(prompt) == "1"
        return ValueError("no such luck") if is_wrong else number_in(prompt)

    model = ScriptedModel(reply)
    first = run(tmp_path, model)
    assert ["no such luck" in outcome["error"] for outcome in first] == [False, True, False]
    assert set(first[1]["scores"].values()) == {0}
    text = markdown(summarise(tmp_path))
    assert "| direct | ScriptedModel | 0.667" in text, "no answer is a wrong one"
    assert (
        "direct gave no answer to 1 of 3 samples, which count as wrong; `--retry-errors` runs them "
        "again. Most often: NoAnswer" in text
    )
    is_failing, calls = False, len(model.calls)
    assert run(tmp_path, model)[1]["error"] == first[1]["error"]
    again = run(tmp_path, model, retry_errors=True)
    assert [outcome["error"] for outcome in again] == ["", "", ""]
    assert len(model.calls) == calls + 1


async def wait_for_a_cancelled_task() -> None:
    task = asyncio.create_task(asyncio.sleep(9))
    task.cancel()
    await task


@pytest.mark.parametrize("place", ["method", "score"])
def test_a_task_that_was_cancelled_within_a_sample_costs_that_sample(
    tmp_path: Path, place: str
) -> None:
    async def answer(given: Mapping[str, str]) -> str:
        if place == "method" and number_in(given["question"]) == "1":
            await wait_for_a_cancelled_task()
        return "3"

    async def score(sample: Sample, _output: Mapping[str, Any]) -> dict[str, float]:
        if place == "score" and sample["id"] == "1":
            await wait_for_a_cancelled_task()
        return {"length": 1.0}

    outcomes = run(tmp_path, asked=4, methods=[OwnMethod("mine", answer)], scorers=[score])
    reason = "RuntimeError: a task that it awaited was cancelled"
    assert [reason in each["error"] for each in outcomes] == [False, True, False, False]


def test_an_evaluation_that_is_cancelled_records_no_failures(tmp_path: Path) -> None:
    async def cancel() -> None:
        began = asyncio.Event()

        async def answer(_: object) -> None:
            began.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(evaluate([OwnMethod("mine", answer)], samples(3), tmp_path))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert not list(read_outcomes(tmp_path))


def test_samples_that_are_missing_are_said(tmp_path: Path) -> None:
    async def cancel_all(_sample: Sample, _output: Mapping[str, Any]) -> dict[str, float]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return {}

    reason = "the rest was cancelled: 0 of 3 samples are done; start the same command again"
    with pytest.raises(RunStopped, match=reason):
        run(tmp_path, scorers=[cancel_all])


def test_an_output_that_cannot_be_scored_is_kept_and_scored_later(tmp_path: Path) -> None:
    is_failing = True

    def score(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
        if is_failing and sample["id"] == "1":
            raise ValueError("no scale")
        return {"length": float(len(output["answer"]))}

    model, seen = three(), list[Progress]()
    first = run(tmp_path, model, scorers=[score])
    reason = "it could not be scored: ValueError: no scale"
    assert [outcome["error"] for outcome in first] == ["", reason, ""]
    assert first[1]["output"]["answer"] == "3"
    is_failing = False
    options: Any = {"retry_errors": True, "budget": Budget(calls=3), "on_progress": seen.append}
    again = run(tmp_path, model, scorers=[score], **options)
    assert [(each["error"], each["scores"]) for each in again] == [("", {"length": 1.0})] * 3
    assert (len(model.calls), seen[-1].calls, seen[-1].failed) == (3, 3, 0)


def test_a_score_that_is_no_finite_number_is_an_error_of_the_sample(tmp_path: Path) -> None:
    def scorer(_sample: Sample, _output: Mapping[str, Any]) -> dict[str, float]:
        return {"similarity": float("nan")}

    [outcome] = stopped(tmp_path, "finite number", asked=1, scorers=[scorer])
    assert outcome["error"].startswith("it could not be scored: ValidationError: ")
    assert "similarity\n  Input should be a finite number" in outcome["error"]
    assert outcome["scores"] == {}


def kept(directory: Path) -> list[str]:
    """The ids of the samples that are finished, without an error."""
    outcomes = list(read_outcomes(directory))
    assert not any(outcome["error"] for outcome in outcomes)
    return [outcome["id"] for outcome in outcomes]


def finish(directory: Path) -> list[str]:
    """Finish in this process what another one began; return what is asked here."""
    model = ScriptedModel(lambda _, prompt: number_in(prompt))
    run(directory, model, COUNT)
    assert sorted(map(int, kept(directory))) == list(range(COUNT))
    return [number_in(call.prompt) for call in model.calls]


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    command = [sys.executable, "-m", "tests.evals.asked", str(tmp_path / "run"), str(calls)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        while process.poll() is None:
            if calls.exists() and calls.read_bytes().count(b"\n") >= 7:
                process.send_signal(signal.SIGKILL)
                break
        assert process.wait(60) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
    asked = Counter([*calls.read_text("ascii").split(), *finish(tmp_path / "run")])
    assert len(asked) == COUNT
    assert asked.total() - COUNT <= 4, "only what was under way at the kill is asked again"


def test_a_disk_that_is_full_stops_it_and_nothing_is_lost(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limits[1]))
    try:
        with pytest.raises(RunStopped, match="cannot be written"):
            run(tmp_path, lambda *_: "a long answer", COUNT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    before = kept(tmp_path)
    assert 0 < len(before) < COUNT
    assert len(finish(tmp_path)) == COUNT - len(before)


def test_questions_and_methods_are_added_and_what_is_done_stays(tmp_path: Path) -> None:
    model = three()
    first = run(tmp_path, model, 2)
    assert run(tmp_path, model, 3)[:2] == first
    assert len(model.calls) == 3
    outcomes = run(tmp_path, model, 3, [WARM])
    assert len(model.calls) == 6
    assert list(read_configuration(tmp_path)["methods"]) == [DIRECT.name, WARM.name]
    assert {each.method: each.samples for each in summarise(tmp_path).methods} == {
        DIRECT.name: 3,
        WARM.name: 3,
    }
    assert run(tmp_path, model, 3, [WARM, DIRECT])[::2] == outcomes


def test_another_method_or_question_of_the_same_name_is_refused(tmp_path: Path) -> None:
    run(tmp_path, asked=2)
    other = replace(WARM, name=DIRECT.name)
    with pytest.raises(BadInput, match="has answers of direct with other settings; name another"):
        run(tmp_path, asked=2, methods=[other])
    shifted = [Sample(id="1", question="Something else?"), *samples(1)]
    with pytest.raises(
        BadInput, match=r"another question with the id '1'.*add new ones at the end"
    ):
        run(tmp_path, asked=shifted)


def test_answers_that_could_not_be_scored_are_not_scored_as_those_of_another_method(
    tmp_path: Path,
) -> None:
    def fail(_sample: Sample, _output: object) -> dict[str, float]:
        raise RuntimeError("no sandbox")

    model = three()
    stopped(tmp_path, "no sandbox", script=model, asked=2, scorers=[fail])
    with pytest.raises(BadInput, match="has answers of direct with other settings; name another"):
        run(tmp_path, asked=2, methods=[replace(WARM, name=DIRECT.name)])
    assert not any(each["error"] for each in run(tmp_path, model, 2))
    assert len(model.calls) == 2


def test_what_is_right_may_change_and_nothing_is_asked_again(tmp_path: Path) -> None:
    model, seen = three(), list[Progress]()
    run(tmp_path, model, 2)
    corrected = [Sample(id="0", question="Question 0?", answers=["3"]), *samples(2)[1:]]
    for _ in range(2):
        first, second = run(tmp_path, model, corrected, on_progress=seen.append)
        assert (first["scores"]["exact match"], second["scores"]["exact match"]) == (1, 0)
    assert (len(model.calls), seen[-1].calls) == (2, 2)


def test_a_run_without_an_answer_stays_wrong_when_the_right_answer_is_added(
    tmp_path: Path,
) -> None:
    answers = ["0", "", ""]
    method = OwnMethod("mine", lambda given: answers[int(number_in(given["question"]))])
    asked = [Sample(id=str(number), question=f"Question {number}?") for number in range(3)]
    run(tmp_path, asked=asked, methods=[method])
    for _ in range(2):
        outcomes = run(tmp_path, methods=[method])
        assert [each["scores"]["exact match"] for each in outcomes] == [1, 0, 0]
    assert len(list(read_outcomes(tmp_path))) == 6
    answers[1:] = ["1", ""]
    others = [Sample(id=each["id"], question=each["question"], answers=["1"]) for each in asked]
    outcomes = run(tmp_path, asked=others, methods=[method], retry_errors=True)
    assert [each["scores"]["exact match"] for each in outcomes] == [0, 1, 0]


@pytest.mark.parametrize(("asked", "count"), [(9, "the first 5"), (2, "all 2")])
def test_a_method_that_fails_for_one_reason_stops_it(
    tmp_path: Path, asked: int, count: str
) -> None:
    mine = OwnMethod("mine", lambda _: 1 / 0)
    outcomes = stopped(
        tmp_path, f"mine failed on {count} samples: ZeroDivisionError", asked=asked, methods=[mine]
    )
    assert len(outcomes) == min(5, asked)
    mended = OwnMethod("mine", lambda _: "3", settings={"mended": True})
    assert not any(each["error"] for each in run(tmp_path, asked=asked, methods=[mended]))


def test_a_method_that_never_answers_ends_it_with_the_reason(tmp_path: Path) -> None:
    def give_up(_: object) -> str:
        raise NoAnswer("nothing was found")

    mine = OwnMethod("mine", give_up)
    reason = "mine failed on all 7 samples: NoAnswer: nothing was found"
    assert len(stopped(tmp_path, reason, asked=7, methods=[mine])) == 7


@pytest.mark.parametrize(
    "empty", ["", " \n", {"answer": ""}, {"answer": []}, {"answer": None, "steps": []}]
)
def test_an_empty_answer_is_none(tmp_path: Path, empty: object) -> None:
    def answer(given: Mapping[str, str]) -> object:
        return {"answer": "", "steps": ["Stir."]} if number_in(given["question"]) == "0" else empty

    run(tmp_path, asked=3, methods=[OwnMethod("mine", answer)])
    [method] = summarise(tmp_path).methods
    assert (method.samples, method.unanswered, method.failed) == (3, 2, 0)


def test_who_gives_up_does_not_win(tmp_path: Path) -> None:
    def answer(given: Mapping[str, str]) -> str:
        number = number_in(given["question"])
        if int(number) >= 10:
            raise NoAnswer("too hard")
        return number

    def guess(given: Mapping[str, str]) -> str:
        number = number_in(given["question"])
        return number if int(number) % 3 else "no idea"

    methods = [OwnMethod("worker", guess), OwnMethod("quitter", answer)]
    run(tmp_path, asked=30, methods=methods)
    summary = summarise(tmp_path)
    means = {it.method: it.scores["exact match"].mean for it in summary.methods}
    assert means == {"worker": 20 / 30, "quitter": 10 / 30}
    assert [it.unanswered for it in summary.methods] == [0, 20]
    assert "quitter gave no answer to 20 of 30 samples, which count as wrong" in markdown(summary)


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(BadInput, match=r"holds other files, such as 'thesis\.tex'"):
        run(tmp_path)


def test_two_runs_into_one_directory_at_once_are_refused(tmp_path: Path) -> None:
    with run_directory(tmp_path, {"methods": {}}), pytest.raises(BadInput, match="is running into"):
        run(tmp_path)


def test_an_answer_is_kept_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_KEYRING_PROVIDER_TOKEN", "import langsmith")
    [outcome] = run(tmp_path, lambda *_: "Write import langsmith.", 1)
    assert outcome["output"]["answer"] == "Write import langsmith."


def test_an_effect_and_none(tmp_path: Path) -> None:
    def right(given: Mapping[str, str]) -> str:
        number = number_in(given["question"])
        return number if int(number) % 4 else "no idea"

    methods = [OwnMethod("right", right)]
    methods += [OwnMethod(name, lambda _: "no idea at all") for name in ("base", "same")]
    run(tmp_path, asked=24, methods=methods)
    summary = summarise(tmp_path, "base")
    text = markdown(summary)
    better = "right is better than base in exact match (+0.750, p < 0.001, 24 samples)"
    assert better in text
    same = "No difference in exact match, F1 and occurs could be shown between same and base."
    assert same in text
    assert [each.method for each in summary.methods] == ["right", "base", "same"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rta", "there is no graph 'rta'"),
        ("", "there is no graph ''"),
        ("rat:ronds=1", "ronds\n.*not permitted"),
        ("rat:rounds=99", "rounds\n.* less than or equal"),
        ("rat:rounds", "there is no graph 'rat:rounds'"),
    ],
)
def test_methods_that_cannot_be_used(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_methods(text, {})


def test_methods_take_what_they_have() -> None:
    model, searched = {"model": "openai:x"}, {"sources": ["corpus:docs"], "memory": "a.jsonl"}
    methods = read_methods(
        "direct,rag:k=7:temperature=0,rat:rounds=1:finish=code,aag",
        {**model, **searched, "temperature": 1},
    )
    assert [dict(method.settings) for method in methods] == [
        {"temperature": 1},
        {"temperature": "0", "k": "7"},
        {"temperature": 1, "rounds": "1", "finish": "code"},
        {"temperature": 1},
    ]
    assert [method.options for method in methods] == [model, *[{**model, **searched}] * 3]
    settings = methods[2].context().model_dump(include={"rounds", "finish"})
    assert settings == {"rounds": 1, "finish": "code"}
    assert methods[3].input(FLOUR) == {"question": "bake", "resources": "flour"}
    assert methods[2].input(FLOUR) == {"question": "bake (with flour)"}


def test_what_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="two methods or two samples"):
        run(tmp_path, methods=[DIRECT, DIRECT])
    with pytest.raises(BadInput, match="two methods or two samples"):
        run(tmp_path, asked=samples(1) * 2)
