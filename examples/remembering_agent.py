"""An agent that searches a memory of procedures, and saves what a person approves.

Run with `python examples/remembering_agent.py "bake a rye bread"`. The run pauses before a
procedure is saved; where no one is at the terminal, it is approved. STEPCRAFT_MODEL names the
model.
"""

import sys
from typing import Any

from example_model import calling, chat_model
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from stepcraft import memory_tools


def decision(action: dict[str, Any]) -> dict[str, Any]:
    """Return what the person decides on a procedure that is about to be saved."""
    print(f"{action['description']}\n")
    reason = input("Enter to approve, or why not: ") if sys.stdin.isatty() else ""
    return {"type": "reject", "message": reason} if reason else {"type": "approve"}


def main(goal: str) -> None:
    """Have the agent learn a procedure, and print the conversation."""
    steps = [
        "Mix rye flour, water and sourdough.",
        "Let it rise overnight.",
        "Bake it for an hour.",
    ]
    script = (
        calling("search_procedures", query=goal),
        calling("save_procedure", goal=goal, needs="rye flour, a sourdough starter", steps=steps),
        calling("search_procedures", query=goal),
        "The procedure is in the memory now.",
    )
    agent = create_agent(
        chat_model(*script),
        memory_tools("store:kitchen"),  # the store of the agent; on a server, of the server
        system_prompt="Search the memory first. Save what you found out, then look it up again.",
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
    )
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    result: Any = agent.invoke({"messages": [HumanMessage(goal)]}, thread)
    while interrupts := result.get("__interrupt__"):
        [action] = interrupts[0].value["action_requests"]
        result = agent.invoke(Command(resume={"decisions": [decision(action)]}), thread)
    for message in result["messages"]:
        if message.text:
            print(f"{message.name or message.type}: {message.text}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "bake a rye bread")
