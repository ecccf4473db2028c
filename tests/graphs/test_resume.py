"""A run that was killed within a model call goes on in another process, and asks nothing again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.graphs.killed import Dying, kill_within, run
from tests.graphs.test_every_graph import REPLIES
from tests.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.xdist_group("postgres_url")
"""One process forks them all, and has Postgres."""

CALLS = [(name, number) for name, replies in REPLIES.items() for number in range(len(replies))]


def killed_and_resumed(name: str, number: int, threads: str) -> None:
    dying = Dying(REPLIES[name], number)
    with OpenAIServer(dying) as server:
        kill_within(dying, server, name, threads)
        result = run(server.base_url, name, threads, None)
    assert dying.asked == len(REPLIES[name])
    assert result["usage"]["calls"] == len(REPLIES[name])
    assert result["revisions"]


@pytest.mark.parametrize(("name", "number"), CALLS)
def test_in_sqlite(name: str, number: int, tmp_path: Path) -> None:
    killed_and_resumed(name, number, str(tmp_path / "threads.db"))


@pytest.mark.parametrize(("name", "number"), [("rat", 1), ("rpg", 2), ("aag", 3)])
def test_in_postgres(name: str, number: int, new_database: Callable[[], str]) -> None:
    killed_and_resumed(name, number, new_database())
