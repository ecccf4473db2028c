"""A run in a process of its own that is killed within a model call."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from contextlib import AbstractContextManager
from threading import Event
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import SecretStr

from stepcraft import get_graph
from tests.graphs.test_every_graph import scripted_settings
from tests.servers.openai_replies import Body, Reply, hang
from tests.servers.openai_server import OpenAIServer
from tests.shelf import QUESTION, THREAD, Shelf


class Dying:
    """Answers in order; one request, by its number from 0, is left without an answer once."""

    def __init__(self, replies: Sequence[str], dying: int) -> None:
        self.replies = list(replies)
        self.dying = dying
        self.reached = Event()
        self.asked = 0
        """Requests that were answered."""

    def __call__(self, _body: Body) -> Reply | str:
        if self.asked == self.dying and not self.reached.is_set():
            self.reached.set()
            return hang()
        self.asked += 1
        return self.replies[self.asked - 1]


def saver(threads: str) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
    """Return the checkpointer of a file or of a database."""
    if threads.startswith("postgresql"):
        return PostgresSaver.from_conn_string(threads)
    return SqliteSaver.from_conn_string(threads)


def run(base_url: str, name: str, threads: str, given: Any) -> Any:
    """Run a graph on a thread, or go on with it where nothing is given."""
    model = ChatOpenAI(model="served", base_url=base_url, api_key=SecretStr("k"))
    with saver(threads) as checkpointer:
        checkpointer.setup()  # type: ignore[attr-defined] # both have it
        graph = get_graph(
            name,
            model=model,
            sources=Shelf(),
            checkpointer=checkpointer,
            settings=scripted_settings(name),
        )
        return graph.invoke(given, THREAD, durability="sync")


def kill_within(dying: Dying, server: OpenAIServer, name: str, threads: str) -> None:
    """Run a graph in another process until it waits for the fatal reply, and kill the process."""
    process = _PROCESSES.Process(
        target=run, args=(server.base_url, name, threads, QUESTION), daemon=True
    )
    process.start()
    assert dying.reached.wait(90), "the run did not come so far"
    process.kill()
    process.join()


_PROCESSES = multiprocessing.get_context("forkserver")
"""Processes begin as copies of one that has imported the package, which takes seconds."""
_PROCESSES.set_forkserver_preload(["tests.graphs.killed"])
