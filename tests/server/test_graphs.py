"""Every graph of langgraph.json on the real LangGraph server, as a client of the SDK sees it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import httpx
import pytest
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError

from tests.servers.langgraph_server import ROOT
from tests.servers.openai_server import OpenAIServer

GRAPHS = list(json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"])
SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = "STEPCRAFT_TEST_UPDATE_SNAPSHOTS"
QUESTION = "How does a LangGraph agent keep what it learned with a Store?"
CONTEXT: Any = {"seed": 3}
MODES: Any = ["values", "updates", "custom", "messages-tuple", "events"]
OUTPUT = ("answer", "evidence", "warnings", "usage")
NOTE = "noted by a person"


@dataclass
class Observed:
    """What a client saw of a graph: a streamed run on a thread, and a fork from each step of it."""

    parts: list[Any]
    state: Any
    steps: list[list[str]]
    """The nodes that were next, by checkpoint, from the beginning."""
    forks: list[tuple[list[str], Any, Any]]
    """The nodes that were next, what the run gave after its state was changed there, and the state after it."""

    def data(self, event: str) -> list[Any]:
        return [part.data for part in self.parts if part.event == event]


def given(name: str) -> Any:
    return {"messages": [{"role": "user", "content": QUESTION}]} if name == "chat" else {"question": QUESTION}


async def observe(client: LangGraphClient, name: str) -> Observed:
    thread = (await client.threads.create())["thread_id"]
    stream = client.runs.stream(thread, name, input=given(name), context=CONTEXT, stream_mode=MODES)
    parts = [part async for part in stream]
    state = await client.threads.get_state(thread)
    history: Any = await client.threads.get_history(thread, limit=100)
    forks: list[tuple[list[str], Any, Any]] = []
    for step in history:
        if step["next"] and step["next"] != ["__start__"]:
            where = step["checkpoint"]["checkpoint_id"]
            await client.threads.update_state(thread, {"warnings": [NOTE]}, checkpoint_id=where)
            result = await client.runs.wait(thread, name, input=None, context=CONTEXT)
            forks.append((step["next"], result, await client.threads.get_state(thread)))
    return Observed(parts, state, [step["next"] for step in reversed(history)], forks)


@pytest.fixture(scope="module")
def all_observed(langgraph_server: str) -> dict[str, Observed]:
    async def observe_all() -> list[Observed]:
        async with get_client(url=langgraph_server) as client:
            return await asyncio.gather(*(observe(client, name) for name in GRAPHS))

    return dict(zip(GRAPHS, asyncio.run(observe_all()), strict=True))


@pytest.fixture(params=GRAPHS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def observed(all_observed: dict[str, Observed], name: str) -> Observed:
    return all_observed[name]


@pytest.fixture
async def client(langgraph_server: str) -> AsyncIterator[LangGraphClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=langgraph_server, timeout=60, limits=limits) as http:
        yield LangGraphClient(http)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - it knows no events
            await asyncio.sleep(0.05)


def essence(schema: Any) -> Any:
    """A schema without titles, which follow from names, and without the texts of prompts."""
    if isinstance(schema, list):
        return [essence(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"default"} if schema.get("langgraph_type") == "prompt" else set()
    return {
        key: essence(value)
        for key, value in schema.items()
        if key not in dropped and not (key == "title" and isinstance(value, str))
    }


async def test_schemas_are_those_of_the_snapshot(client: LangGraphClient, name: str) -> None:
    """With STEPCRAFT_TEST_UPDATE_SNAPSHOTS=1 it writes the snapshots anew."""
    assistant = (await client.assistants.search(graph_id=name, limit=1))[0]["assistant_id"]
    schemas: Any = await client.assistants.get_schemas(assistant)
    found = {kind: essence(schemas[f"{kind}_schema"]) for kind in ("input", "output", "context")}
    file = SNAPSHOTS / f"{name}.json"
    if os.environ.get(UPDATE):
        file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
    assert found == json.loads(file.read_text("utf-8")), f"{UPDATE}=1 writes tests/server/snapshots anew"


def test_values_end_with_the_result(observed: Observed) -> None:
    assert observed.data("error") == []
    last = observed.data("values")[-1]
    assert last["answer"]
    assert {key: last[key] for key in OUTPUT} == {key: observed.state["values"][key] for key in OUTPUT}


def test_updates_name_the_nodes_in_order(observed: Observed) -> None:
    told = [node for update in observed.data("updates") for node in update]
    assert told[0] == "begin"
    first_of_each_step = [nodes[0] for nodes in observed.steps if nodes and nodes != ["__start__"]]
    assert list(dict.fromkeys(told)) == list(dict.fromkeys(first_of_each_step))


def test_tokens_come_with_the_names_of_nodes(observed: Observed, name: str) -> None:
    """The methods of the chat are subgraphs: of their tokens nothing is streamed here but the message."""
    tokens = observed.data("messages")
    updated = {node for update in observed.data("updates") for node in update}
    assert len(tokens) == 1 if name == "chat" else len(tokens) > 5
    assert {token[1]["langgraph_node"] for token in tokens} <= updated | {
        "to_query",
        "revise",
        "answer",
        "plan",
    }


def test_custom_events_tell_the_progress(observed: Observed, name: str) -> None:
    told = observed.data("custom")
    progress = [event for event in told if event["type"] == "progress"]
    assert all(event["text"] and event["graph"] == name for event in progress)
    nodes = {node for update in observed.data("updates") for node in update}
    assert {event["node"] for event in progress} <= nodes | {"to_query", "revise", "answer", "plan"}
    assert [event["type"] for event in told][-1] == "answer"


def test_events_show_the_model(observed: Observed) -> None:
    kinds = {event["event"] for event in observed.data("events")}
    assert {"on_chain_start", "on_chat_model_stream", "on_chain_end"} <= kinds


def test_a_thread_keeps_state_and_history(observed: Observed) -> None:
    assert observed.state["next"] == []
    assert observed.steps[:2] == [["__start__"], ["begin"]]
    assert observed.steps[-1] == []


def test_a_fork_from_any_step_goes_on_from_what_was_written(observed: Observed) -> None:
    for upcoming, result, state in observed.forks:
        assert result["answer"]
        assert state["next"] == []
        assert (NOTE in result["warnings"]) == (upcoming != ["begin"]), upcoming
    assert len(observed.forks) == len(observed.steps) - 2


async def test_fifty_runs_at_once_with_models_named_by_strings(
    client: LangGraphClient, all_observed: dict[str, Observed]
) -> None:
    context = {**CONTEXT, "model": "openai:quick"}
    names = (GRAPHS * 50)[:50]
    results = await asyncio.gather(
        *(client.runs.wait(None, name, input=given(name), context=context) for name in names)
    )
    for name, result in zip(names, results, strict=True):
        alone = all_observed[name].state["values"]
        if (
            name == "react"
        ):  # with a model that has a name it is an agent, which the keyless model does not play
            assert result["answer"]
        else:
            assert result["answer"] == alone["answer"], name
        assert len(result["warnings"]) <= len(alone["warnings"]), result["warnings"]


async def test_a_cancelled_run_goes_on_later(client: LangGraphClient, model_server: OpenAIServer) -> None:
    asked, left = len(model_server.requests), len(model_server.abandoned)
    thread = (await client.threads.create())["thread_id"]
    slow, quick = ({**CONTEXT, "model": f"openai:{speed}"} for speed in ("slow", "quick"))
    run = await client.runs.create(thread, "rag", input=given("rag"), context=slow)
    await until(lambda: len(model_server.requests) > asked)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"
    state = await client.threads.get_state(thread)
    assert state["next"] == ["answer"]
    result: Any = await client.runs.wait(thread, "rag", input=None, context=quick)
    assert result["answer"]
    assert result["evidence"] == state["values"]["evidence"]
    await until(lambda: len(model_server.abandoned) > left)


async def test_an_assistant_has_a_context_of_its_own(
    client: LangGraphClient, all_observed: dict[str, Observed]
) -> None:
    made = await client.assistants.create("rag", context={"k": 1})
    own: Any = await client.runs.wait(None, made["assistant_id"], input=given("rag"))
    assert own["evidence"] == all_observed["rag"].state["values"]["evidence"][:1]


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        ({"kk": 1}, "there is no setting 'kk'; did you mean 'k'?"),
        ({"k": 0}, "k=0 cannot be used: it should be greater than or equal to 1"),
    ],
)
async def test_a_wrong_context_of_an_assistant_is_refused(
    client: LangGraphClient, context: Any, sentence: str
) -> None:
    before = await client.assistants.count(graph_id="rag")
    with pytest.raises(UnprocessableEntityError) as refused:
        await client.assistants.create("rag", context=context)
    assert sentence in str(refused.value)
    assert await client.assistants.count(graph_id="rag") == before
    made = await client.assistants.create("rag", context={"k": 1}, if_exists="do_nothing")
    with pytest.raises(UnprocessableEntityError) as refused:
        await client.assistants.update(made["assistant_id"], context=context)
    assert sentence in str(refused.value)


class Notes(TypedDict, total=False):
    question: str
    answer: str


@pytest.fixture
def remote(langgraph_server: str) -> Iterator[RemoteGraph]:
    with get_sync_client(url=langgraph_server) as client:
        yield RemoteGraph("rag", sync_client=client, url=langgraph_server)


def test_a_remote_graph_alone(remote: RemoteGraph) -> None:
    result = remote.invoke({"question": QUESTION}, context={"k": 1})
    assert len(result["evidence"]) == 1
    updates = remote.stream({"question": QUESTION}, stream_mode="updates")
    assert [node for update in updates for node in update] == ["begin", "retrieve", "answer"]


def test_a_remote_graph_as_a_node(remote: RemoteGraph) -> None:
    parent = StateGraph(Notes).add_node("research", remote).add_edge(START, "research").compile()
    assert parent.invoke({"question": QUESTION})["answer"]


def test_no_call_blocked_the_event_loop(
    all_observed: dict[str, Observed], langgraph_log: Callable[[], str]
) -> None:
    log = langgraph_log()
    assert "BlockingError" not in log
    assert "Blocking call" not in log
