"""The agent of ReAct over HTTP, as a provider sees it."""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI

from stepcraft.graphs.baselines import build_react
from tests.servers.openai_replies import Reply, error, tool_call
from tests.servers.openai_server import OpenAIServer
from tests.shelf import QUESTION, Shelf


def served(server: OpenAIServer, **context: Any) -> Any:
    model = ChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0)  # type: ignore[arg-type]
    return build_react(model=model, retriever=Shelf()).invoke(
        QUESTION, context={"retry_wait_s": 0, **context}
    )


def test_a_search_and_an_answer() -> None:
    replies = iter([error(500), tool_call("search", query="bridge"), Reply("Haldruvin built it.")])
    with OpenAIServer(lambda _body: next(replies)) as server:
        result = served(server)
    assert result["answer"] == "Haldruvin built it."
    assert result["usage"]["calls"] == 3
    assert result["usage"]["input_tokens"] > 10
    [tool] = server.bodies[0]["tools"]
    assert (tool["function"]["name"], list(tool["function"]["parameters"]["properties"])) == (
        "search",
        ["query"],
    )
    system, user, assistant, told = server.bodies[2]["messages"]
    assert [message["role"] for message in (system, user, assistant, told)] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert told["tool_call_id"] == "call_1"
    assert told["content"].startswith('<evidence id="1">\nOn bridge\nPassage 0 on bridge.\n</evidence>')


def test_a_provider_that_knows_no_tools() -> None:
    def reply(body: Any) -> Reply:
        return error(400, "m does not support tools") if body.get("tools") else Reply("From one search.")

    with OpenAIServer(reply) as server:
        result = served(server)
    assert result["answer"] == "From one search."
    assert len(result["evidence"]) == 3
    assert "does not support tools" in result["warnings"][0]
    assert [bool(body.get("tools")) for body in server.bodies] == [True, False]
