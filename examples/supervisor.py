"""A supervisor of langgraph-supervisor with RAT and AAG as its members, streamed.

Run with `python examples/supervisor.py "add long-term memory to a chat agent"`. STEPCRAFT_MODEL
names the model of all; without it a script and the keyless model reply.
"""

import sys
from typing import Any

from example_model import calling, chat_model
from langchain_core.messages import HumanMessage
from langgraph_supervisor import create_supervisor

from stepcraft import build_aag, build_rat

INSTRUCTIONS = "Hand goals to aag, which writes steps, and questions to rat, which looks facts up."


def main(task: str) -> None:
    """Give the team a task; print what its members do, and how the conversation ends."""
    model = chat_model(calling("transfer_to_aag"), "The steps above do it.")
    members = [build_aag(), build_rat(sources="memory")]
    # Without handoffs the conversation shows the answers alone.
    team = create_supervisor(
        members, model=model, prompt=INSTRUCTIONS, add_handoff_back_messages=False
    ).compile()
    messages: list[Any] = []
    parts: Any = team.stream(
        {"messages": [HumanMessage(task)]}, stream_mode=["custom", "values"], subgraphs=True
    )
    for namespace, mode, data in parts:
        if mode == "custom" and data["type"] == "progress":
            print(f"{data['graph']}: {data['text']}")
        elif mode == "values" and not namespace:
            messages = data["messages"]
    print(*(f"\n{each.type}: {each.text}" for each in messages if each.text), sep="\n")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "add long-term memory to a chat agent")
