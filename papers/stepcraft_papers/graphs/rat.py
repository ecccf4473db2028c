"""RAT, retrieval-augmented thoughts, as in its paper: a draft is revised thought by thought.

    draft → split → (append → to_query → retrieve → revise)* → finish

The query and the evidence for a thought depend on the revised text before it (RAT §3.2, causality).
With `causal=False`, the whole draft is treated as one thought, looked up with several queries and
revised in one go.
"""

from functools import partial
from typing import Any

from langchain_core.runnables import RunnableLambda
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import Unpack

from stepcraft.llm.node import Update
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.nodes.begin import Begin
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.state import Answer, QuestionInput
from stepcraft.schema import described
from stepcraft.text.thoughts import split_thoughts
from stepcraft_papers.contexts import RatPaperContext
from stepcraft_papers.nodes.draft_thoughts import draft_thoughts
from stepcraft_papers.nodes.finish_thoughts import finish_thoughts
from stepcraft_papers.nodes.query_thought import query_thought
from stepcraft_papers.nodes.revise_thought import revise_thought
from stepcraft_papers.nodes.state import RatPaperState, ThoughtRevision

MODEL_NODES = (draft_thoughts, query_thought, revise_thought, finish_thoughts)


@described
class RatPaperOutput(Answer):
    """The answer and how it was written."""

    first_draft: str
    """The draft, before any search."""
    revisions: list[ThoughtRevision]
    """The outcome for each thought."""


Builder = StateGraph[RatPaperState, RatPaperContext, QuestionInput, RatPaperOutput]
Graph = CompiledStateGraph[RatPaperState, RatPaperContext, QuestionInput, RatPaperOutput]


def _initial(*_: object) -> Update:
    return {"parts": [], "findings": [], "step": 0, "text": "", "revisions": []}


def split(state: RatPaperState, resources: Resources[RatPaperContext]) -> Update:
    """Split the draft into thoughts, unless it is looked up or revised as a whole."""
    settings = resources.settings(state)
    by_thought = settings.causal and settings.query_from == "thought"
    return {
        "thoughts": split_thoughts(state["first_draft"]) if by_thought else [state["first_draft"]]
    }


def append(state: RatPaperState) -> Update:
    """Append the next thought to the revised text."""
    thought = state["thoughts"][state["step"]]
    return {"thought": thought, "text": state["text"] + thought, "step": state["step"] + 1}


def note_failure(update: Update) -> Update:
    """Add the reason for a failed search to the update from that search."""
    return update and {**update, "reason": "; ".join(update["warnings"])}


def after_revise(state: RatPaperState) -> str:
    return "append" if state["step"] < len(state["thoughts"]) else "finish"


def rat_paper_builder(
    **options: Unpack[BuilderOptions],
) -> Builder:
    """Return the paper's RAT as an uncompiled graph."""
    resources = Resources.of("rat_paper", RatPaperContext, options)
    builder = StateGraph(
        RatPaperState, RatPaperContext, input_schema=QuestionInput, output_schema=RatPaperOutput
    )
    nodes: Any = [
        ("begin", Begin(resources, [node.name for node in MODEL_NODES], _initial)),
        ("draft", draft_thoughts.bound(resources)),
        ("split", partial(split, resources=resources)),
        ("append", append),
        ("to_query", query_thought.bound(resources)),
        ("retrieve", Retrieve(resources) | RunnableLambda(note_failure)),
        ("revise", revise_thought.bound(resources)),
    ]
    builder.add_sequence(nodes)
    builder.add_node("finish", finish_thoughts.bound(resources))

    builder.set_entry_point("begin")
    builder.add_conditional_edges("revise", after_revise, ["append", "finish"])
    return builder


def build_rat_paper(
    **options: Unpack[GraphOptions],
) -> Graph:
    """Build and compile the paper's RAT, with the options of the builder and of `compile`.

    Raises:
        BadInput: An option has the wrong type.
    """
    return compiled(rat_paper_builder, "rat_paper", options)


graph = build_rat_paper()
"""The paper's RAT, configured by the context, the environment and the defaults."""
