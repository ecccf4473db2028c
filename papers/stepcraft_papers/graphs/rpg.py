"""RPG, retrieve-plan-generate, as in its paper: one search, then segment after segment.

    retrieve → (plan → select → answer)* → combine

The planner sees the plans and the segments but not the evidence (RPG §3.2). If it says that nothing
has to be looked up, the answer is written at once.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from langchain_core.cross_encoders import BaseCrossEncoder
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import Unpack

from stepcraft.errors import BadInput
from stepcraft.llm.node import Update
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.nodes.begin import Begin
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.state import Answer
from stepcraft.nodes.trace import TracedSentence
from stepcraft.schema import described
from stepcraft.secrets import excerpt
from stepcraft_papers.contexts import Kind, RpgPaperContext
from stepcraft_papers.nodes.combine_segments import combine_segments
from stepcraft_papers.nodes.plan_segment import plan_segment
from stepcraft_papers.nodes.select_sentences import select_sentences
from stepcraft_papers.nodes.state import RpgPaperInput, RpgPaperState, Segment
from stepcraft_papers.nodes.write_segment import write_segment
from stepcraft_papers.rerank import HybridReranker

MODEL_NODES = (plan_segment, write_segment, combine_segments)


@described
class RpgPaperOutput(Answer):
    """The answer and how it was written."""

    segments: list[Segment]
    """The segments, each with its plan and the sentences that it was written from."""
    sentences: list[TracedSentence]
    """The sentences of all segments, each with the passage ids of its segment."""


Builder = StateGraph[RpgPaperState, RpgPaperContext, RpgPaperInput, RpgPaperOutput]
Graph = CompiledStateGraph[RpgPaperState, RpgPaperContext, RpgPaperInput, RpgPaperOutput]


def _initial(state: Mapping[str, Any], settings: RpgPaperContext, _searched: object) -> Update:
    kind = settings.kind or state.get("kind") or "long"
    if kind not in get_args(Kind):
        raise BadInput(
            f"kind={excerpt(kind)} cannot be used: it is one of {', '.join(get_args(Kind))}"
        )
    return {
        "form": kind,
        "parts": [],
        "queries": [state["task"]] * settings.retrieve,
        "findings": [],
        "plans": [],
        "complete": False,
        "selected": [],
        "segments": [],
        "sentences": [],
    }


def after_plan(state: RpgPaperState) -> str:
    if not state["complete"]:
        return "select"
    return "combine" if state["segments"] else "answer"


def after_answer(state: RpgPaperState, resources: Resources[RpgPaperContext]) -> str:
    cycles = 1 if state["form"] == "short" else resources.settings(state).max_cycles
    return "combine" if state["complete"] or len(state["plans"]) >= cycles else "plan"


def rpg_paper_builder(
    *, reranker: BaseCrossEncoder | None = None, **options: Unpack[BuilderOptions]
) -> Builder:
    """Return the paper's RPG as an uncompiled graph.

    Args:
        reranker: Scores the sentences against a plan. By default they are scored by shared words
            and the default embeddings; the paper uses `HuggingFaceCrossEncoder(
            model_name="BAAI/bge-reranker-base")` from langchain-community.
        options: The options that every builder takes.

    Raises:
        BadInput: The reranker or an option has the wrong type.
    """
    resources = Resources.of("rpg_paper", RpgPaperContext, options)
    if reranker is None:
        reranker = HybridReranker()
    elif not isinstance(reranker, BaseCrossEncoder):
        raise BadInput(f"the reranker is a cross-encoder of LangChain, not {excerpt(reranker)}")
    builder = StateGraph(
        RpgPaperState, RpgPaperContext, input_schema=RpgPaperInput, output_schema=RpgPaperOutput
    )
    begin: Any = Begin(resources, [node.name for node in MODEL_NODES], _initial)
    builder.add_node("begin", begin)
    builder.add_node("retrieve", Retrieve(resources))
    builder.add_node("select", partial(select_sentences, resources=resources, reranker=reranker))
    for node in MODEL_NODES:
        builder.add_node(node.name, node.bound(resources))

    builder.set_entry_point("begin")
    builder.add_edge("begin", "retrieve")
    builder.add_edge("retrieve", "plan")
    builder.add_edge("select", "answer")
    builder.add_conditional_edges("plan", after_plan, ["select", "answer", "combine"])
    builder.add_conditional_edges(
        "answer", partial(after_answer, resources=resources), ["plan", "combine"]
    )
    return builder


def build_rpg_paper(
    *, reranker: BaseCrossEncoder | None = None, **options: Unpack[GraphOptions]
) -> Graph:
    """Build and compile the paper's RPG, with the options of the builder and of `compile`.

    Raises:
        BadInput: An option has the wrong type.
    """
    builder = partial(rpg_paper_builder, reranker=reranker)
    return compiled(builder, "rpg_paper", options)


graph = build_rpg_paper()
"""The paper's RPG, configured by the context, the environment and the defaults."""
