"""An agent that sees the procedures for its task, and whose answer is checked before it is shown.

Run with `python examples/middleware.py "add long-term memory to a chat agent"`. STEPCRAFT_MODEL
names the model of all; without it a script and the keyless model reply.
"""

import os
import sys

from example_model import chat_model
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from stepcraft import CheckAnswerMiddleware, ProceduralMemoryMiddleware, open_memory


def main(task: str) -> None:
    """Give the agent a task; print how many procedures it saw, the verdicts, and its answer."""
    memory = open_memory()  # the bundled procedures; "procedures.db" for your own
    middleware = [
        ProceduralMemoryMiddleware(memory),
        # sources="corpus:docs" would check against your files.
        CheckAnswerMiddleware("memory", model=os.environ.get("STEPCRAFT_MODEL")),
    ]
    model = chat_model("Compile the graph with a store, and let its nodes search the store.")
    agent = create_agent(model, middleware=middleware)
    state = agent.invoke({"messages": [HumanMessage(task)]})
    print(f"The agent saw {len(state['shown_procedures'])} procedures.")
    answer = state["messages"][-1]
    checked = answer.response_metadata["stepcraft"]
    for check in checked.get("checks", []):
        print(f"{check['verdict']}: {check['text']}")
    if "unchecked" in checked:
        print(f"unchecked: {checked['unchecked']}")
    print(answer.text)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "add long-term memory to a chat agent")
