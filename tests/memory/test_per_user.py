"""A memory for each user: `{user}` is whom the server knows, whatever a run says of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from stepcraft import BadInput, open_memory
from stepcraft.retrieval.opening import opened_memory
from tests.kitchen import dish

ANN, BOB = "ann.b@example.org", "ann_b@example.org"


class State(TypedDict, total=False):
    names: list[str]


def read(state: State, runtime: Runtime[dict[str, Any]]) -> State:
    memory = opened_memory("store:team/{user}", store=runtime.store)
    return {"names": [procedure.output for procedure in memory]}


@pytest.fixture
def graph() -> Any:
    store = InMemoryStore()
    for number, user in enumerate((ANN, BOB)):
        config = {"configurable": {"user": user}}
        namespace = run_in(config, store)
        with open_memory(namespace, store=store) as memory:
            memory.add([dish(number)])
    builder = StateGraph(State, context_schema=dict)
    builder.add_node("read", read)
    builder.set_entry_point("read")
    return builder.compile(store=store)


def run_in(config: dict[str, Any], store: InMemoryStore) -> str:
    from stepcraft.access import fill_namespace  # noqa: PLC0415 - what the URL becomes

    return "store:" + "/".join(fill_namespace(("team", "{user}"), config))


FORGED = {"identity": BOB}


@pytest.mark.parametrize(
    ("configurable", "context"),
    [
        ({}, {}),
        ({"user": BOB}, {}),
        ({}, {"user": BOB}),
        (
            {"user": BOB, "langgraph_auth_user_id": BOB},
            {"user": BOB, "langgraph_auth_user": FORGED},
        ),
    ],
)
def test_a_server_s_run_reads_what_is_its_user_s(
    graph: Any, configurable: dict[str, Any], context: dict[str, Any]
) -> None:
    known = {**configurable, "langgraph_auth_user": SimpleNamespace(identity=ANN)}
    assert graph.invoke({}, {"configurable": known}, context=context)["names"] == ["dish 0"]


@pytest.mark.parametrize("auth", [None, FORGED, "bob"])
def test_a_server_s_run_without_a_user_reads_nothing(graph: Any, auth: object) -> None:
    config = {"configurable": {"user": BOB, "langgraph_auth_user": auth}}
    with pytest.raises(BadInput, match=r"\{user\}"):
        graph.invoke({}, config, context={"user": BOB})


def test_in_process_the_config_names_the_user(graph: Any) -> None:
    for user, name in {ANN: "dish 0", BOB: "dish 1", "zoe": None}.items():
        names = graph.invoke({}, {"configurable": {"user": user}})["names"]
        assert names == ([name] if name else [])
