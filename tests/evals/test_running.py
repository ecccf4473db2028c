"""Evaluations: which samples, what they cost, and graphs of one's own."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langgraph.graph import START, StateGraph

from stepcraft import BadInput, RunStopped
from stepcraft.evals.calls import CallRecorder
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.methods import OwnMethod
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Progress
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.summary import summarise
from tests.evals.asked import number_in
from tests.evals.runs import DIRECT, run, stopped
from tests.scripted import ScriptedModel

MILLION = 1_000_000


def costing(read: int, cached: int = 0) -> AIMessage:
    details = InputTokenDetails(cache_read=cached)
    usage = UsageMetadata(
        input_tokens=read, output_tokens=0, total_tokens=read, input_token_details=details
    )
    return AIMessage("3", usage_metadata=usage)


@pytest.mark.parametrize(
    ("entries", "model", "tokens", "usd"),
    [
        (["0.25/2.00"], "any", (MILLION, MILLION // 2, 0), 1.25),
        (["openai:gpt-5-mini=1/0"], "gpt-5-mini", (2 * MILLION, 9, 0), 2.0),
        (["gpt-5=7/7", "gpt-5-mini=1/0"], "gpt-5-mini-2026-08-07", (MILLION, 0, 0), 1.0),
        (["gpt-5=7/7"], "gpt-5-mini", (1, 0, 0), None),
        (["gpt-5=7/7"], "other", (0, 0, 0), 0.0),
        (["4/0/1"], "any", (MILLION, 0, MILLION // 2), 2.5),
        (["4/0"], "any", (MILLION, 0, MILLION // 2), 4.0),
    ],
)
def test_prices(
    entries: list[str], model: str, tokens: tuple[int, int, int], usd: float | None
) -> None:
    names = ("input_tokens", "output_tokens", "cached_input_tokens")
    usage = dict(zip(names, tokens, strict=True))
    assert Prices.of(entries).cost(usage, model) == (None if usd is None else pytest.approx(usd))


@pytest.mark.parametrize(
    ("model", "read"),
    [
        ("openai:gpt-4o-2024-05-13", 5.0),
        ("gpt-4o-2024-08-06", 2.5),
        ("gpt-4o-2024-11-20", None),
        ("gpt-4o", None),
        ("azure_openai:gpt-5-2025-08-07", 1.0),
        ("qwen/qwen-plus:thinking", 4.0),
        ("openrouter:qwen/qwen-plus:thinking", 4.0),
        ("other/model:thinking", None),
        ("llama3:instruct", 3.0),
        ("mistral-nemo:instruct", None),
    ],
)
def test_a_price_is_that_of_the_exact_name_or_of_the_one_without_a_date(
    model: str, read: float | None
) -> None:
    snapshots = ["openai:gpt-4o-2024-05-13=5/15", "openai:gpt-4o-2024-08-06=2.5/10"]
    others = ["openai:gpt-5=1/1", "openrouter:qwen/qwen-plus:thinking=4/4", "llama3:instruct=3/3"]
    price = Prices.of([*snapshots, *others]).price(model)
    assert (price and price.read) == read


@pytest.mark.parametrize(
    ("names", "usd"),
    [
        (["gpt-5-mini-2025-08-07", "gpt-5-2025-08-07"], None),
        (["my-deployment", "gpt-5"], None),
        (["my-deployment"], 1.0),
        (["my-deployment", ""], 2.0),
        (["gpt-5-mini", ""], 2.0),
        ([""], 1.0),
    ],
)
def test_the_price_of_a_method_is_not_that_of_its_other_models(
    names: list[str], usd: float | None
) -> None:
    used = {"input_tokens": MILLION, "output_tokens": 0}
    models = {**dict.fromkeys(names, used), "unused": {"calls": 1, "input_tokens": 0}}
    prices = Prices.of(["openai:gpt-5-mini=1/1"])
    assert prices.cost({"models": models}, "openai:gpt-5-mini") == usd


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (["cheap"], "the price 'cheap' cannot be used; write USD per million tokens"),
        (["m=1/2/3/4"], "cannot be used"),
    ],
)
def test_prices_that_cannot_be_used(entries: list[str], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        Prices.of(entries)


def test_the_environment_may_have_the_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Prices.of(None).price("any") is None
    monkeypatch.setenv("STEPCRAFT_PRICES", "1/2; m=3/4")
    prices = [Prices.of(None).price(name) for name in ("any", "m")]
    assert [price and (price.read, price.written) for price in prices] == [(1.0, 2.0), (3.0, 4.0)]


def test_a_budget_in_usd_stops_it_and_the_rest_is_done_later(tmp_path: Path) -> None:
    model = ScriptedModel(lambda *_: costing(MILLION, cached=MILLION // 2))
    prices, seen = Prices.of(["2/1/1"]), list[Progress]()
    with pytest.raises(RunStopped, match=r"the budget of 3\.0 USD is used up: 2 of 3 samples"):
        run(tmp_path, model, prices=prices, budget=Budget(usd=3.0))
    options: Any = {"budget": Budget(usd=9.0), "on_progress": seen.append}
    outcomes = run(tmp_path, model, prices=prices, **options)
    assert [outcome["usd"] for outcome in outcomes] == [1.5, 1.5, 1.5]
    assert outcomes[0]["usage"]["cached_input_tokens"] == MILLION // 2
    assert seen[-1].usd == 4.5
    assert "| 1.5 |" in markdown(summarise(tmp_path))


def test_a_budget_in_usd_needs_prices(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="that of ScriptedModel is unknown; name it with --price"):
        run(tmp_path, budget=Budget(usd=1.0), prices=Prices.of(["gpt-5=1/2"]))


def test_a_budget_in_usd_without_any_price_is_refused_at_once(tmp_path: Path) -> None:
    asked: list[object] = []
    with pytest.raises(BadInput, match="needs the price of every model"):
        run(tmp_path, methods=[OwnMethod("mine", asked.append)], budget=Budget(usd=1.0))
    assert not asked


def test_answers_whose_price_turns_out_to_be_unknown_are_kept(tmp_path: Path) -> None:
    counts = {"calls": 1, "input_tokens": MILLION, "output_tokens": 0}

    async def answer(_: object) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"answer": "3", "usage": {**counts, "models": {"big": counts}}}

    options: Any = {"asked": 5, "methods": [OwnMethod("mine", answer)], "budget": Budget(usd=99.0)}
    for _ in range(2):
        with pytest.raises(BadInput, match="that of big is unknown; name it with --price"):
            run(tmp_path, prices=Prices.of(["small=1/1"]), concurrency=3, **options)
        assert [each["usd"] for each in read_outcomes(tmp_path)] == [None] * 3
    run(tmp_path, prices=Prices.of(["small=1/1", "big=7/7"]), **options)
    assert len(list(read_outcomes(tmp_path))) == 5


def silent() -> OwnMethod:
    model = FakeListChatModel(responses=["3"])

    async def answer(given: dict[str, str]) -> str:
        return (await model.ainvoke(given["question"])).text

    return OwnMethod("silent", answer)


def test_a_budget_in_usd_needs_the_tokens_of_every_reply(tmp_path: Path) -> None:
    options: Any = {"methods": [silent()], "prices": Prices.of(["1/1"])}
    for _ in range(2):
        with pytest.raises(BadInput, match=r"reports none; limit the calls with --max-calls"):
            run(tmp_path, budget=Budget(usd=1.0), **options)
        assert [each["usd"] for each in read_outcomes(tmp_path)] == [None]
    run(tmp_path, budget=Budget(calls=9), **options)


def test_costs_of_replies_without_tokens_are_unknown(tmp_path: Path) -> None:
    outcomes = run(tmp_path, methods=[silent(), DIRECT], prices=Prices.of(["1/1"]))
    assert [each["usd"] is None for each in outcomes] == [True, False] * 3
    for prices in (None, Prices.of(["2/2"])):
        by_name = {it.method: it.costs for it in summarise(tmp_path, prices=prices).methods}
        assert [*by_name["silent"]] == ["calls", "seconds"]
        assert "USD" in by_name["direct"]


def test_calls_that_fail_cost_nothing(tmp_path: Path) -> None:
    replies: Iterator[Any] = iter([RuntimeError("busy"), costing(MILLION)])
    model = ScriptedModel(lambda *_: next(replies))

    async def answer(given: dict[str, str]) -> str:
        with suppress(RuntimeError):
            await model.ainvoke(given["question"])
        return (await model.ainvoke(given["question"])).text

    options: Any = {"budget": Budget(usd=9.0), "prices": Prices.of(["2/2"])}
    [outcome] = run(tmp_path, asked=1, methods=[OwnMethod("mine", answer)], **options)
    assert (outcome["usage"]["calls"], outcome["usd"]) == (2, 2.0)


def test_a_budget_in_usd_needs_the_prices_of_earlier_answers(tmp_path: Path) -> None:
    def said(model: str) -> OwnMethod:
        counts = {"calls": 1, "input_tokens": MILLION, "output_tokens": 0}
        usage = {**counts, "models": {model: counts}}
        return OwnMethod(model, lambda _: {"answer": "3", "usage": usage})

    run(tmp_path, asked=1, methods=[said("big"), OwnMethod("silent", lambda _: "3")])
    options: Any = {"methods": [said("small")], "budget": Budget(usd=9.0)}
    with pytest.raises(BadInput, match="that of big is unknown; name it with --price"):
        run(tmp_path, prices=Prices.of(["small=1/2"]), **options)
    with pytest.raises(RunStopped, match=r"the budget of 9\.0 USD is used up: 2 of 3 samples"):
        run(tmp_path, prices=Prices.of(["small=1/2", "big=7/7"]), **options)
    run(tmp_path / "new", asked=1, methods=[said("big")], prices=Prices.of(["big=7/7"]))
    run(tmp_path / "new", asked=2, prices=Prices.of(["small=1/2"]), **options)


def test_what_reports_no_calls_has_no_known_costs(tmp_path: Path) -> None:
    run(tmp_path, methods=[OwnMethod("mine", lambda _: "3"), DIRECT], prices=Prices.of(["1/1"]))
    mine, direct = summarise(tmp_path).methods
    assert (list(mine.costs), mine.model) == (["seconds"], "")
    assert list(direct.costs) == ["calls", "tokens in", "cached", "tokens out", "seconds", "USD"]


def test_a_graph_of_ones_own_is_a_method(tmp_path: Path) -> None:
    class Query(TypedDict):
        query: str
        reply: list[Any]

    model = ScriptedModel(lambda _, prompt: number_in(prompt))

    async def ask(state: Query) -> Any:
        return {"reply": [await model.ainvoke(state["query"])]}

    graph = StateGraph(Query).add_node("ask", ask).add_edge(START, "ask").compile()
    raw = OwnMethod("raw", graph, lambda sample: {"query": sample["question"]})
    mine = OwnMethod("mine", graph, raw.input, lambda end: {"answer": end["reply"][0].text})
    outcomes = run(tmp_path, methods=[mine, DIRECT])
    assert [each["scores"]["exact match"] for each in outcomes[::2]] == [1.0] * 3
    assert outcomes[0]["usage"]["calls"] == 1
    assert outcomes[0]["usage"]["input_tokens"]
    samples = {each.method: each.samples for each in summarise(tmp_path).methods}
    assert samples == {"mine": 3, "direct": 3}
    stopped(tmp_path, "neither `answer` nor `steps`", methods=[raw])
    kept = OwnMethod("kept", graph, raw.input, lambda end: {"answer": "7", **end})
    assert run(tmp_path, methods=[kept])[2]["output"]["reply"] == ["2"]


def test_documents_are_passages(tmp_path: Path) -> None:
    found = [Document("It has a bridge.", metadata={"title": "Mostar", "date": date(2026, 1, 2)})]
    mine = OwnMethod("mine", lambda _: {"answer": "3", "evidence": found, "context": found})
    [outcome] = run(tmp_path, asked=1, methods=[mine])
    kept = {"title": "Mostar", "date": "2026-01-02", "text": "It has a bridge."}
    assert outcome["output"]["context"] == [kept]
    assert outcome["output"]["evidence"] == [{"id": "", "source": "", "score": 0.0, **kept}]


def test_an_answer_may_be_a_message(tmp_path: Path) -> None:
    mine = OwnMethod("mine", lambda _: {"answer": AIMessage("3")})
    [outcome] = run(tmp_path, asked=1, methods=[mine])
    assert outcome["output"] == {"answer": "3"}


@pytest.mark.parametrize(
    ("fields", "usage", "warnings"),
    [
        ({"usage": 7}, {}, []),
        ({"usage": object()}, {}, []),
        ({"usage": {"input_tokens": None, "output_tokens": 4}}, {"output_tokens": 4}, []),
        ({"usage": {"input_tokens": 3, "models": {"m": {"input_tokens": 3}}}}, ..., []),
        ({"warnings": "late"}, {}, ["late"]),
    ],
)
def test_a_functions_other_fields(
    tmp_path: Path, fields: dict[str, Any], usage: Any, warnings: list[str]
) -> None:
    [outcome] = run(
        tmp_path, asked=1, methods=[OwnMethod("mine", lambda _: {"answer": 0} | fields)]
    )
    assert (outcome["output"], outcome["error"]) == ({"answer": "0"}, "")
    expected = fields["usage"] if usage is ... else usage or CallRecorder().usage()
    assert (outcome["usage"], outcome["warnings"]) == (expected, warnings)
