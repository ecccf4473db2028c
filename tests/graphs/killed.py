"""A run in a process of its own that is killed within a model call."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Event
from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from stepcraft.contexts.base import Context
from tests.servers.openai_replies import Body, Reply, hang
from tests.servers.openai_server import OpenAIServer

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Dying:
    """Answers every request by what it asks and not by when, save that one call of one node is left waiting."""

    def __init__(
        self, replies: Callable[[str, Body], str], context: Context, node: str = "", number: int = 1
    ) -> None:
        self.replies = replies
        self.context = context
        self.dying = (node, number)
        self.reached = Event()
        self.asked: list[str] = []

    def __call__(self, body: Body) -> Reply | str:
        node = self._node_of(body)
        self.asked.append(node)
        if self.dying == (node, self.asked.count(node)) and not self.reached.is_set():
            self.reached.set()
            return hang()
        return self.replies(node, body)

    def _node_of(self, body: Body) -> str:
        """Whose instructions the request begins with."""
        told = body["messages"][0]["content"]
        nodes = [
            name.removesuffix("_instructions")
            for name in vars(self.context)
            if name.endswith("_instructions")
        ]
        return next(
            node for node in nodes if told.startswith(getattr(self.context, f"{node}_instructions").strip())
        )


class Moody(Dying):
    """Answers every request by what it asks; the first call of a node gets that node's fault instead."""

    def __init__(
        self, replies: Callable[[str, Body], str], context: Context, faults: Mapping[str, Reply]
    ) -> None:
        super().__init__(replies, context)
        self.faults = dict(faults)

    def __call__(self, body: Body) -> Reply | str:
        reply = super().__call__(body)
        return self.faults.pop(self.asked[-1], reply)


def whole(body: Body) -> str:
    """All that a request says to the model."""
    return "\n\n".join(message["content"] for message in body["messages"])


def ran(how: str, graph: Any, given: Any, context: Context) -> Any:
    """The result of a run: sync, async, or streamed as the command line streams."""
    if how == "sync":
        return graph.invoke(given, context=context)
    if how == "async":
        return asyncio.run(graph.ainvoke(given, context=context))
    modes = ["messages", "values", "custom"]
    parts = graph.stream(given, context=context, stream_mode=modes, subgraphs=True)
    *_, last = (state for namespace, mode, state in parts if mode == "values" and not namespace)
    return last


def chat(server: OpenAIServer, model: str = "served") -> ChatOpenAI:
    return ChatOpenAI(
        model=model,
        base_url=server.base_url,
        api_key=SecretStr("k"),
        max_retries=0,
        default_headers={"Connection": "close"},
    )


def kill_within(
    dying: Dying, server: OpenAIServer, graph: Any, beside: int, run: Callable[..., None], *given: Any
) -> None:
    """Kill a run in the fatal call, once `beside` tasks that run beside it are kept."""
    kill_when({"1": lambda: dying.reached.is_set() and kept(graph, THREAD) == beside}, server, run, *given)


def kill_when(
    reached: Mapping[str, Callable[[], bool]], server: OpenAIServer, run: Callable[..., None], *given: Any
) -> None:
    """Run a function in a process of its own, and kill that once each thread has come as far as it shall."""
    process = _PROCESSES.Process(target=_run, args=(server.base_url, run, given), daemon=True)
    process.start()
    end, pause, left = time.monotonic() + 90, Event(), dict(reached)
    try:
        while left := {thread: holds for thread, holds in left.items() if not holds()}:
            assert process.is_alive(), "the process ended by itself"
            assert time.monotonic() < end, f"not there yet: {', '.join(left)}"
            pause.wait(0.02)
    finally:
        process.kill()
        process.join()


def run_at_once(server: OpenAIServer, run: Callable[..., None], given: Iterable[tuple[Any, ...]]) -> None:
    """Run a function with each of these arguments in a process of its own, all at once."""
    processes = [_PROCESSES.Process(target=_run, args=(server.base_url, run, each)) for each in given]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def _run(base_url: str, run: Callable[..., None], given: tuple[Any, ...]) -> None:
    os.environ |= {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "k"}
    run(*given)


_PROCESSES = multiprocessing.get_context("forkserver")
"""Processes begin as copies of one that has imported the package and ran nothing, because importing takes seconds."""
_PROCESSES.set_forkserver_preload(["tests.graphs.persisted"])


def kept(graph: Any, thread: Any) -> int:
    """How many tasks of the thread's current step are finished and kept."""
    return sum(bool(task.result) for task in graph.get_state(thread).tasks)
