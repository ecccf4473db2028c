"""A swarm of langgraph-swarm: an agent at the front hands questions over to RAT.

Run with `python examples/swarm.py "How does an agent stream?"`. STEPCRAFT_MODEL names the model of
all; without it a script and the keyless model reply.
"""

import sys
from typing import Any

from example_model import calling, chat_model
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_swarm import create_handoff_tool, create_swarm

from stepcraft import build_rat


def main(*questions: str) -> None:
    """Ask one question after the other; print who answered it, and how."""
    rat = build_rat(sources="memory")  # "corpus:docs/" for your files
    to_rat = create_handoff_tool(agent_name="rat", description="Hand over what needs facts.")
    front = create_agent(chat_model(calling("transfer_to_rat")), [to_rat], name="front")
    # RAT hands nothing back: it answers the rest of the conversation.
    swarm = create_swarm([front, rat], default_active_agent="front").compile(InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    for question in questions:
        state = swarm.invoke({"messages": [HumanMessage(question)]}, thread)
        print(f"{state['active_agent']}: {state['messages'][-1].text}\n")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "How does an agent stream?")
