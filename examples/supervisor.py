"""A supervisor that talks to the user and hands over to RAT what has to be checked against sources.

Run with `python examples/supervisor.py "Which memories can a procedure be kept in?"`. STEPCRAFT_MODEL names the model;
without it the supervisor follows a script.
"""

import sys
from typing import Annotated, Any, Literal

from example_model import calling, chat_model
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command

from stepcraft import MergedResults, as_node, build_rat

QUESTION = "Which memories can the procedures of an agent be kept in?"
INSTRUCTIONS = "Hand over every question of fact. Once there are notes, answer from them alone."


class State(MergedResults, total=False):
    """The conversation, and what RAT is asked and says."""

    messages: Annotated[list[AnyMessage], add_messages]
    task: str
    notes: str


@tool
def hand_over(question: str) -> str:
    """Hand a question over to a researcher, who checks every thought of the answer against sources."""
    return question


def main(question: str) -> None:
    """Ask the supervisor and print who does what."""
    script = calling("hand_over", question=question), "The notes of the researcher answer it."
    model = chat_model(*script).bind_tools([hand_over])

    def supervisor(state: State) -> Command[Literal["researcher", "__end__"]]:
        notes = [HumanMessage(f"Notes of the researcher:\n{state['notes']}")] if state.get("notes") else []
        asked = next(message for message in state["messages"] if isinstance(message, HumanMessage))
        reply = model.invoke([SystemMessage(INSTRUCTIONS), asked, *notes])
        if isinstance(reply, AIMessage) and reply.tool_calls and not notes:
            return Command(goto="researcher", update={"task": reply.tool_calls[0]["args"]["question"]})
        return Command(goto="__end__", update={"messages": [reply]})

    researcher = as_node(
        build_rat(fallback="memory"),
        state=State,
        question="task",
        answer="notes",
        evidence="evidence",
        warnings="warnings",
        usage="usage",
    )
    builder = StateGraph(State)
    builder.add_node("supervisor", supervisor)
    builder.add_node("researcher", researcher)
    builder.add_edge(START, "supervisor")
    builder.add_edge("researcher", "supervisor")
    result: dict[str, Any] = {}
    given: State = {"messages": [HumanMessage(question)]}
    parts: Any = builder.compile().stream(given, stream_mode=["updates", "values"], subgraphs=True)
    for namespace, mode, data in parts:
        if mode == "updates":
            print("  " * len(namespace) + ", ".join(data))
        elif not namespace:
            result = data
    print(f"\nThe supervisor: {result['messages'][-1].text}\n\nThe notes: {result['notes']}\n\nThey rest on:")
    for passage in result["evidence"]:
        print(f"- {passage['title']}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or QUESTION)
