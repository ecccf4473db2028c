"""An agent that has two graphs as tools: AAG for procedures, RPG for answers with sources.

Run with `python examples/agent.py "How do I add long-term memory to a chat agent?"`. STEPCRAFT_MODEL names the model of
the agent and of the graphs; without it the agent follows a script and the graphs use the keyless model.
"""

import sys
from typing import Any

from example_model import calling, chat_model
from langchain.agents import create_agent
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from stepcraft import as_tool, build_aag, build_rpg

QUESTION = "How do I add long-term memory to a chat agent?"


def main(question: str) -> None:
    """Ask the agent, print the steps of the tools, the answer and what it rests on."""
    tools = [
        as_tool(build_aag(), name="write_procedure", context={"max_updates": 1}),
        as_tool(build_rpg(fallback="memory"), name="answer_with_sources", context={"max_cycles": 2}),
    ]
    script = (
        calling("write_procedure", question=question),
        "The steps above do it; each rests on a procedure.",
    )
    agent = create_agent(chat_model(*script), tools, system_prompt="Answer with what the tools find.")

    messages: list[AnyMessage] = []
    parts: Any = agent.stream(
        {"messages": [HumanMessage(question)]}, stream_mode=["updates", "values"], subgraphs=True
    )
    for namespace, mode, data in parts:
        if mode == "updates":
            print("  " * len(namespace) + ", ".join(data))
        elif not namespace:
            messages = data["messages"]

    for reply in messages:
        if isinstance(reply, ToolMessage):
            print(f"\n{reply.name}:\n{reply.text}")
            if reply.artifact:
                print(f"\n{reply.artifact['usage']['calls']} model calls")
    print(f"\nThe agent: {messages[-1].text}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or QUESTION)
