"""Every graph on Postgres: killed and resumed by another process, and run by many processes on one database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from stepcraft import open_memory
from tests.graphs.killed import Dying, chat, kept, kill_when, run_at_once
from tests.graphs.persisted import CASES, MEMORY, aopened, case_of, config, opened, run
from tests.kitchen import PROCEDURES
from tests.servers.openai_replies import Body, Reply
from tests.servers.openai_server import OpenAIServer

DEATHS = [
    ("aag", "draft", 1, 1),
    ("aag", "answer", 3, 3),
    ("aag", "edit", 1, 0),
    ("rat", "to_query", 3, 1),
    ("rat", "finish", 1, 0),
    ("rpg", "plan", 1, 1),
    ("rpg", "answer", 2, 0),
    ("direct", "answer", 1, 0),
    ("cot", "answer", 1, 0),
    ("rag", "answer", 1, 0),
    ("few_shot", "answer", 1, 0),
    ("react", "agent", 2, 0),
    ("react", "agent", 3, 0),
]
"""Graph, node, which of its calls is fatal, and how many tasks beside that call are finished before the kill."""

HOW = ("sync", "async")


@pytest.fixture(scope="module")
def database(new_database: Callable[[], str]) -> str:
    """A database that is set up, with procedures in its store."""
    url = new_database()
    with opened(url) as (saver, store):
        saver.setup()
        store.setup()
        with open_memory(MEMORY, store=store) as memory:
            memory.add(PROCEDURES)
    return url


@pytest.fixture(scope="module")
def undisturbed(database: str) -> dict[str, Any]:
    """The result of every graph without a checkpointer."""
    results: dict[str, Any] = {}
    for name, case in CASES.items():
        with OpenAIServer(Dying(case.reply, case.context)) as server, opened(database) as (_, store):
            graph = case.graph(chat(server, name), store=store)
            results[name] = graph.invoke(case.given, context=case.context)
            assert results[name]["answer"]
    return results


def test_killed_runs_go_on_without_asking_again(database: str, undisturbed: dict[str, Any]) -> None:
    """A process that runs every graph is killed when each run has reached its fatal call; this one resumes them."""
    deaths = {
        f"{name}-{how}-{node}-{number}": (node, number, beside)
        for how in HOW
        for name, node, number, beside in DEATHS
    }
    lost = [f"rag-{how}-exit" for how in HOW]
    dying = {thread: Dying(CASES["rag"].reply, CASES["rag"].context, "answer") for thread in lost} | {
        thread: Dying(case_of(thread).reply, case_of(thread).context, node, number)
        for thread, (node, number, _) in deaths.items()
    }
    with OpenAIServer(lambda body: dying[body["model"]](body)) as server:
        with opened(database) as (saver, store):
            graphs = {thread: case_of(thread).graph(chat(server, thread), saver, store) for thread in dying}

            def there(thread: str) -> bool:
                if not dying[thread].reached.is_set():
                    return False
                return thread in lost or kept(graphs[thread], config(thread)) == deaths[thread][2]

            kill_when({thread: partial(there, thread) for thread in dying}, server, run, database, [*dying])
            results = {
                thread: graphs[thread].invoke(None, config(thread))
                for thread in deaths
                if not on_a_loop(thread)
            }
            for thread in lost:
                assert graphs[thread].get_state(config(thread)).values == {}, (
                    "it was to be written at the end"
                )
        results |= asyncio.run(resumed(database, server, list(filter(on_a_loop, deaths))))
    for thread, (node, _, _) in deaths.items():
        expected = sorted([*case_of(thread).calls, node])
        assert sorted(dying[thread].asked) == expected, "only the call that it died in was made again"
        assert results[thread] == undisturbed[thread.partition("-")[0]]


def on_a_loop(thread: str) -> bool:
    """Whether a thread is resumed on an event loop: a method as it began, a baseline the other way."""
    return ("-async" in thread) == thread.startswith(("aag", "rat", "rpg"))


async def resumed(database: str, server: OpenAIServer, threads: list[str]) -> dict[str, Any]:
    async with aopened(database) as (saver, store):
        graphs = [case_of(thread).graph(chat(server, thread), saver, store) for thread in threads]
        runs = [graph.ainvoke(None, config(thread)) for graph, thread in zip(graphs, threads, strict=True)]
        return dict(zip(threads, await asyncio.gather(*runs), strict=True))


def test_eight_processes_share_a_database(database: str, undisturbed: dict[str, Any]) -> None:
    """Five runs in each of eight processes, all under way at once: no reply comes before every run has asked."""
    names = [*CASES] * 2  # so that no process has the same graph twice
    threads = [f"{name}-{HOW[turn % 2]}-{turn}" for turn in range(5) for name in names[turn : turn + 8]]
    scripts = {thread: Dying(case_of(thread).reply, case_of(thread).context) for thread in threads}
    all_ask = Event()

    def answer(body: Body) -> Reply:
        reply = scripts[body["model"]](body)
        if all(script.asked for script in scripts.values()):
            all_ask.set()
        return Reply(reply, until=all_ask) if isinstance(reply, str) else replace(reply, until=all_ask)

    with OpenAIServer(answer) as server:
        run_at_once(server, run, [(database, threads[worker::8]) for worker in range(8)])
    with opened(database) as (saver, _):
        for thread in threads:
            case, expected = case_of(thread), undisturbed[thread.partition("-")[0]]
            state = case.graph(None, saver).get_state(config(thread))
            assert state.next == ()
            assert {name: state.values[name] for name in expected} == expected
            assert sorted(scripts[thread].asked) == case.calls


def test_the_program_in_the_documentation_runs(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text("utf-8")
    [program] = re.findall(
        r"^```python\n(.*?)^```", page.partition("## State in Postgres")[2], re.DOTALL | re.MULTILINE
    )
    monkeypatch.setenv("DATABASE_URL", new_database())
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["result"]["answer"]
    assert any("store:recipes is empty" in warning for warning in names["result"]["warnings"])
