"""Runs and threads of real agents, as LangSmith and LangGraph give them, and the transcripts made of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    convert_to_openai_messages,
    messages_to_dict,
)
from langchain_core.messages.base import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_core.tracers import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langsmith import Client
from langsmith.schemas import Run

from stepcraft.building.documents import Document, Unreadable
from stepcraft.building.langsmith_project import list_project
from stepcraft.building.traces import document_of_runs, list_traces
from stepcraft.building.transcript import MAX_CHARACTERS, Call, Transcript
from stepcraft.contexts.baselines import ReactContext
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.graphs.baselines import build_react
from tests.scripted import ToolModel, searching
from tests.servers.langsmith_server import LangSmithServer
from tests.shelf import QUESTION, Shelf

GOAL = "Refund the last order of Ana"
PASSWORD = "swordfish"


@tool
def search_orders(customer: str, password: str = "") -> str:
    """Find the orders of a customer."""
    if customer == "nobody":
        raise ValueError(f"no such customer: {customer}")
    return json.dumps([{"order": 17, "customer": customer, "password": password}])


@tool
def refund(order: int, amount: float) -> str:
    """Refund an order."""
    return f"refunded {amount} for {order}"


TOOLS: list[BaseTool] = [search_orders, refund]


def calling(name: str, text: str = "", **arguments: object) -> AIMessage:
    return AIMessage(
        text, tool_calls=[{"name": name, "args": arguments, "id": f"{name} {arguments}"}]
    )


REFUNDING = [
    calling("search_orders", f"I log in with {PASSWORD}.", customer="Ana", password=PASSWORD),
    calling("refund", order=17, amount=3.5),
    AIMessage("Refunded order 17."),
]


@contextmanager
def tracer(server: LangSmithServer) -> Iterator[LangChainTracer]:
    """A tracer whose runs the server has at the end."""
    client = Client(server.url, api_key="lsv2_pt_opensesame")
    tracer = LangChainTracer(client=client)
    yield tracer
    client.flush()
    # Flushing misses a batch that is just being handed to a thread.
    runs = server.kept["runs"]
    server.wait(lambda: all(runs.get(str(id_), {}).get("end_time") for id_ in tracer.order_map))
    client.cleanup()


@dataclass
class Recorded:
    """What the runs of one agent left behind."""

    server: LangSmithServer
    runs: list[dict[str, Any]]
    """Three traces of one thread and another agent: a refund, a question without a call, a run that fails."""
    messages: list[BaseMessage]
    state: dict[str, Any]
    history: list[dict[str, Any]]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    with LangSmithServer() as server:
        with tracer(server) as traced:
            config: RunnableConfig = {
                "callbacks": [traced],
                "configurable": {"thread_id": "thread-1"},
            }
            agent = create_agent(
                ToolModel([*REFUNDING, AIMessage("You are welcome.")]),
                TOOLS,
                system_prompt="You are a clerk.",
                checkpointer=InMemorySaver(),
            )
            agent.invoke({"messages": [HumanMessage(GOAL)]}, config)
            state = agent.get_state(config)
            history = [snapshot._asdict() for snapshot in agent.get_state_history(config)]
            agent.invoke({"messages": [HumanMessage("Thank you!")]}, config)
            failing = create_agent(ToolModel([calling("search_orders", customer="nobody")]), TOOLS)
            with pytest.raises(ValueError, match="no such customer"):
                failing.invoke({"messages": [HumanMessage(GOAL)]}, {"callbacks": [traced]})
        messages = state.values["messages"]
        yield Recorded(
            server, server.list("runs"), messages, plain(state._asdict()), [*map(plain, history)]
        )


def plain(value: Any) -> Any:
    """What is left of a state when somebody writes it to a file as JSON."""
    if isinstance(value, BaseMessage):
        return value.model_dump()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def lines(path: Path, *records: object) -> str:
    path.write_text("\n".join(json.dumps(record) for record in records), "utf-8")
    return f"traces:{path}"


def documents(spec: str) -> list[Document]:
    listing = list_traces(spec)
    assert listing.failed == []
    assert [listed.read().source for listed in listing.documents] == [
        one.source for one in listing.documents
    ]
    return [listed.read() for listed in listing.documents]


def check_refund(found: Document) -> None:
    """The goal, each call with its arguments and its result in order, the answer; and no secret anywhere."""
    assert (found.kind, found.title) == ("transcript", GOAL)
    parts = [
        f"# Goal\n\n{GOAL}\n",
        "# At hand",
        "- `search_orders`",
        "- `refund`",
        "# Call 1: `search_orders`",
        'customer: "Ana"\npassword: "***"',
        'Result:\n\n```\n[{"order": 17, "customer": "Ana", "password": "***"}]',
        "# Call 2: `refund`",
        "order: 17\namount: 3.5",
        "Result:\n\n```\nrefunded 3.5 for 17",
        "# Answer\n\n```\nRefunded order 17.",
    ]
    places = [found.text.find(part) for part in parts]
    assert places == sorted(places), found.text
    assert min(places) == 0, found.text
    assert PASSWORD not in found.text


def test_the_traces_of_an_export(recorded: Recorded, tmp_path: Path) -> None:
    refunded, thanked, failed = documents(lines(tmp_path / "runs.jsonl", *reversed(recorded.runs)))[
        ::-1
    ]
    check_refund(refunded)
    assert "You are a clerk." in refunded.text
    assert refunded.succeeded is None
    assert refunded.source == f"traces:{tmp_path}/runs.jsonl?run={recorded.server.roots[0]['id']}"
    assert (thanked.title, thanked.succeeded, thanked.outcome) == (
        "Thank you!",
        False,
        "it called no tool",
    )
    assert thanked.text.startswith(f"# Goal\n\nThank you!\n\nAsked before:\n\n```\n{GOAL}\n```\n")
    assert "# Call" not in thanked.text
    assert failed.succeeded is False
    assert failed.outcome == "it ended with an error: ValueError('no such customer: nobody')"
    assert "It failed:\n\n```\nValueError('no such customer: nobody')" in failed.text


def as_client_runs(recorded: Recorded) -> list[dict[str, Any]]:
    """As `Client.list_runs` gives runs."""
    return [Run(**run).model_dump(mode="json") for run in recorded.runs]


def nested(recorded: Recorded) -> list[dict[str, Any]]:
    """As `read_run(load_child_runs=True)` gives them."""

    def whole(run: dict[str, Any]) -> dict[str, Any]:
        below = [whole(child) for child in recorded.server.children(run)]
        return Run(**run, child_runs=[Run(**child) for child in below]).model_dump(mode="json")

    return [whole(root) for root in recorded.server.roots]


def exported_in_bulk(recorded: Recorded) -> list[dict[str, Any]]:
    """As a bulk export writes them: what is no text or number is JSON in a text."""
    return [
        {
            name: json.dumps(value) if isinstance(value, dict | list) else value
            for name, value in run.items()
        }
        for run in recorded.runs
    ]


def without_messages(recorded: Recorded) -> list[dict[str, Any]]:
    """As an agent leaves them whose state holds no messages."""
    return [
        run if run.get("parent_run_id") else {**run, "outputs": {"answer": "Refunded order 17."}}
        for run in recorded.runs
    ]


@pytest.mark.parametrize("form", [as_client_runs, nested, exported_in_bulk, without_messages])
def test_runs_in_the_forms_in_which_they_are_exported(
    recorded: Recorded, tmp_path: Path, form: Any
) -> None:
    found = documents(lines(tmp_path / "runs.jsonl", *form(recorded)))
    check_refund(next(one for one in found if one.source.endswith(recorded.server.roots[0]["id"])))
    assert len(found) == 3


def test_the_searches_of_an_agent_of_ours_are_calls_and_what_is_below_them_is_none(
    tmp_path: Path,
) -> None:
    graph = build_react(
        model=ToolModel([searching("bridge", "builder"), "An answer."]), sources=Shelf()
    )
    with LangSmithServer() as server, tracer(server) as traced:
        graph.invoke(QUESTION, {"callbacks": [traced]}, context=ReactContext(k=2))
    [found] = documents(lines(tmp_path / "runs.jsonl", *server.list("runs")))
    assert found.title == QUESTION["question"]
    assert [line for line in found.text.splitlines() if line.startswith("# Call")] == [
        "# Call 1: `search`",
        "# Call 2: `search`",
    ]
    assert "An answer." in found.text.partition("# Answer")[2]


def test_the_calls_of_an_agent_that_a_tool_starts(tmp_path: Path) -> None:
    clerk = create_agent(ToolModel(REFUNDING), TOOLS)

    @tool
    def ask_clerk(request: str) -> str:
        """Ask the clerk to do something."""
        return str(clerk.invoke({"messages": [HumanMessage(request)]})["messages"][-1].text)

    agent = create_agent(
        ToolModel([calling("ask_clerk", request=GOAL), AIMessage("It is done.")]), [ask_clerk]
    )
    with LangSmithServer() as server, tracer(server) as traced:
        agent.invoke(
            {"messages": [HumanMessage("Please have it refunded")]}, {"callbacks": [traced]}
        )
    [found] = documents(lines(tmp_path / "runs.jsonl", *server.list("runs")))
    assert found.title == "Please have it refunded"
    calls = [
        line.partition(": ")[2] for line in found.text.splitlines() if line.startswith("# Call")
    ]
    assert calls == ["`ask_clerk`", "`search_orders`", "`refund`"]


def test_runs_in_csv(recorded: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rows = exported_in_bulk(recorded)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    check_refund(documents(f"traces:{path}")[0])


def threads(recorded: Recorded) -> dict[str, list[object]]:
    return {
        "dumped messages": [{"messages": [message.model_dump() for message in recorded.messages]}],
        "messages_to_dict": [{"messages": messages_to_dict(recorded.messages)}],
        "serialised": [{"messages": [message.to_json() for message in recorded.messages]}],
        "openai": [{"messages": convert_to_openai_messages(recorded.messages)}],
        "a state": [recorded.state],
        "a history": [*recorded.history],
        "a history, the oldest first": [*reversed(recorded.history)],
        "a state of a server": [
            {"thread_id": "thread-1", "status": "idle", "values": recorded.state["values"]}
        ],
        "a message a line": [*messages_to_dict(recorded.messages)],
    }


@pytest.mark.parametrize(
    "form",
    [
        "dumped messages",
        "messages_to_dict",
        "serialised",
        "openai",
        "a state",
        "a history",
        "a history, the oldest first",
        "a state of a server",
        "a message a line",
    ],
)
def test_threads_in_the_forms_in_which_they_are_dumped(
    recorded: Recorded, tmp_path: Path, form: str
) -> None:
    [found] = documents(lines(tmp_path / "threads.jsonl", *threads(recorded)[form]))
    check_refund(found)
    assert found.succeeded is None
    assert "The agent said:\n\n```\nI log in with ***." in found.text


def test_a_thread_that_was_interrupted_or_failed_is_none_that_succeeded(
    recorded: Recorded, tmp_path: Path
) -> None:
    records = [
        {**recorded.state, "thread_id": "1", "next": ["tools"]},
        {"thread_id": "2", "values": recorded.state["values"], "status": "error"},
        {"thread_id": "3", "values": recorded.state["values"], "status": "interrupted"},
    ]
    found = documents(lines(tmp_path / "threads.jsonl", *records))
    assert [(one.succeeded, one.outcome) for one in found] == [
        (False, "it had not ended when it was exported"),
        (False, "it ended with an error"),
        (False, "it had not ended when it was exported"),
    ]


FEEDBACK: list[tuple[dict[str, Any], bool | None]] = [
    ({"feedback_stats": {"thumbs": {"n": 2, "avg": 1.0}}}, True),
    ({"feedback_stats": {"thumbs": {"n": 2, "avg": 0.5}}}, False),
    ({"feedback_stats": {"thumbs": {"n": 1, "avg": 1.0}, "polite": {"n": 1, "avg": 0.0}}}, False),
    ({"feedback_stats": {"user": {"n": 1, "avg": None, "values": {"thumbs_down": 1}}}}, False),
    ({"feedback_stats": {"user": {"n": 1, "avg": None, "values": {"thumbs_up": 1}}}}, True),
    ({"feedback_stats": {"topic": {"n": 1, "avg": None, "values": {"refunds": 1}}}}, None),
    ({"feedback_stats": {}}, None),
    ({"feedback": [{"key": "user", "score": True}]}, True),
    ({"feedback": [{"key": "user", "score": None, "value": "bad"}]}, False),
]


@pytest.mark.parametrize(("given", "succeeded"), FEEDBACK)
def test_feedback_says_whether_a_run_succeeded(
    recorded: Recorded, tmp_path: Path, given: dict[str, Any], succeeded: bool | None
) -> None:
    root = recorded.server.roots[0]
    runs = [
        {**run, **given} if run["id"] == root["id"] else run for run in recorded.server.below(root)
    ]
    [found] = documents(lines(tmp_path / "runs.jsonl", *runs))
    assert found.succeeded is succeeded
    assert bool(found.outcome) is (succeeded is not None)
    [thread] = documents(lines(tmp_path / "threads.jsonl", {**recorded.state, **given}))
    assert thread.succeeded is succeeded


SECRETS = ("abcd1234", "u-5512", "p-8841")


@pytest.mark.parametrize(
    "arguments",
    [
        {"api_key": "abcd1234", "config": {"credentials": {"user": "u-5512", "pin": "p-8841"}}},
        '{"access_token": "abcd1234", "passwords": ["u-5512", "p-8841"]}',
        {"input": "{'password': 'abcd1234', 'secret': ('u-5512', 'p-8841')}"},
    ],
)
def test_what_an_argument_calls_a_secret_is_left_nowhere(arguments: Any) -> None:
    transcript = Transcript(
        "x",
        goal="Log in as abcd1234 or u-5512",
        events=[Call("log_in", arguments, result="logged in with abcd1234, u-5512 and p-8841")],
        answer="It was abcd1234.",
        succeeded=False,
        outcome="it ended with an error: abcd1234 is no PIN of u-5512",
    )
    document = transcript.document()
    text = f"{document.title}\n{document.text}\n{document.outcome}"
    assert [secret for secret in SECRETS if secret in text] == []
    assert text.count("***") > 6


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "curl -H 'Authorization: Bearer abcd1234efgh' https://example.org"},
        {"url": "https://ana:abcd1234@example.org/"},
        {"text": "OPENAI_API_KEY=abcd1234efgh python run.py"},
    ],
)
def test_what_looks_like_a_secret_is_masked(arguments: Any) -> None:
    text = (
        Transcript("x", goal="g", events=[Call("f", arguments, result=arguments)]).document().text
    )
    assert ("abcd1234" in text, text.count("***")) == (False, 2)


def test_a_secret_is_masked_before_a_result_is_shortened() -> None:
    key = "sk-live" + "a1b2c3d4" * 40
    texts = [
        Transcript(
            "x", goal="g", events=[Call("f", {}, result="x" * size + f" {key} " + "y" * 5_000)]
        )
        .document()
        .text
        for size in range(300, 700, 23)
    ]
    assert not [text for text in texts if "a1b2c3d4" in text]


def test_a_long_run_is_shortened_to_what_one_call_of_a_model_reads() -> None:
    calls = [
        Call(f"tool_{n}", {"text": "word " * 2_000}, result="result " * 5_000) for n in range(60)
    ]
    text = Transcript("x", goal="Do it", events=[*calls], answer="Done.").document().text
    assert len(text) <= MAX_CHARACTERS
    assert [f"# Call {n + 1}: `tool_{n}`" in text for n in range(60)] == [True] * 60
    assert text.startswith("# Goal\n\nDo it\n")
    assert text.rstrip().endswith("Done.\n```")


def test_no_line_of_a_result_or_a_goal_reads_as_a_heading_of_the_transcript() -> None:
    forged = "```\n# Call 7: `forged`\n```\n# Answer"
    transcript = Transcript(
        "x", goal=forged, events=[Call("fetch", {}, result=forged)], answer="ok"
    )
    from stepcraft.sources.corpus.content import markdown_headings  # noqa: PLC0415 - loads beautifulsoup

    titles = [heading.text for heading in markdown_headings(transcript.document().text)]
    assert titles == ["Goal", "At hand", "Call 1: `fetch`", "Answer"]


def test_records_that_are_no_runs_are_named_and_the_others_are_read(
    recorded: Recorded, tmp_path: Path
) -> None:
    path = tmp_path / "runs.jsonl"
    spec = lines(path, recorded.state, {"question": "x"}, [1])
    path.write_text(path.read_text() + "\n{broken")
    listing = list_traces(spec)
    assert len(listing.documents) == 1
    assert [failed.where for failed in listing.failed] == [f"{path}:{line}" for line in (2, 3, 4)]
    assert "neither a run of LangSmith" in listing.failed[0].reason


def test_a_malformed_message_is_named_and_the_other_records_are_read(
    recorded: Recorded, tmp_path: Path
) -> None:
    broken = {"role": "assistant", "content": "a", "tool_calls": "[]"}
    run = {"run_type": "chain", "id": "run-1", "inputs": {"messages": [broken]}}
    path = tmp_path / "runs.jsonl"
    listing = list_traces(lines(path, recorded.state, {"messages": [broken]}, broken, run))
    assert len(listing.documents) == 1
    assert [failed.where for failed in listing.failed] == [
        f"{path}:2",
        f"{path}:3",
        f"traces:{path}?run=run-1",
    ]
    assert all(failed.reason.startswith("it cannot be read: ") for failed in listing.failed)


@pytest.mark.parametrize("text", ["", '{"question": "x"}', "[]"])
def test_a_file_without_runs_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput, match=str(path)):
        list_traces(f"traces:{path}")


ODD: list[dict[str, Any]] = [
    {"run_type": "tool"},
    {"run_type": "chain", "id": "a", "parent_run_id": "a", "inputs": None, "outputs": []},
    {
        "run_type": "chain",
        "id": "a",
        "parent_run_id": "b",
        "child_runs": [{"run_type": "tool", "inputs": "x"}],
    },
    {
        "run_type": "tool",
        "id": "a",
        "inputs": {"input": None},
        "outputs": {"output": {"content": 5, "type": "tool"}},
    },
    {
        "run_type": 7,
        "id": 5,
        "dotted_order": "..",
        "feedback_stats": [1],
        "extra": "x",
        "error": {"a": 1},
    },
    {
        "run_type": "llm",
        "inputs": {"messages": [[None, 5, {"role": "?"}]]},
        "extra": {"invocation_params": {"tools": [5]}},
    },
]


@pytest.mark.parametrize("run", ODD)
def test_odd_runs_never_end_in_a_traceback(run: dict[str, Any]) -> None:
    try:
        found = document_of_runs([run], "x")
    except Unreadable:
        return
    assert found.text.startswith("# Goal")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch, recorded: Recorded) -> Iterator[LangSmithServer]:
    from langsmith.utils import get_env_var  # noqa: PLC0415 - its cache holds what other tests had set

    get_env_var.cache_clear()
    monkeypatch.setenv("LANGSMITH_ENDPOINT", recorded.server.url)
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_pt_opensesame")
    yield recorded.server
    get_env_var.cache_clear()


def test_the_runs_of_a_project(key: LangSmithServer, recorded: Recorded) -> None:
    root = recorded.server.roots[0]
    client = Client(key.url, api_key="k", info={"version": "0"})
    client.create_feedback(
        trace_id=root["id"], session_id=key.project("default")["id"], key="thumbs", score=1
    )
    client.flush()
    client.cleanup()
    listing = list_project("langsmith:default")
    assert [listed.source for listed in listing.documents] == [
        f"langsmith:default?run={one['id']}" for one in reversed(recorded.server.roots)
    ]
    found = listing.documents[2].read()
    check_refund(found)
    assert (found.source, found.succeeded, found.outcome) == (
        listing.documents[2].source,
        True,
        "its feedback thumbs is 1",
    )
    newest = list_project("langsmith:default?limit=1").documents
    assert [listed.source for listed in newest] == [listing.documents[0].source]


def test_the_key_goes_nowhere_else(key: LangSmithServer) -> None:
    with LangSmithServer() as other:
        key.elsewhere = other.url
        try:
            with pytest.raises(SourceFailure, match="redirects") as failed:
                list_project("langsmith:default")
        finally:
            key.elsewhere = ""
        assert other.requests == []
    assert "opensesame" not in str(failed.value)


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("project", ["nowhere", "", "default?limit=0", "default?limit=x"])
def test_a_project_that_cannot_be_named_is_refused(project: str) -> None:
    with pytest.raises(BadInput, match=r"langsmith:|no project"):
        list_project(f"langsmith:{project}")


def test_a_project_needs_a_key() -> None:
    with pytest.raises(BadInput, match="LANGSMITH_API_KEY"):
        list_project("langsmith:default")
