"""An agent of deepagents with AAG as its subagent; a person reviews the steps.

Run with `python examples/deep_agent.py "add long-term memory to a chat agent"`. STEPCRAFT_MODEL
names the model of all; without it a script and the keyless model reply.
"""

import sys
from typing import Any

from deepagents import create_deep_agent
from example_model import calling, chat_model
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from stepcraft import AagContext, build_aag


def main(task: str) -> None:
    """Give the agent a task; print the steps that are reviewed, and its answer."""
    writer = {
        "name": "procedures",
        "description": "Writes the steps that reach a goal. Tell it the goal and what is at hand.",
        "runnable": build_aag(settings=AagContext(review=True)),
    }
    call = calling("task", description=task, subagent_type="procedures")
    model = chat_model(call, "The steps are written.")
    agent = create_deep_agent(model, subagents=[writer], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    result = agent.invoke({"messages": [HumanMessage(task)]}, thread)
    [action] = result["__interrupt__"][0].value["action_requests"]
    print(f"To be reviewed:\n{action['description']}")
    result = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    print(f"\nThe agent: {result['messages'][-1].text}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "add long-term memory to a chat agent")
