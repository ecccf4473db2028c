"""The chat on the real LangGraph server, as A2A clients and chat interfaces talk to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

QUESTION = "Which memories does LangGraph have?"
CONTEXT = {"method": "rag", "k": 2}


@pytest.fixture
def client(langgraph_server: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=langgraph_server) as opened:
        yield opened


class Agent:
    """The chat as an A2A agent."""

    def __init__(self, server: str, assistant: str) -> None:
        self.server = server
        self.url = f"{server}/a2a/{assistant}"

    def body(self, method: str, params: Any) -> Any:
        return {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}

    def call(self, method: str, params: Any) -> Any:
        headers = {"Accept": "application/json"}
        answer = httpx.post(self.url, json=self.body(method, params), headers=headers, timeout=60).json()
        assert answer["id"] == "1"
        return answer

    def stream(self, params: Any) -> Iterator[Any]:
        headers = {"Accept": "text/event-stream"}
        body = self.body("message/stream", params)
        with httpx.stream("POST", self.url, json=body, headers=headers, timeout=60) as parts:
            for line in parts.iter_lines():
                if line.startswith("data:"):
                    yield json.loads(line.removeprefix("data:"))["result"]


def said(*texts: str, **more: Any) -> Any:
    """A message of a user, with a part for each text."""
    parts = [{"kind": "text", "text": text} for text in texts]
    message = {"kind": "message", "role": "user", "parts": parts, "messageId": str(uuid4()), **more}
    return {"message": message, "context": CONTEXT}


@pytest.fixture
def agent(client: SyncLangGraphClient, langgraph_server: str) -> Agent:
    return Agent(langgraph_server, client.assistants.search(graph_id="chat")[0]["assistant_id"])


def test_its_card(agent: Agent) -> None:
    assistant = agent.url.rpartition("/")[2]
    card = httpx.get(f"{agent.server}/.well-known/agent-card.json", params={"assistant_id": assistant}).json()
    assert card["name"] == "chat"
    assert card["description"].startswith("For a conversation: each message is answered")
    assert card["skills"][0]["metadata"]["inputSchema"]["supportsA2A"] is True


def test_an_agent_sends_messages_and_reads_the_task(agent: Agent) -> None:
    first = agent.call("message/send", said(QUESTION))["result"]
    assert first["status"]["state"] == "completed"
    (part,) = first["artifacts"][0]["parts"]
    assert "**Sources**\n\n1. " in part["text"]
    second = agent.call(
        "message/send", said("And which", "survives a restart?", contextId=first["contextId"])
    )
    history = second["result"]["history"]
    assert [(message["role"], message["parts"][0]["text"]) for message in history][::2] == [
        ("user", QUESTION),
        ("user", "And which\nsurvives a restart?"),
    ]
    assert [message["role"] for message in history] == ["user", "agent"] * 2
    kept = agent.call("tasks/get", {"id": second["result"]["id"], "contextId": first["contextId"]})["result"]
    assert kept["status"]["state"] == "completed"
    assert kept["history"][-1]["parts"] == second["result"]["artifacts"][0]["parts"]


def test_an_agent_streams(agent: Agent) -> None:
    events = list(agent.stream(said(QUESTION)))
    assert [event["kind"] for event in events][:1] == ["task"]
    assert (events[-1]["kind"], events[-1]["status"]["state"]) == ("status-update", "completed")
    told = [
        part["text"]
        for event in events
        if event["kind"] == "status-update"
        for part in event["status"].get("message", {}).get("parts", [])
    ]
    (artifact,) = [event["artifact"] for event in events if event["kind"] == "artifact-update"]
    assert told == [artifact["parts"][0]["text"]], "no drafts, queries or choices"


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ([{"kind": "file", "file": {"uri": "https://example.org/a.png", "mimeType": "image/png"}}], "failed"),
        ([{"kind": "data", "data": {"question": QUESTION}}], "completed"),
    ],
)
def test_parts_that_are_no_text(agent: Agent, parts: Any, state: str) -> None:
    params = said("")
    params["message"]["parts"] = parts
    task = agent.call("message/send", params)["result"]
    assert task["status"]["state"] == state
    if state == "completed":
        assert "**Sources**" in task["artifacts"][0]["parts"][0]["text"]


def turn(client: SyncLangGraphClient, thread: str, given: Any, **more: Any) -> list[Any]:
    """A run as chat interfaces start it; `messages-tuple` is what they add where they show tokens."""
    parts = list(
        client.runs.stream(
            thread,
            "chat",
            input=given,
            context=more.pop("context", CONTEXT),
            stream_mode=["values", "messages-tuple", "custom"],
            stream_subgraphs=True,
            stream_resumable=True,
            on_disconnect="continue",
            **more,
        )
    )
    assert not [part.data for part in parts if part.event == "error"]
    return parts


def last(parts: list[Any]) -> Any:
    return [part.data for part in parts if part.event == "values"][-1]


def human(text: str) -> Any:
    return {"id": str(uuid4()), "type": "human", "content": [{"type": "text", "text": text}]}


def test_a_chat_interface(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    parts = turn(client, thread, {"messages": [human(QUESTION)], "context": {"artifact": "x"}})
    first = last(parts)
    assert [message["type"] for message in first["messages"]] == ["human", "ai"]
    assert first["messages"][-1]["additional_kwargs"]["stepcraft"]["method"] == "rag"
    told = [part.data for part in parts if part.event == "custom" and part.data.get("node") == "route"]
    assert [(event["graph"], event["data"]["method"]) for event in told] == [("chat", "rag")]
    nodes = {part.data[1]["langgraph_node"] for part in parts if part.event.startswith("messages")}
    assert nodes == {"answer", "rag"}
    second = last(turn(client, thread, {"messages": [human("And which of them survives a restart?")]}))
    assert [message["type"] for message in second["messages"]] == ["human", "ai"] * 2
    assert second["asked"].startswith(QUESTION)

    history: Any = client.threads.get_history(thread, limit=50)
    answer = second["messages"][-1]["id"]
    seen = [
        state for state in history if answer in [one["id"] for one in state["values"].get("messages", [])]
    ]
    before = seen[-1]["parent_checkpoint"]
    again = last(turn(client, thread, None, checkpoint=before))
    assert [message["type"] for message in again["messages"]] == ["human", "ai"] * 2
    assert again["messages"][:3] == second["messages"][:3]
    assert again["messages"][3]["id"] != answer
    assert again["usage"]["calls"] == 1

    start = next(state for state in history if state["values"].get("asked") == QUESTION and not state["next"])
    edited = last(
        turn(client, thread, {"messages": [human("What is a checkpointer?")]}, checkpoint=start["checkpoint"])
    )
    assert [message["type"] for message in edited["messages"]] == ["human", "ai"] * 2
    assert edited["messages"][2]["content"][0]["text"] == "What is a checkpointer?"
    assert client.threads.get_state(thread)["values"]["messages"] == edited["messages"]


def test_a_person_decides_before_the_method_runs(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    stopped: Any = client.runs.wait(
        thread, "chat", input={"messages": [human(QUESTION)]}, context={"k": 2}, interrupt_after=["route"]
    )
    assert (stopped["method"], stopped["answer"]) == ("rat", "")
    client.threads.update_state(thread, {"method": "rag", "reason": "I say so"}, as_node="route")
    result: Any = client.runs.wait(thread, "chat", input=None)
    assert (result["method"], result["reason"], len(result["evidence"])) == ("rag", "I say so", 2)


@pytest.mark.parametrize(
    ("given", "context", "sentence"),
    [
        ({"messages": []}, {}, "there is no message to answer"),
        ({"messages": [{"type": "ai", "content": "Hello."}]}, {}, "the conversation ends with an AI's message"),
        ({"messages": [human("Hello.")]}, {"settings": {"critc": False}}, "did you mean 'critic'?"),
        ({"messages": [human("Hello.")]}, {"retriever": "os:abort"}, "a run may not name the source 'os:abort'"),
    ],
)  # fmt: skip
def test_bad_input_is_an_error_with_our_sentence(
    client: SyncLangGraphClient, given: Any, context: Any, sentence: str
) -> None:
    result: Any = client.runs.wait(None, "chat", input=given, context=context, raise_error=False)
    assert sentence in result["__error__"]["message"]
