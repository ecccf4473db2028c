"""A person reviews the steps of a procedure before the critic does.

Run with `python examples/human_review.py "bake a rye bread"`. The run stops before the critic; you may add a step, and
it goes on with the steps as you left them. Where no one is at the terminal, a step is added for you. STEPCRAFT_MODEL
names the model.
"""

import sys

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import AagContext, build_aag

GOAL = "add long-term memory to a chat agent"


def main(goal: str) -> None:
    """Write the steps, have them reviewed, go on."""
    aag = build_aag(checkpointer=InMemorySaver(), interrupt_before=["critic"])
    thread: RunnableConfig = {"configurable": {"thread_id": "review"}}
    aag.invoke({"question": goal}, thread, context=AagContext(max_updates=1))
    print("Before the critic:", *aag.get_state(thread).values["steps"], sep="\n- ")
    while aag.get_state(thread).next:
        steps = list(aag.get_state(thread).values["steps"])
        added = (
            input("\nA step to add (Enter for none): ")
            if sys.stdin.isatty()
            else "Try it out with a colleague."
        )
        if added and added not in steps:
            steps.append(added)
            numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
            aag.update_state(thread, {"steps": steps, "answer": numbered})
        aag.invoke(None, thread)
    print("\nAfter it:", *aag.get_state(thread).values["steps"], sep="\n- ")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or GOAL)
