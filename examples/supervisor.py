"""A supervisor with three methods as its tools: procedures, checked answers, and cited answers.

Run with `python examples/supervisor.py "add long-term memory to a chat agent"`. STEPCRAFT_MODEL
names the model of all; without it a script and the keyless model reply.
"""

import sys

from example_model import calling, chat_model
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage

from stepcraft import as_tool, build_aag, build_rat, build_rpg

INSTRUCTIONS = """Hand over whatever takes more than talk to the tool that fits, with a question
that says all. Pass on its answer, and what it says that is unchecked."""


def main(task: str) -> None:
    """Give the supervisor a task; print which tool it chose, and what came of it."""
    tools = [
        as_tool(build_aag(), name="write_procedure"),
        as_tool(build_rat(), name="check_answer", arguments=["draft"]),
        as_tool(build_rpg(), name="answer_with_sources"),
    ]
    script = calling("write_procedure", question=task), "The steps above do it."
    supervisor = create_agent(chat_model(*script), tools, system_prompt=INSTRUCTIONS)
    for message in supervisor.invoke({"messages": [HumanMessage(task)]})["messages"]:
        if isinstance(message, ToolMessage):
            print(f"\n{message.name}, {message.artifact['usage']['calls']} model calls:")
        if message.text:
            print(message.text)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "add long-term memory to a chat agent")
