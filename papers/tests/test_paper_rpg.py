"""The paper's RPG, call by call: plan, select and answer in a loop over what one search found."""

import asyncio
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder

from stepcraft_papers.contexts import RpgPaperContext
from stepcraft_papers.graphs.rpg import build_rpg_paper
from stepcraft_papers.rerank import HybridReranker
from tests.scripted import ScriptedModel
from tests.shelf import BRIDGE, Shelf, shown

QUESTION = {"question": "Who was mayor when Haldruvin built the Oster bridge?"}
PLANS = ["the builder of the Oster bridge", "the mayor of Oster", "the arches"]
SEGMENTS = ["Haldruvin built it.", "Ilse Quandt was mayor.", "It has four arches."]
LOOP = [text for pair in zip(PLANS, SEGMENTS, strict=True) for text in pair]
CYCLE = ["plan", "answer"]
WORDS = HybridReranker("none")


class Scorer(BaseCrossEncoder):
    def __init__(self, scores: list[float]) -> None:
        self.scores = scores

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return self.scores


def run(*replies: Any, reranker: BaseCrossEncoder = WORDS, **context: Any) -> Any:
    model, shelf = ScriptedModel(replies), Shelf()
    graph: Any = build_rpg_paper(model=model, sources=shelf, reranker=reranker)
    return asyncio.run(graph.ainvoke(QUESTION, context=RpgPaperContext(**context))), model, shelf


@pytest.mark.parametrize(
    ("context", "replies", "nodes"),
    [
        ({}, LOOP, CYCLE * 3),  # three cycles
        ({}, [*LOOP[:2], "<complete>"], [*CYCLE, "plan"]),  # complete
        ({}, [*LOOP[:2], PLANS[0]], [*CYCLE, "plan"]),  # planned again
        ({}, ["<no_info>", SEGMENTS[0]], CYCLE),  # nothing to look up
        ({"kind": "short"}, LOOP[:2], CYCLE),  # short
        ({"kind": "multihop"}, [*LOOP, "Q."], [*CYCLE * 3, "combine"]),  # hops
        ({"plan": False}, SEGMENTS, ["answer"] * 3),  # no plan
        ({"retrieve": False}, LOOP, CYCLE * 3),  # no search
    ],
)
def test_calls(context: Any, replies: list[str], nodes: list[str]) -> None:
    result, model, shelf = run(*replies, **context)
    assert (model.nodes, len(shelf.queries)) == (nodes, int(context.get("retrieve", True)))
    segments = SEGMENTS[: nodes.count("answer")]
    assert [segment["text"] for segment in result["segments"]] == segments
    assert result["answer"] == ("Q." if "combine" in nodes else "\n\n".join(segments))
    assert {call.kwargs["temperature"] for call in model.calls} == {0.0}


def test_the_planner_sees_plans_and_segments_and_the_writer_selected_sentences() -> None:
    result, model, _ = run(*LOOP, max_cycles=2)
    writer, planner = [call.prompt for call in model.calls[1:3]]
    assert shown(planner, "plans") + shown(planner, "text") == [f"1. {PLANS[0]}", SEGMENTS[0]]
    assert BRIDGE["Haldruvin"] in shown(writer, "passage")
    assert "Haldruvin" in result["segments"][0]["evidence"] == result["sentences"][0]["evidence"]
    assert "".join(each["text"] for each in result["sentences"]).strip() == result["answer"]


@pytest.mark.parametrize(
    ("scores", "context", "words"),
    [
        ([0.5, float("-inf"), 0.9], {"threshold": 0.4}, ["Haldruvin", "mayor"]),
        ([0.5, 0.2, 0.9], {"max_evidence_tokens": 10}, ["mayor"]),
        ([0.5, 0.2, 0.9], {"threshold": 0.95}, []),
        ([0.5], {}, [*BRIDGE]),
    ],
)
def test_the_best_sentences_stand_in_document_order(
    scores: Any, context: Any, words: list[str]
) -> None:
    result, *_ = run(*LOOP, reranker=Scorer(scores), kind="short", **context)
    [segment] = result["segments"]
    assert [each["text"] for each in segment["sentences"]] == [BRIDGE[word] for word in words]
    assert segment["unsupported"] == (not words)
    assert ("Scorer" in str(result["warnings"])) == (len(scores) == 1)
