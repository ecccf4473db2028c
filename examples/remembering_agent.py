"""An agent that finds procedures in a memory, and saves what it found out once a person has accepted it.

Run with `python examples/remembering_agent.py "bake a rye bread"`. The run stops before a procedure is saved; where no one
is at the terminal, it is accepted. STEPCRAFT_MODEL names the model of the agent; without it the agent follows a script.
"""

import sys
from typing import Any

from example_model import calling, chat_model
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from stepcraft import memory_tools

GOAL = "bake a rye bread"
INSTRUCTIONS = (
    "Search the memory before you answer. Save the procedure that you found out, then look it up once more."
)


def reviewed(request: dict[str, Any]) -> dict[str, Any]:
    """What the person says to a procedure that is about to be saved."""
    print(f"\nTo be saved in {request['memory']}: {request['goal']}", *request["steps"], sep="\n- ")
    said = input("\nEnter to accept, or why not: ") if sys.stdin.isatty() else ""
    return {"type": "reject", "reason": said} if said else {"type": "accept", "by": "the reader"}


def main(goal: str) -> None:
    """Have the agent learn a procedure, and print what its tools say."""
    steps = ["Mix rye flour, water and sourdough.", "Let it rise overnight.", "Bake it for an hour."]
    script = (
        calling("search_procedures", query=goal),
        calling("save_procedure", goal=goal, needs="rye flour, a sourdough starter", steps=steps),
        calling("search_procedures", query=goal),
        "The procedure is in the memory now.",
    )
    # "store:" is the store of the agent; on a server, that of the server.
    agent = create_agent(
        chat_model(*script),
        memory_tools("store:kitchen"),
        system_prompt=INSTRUCTIONS,
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
    )
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    result: dict[str, Any] = agent.invoke({"messages": [HumanMessage(goal)]}, thread)
    while asked := result.get("__interrupt__"):
        result = agent.invoke(Command(resume=reviewed(asked[0].value)), thread)
    for reply in result["messages"]:
        if isinstance(reply, ToolMessage):
            print(f"\n{reply.name}:\n{reply.text}")
    print(f"\nThe agent: {result['messages'][-1].text}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or GOAL)
