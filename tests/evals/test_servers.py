"""Evaluations on LangGraph servers: the same results, back-pressure, and servers that are busy, broken or gone."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft import BadInput, RunStopped
from stepcraft.cli import app
from stepcraft.evals.directory import Outcome, read_outcomes
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import Method, OwnMethod, read_methods
from stepcraft.evals.samples import repeated
from stepcraft.evals.servers import Servers
from stepcraft.graphs.baselines import build_direct, build_rag
from tests.evals.asked import samples
from tests.kitchen import small_memory
from tests.scripted import ScriptedModel
from tests.servers.graph_server import GraphServer

Start = Callable[..., GraphServer]


def number(_node: str, prompt: str) -> str:
    return prompt.partition("Question ")[2].partition("?")[0]


def graphs(reply: Callable[[str, str], Any] = number, latency: float = 0.0) -> dict[str, Any]:
    model = ScriptedModel(reply, latency=latency)
    return {"direct": build_direct(model=model), "rag": build_rag(model=model, memory=small_memory())}


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda served=None, **options: stack.enter_context(GraphServer(served or graphs(), **options))


def run(
    directory: Path,
    *servers: GraphServer,
    methods: str = "direct",
    count: int = 12,
    concurrency: int = 2,
    **options: Any,
) -> None:
    on = Servers([one.url for one in servers], concurrency=concurrency, patience_s=0.3)
    work = evaluate(read_methods(methods, {}), samples(count), directory, servers=on, **options)
    asyncio.run(work)


def essence(directory: Path) -> list[dict[str, Any]]:
    """What does not depend on the moment or the place of a run."""
    passing: set[str] = {"seconds", "began", "trace", "versions", "models"}
    lines: list[Outcome] = sorted(read_outcomes(directory), key=lambda one: (one["method"], one["id"]))
    return [{name: value for name, value in one.items() if name not in passing} for one in lines]


def test_three_servers_give_what_this_process_gives(start: Start, tmp_path: Path) -> None:
    servers = [start(graphs(latency=0.02)) for _ in range(3)]
    methods = "direct,rag:k=1"
    run(tmp_path / "served", *servers, methods=methods)
    local = graphs()
    work = evaluate(
        read_methods(methods, {}), samples(12), tmp_path / "local", graph_of=lambda one: local[one.graph]
    )
    asyncio.run(work)
    assert essence(tmp_path / "served") == essence(tmp_path / "local")
    assert len(essence(tmp_path / "served")) == 24
    assert all(1 <= one.most <= 2 for one in servers), "no more than so many at a time on each"
    assert {tuple(sorted(body["context"].items())) for one in servers for body in one.bodies} == {
        (),
        (("k", 1),),
    }
    lines = list(read_outcomes(tmp_path / "served"))
    assert len({one["trace"] for one in lines}) == 24
    assert lines[0]["versions"] == {"langgraph-api": "0.0.1", "langgraph": "1.0.0"}


def test_each_answer_to_a_question_has_its_seed_on_a_server(start: Start, tmp_path: Path) -> None:
    server = start()
    on = Servers([server.url], concurrency=2)
    work = evaluate(
        read_methods("direct:seed=7", {}), repeated(samples(1), 2), tmp_path / "again", servers=on
    )
    asyncio.run(work)
    assert sorted(body["context"]["seed"] for body in server.bodies) == [1, 2]
    assert sorted(one["seed"] or 0 for one in read_outcomes(tmp_path / "again")) == [1, 2]


@pytest.mark.parametrize("fault", [503, 429, "hang up"])
def test_a_server_that_fails_costs_no_sample(start: Start, tmp_path: Path, fault: Any) -> None:
    ok, broken = start(), start(fault=lambda done: fault if done >= 2 else None)
    run(tmp_path / "run", ok, broken)
    outcomes = list(read_outcomes(tmp_path / "run"))
    assert [one["error"] for one in outcomes] == [""] * 12
    assert (len(ok.bodies), len(broken.bodies)) == (10, 2)


def test_where_no_server_answers_it_stops_and_goes_on_later(start: Start, tmp_path: Path) -> None:
    going = start(fault=lambda done: "hang up" if done >= 5 else None)
    with pytest.raises(
        RunStopped, match=rf"no server answers \({going.url}: .+\); start one and start the same"
    ):
        run(tmp_path / "run", going)
    assert len(list(read_outcomes(tmp_path / "run"))) == 5
    other = start()
    run(tmp_path / "run", other)
    assert len(essence(tmp_path / "run")) == 12
    assert len(other.bodies) == 7


def test_a_run_that_fails_is_the_failure_of_its_sample(start: Start, tmp_path: Path) -> None:
    def reply(node: str, prompt: str) -> Any:
        return number(node, prompt) if int(number(node, prompt)) % 3 else RuntimeError("no such luck")

    run(tmp_path / "served", start(graphs(reply)))
    failed = [one["id"] for one in essence(tmp_path / "served") if one["error"]]
    assert failed == ["0", "3", "6", "9"]
    local = graphs(reply)
    methods = read_methods("direct", {})
    asyncio.run(evaluate(methods, samples(12), tmp_path / "local", graph_of=lambda one: local[one.graph]))
    errors = [[one["error"] for one in essence(tmp_path / name)] for name in ("served", "local")]
    assert errors[0] == errors[1]


def test_a_setting_that_a_server_refuses_is_one_sentence(start: Start, tmp_path: Path) -> None:
    server = start({"rag": build_rag(model=ScriptedModel(number), allow="corpus:/srv/docs")})
    on = Servers([server.url], concurrency=1)
    methods = read_methods("rag", {"retriever": ["corpus:/etc"]})
    with pytest.raises(
        BadInput, match=r"refuses rag: a run may not name the source 'corpus:/etc' here; allowed"
    ):
        asyncio.run(evaluate(methods, samples(3), tmp_path / "run", servers=on))


@pytest.mark.parametrize(
    ("methods", "served", "fault", "problem"),
    [
        ("direct", {"direct": build_direct()}, None, "ran without a language model"),
        ("rpg", None, None, "does not serve rpg: 422"),
        ("direct", None, 401, "refuses the request .401.; set its key in LANGGRAPH_API_KEY"),
        ("self_refinement", None, None, "needs an empty memory, which a server does not run"),
    ],
)
def test_what_servers_refuse(
    start: Start, tmp_path: Path, methods: str, served: Any, fault: Any, problem: str
) -> None:
    server = start(served, fault=lambda _: fault)
    with pytest.raises(BadInput, match=problem):
        run(tmp_path / "run", server, methods=methods, concurrency=1)  # httpx leaks a socket it is opening
    assert not list(read_outcomes(tmp_path / "run"))


def test_a_graph_of_ones_own_is_not_sent_away(start: Start, tmp_path: Path) -> None:
    mine = OwnMethod("mine", build_direct(model=ScriptedModel(number)))
    on = Servers([start().url], concurrency=1)
    with pytest.raises(BadInput, match="mine is a graph of your own, which a server does not run"):
        asyncio.run(evaluate([mine], samples(1), tmp_path / "run", servers=on))


@pytest.mark.parametrize(
    ("urls", "problem"),
    [(["localhost:2024"], "is no address of a server"), (["http://a:1", "http://a:1/"], "named twice")],
)
def test_addresses_that_cannot_be_used(urls: list[str], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        Servers(urls, concurrency=1)


def test_the_command_sends_the_key_and_writes_it_nowhere(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGGRAPH_API_KEY", "opensesame-opensesame")
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "Question 1?", "answer": "1"}\n')
    server = start()
    command = ["eval", "run", str(file), "--methods", "direct", "--into", str(tmp_path / "run")]
    ran = CliRunner().invoke(app, [*command, "--server", server.url])
    assert ran.exit_code == 0, ran.output
    assert "1.000" in ran.stdout
    assert server.keys == {"opensesame-opensesame"}
    assert "opensesame" not in ran.output
    assert all("opensesame" not in one.read_text("utf-8") for one in (tmp_path / "run").iterdir())


def test_the_real_server_gives_what_this_process_gives(langgraph_server: str, tmp_path: Path) -> None:
    method = Method("few_shot:k=1", "few_shot", {"k": 1, "seed": 3})
    for name, servers in (("served", Servers([langgraph_server], concurrency=3)), ("local", None)):
        work = evaluate([method], samples(3), tmp_path / name, servers=servers, allow_keyless=True)
        asyncio.run(work)
    assert essence(tmp_path / "served") == essence(tmp_path / "local")
    outcomes = list(read_outcomes(tmp_path / "served"))
    assert all(one["trace"] and one["versions"]["langgraph-api"] for one in outcomes)
    assert [one["seed"] for one in outcomes] == [3] * 3
    assert json.loads((tmp_path / "served" / "configuration.json").read_text("utf-8"))["prompts"]
