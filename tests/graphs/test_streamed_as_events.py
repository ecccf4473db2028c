"""A run that is streamed as events gives what it gives otherwise, also where subgraphs run beside each other."""

from __future__ import annotations

from typing import Any

import pytest

from stepcraft import get_graph

ASKED = {"question": "How does a LangGraph agent keep what it learned with a Store?"}


@pytest.mark.parametrize(("name", "context"), [("rat", {"window": 3}), ("rpg", {})])
async def test_the_result_is_the_same(name: str, context: dict[str, Any]) -> None:
    graph = get_graph(name)
    expected = await graph.ainvoke(ASKED, context=context)
    events = graph.astream_events(ASKED, context=context, version="v2", stream_mode="values")
    ends = [event async for event in events if event["event"] == "on_chain_end" and not event["parent_ids"]]
    found = ends[-1]["data"]["output"]
    assert {key: found[key] for key in expected} == expected
