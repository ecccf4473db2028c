"""Every graph as a subagent of deepagents and as a member of a supervisor and of a swarm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from stepcraft import aag_builder, rat_builder, rpg_builder
from tests.graphs.test_every_graph import REPLIES, scripted_settings
from tests.kitchen import small_memory
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, THREAD, Shelf

# langgraph-supervisor calls what LangGraph has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")

BUILDERS: dict[str, tuple[Callable[..., Any], str]] = {
    "aag": (aag_builder, "critic"),
    "rat": (rat_builder, "revise"),
    "rpg": (rpg_builder, "revise"),
}
ANSWERS = {"aag": "the sourdough starter", "rat": "In 1873.", "rpg": "Four of them."}


class Agent(ScriptedModel):
    """The model of an agent, whose script names its tools."""

    def bind_tools(self, tools: object, **_: object) -> Any:
        return self


def call(tool: str, **args: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": tool}])


def asks_a_person(state: Any) -> Any:
    assert interrupt("go on?") == "yes"
    return state


def in_deepagents(name: str, graph: Any) -> tuple[Any, Agent]:
    task = call("task", description=QUESTION["question"], subagent_type=name)
    subagent = {"name": name, "description": "Answers.", "runnable": graph}
    model = Agent([task, "Done."])
    return create_deep_agent(model, subagents=[subagent], checkpointer=InMemorySaver()), model


def in_a_supervisor(name: str, graph: Any) -> tuple[Any, Agent]:
    model = Agent([call(f"transfer_to_{name}"), "Done."])
    return create_supervisor([graph], model=model).compile(InMemorySaver()), model


def in_a_swarm(name: str, graph: Any) -> tuple[Any, Agent]:
    model = Agent([call(f"transfer_to_{name}")])
    front = create_agent(model, [create_handoff_tool(agent_name=name)], name="front")
    return create_swarm([front, graph], default_active_agent="front").compile(
        InMemorySaver()
    ), model


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("host", [in_deepagents, in_a_supervisor, in_a_swarm])
async def test_it_is_streamed_interrupted_and_resumed(host: Any, name: str) -> None:
    make_builder, checks = BUILDERS[name]
    writer = ScriptedModel(REPLIES[name])
    builder = make_builder(
        model=writer,
        sources=Shelf(),
        memory=small_memory(),
        settings=scripted_settings(name),
    )
    check = builder.nodes.pop(checks).runnable
    builder.add_node(checks, RunnableLambda(asks_a_person) | check)
    team, model = host(name, builder.compile(name=name))

    given: Any = {"messages": [HumanMessage(QUESTION["question"])]}
    progress: list[str] = []
    interrupts = 0
    while given:
        state: Any = {}
        async for namespace, mode, data in team.astream(
            given, THREAD, stream_mode=["custom", "values"], subgraphs=True
        ):
            if mode == "custom":
                progress.append(data["graph"])
            elif not namespace:
                state = data
        given = Command(resume="yes") if state.get("__interrupt__") else None
        interrupts += bool(given)

    assert interrupts == writer.nodes.count(checks)
    assert set(progress) == {name}
    assert len(writer.calls) == len(REPLIES[name])
    texts = [message.text for message in state["messages"]]
    assert any(ANSWERS[name] in text for text in texts)
    assert host is in_a_swarm or (len(model.calls), texts[-1]) == (2, "Done.")
