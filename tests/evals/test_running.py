"""Evaluations: which samples, what they cost, and graphs of one's own."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langgraph.graph import END, START, MessagesState, StateGraph
from typer.testing import CliRunner

from stepcraft import BadInput, RunStopped
from stepcraft.cli import app
from stepcraft.evals.directory import Outcome, read_outcomes
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import Method, OwnMethod
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Progress
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.samples import Sample, picked
from stepcraft.evals.summary import summarise
from tests.evals.asked import samples
from tests.scripted import ScriptedModel
from tests.servers.openai_server import OpenAIServer

DIRECT = Method("direct", "direct")


def run(
    directory: Path,
    reply: Callable[[str, str], Any] = lambda *_: "3",
    methods: list[Any] | None = None,
    count: int = 3,
    **options: Any,
) -> list[Outcome]:
    model = ScriptedModel(reply)
    named = [
        replace(method, options={"model": model}) if isinstance(method, Method) else method
        for method in methods or [DIRECT]
    ]
    asyncio.run(evaluate(named, samples(count), directory, concurrency=1, **options))
    return list(read_outcomes(directory))


def costing(read: int, written: int, cached: int = 0) -> AIMessage:
    used = UsageMetadata(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        input_token_details=InputTokenDetails(cache_read=cached),
    )
    return AIMessage("3", usage_metadata=used)


@pytest.mark.parametrize(
    ("items", "ids"),
    [
        ("2", ["b/1"]),
        ("3-4, 1", ["a/0", "c/2", "d/3"]),
        ("d/3,d/3,4", ["d/3"]),
        ("b/1,1-2,", ["a/0", "b/1"]),
    ],
)
def test_items_are_places_and_ids(items: str, ids: list[str]) -> None:
    given = [Sample(id=id_, question="?") for id_ in ("a/0", "b/1", "c/2", "d/3")]
    assert [one["id"] for one in picked(given, items)] == ids


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ("5", "--items '5' names no sample; name places from 1 to 4"),
        ("0-2", "'0-2' names no sample"),
        ("3-2", "the smaller one first"),
        ("HumanEvl/1", "'HumanEvl/1' names no sample.* ids such as 'HumanEval/1'"),
        ("zzz", "ids such as 'HumanEval/0'"),
        (" , ", "--items names no sample"),
    ],
)
def test_items_that_cannot_be_used(items: str, problem: str) -> None:
    given = [Sample(id=f"HumanEval/{number}", question="?") for number in range(4)]
    with pytest.raises(BadInput, match=problem):
        picked(given, items)


def test_other_items_into_the_same_directory_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(f'{{"question": "Question {number}?"}}\n' for number in range(9)))
    command = [
        "eval",
        "run",
        str(file),
        "--methods",
        "direct",
        "--allow-keyless",
        "--into",
        str(tmp_path / "run"),
    ]
    first = CliRunner().invoke(app, [*command, "--items", "2-5,9", "--limit", "4"])
    assert first.exit_code == 0, first.output
    assert sorted(one["id"] for one in read_outcomes(tmp_path / "run")) == ["2", "3", "4", "5"]
    other = CliRunner().invoke(app, [*command, "--items", "2-5,8"])
    assert (other.exit_code, "an evaluation with other samples; name another" in other.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("entries", "model", "usage", "usd"),
    [
        (["0.25/2.00"], "any", {"input_tokens": 1_000_000, "output_tokens": 500_000}, 1.25),
        (["openai:gpt-5-mini=1/0"], "gpt-5-mini", {"input_tokens": 2_000_000, "output_tokens": 9}, 2.0),
        (["gpt-5-mini=1/0"], "openai:gpt-5-mini", {"input_tokens": 2_000_000, "output_tokens": 9}, 2.0),
        (["gpt-5=7/7", "gpt-5-mini=1/0"], "gpt-5-mini-2026-08-07", {"input_tokens": 1_000_000, "output_tokens": 0}, 1.0),
        (["gpt-5=7/7"], "gpt-5-mini", {"input_tokens": 1, "output_tokens": 0}, None),
        (["gpt-5=7/7"], "other", {"input_tokens": 0, "output_tokens": 0}, 0.0),
        (["4/0/1"], "any", {"input_tokens": 1_000_000, "output_tokens": 0, "cached_input_tokens": 500_000}, 2.5),
        (["4/0"], "any", {"input_tokens": 1_000_000, "output_tokens": 0, "cached_input_tokens": 500_000}, 4.0),
    ],
)  # fmt: skip
def test_prices(entries: list[str], model: str, usage: dict[str, int], usd: float | None) -> None:
    assert Prices.of(entries).cost(usage, model) == (None if usd is None else pytest.approx(usd))


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (["cheap"], "the price 'cheap' cannot be used; write USD per million tokens"),
        (["-1/2"], "cannot be used"),
        (["nan/2"], "cannot be used"),
        (["m=1/2/3/4"], "cannot be used"),
        (["m=1/2", "m=1/3"], "the price of 'm' is named twice"),
        (["1/2", "1/3"], "the price of every model is named twice"),
    ],
)
def test_prices_that_cannot_be_used(entries: list[str], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        Prices.of(entries)


def test_the_environment_may_have_the_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Prices.of(None).price("any") is None
    monkeypatch.setenv("STEPCRAFT_PRICES", "1/2; m=3/4")
    found = [Prices.of(None).price(name) for name in ("any", "m")]
    assert [one and (one.read, one.written) for one in found] == [(1.0, 2.0), (3.0, 4.0)]


def test_a_budget_in_usd_stops_it_and_the_rest_is_done_later(tmp_path: Path) -> None:
    def reply(_node: str, _prompt: str) -> AIMessage:
        return costing(1_000_000, 0, cached=500_000)

    prices, seen = Prices.of(["2/1/1"]), list[Progress]()
    with pytest.raises(
        RunStopped, match=r"the budget of 3\.0 USD is used up: 2 of 3 samples are done; raise it"
    ):
        run(tmp_path, reply, prices=prices, budget=Budget(usd=3.0))
    outcomes = run(tmp_path, reply, prices=prices, budget=Budget(usd=9.0), on_progress=seen.append)
    assert [one["usd"] for one in outcomes] == [1.5, 1.5, 1.5]
    assert outcomes[0]["usage"]["cached_input_tokens"] == 500_000
    assert seen[-1].usd == 4.5
    assert "| 1.5 |" in markdown(summarise(tmp_path))


def test_what_a_failed_sample_used_counts(tmp_path: Path) -> None:
    def failing(state: MessagesState) -> Any:
        model.invoke(state["messages"])
        raise RuntimeError("no such luck")

    model = ScriptedModel(lambda *_: costing(1_000_000, 0))
    builder = StateGraph(MessagesState).add_node("ask", failing).add_edge(START, "ask")
    mine = OwnMethod(
        "mine", builder.compile(), lambda sample: {"messages": [HumanMessage(sample["question"])]}
    )
    [outcome] = run(tmp_path, methods=[mine], count=1, prices=Prices.of(["1/1"]))
    assert (outcome["error"], outcome["usd"]) == ("RuntimeError: no such luck", 1.0)


def test_a_budget_in_usd_needs_prices(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="that of ScriptedModel is unknown; name it with --price"):
        run(tmp_path, budget=Budget(usd=1.0), prices=Prices.of(["gpt-5=1/2"]))


def test_a_line_tells_what_made_it(tmp_path: Path) -> None:
    outcomes = run(tmp_path)
    assert len({one["trace"] for one in outcomes}) == 3
    assert all([*one["usage"]["models"]] == ["scripted"] and one["usd"] is None for one in outcomes)
    assert outcomes[0]["versions"].keys() == {"stepcraft", "langgraph", "langchain-core"}


def test_a_graph_of_ones_own_is_a_method(tmp_path: Path) -> None:
    class Query(TypedDict):
        query: str
        reply: list[Any]

    model = ScriptedModel(lambda _node, prompt: prompt.partition("Question ")[2].partition("?")[0])

    async def ask(state: Query) -> Any:
        return {"reply": [await model.ainvoke(state["query"])]}

    builder = StateGraph(Query).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END)
    mine = OwnMethod(
        "mine",
        builder.compile(),
        input=lambda sample: {"query": sample["question"]},
        output=lambda result: {"answer": result["reply"][0].text},
    )
    outcomes = run(tmp_path / "run", methods=[mine, DIRECT])
    assert [one["scores"]["exact match"] for one in outcomes if one["method"] == "mine"] == [
        1.0
    ] * 3
    assert all(one["usage"]["calls"] == 1 and one["usage"]["input_tokens"] for one in outcomes)
    assert {one.method: one.samples for one in summarise(tmp_path / "run").methods} == {
        "mine": 3,
        "direct": 3,
    }
    raw = OwnMethod("mine", builder.compile(), mine.input)
    [outcome] = run(tmp_path / "raw", methods=[raw], count=1)
    assert "is not JSON serializable" in outcome["error"]


def test_a_model_that_fails_on_every_third_sample(tmp_path: Path) -> None:
    def reply(_node: str, prompt: str) -> Any:
        number = int(prompt.partition("Question ")[2].partition("?")[0])
        return RuntimeError("overloaded") if number % 3 == 2 else str(number)

    seen = list[Progress]()
    outcomes = run(tmp_path, reply, count=9, on_progress=seen.append)
    assert [one["id"] for one in outcomes if one["error"]] == ["2", "5", "8"]
    assert (seen[-1].done, seen[-1].failed) == (9, 3)
    assert "| direct | ScriptedModel | 1.000" in markdown(summarise(tmp_path)), (
        "failures are kept apart from wrong answers"
    )


@pytest.mark.parametrize(
    ("methods", "given", "problem"),
    [
        ([DIRECT, DIRECT], samples(1), "the name 'direct' is there twice"),
        ([DIRECT], samples(1) * 2, "the name '0' is there twice"),
    ],
)
def test_what_is_there_twice(
    tmp_path: Path, methods: Any, given: list[Sample], problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        asyncio.run(evaluate(methods, given, tmp_path / "run", allow_keyless=True))


def test_the_command_tells_what_it_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"question": "Who?", "answer": "yes"}\n{"question": "What?", "answer": "yes"}\n'
    )
    with OpenAIServer(lambda _body: "yes") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        command = [
            "eval",
            "run",
            str(file),
            "--methods",
            "direct",
            "--model",
            "openai:test",
            "--concurrency",
            "1",
        ]
        ran = CliRunner().invoke(
            app,
            [
                *command,
                "--into",
                str(tmp_path / "run"),
                "--price",
                "openai:test=10000/0",
                "--max-usd",
                "0.5",
            ],
        )
    assert ran.exit_code == 1
    assert "the budget of 0.5 USD is used up: 1 of 2 samples are done" in ran.stderr
    assert " USD" in ran.stderr.splitlines()[0]
