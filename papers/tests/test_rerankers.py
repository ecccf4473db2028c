"""Rerankers: ours, LangChain's, and those that fail, as a run of the paper's RPG uses them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder

from stepcraft.errors import BadInput
from stepcraft_papers.graphs.rpg import build_rpg_paper
from stepcraft_papers.rerank import HybridReranker
from tests.scripted import ScriptedModel
from tests.shelf import BRIDGE, QUESTION, Shelf

PLAN = "who built the Oster bridge"


class Scorer(BaseCrossEncoder):
    """Scores as a function says."""

    def __init__(self, says: Callable[[list[tuple[str, str]]], Any]) -> None:
        self.says = says

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return self.says(text_pairs)  # type: ignore[no-any-return]


def run(reranker: Any) -> dict[str, Any]:
    model = ScriptedModel([PLAN, "Haldruvin built it.", "<complete>"])
    shelf = Shelf(passages={"Oster": " ".join(BRIDGE.values())})
    graph = build_rpg_paper(model=model, sources=shelf, reranker=reranker)
    result: dict[str, Any] = graph.invoke(QUESTION)
    return result


def test_a_cross_encoder_reads_the_plan_with_each_titled_sentence() -> None:
    pairs: list[tuple[str, str]] = []

    def says(asked: list[tuple[str, str]]) -> list[float]:
        pairs.extend(asked)
        return [float("Haldruvin" in text) for _, text in asked]

    [segment] = run(Scorer(says))["segments"]
    assert [each["text"] for each in segment["sentences"]] == [BRIDGE["Haldruvin"]]
    assert pairs == [(PLAN, f"Oster\n{text}") for text in BRIDGE.values()]


@pytest.mark.parametrize("embeddings", [None, "none"])
def test_the_sentence_that_fits_scores_best_and_another_topic_not_at_all(
    embeddings: str | None,
) -> None:
    reranker = HybridReranker(embeddings)
    cheese = "Brie\nThe rind is white."
    texts = [f"Stari Most\n{BRIDGE['Haldruvin']}", cheese]
    best, other = reranker.score([(PLAN, text) for text in texts])
    assert best > reranker.threshold > other
    assert max(reranker.score([(PLAN, cheese)])) < reranker.threshold
    assert reranker.score([]) == []


@pytest.mark.parametrize("choice", ["hybrid", 3, Scorer])
def test_what_is_no_reranker_is_refused(choice: Any) -> None:
    with pytest.raises(BadInput, match=f"cross-encoder of LangChain, not .*{choice}"):
        build_rpg_paper(reranker=choice)


def raising(*_: object) -> Any:
    raise RuntimeError("no access with sk-proj-abcdefghijklmnop1234")


FAILING = {
    "raises": Scorer(raising),
    "NaN": Scorer(lambda pairs: [math.nan] * len(pairs)),
    "too few": Scorer(lambda pairs: [1.0] * (len(pairs) - 1)),
    "words": Scorer(lambda pairs: ["good"] * len(pairs)),
    "no embeddings": HybridReranker("nonsense"),
}


@pytest.mark.parametrize("reranker", FAILING.values(), ids=FAILING)
def test_one_that_fails_costs_its_ranking_and_warns(reranker: BaseCrossEncoder) -> None:
    result = run(reranker)
    assert result["answer"]
    (warning,) = [each for each in result["warnings"] if "reranker" in each]
    assert "abcdefghij" not in warning
