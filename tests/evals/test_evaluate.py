"""Evaluations into a directory: what is asked, what is kept, and what is refused."""

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

from stepcraft import BadInput, Procedure, RunStopped
from stepcraft.evals.directory import Outcome, read_outcomes, run_directory
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import Method, OwnMethod, read_methods
from stepcraft.evals.progress import Budget, Progress
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.samples import Sample, read_samples
from stepcraft.evals.summary import summarise
from stepcraft.memory.local import LocalMemory
from tests.evals.asked import samples
from tests.evals.judged import JudgeModel
from tests.scripted import ScriptedModel

ROOT = Path(__file__).parents[2]
DIRECT = Method("direct", "direct")
FLOUR = Sample(id="1", question="bake", resources="flour")


def answering(reply: Callable[[str, str], Any] = lambda *_: "3") -> ScriptedModel:
    return ScriptedModel(reply)


def run(
    directory: Path,
    model: ScriptedModel,
    given: list[Sample],
    methods: list[Method] | None = None,
    **options: Any,
) -> list[Outcome]:
    """The outcomes after an evaluation, in the order of samples and methods."""
    methods = [replace(method, options={"model": model}) for method in methods or [DIRECT]]
    asyncio.run(evaluate(methods, given, directory, **options))
    last = {(one["method"], one["id"]): one for one in read_outcomes(directory)}
    return [last[method.name, sample["id"]] for sample in given for method in methods]


def test_every_method_answers_every_sample_once(tmp_path: Path) -> None:
    model = answering()
    seen: list[Progress] = []
    methods = [DIRECT, Method("direct:temperature=1", "direct", {"temperature": 1.0})]
    outcomes = run(tmp_path / "run", model, samples(5), methods, on_progress=seen.append)
    assert [(one["method"], one["id"]) for one in outcomes] == [
        (method.name, str(number)) for number in range(5) for method in methods
    ]
    assert len(model.calls) == 10
    assert [one["scores"]["exact match"] for one in outcomes if one["id"] == "3"] == [1.0, 1.0]
    assert sum(one["scores"]["exact match"] for one in outcomes) == 2
    assert (seen[-1].done, seen[-1].total, seen[-1].failed, seen[-1].calls) == (10, 10, 0, 10)
    assert run(tmp_path / "run", model, samples(5), methods) == outcomes
    assert len(model.calls) == 10


def test_a_budget_stops_it_and_the_rest_is_done_later(tmp_path: Path) -> None:
    model = answering()
    with pytest.raises(
        RunStopped, match=r"the budget of 3 calls is used up: [34] of 9 samples are done"
    ):
        run(tmp_path, model, samples(9), concurrency=1, budget=Budget(calls=3))
    outcomes = run(tmp_path, model, samples(9), concurrency=1)
    assert len(outcomes) == len(model.calls) == 9


def test_a_budget_that_the_last_samples_use_up_stops_nothing(tmp_path: Path) -> None:
    model = ScriptedModel(lambda *_: "3", latency=0.05)
    assert len(run(tmp_path, model, samples(4), concurrency=4, budget=Budget(calls=4))) == 4


def test_samples_under_way_count_a_call_each(tmp_path: Path) -> None:
    model = ScriptedModel(lambda *_: "3", latency=0.05)
    with pytest.raises(
        RunStopped, match="the budget of 2 calls is used up: 2 of 4 samples are done"
    ):
        run(tmp_path, model, samples(4), concurrency=4, budget=Budget(calls=2))
    assert len(model.calls) == 2


def test_a_budget_that_is_used_up_begins_nothing(tmp_path: Path) -> None:
    model = answering()
    for _ in range(3):
        with pytest.raises(
            RunStopped, match="the budget of 3 calls is used up: 3 of 9 samples are done"
        ):
            run(tmp_path, model, samples(9), concurrency=1, budget=Budget(calls=3))
    assert len(model.calls) == 3
    run(tmp_path, model, samples(9))
    assert len(run(tmp_path, model, samples(9), budget=Budget(calls=3))) == 9, (
        "there is nothing to stop"
    )


def test_a_budget_stops_the_retry_of_samples_that_failed(tmp_path: Path) -> None:
    failing = True

    def asking(state: MessagesState) -> Any:
        model.invoke(state["messages"])
        if failing:
            raise RuntimeError("no such luck")
        return {}

    model = ScriptedModel(lambda *_: "3")
    builder = StateGraph(MessagesState).add_node("ask", asking).add_edge(START, "ask")
    mine = OwnMethod(
        "mine",
        builder.compile(),
        input=lambda sample: {"messages": [("user", sample["question"])]},
        output=lambda _result: {"answer": "3"},
    )

    def start(**options: Any) -> None:
        asyncio.run(evaluate([mine], samples(6), tmp_path, concurrency=1, **options))

    start()
    failing = False
    with pytest.raises(
        RunStopped, match="the budget of 8 calls is used up: 2 of 6 samples are done"
    ):
        start(retry_errors=True, budget=Budget(calls=8))
    assert len(model.calls) == 8


def test_a_sample_that_fails_costs_that_sample(tmp_path: Path) -> None:
    failing = True

    def reply(_node: str, prompt: str) -> Any:
        return ValueError("no such luck") if failing and "Question 1?" in prompt else "3"

    model = answering(reply)
    first = run(tmp_path, model, samples(3), concurrency=1)
    assert ["no such luck" in one["error"] for one in first] == [False, True, False]
    assert first[1]["scores"] == {}
    failing, calls = False, len(model.calls)
    assert run(tmp_path, model, samples(3))[1]["error"] == first[1]["error"]
    again = run(tmp_path, model, samples(3), retry_errors=True)
    assert [one["error"] for one in again] == ["", "", ""]
    assert len(model.calls) == calls + 1


def test_an_output_that_cannot_be_scored_is_kept_and_scored_later(tmp_path: Path) -> None:
    failing = True

    def score(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
        if failing and sample["id"] == "1":
            raise ValueError("no scale")
        return {"length": float(len(output["answer"]))}

    model = answering()
    first = run(tmp_path, model, samples(3), scorers=[score])
    assert [one["error"] for one in first] == [
        "",
        "it could not be scored: ValueError: no scale",
        "",
    ]
    assert first[1]["output"]["answer"] == "3"
    failing = False
    seen: list[Progress] = []
    again = run(
        tmp_path,
        model,
        samples(3),
        scorers=[score],
        retry_errors=True,
        on_progress=seen.append,
        budget=Budget(calls=3),
    )
    assert [(one["error"], one["scores"]) for one in again] == [("", {"length": 1.0})] * 3
    assert (len(model.calls), seen[-1].calls, seen[-1].failed) == (3, 3, 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_that_is_no_finite_number_is_an_error_of_the_sample(
    tmp_path: Path, value: float
) -> None:
    made = {"0": 1.0, "1": value}
    model = answering()

    def scorer(sample: Sample, _output: Mapping[str, Any]) -> dict[str, float]:
        return {"similarity": made[sample["id"]]}

    first = run(tmp_path, model, samples(2), scorers=[scorer])
    told = f"it could not be scored: the score 'similarity' is {value}; return a finite number"
    assert (first[0]["error"], first[1]["error"].startswith(told)) == ("", True)
    assert "| direct | ScriptedModel | 1.000 (" in markdown(summarise(tmp_path))
    made["1"] = 0.5
    again = run(tmp_path, model, samples(2), scorers=[scorer], retry_errors=True)
    assert ([one["scores"] for one in again], len(model.calls)) == (
        [{"similarity": 1.0}, {"similarity": 0.5}],
        2,
    )


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    directory, calls = tmp_path / "run", tmp_path / "calls"
    command = [sys.executable, "-m", "tests.evals.asked", str(directory), str(calls)]
    for kill_at in (5, 17, None):
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            while kill_at and process.poll() is None:
                if calls.exists() and calls.read_bytes().count(b"\n") >= kill_at:
                    process.send_signal(signal.SIGKILL)
                    break
            assert process.wait(60) == (0 if kill_at is None else -signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
    asked = Counter(calls.read_text("ascii").split())
    kept = [
        json.loads(line) for line in (directory / "samples.jsonl").read_text("utf-8").splitlines()
    ]
    assert sorted(int(one["id"]) for one in kept) == list(range(40))
    assert set(asked) == {str(number) for number in range(40)}
    assert sum(asked.values()) - 40 <= 2 * 4, "only what was under way at the kill is asked again"


def test_a_line_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    model = answering()
    run(tmp_path, model, samples(3), concurrency=1)
    file = tmp_path / "samples.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    assert len(run(tmp_path, model, samples(3))) == 3
    assert len(model.calls) == 4
    assert len(file.read_text("utf-8").splitlines()) == 3


def test_a_disk_that_is_full_stops_it_and_nothing_is_lost(tmp_path: Path) -> None:
    directory, calls = tmp_path / "run", tmp_path / "calls"
    command = [sys.executable, "-m", "tests.evals.asked", str(directory), str(calls)]
    full = subprocess.run([*command, "4000"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "RunStopped" in full.stderr
    assert "cannot be written" in full.stderr
    kept = (directory / "samples.jsonl").read_text("utf-8").splitlines()
    assert 0 < len(kept) < 40
    assert all(json.loads(line)["error"] == "" for line in kept)
    subprocess.run(command, cwd=ROOT, check=True)
    assert len((directory / "samples.jsonl").read_text("utf-8").splitlines()) == 40


def test_another_configuration_into_the_same_directory_is_refused(tmp_path: Path) -> None:
    model = answering()
    run(tmp_path, model, samples(2))
    with pytest.raises(BadInput, match="other samples; name another directory"):
        run(tmp_path, model, samples(3))
    with pytest.raises(BadInput, match="other methods; name another directory"):
        run(
            tmp_path,
            model,
            samples(2),
            [Method("direct:temperature=1", "direct", {"temperature": 1.0})],
        )


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(BadInput, match=r"holds other files, such as 'thesis\.tex'"):
        run(tmp_path, answering(), samples(1))


def test_two_runs_into_one_directory_at_once_are_refused(tmp_path: Path) -> None:
    with (
        run_directory(tmp_path / "run", {}),
        pytest.raises(BadInput, match="an evaluation is running into"),
    ):
        run(tmp_path / "run", answering(), samples(1))


def test_the_keyless_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="direct has no language model"):
        asyncio.run(evaluate([DIRECT], samples(1), tmp_path / "run"))
    asyncio.run(evaluate([DIRECT], samples(1), tmp_path / "run", allow_keyless=True))
    assert "The keyless model wrote these answers" in markdown(summarise(tmp_path / "run"))


def test_an_answer_is_kept_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_KEYRING_PROVIDER_TOKEN", "import langsmith")
    [outcome] = run(tmp_path, answering(lambda *_: "Write import langsmith."), samples(1))
    assert outcome["output"]["answer"] == "Write import langsmith."


def test_an_effect_and_none(tmp_path: Path) -> None:
    def reply(_node: str, prompt: str) -> str:
        number = prompt.partition("Question ")[2].partition("?")[0]
        return number if int(number) % 4 else "no idea"

    right, wrong = answering(reply), answering(lambda *_: "no idea at all")
    memory = LocalMemory(":memory:", embeddings="none")
    memory.add([Procedure("flour", "bake a bread", ("Knead.", "Bake."))])
    methods = [
        Method("direct", "direct", options={"model": wrong}),
        Method("rag", "rag", options={"model": right, "memory": memory}),
        Method("rag:k=1", "rag", {"k": 1}, {"model": wrong, "memory": memory}),
    ]
    asyncio.run(evaluate(methods, samples(24), tmp_path))
    summary = summarise(tmp_path)
    told = markdown(summary)
    assert (
        "rag is better than direct in exact match (+0.750 (+0.563 to +0.937), 24 samples)" in told
    )
    assert (
        "No difference in exact match, F1 and occurs could be shown between rag:k=1 and direct."
        in told
    )
    assert [each.method for each in summary.methods] == ["direct", "rag", "rag:k=1"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no method is named; name some of aag, rat"),
        ("rta", "there is no graph 'rta'"),
        ("rat:ronds=1", "rat has no setting 'ronds'; did you mean 'rounds'"),
        ("rat:rounds=99", "rounds='99' cannot be used"),
        ("rat:rounds", "the setting 'rounds' of rat has no value; write rat:field=value"),
        ("rag,rag", "the method 'rag' is named twice"),
        ("rpg:kind=brief", "kind='brief' cannot be used"),
        ("aag:kind=short", "aag has no setting 'kind'"),
    ],
)
def test_methods_that_cannot_be_used(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        read_methods(text, {})


def test_methods_take_what_they_have() -> None:
    fields = {
        "model": "openai:x",
        "sources": ["corpus:docs"],
        "memory": "a.jsonl",
        "temperature": 1,
    }
    methods = read_methods("direct,rag:k=7,rat:rounds=1:finish=code,aag", fields)
    assert [dict(method.settings) for method in methods] == [
        {"temperature": 1},
        {"temperature": 1, "k": "7"},
        {"temperature": 1, "rounds": "1", "finish": "code"},
        {"temperature": 1},
    ]
    searched = {"model": "openai:x", "sources": ["corpus:docs"], "memory": "a.jsonl"}
    assert [method.options for method in methods] == [{"model": "openai:x"}, *[searched] * 3]
    assert methods[2].context().model_dump(include={"rounds", "finish"}) == {
        "rounds": 1,
        "finish": "code",
    }
    assert methods[3].input(FLOUR) == {"question": "bake", "resources": "flour"}
    assert methods[2].input(FLOUR) == {"question": "bake (with flour)"}


def test_the_seed_of_a_sample_is_for_what_takes_one() -> None:
    [method] = read_methods("few_shot:seed=1", {})
    assert (method.context(seed=3).seed, method.context(seed=3).model_dump()["sample_seed"]) == (
        1,
        3,
    )
    taking = replace(method, options={"model": JudgeModel([])})
    assert (taking.context(seed=3).seed, taking.context().seed) == (3, 1)


def test_self_refinement_is_without_the_memory_that_others_search() -> None:
    [method] = read_methods(
        "self_refinement:k=1", {"memory": "a.jsonl", "sources": ["web"], "model": "x"}
    )
    assert (method.graph, method.settings["questions"], method.options["model"]) == (
        "aag_paper",
        False,
        "x",
    )
    assert list(method.options["memory"]) == []  # type: ignore[arg-type] # a memory that is listed
    assert "sources" not in method.options


def test_methods_take_the_kind_of_answer_that_is_named_for_them_or_for_all() -> None:
    methods = read_methods("rpg,rat,rpg:kind=auto:rounds=3", {"kind": "short"})
    assert [method.settings.get("kind") for method in methods] == ["short", None, "auto"]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "no questions|empty"),
        (['{"answer": "x"}'], "1 cannot be used: question"),
        (['{"question": " "}'], "1 cannot be used: question"),
        (['{"question": ["a"]}'], "1 cannot be used: question"),
        (['{"question": "a"}', "nonsense"], "2 cannot be read"),
        (
            ['{"question": "a", "id": 1}', '{"question": "b", "id": "1"}'],
            "2 has the id '1' of an earlier record",
        ),
        (
            ['{"question": "a", "id": 0}', '{"question": "b", "id": 0}'],
            "2 has the id '0' of an earlier record",
        ),
        (
            ['{"question": "a", "Answer": "b"}'],
            "1 has a field 'Answer'; names are written in lower case",
        ),
        (['{"question": "a", "answers": [{}]}'], "1 cannot be used: answers"),
    ],
)
def test_questions_that_cannot_be_used(tmp_path: Path, lines: list[str], problem: str) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(BadInput, match=problem):
        read_samples(file)


def test_questions_of_several_kinds(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"question": "Who?", "answer": "Ada", "id": "one"}\n'
        '{"question": "What?", "answers": ["a", "b"], "contains": [["x", "y"], "z"]}\n'
        '{"output": "bake bread", "input": "flour", "steps": ["Mix.", "Bake."]}\n'
    )
    assert read_samples(file) == [
        {"id": "one", "question": "Who?", "answers": ["Ada"]},
        {"id": "2", "question": "What?", "answers": ["a", "b"], "contains": [["x", "y"], ["z"]]},
        {"id": "3", "question": "bake bread", "resources": "flour", "steps": ["Mix.", "Bake."]},
    ]
    assert [one["id"] for one in read_samples(file, 1)] == ["one"]
