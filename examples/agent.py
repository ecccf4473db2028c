"""An agent that has RPG as its tool, for answers whose sentences name their sources.

Run with `python examples/agent.py "How does an agent remember its users?"`. STEPCRAFT_MODEL names
the model of the agent and of the graph; without it a script and the keyless model reply.
"""

import sys
from typing import Any

from example_model import calling, chat_model
from langchain.agents import create_agent
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from stepcraft import as_tool, build_rpg


def main(question: str) -> None:
    """Ask the agent; print what the graph is doing, its answer, and what it rests on."""
    # sources="corpus:docs" would search your files instead of the bundled procedures.
    tool = as_tool(build_rpg(), name="look_up", context={"max_calls": 8})
    model = chat_model(calling("look_up", question=question), "The answer above has its sources.")
    agent = create_agent(model, [tool], system_prompt="Answer with what the tool finds.")

    messages: list[AnyMessage] = []
    parts: Any = agent.stream(
        {"messages": [HumanMessage(question)]}, stream_mode=["custom", "values"], subgraphs=True
    )
    for namespace, mode, data in parts:
        if mode == "custom" and data["type"] == "progress":
            print(data["text"])
        elif mode == "values" and not namespace:
            messages = data["messages"]
    for message in messages:
        if isinstance(message, ToolMessage):
            supported = [sentence["supported"] for sentence in message.artifact["sentences"]]
            print(f"\n{message.text}\n\n{sum(supported)} of {len(supported)} sentences supported")
    print(f"\nThe agent: {messages[-1].text}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "How do I add long-term memory to a chat agent?")
