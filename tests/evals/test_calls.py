"""The calls behind an outcome, and benchmarks of other packages."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage

from stepcraft import BadInput
from stepcraft.evals.benchmark import Benchmark, Questions, benchmark_names, get_benchmark
from stepcraft.evals.compare import samples_of
from stepcraft.evals.directory import CALLS, read_calls, read_configuration, read_outcomes
from stepcraft.evals.methods import OwnMethod
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.samples import Sample
from stepcraft.evals.summary import summarise
from tests.evals.runs import KEY, run, stepcraft, stopped
from tests.scripted import ScriptedModel


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    """No cache of a test is that of another."""
    yield
    set_llm_cache(None)


def test_the_calls_of_each_sample_are_kept(tmp_path: Path) -> None:
    is_failing = True

    def reply(_node: str, prompt: str) -> Any:
        return RuntimeError("overloaded") if is_failing and "Question 1?" in prompt else "0"

    outcome, _ = run(tmp_path, reply, 2, keep_calls=True)
    [call] = read_calls(tmp_path)["direct", "0"]
    assert (call["node"], call["model"]) == ("answer", "scripted")
    assert (call["reply"], call["error"]) == ("0", "")
    assert call["prompt"].startswith("System: ")
    assert "\nHuman: " in call["prompt"]
    assert "Question 0?" in call["prompt"]
    assert call["tokens"]["input_tokens"] == outcome["usage"]["input_tokens"] > 0
    [failed] = read_calls(tmp_path)["direct", "1"]
    assert (failed["error"], failed["reply"]) == ("RuntimeError: overloaded", "")
    is_failing = False
    run(tmp_path, reply, 2, keep_calls=True, retry_errors=True)
    assert read_calls(tmp_path)["direct", "1"][0]["reply"] == "0", "those of the last run count"


def test_calls_of_an_earlier_run_are_not_those_of_a_later_answer(tmp_path: Path) -> None:
    is_failing = True

    def reply(_node: str, prompt: str) -> Any:
        return RuntimeError("overloaded") if is_failing and "Question 1?" in prompt else "0"

    run(tmp_path, reply, 2, keep_calls=True)
    is_failing = False
    run(tmp_path, reply, 2, retry_errors=True)
    assert [*read_calls(tmp_path)] == [("direct", "0")]
    by_id = {each["id"]: each["runs"]["direct"] for each in samples_of(summarise(tmp_path))}
    assert [len(by_id[id_]["calls"]) for id_ in "01"] == [1, 0]


def test_calls_that_were_kept_without_their_run_are_shown(tmp_path: Path) -> None:
    run(tmp_path, asked=1, keep_calls=True)
    file = tmp_path / CALLS
    line = json.loads(file.read_text())
    del line["trace"]
    file.write_text(json.dumps(line) + "\n")
    assert read_calls(tmp_path) == {("direct", "0"): line["calls"]}


def test_calls_stay_where_only_the_scoring_is_done_again(tmp_path: Path) -> None:
    is_failing = True

    def score(_sample: Sample, _output: object) -> dict[str, float]:
        if is_failing:
            raise RuntimeError("the grader is busy")
        return {"right": 1.0}

    options: Any = {"asked": 1, "scorers": [score], "keep_calls": True}
    stopped(tmp_path, "the grader is busy", **options)
    is_failing = False
    run(tmp_path, **options)
    [call] = read_calls(tmp_path)["direct", "0"]
    assert call["reply"] == "3"


def test_a_call_that_is_cancelled_says_so(tmp_path: Path) -> None:
    has_begun = asyncio.Event()

    def reply(*_: str) -> str:
        has_begun.set()
        return "3"

    model = ScriptedModel(reply, latency=30)

    async def answer(given: dict[str, str]) -> str:
        asking = asyncio.create_task(model.ainvoke(given["question"]))
        await has_begun.wait()
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        return "3"

    run(tmp_path, asked=1, methods=[OwnMethod("mine", answer)], keep_calls=True)
    [call] = read_calls(tmp_path)["mine", "0"]
    assert (call["error"], call["seconds"]) == ("it was cancelled", 0)


def test_a_model_that_is_no_chat_model_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = FakeListLLM(responses=["3"])
    mine = OwnMethod("mine", model, lambda sample: sample["question"])
    [outcome] = run(tmp_path, asked=1, methods=[mine], keep_calls=True)
    assert outcome["usage"]["calls"] == 1
    [call] = read_calls(tmp_path)["mine", "0"]
    assert (call["prompt"], call["reply"]) == ("Question 0?", "3")
    assert "KeyError" not in caplog.text


def test_secrets_in_calls_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    run(tmp_path, lambda *_: KEY, keep_calls=True)
    assert KEY not in (tmp_path / "calls.jsonl").read_text("utf-8")


def test_secrets_in_the_arguments_of_tools_are_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    call = {"name": "search", "args": {"query": f"what is {KEY}"}, "id": "1"}
    model = ScriptedModel(lambda *_: AIMessage("", tool_calls=[call]))

    async def answer(given: dict[str, str]) -> str:
        await model.ainvoke(given["question"])
        return "3"

    run(tmp_path, asked=1, methods=[OwnMethod("mine", answer)], keep_calls=True)
    [kept] = read_calls(tmp_path)["mine", "0"]
    assert kept["reply"] == "\n[search {'query': 'what is ***'}]"


def test_replies_from_a_cache_are_counted_and_cost_nothing(tmp_path: Path) -> None:
    set_llm_cache(InMemoryCache())
    model = ScriptedModel(lambda *_: "3")
    for name in ("one", "two"):
        run(tmp_path / name, model, 1, keep_calls=True)
    assert len(model.calls) == 1
    assert read_calls(tmp_path / "two")["direct", "0"][0]["reply"] == "3"
    [first], [second] = (read_outcomes(tmp_path / name) for name in ("one", "two"))
    assert (first["usage"]["calls"], first["usage"]["from_cache"]) == (1, 0)
    assert (second["usage"]["calls"], second["usage"]["from_cache"]) == (0, 1)
    text = markdown(summarise(tmp_path / "two"))
    assert "1 replies of direct are from the cache: its costs and seconds are less" in text


def load(path: Path | None, limit: int | None) -> Questions:
    asked = [Sample(id=str(n), question=f"{path} {n}?", answers=["yes"]) for n in range(3)]
    return Questions(asked[:limit], settings={"temperature": 0.5, "direct": {"temperature": 0.7}})


SUMS = Benchmark("sums", "sums of two numbers", load, "https://example.org", "MIT", "A paper")
NONE = "no benchmark"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with benchmarks stands on the path."""
    info = tmp_path / "site/some_benchmarks-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-benchmarks\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[stepcraft.benchmarks]\n"
        "sums = tests.evals.test_calls:SUMS\n"
        "wrong = tests.evals.test_calls:NONE\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")


@pytest.mark.usefixtures("installed")
def test_a_benchmark_of_another_package_is_run_by_its_name(tmp_path: Path) -> None:
    assert {"lgstep-val", "sums"} <= {*benchmark_names()}
    command = "run sums --limit 2 --allow-keyless --methods direct"
    ran = stepcraft(f"{command} --into {tmp_path / 'run'} --data a.csv")
    assert ran.exit_code == 0, ran.output
    assert "sums: from https://example.org; licence: MIT; paper: A paper." in ran.stdout
    questions = sorted(each["sample"]["question"] for each in read_outcomes(tmp_path / "run"))
    assert questions == ["a.csv 0?", "a.csv 1?"]
    stepcraft(f"{command} --into {tmp_path / 'chosen'} --set temperature=0.9")
    settings = [
        read_configuration(tmp_path / name)["methods"]["direct"]["settings"]
        for name in ("run", "chosen")
    ]
    # What is for one graph goes before the rest, and what the user chooses before both.
    assert [each["temperature"] for each in settings] == [0.7, "0.9"]


@pytest.mark.usefixtures("installed")
def test_names_of_no_benchmark() -> None:
    with pytest.raises(
        BadInput, match="'nothing'; for those of papers: pip install stepcraft-papers"
    ):
        get_benchmark("nothing")
    with pytest.raises(BadInput, match="did you mean 'lgstep-val'"):
        get_benchmark("lgstep-vla")
    with pytest.raises(BadInput, match=r"tests\.evals\.test_calls:NONE of 'wrong' is no Benchmark"):
        get_benchmark("wrong")


@pytest.mark.parametrize(("name", "count"), [("lgstep-val", 24), ("lgstep-renamed-test", 42)])
def test_lgstep_is_built_in(name: str, count: int) -> None:
    questions = get_benchmark(name).load(None, None)
    assert len(questions.samples) == count
    assert all(sample["steps"] for sample in questions.samples)
    assert ("memory" in questions.settings) == ("renamed" in name)
