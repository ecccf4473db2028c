"""AAG, analogy-augmented generation, as in its paper.

    retrieve → draft ‖ to_query → retrieve → answer (each question) → revise → (critic → edit)*

The draft and the questions are generated in parallel, and the questions are then answered in
parallel, which does not affect the replies. The ablations are `questions=False` (NOQG),
`answers=False` (NOAG) and `critic=False` (NOCR).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send
from typing_extensions import Unpack

from stepcraft.graphs.aag import AagInput
from stepcraft.llm.node import Update, publish
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.nodes.begin import Begin, checked_text
from stepcraft.nodes.plan import goal_query
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.state import Answer
from stepcraft.schema import described
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.nodes.answer_question import answer_question
from stepcraft_papers.nodes.ask_questions import ask_questions
from stepcraft_papers.nodes.criticise_steps import criticise_steps
from stepcraft_papers.nodes.draft_steps import draft_steps
from stepcraft_papers.nodes.edit_steps import edit_steps
from stepcraft_papers.nodes.state import AagPaperState, Answered, Critique
from stepcraft_papers.nodes.update_steps import update_steps

MODEL_NODES = (
    draft_steps,
    ask_questions,
    answer_question,
    update_steps,
    criticise_steps,
    edit_steps,
)


@described
class AagPaperOutput(Answer):
    """The procedure and how it was written."""

    steps: list[str]
    """The steps in order; `answer` has them as one numbered text."""
    questions: list[Answered]
    """The questions that were looked up, with their answers."""
    critiques: list[Critique]
    """The edits that the critic asked for, and their outcomes."""


Builder = StateGraph[AagPaperState, AagPaperContext, AagInput, AagPaperOutput]
Graph = CompiledStateGraph[AagPaperState, AagPaperContext, AagInput, AagPaperOutput]


def _initial(state: Mapping[str, Any], *_: object) -> Update:
    resources = checked_text("resources", state.get("resources") or "")
    return {
        "task_resources": resources,
        "parts": [],
        "queries": [goal_query({"task": state["task"], "task_resources": resources})],
        "findings": [],
        "steps": [],
        "questions": Overwrite([]),
        "critiques": [],
    }


def after_retrieve(
    state: AagPaperState, resources: Resources[AagPaperContext]
) -> str | list[str] | list[Send]:
    """Return the nodes to run next: draft and questions, or what follows once there is a draft."""
    settings = resources.settings(state)
    if not state["steps"]:
        return ["draft", "to_query"] if settings.questions else "draft"
    if not settings.questions:
        return before_critic(state, resources)
    if not settings.answers:
        return "revise"
    return [Send("answer", {**state, "queries": [query]}) for query in state["queries"]]


def before_critic(state: AagPaperState, resources: Resources[AagPaperContext]) -> str:
    """Return "critic" while more edits are allowed, or else "finish"."""
    settings = resources.settings(state)
    is_open = settings.critic and len(state["critiques"]) < settings.max_updates
    return "critic" if is_open else "finish"


def after_critic(state: AagPaperState) -> str:
    statuses = [each["status"] for each in state["critiques"]]
    return "edit" if "open" in statuses else "finish"


def aag_paper_builder(
    **options: Unpack[BuilderOptions],
) -> Builder:
    """Return the paper's AAG as an uncompiled graph."""
    resources = Resources.of("aag_paper", AagPaperContext, options, prefers_memory=True)
    builder = StateGraph(
        AagPaperState, AagPaperContext, input_schema=AagInput, output_schema=AagPaperOutput
    )
    begin: Any = Begin(resources, [node.name for node in MODEL_NODES], _initial)
    builder.add_node("begin", begin)
    builder.add_node("retrieve", Retrieve(resources))
    for node in MODEL_NODES:
        builder.add_node(node.name, node.bound(resources))
    builder.add_node("finish", resources.bind(publish))

    checks = partial(before_critic, resources=resources)
    builder.set_entry_point("begin")
    builder.add_conditional_edges(
        "retrieve",
        partial(after_retrieve, resources=resources),
        ["draft", "to_query", "answer", "revise", "critic", "finish"],
    )
    builder.add_edge("begin", "retrieve")
    builder.add_edge("draft", "retrieve")
    builder.add_edge("to_query", "retrieve")
    builder.add_edge("answer", "revise")
    builder.add_conditional_edges("revise", checks, ["critic", "finish"])
    builder.add_conditional_edges("critic", after_critic, ["edit", "finish"])
    builder.add_conditional_edges("edit", checks, ["critic", "finish"])
    return builder


def build_aag_paper(
    **options: Unpack[GraphOptions],
) -> Graph:
    """Build and compile the paper's AAG, with the options of the builder and of `compile`.

    Raises:
        BadInput: An option has the wrong type.
    """
    return compiled(aag_paper_builder, "aag_paper", options)


graph = build_aag_paper()
"""The paper's AAG, configured by the context, the environment and the defaults."""
