"""A chat model that says what a test or a benchmark tells it to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, ensure_config
from pydantic import PrivateAttr

Reply = str | AIMessage | BaseException
Answer = Callable[[str, str], Reply]
"""From the node's name and the prompt's text to a reply."""

Manager = CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None


@dataclass
class Call:
    """One request to the model; `ended` stays None if it was cancelled.

    `superstep` is LangGraph's count: nodes with the same one run beside each other.
    """

    node: str
    superstep: int
    messages: list[BaseMessage]
    kwargs: dict[str, Any]
    started: float
    ended: float | None = None

    @property
    def prompt(self) -> str:
        return "\n\n".join(message.text for message in self.messages)


class ScriptedModel(BaseChatModel):
    """Replies in the order of the calls, or of each node's calls, or as a function decides.

    A reply that is an exception is raised. `latency` passes, in seconds, before the first word.
    """

    latency: float = 0.0

    _script: Callable[[Call], Reply] = PrivateAttr()
    _lock: Any = PrivateAttr(default_factory=Lock)
    _calls: list[Call] = PrivateAttr(default_factory=list)

    def __init__(
        self,
        script: Sequence[Reply] | Mapping[str, Sequence[Reply]] | Answer,
        *,
        latency: float = 0.0,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self.latency = latency
        self._script = _reader(script)

    @property
    def calls(self) -> list[Call]:
        """Every call so far, in the order in which they started."""
        with self._lock:
            return list(self._calls)

    @property
    def nodes(self) -> list[str]:
        """Who called, in the order of the calls."""
        return [call.node for call in self.calls]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _begin(
        self, messages: list[BaseMessage], manager: Manager, kwargs: dict[str, Any]
    ) -> tuple[Call, Reply]:
        metadata = manager.metadata if manager else ensure_config().get("metadata", {})
        node = str(metadata.get("langgraph_node", ""))
        superstep = int(metadata.get("langgraph_step", 0))
        call = Call(node, superstep, messages, kwargs, time.perf_counter())
        with self._lock:
            self._calls.append(call)
            return call, self._script(call)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call, reply = self._begin(messages, run_manager, kwargs)
        if self.latency:
            time.sleep(self.latency)
        return ChatResult(generations=[ChatGeneration(message=_end(call, reply))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call, reply = self._begin(messages, run_manager, kwargs)
        if self.latency:
            await asyncio.sleep(self.latency)
        return ChatResult(generations=[ChatGeneration(message=_end(call, reply))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        call, reply = self._begin(messages, run_manager, kwargs)
        if self.latency:
            time.sleep(self.latency)
        yield from _chunks(_end(call, reply))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        call, reply = self._begin(messages, run_manager, kwargs)
        if self.latency:
            await asyncio.sleep(self.latency)
        for chunk in _chunks(_end(call, reply)):
            yield chunk


class ToolModel(ScriptedModel):
    """The same, and it takes tools: a call that offered some has their names among its `kwargs`."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[tool.name for tool in tools], **kwargs)


def block(part: int, old: str = "", new: str = "", kind: str = "PART") -> str:
    """A change as a check writes it: `old` becomes `new`; without `old`, `new` is added."""
    halves = [f"{half}\n" if half else "" for half in (old, new)]
    return f"<<<<<<< {kind} {part}\n{halves[0]}=======\n{halves[1]}>>>>>>> END"


def searching(*queries: str) -> AIMessage:
    """A turn that calls for searches."""
    calls = [{"name": "search", "args": {"query": query}, "id": f"{query}!"} for query in queries]
    return AIMessage("", tool_calls=calls)


def _reader(
    script: Sequence[Reply] | Mapping[str, Sequence[Reply]] | Answer,
) -> Callable[[Call], Reply]:
    if callable(script):
        return lambda call: script(call.node, call.prompt)
    if isinstance(script, Mapping):
        queues = {node: iter(replies) for node, replies in script.items()}
        return lambda call: _next(queues.get(call.node, iter(())), call)
    replies = iter(script)
    return lambda call: _next(replies, call)


def _next(replies: Iterator[Reply], call: Call) -> Reply:
    for reply in replies:
        return reply
    raise AssertionError(f"the script has no reply left for the node {call.node!r}")


def _end(call: Call, reply: Reply) -> AIMessage:
    call.ended = time.perf_counter()
    if isinstance(reply, BaseException):
        raise reply
    message = AIMessage(reply) if isinstance(reply, str) else reply.model_copy()
    message.usage_metadata = message.usage_metadata or _usage(call, message)
    message.response_metadata = {
        "finish_reason": "stop",
        "model_name": "scripted",
    } | message.response_metadata
    return message


def _usage(call: Call, message: AIMessage) -> UsageMetadata:
    """Four characters stand for a token."""
    read = sum(len(message.content) for message in call.messages) // 4
    written = len(message.content) // 4
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Word by word; content of blocks comes whole."""
    content = message.content
    for piece in (
        re.findall(r"\s*\S+\s*$|\s*\S+", content) if isinstance(content, str) else [content]
    ):
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    last = AIMessageChunk(
        content="",
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        tool_call_chunks=[
            {
                "name": call["name"],
                "args": json.dumps(call["args"]),
                "id": call["id"],
                "index": place,
            }
            for place, call in enumerate(message.tool_calls)
        ],
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=last)
