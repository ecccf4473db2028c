"""A person reviews the steps of a procedure: approves them, edits them, or says what is wrong.

Run with `python examples/human_review.py "bake a rye bread"`. The request and the decisions are
those of LangChain's HumanInTheLoopMiddleware, so that an agent inbox shows them, too. Where no one
is at the terminal, a step is added. STEPCRAFT_MODEL names the model.
"""

import sys
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from stepcraft import AagContext, build_aag


def decision(action: dict[str, Any]) -> dict[str, Any]:
    """Return what the person decides on the steps."""
    print(action["description"])
    if not sys.stdin.isatty():
        steps = [*action["args"]["steps"], "Try it out with a colleague."]
        return {"type": "edit", "edited_action": {"name": action["name"], "args": {"steps": steps}}}
    reason = input("\nEnter to approve, or say what is wrong: ")
    return {"type": "reject", "message": reason} if reason else {"type": "approve"}


def main(goal: str) -> None:
    """Write the steps, and have them reviewed until they are approved."""
    aag = build_aag(checkpointer=InMemorySaver(), settings=AagContext(review=True))
    thread: RunnableConfig = {"configurable": {"thread_id": "review"}}
    result = aag.invoke({"question": goal}, thread)
    while interrupts := result.get("__interrupt__"):
        [action] = interrupts[0].value["action_requests"]
        result = aag.invoke(Command(resume={"decisions": [decision(action)]}), thread)
    print(f"\nReviewed:\n{result['answer']}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "add long-term memory to a chat agent")
