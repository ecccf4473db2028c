"""Rerankers: LangChain's own, names for them, and those that fail, as a run of the paper's RPG uses them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document

from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.graphs.paper.rpg import build_rpg_paper
from stepcraft.rerank import sentences_of
from stepcraft.rerank.resolve import resolve_reranker
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf

PLAN = "who built the bridge of Mostar"
BUILDER = "Mimar Haldruvin built the bridge in 1566."
PASSAGES = [
    Evidence(
        id="p0",
        title="Brie",
        text="Brie is a soft cheese. It is made of the milk of cows. The rind is white.",
        source="",
        score=0.5,
    ),
    Evidence(
        id="p1",
        title="Stari Most",
        text=f"The old bridge of Mostar stands in Bosnia. {BUILDER} It fell in the year 1993.",
        source="",
        score=0.5,
    ),
]


class Scorer(BaseCrossEncoder):
    """Scores as a function says."""

    def __init__(self, says: Callable[[list[tuple[str, str]]], Any]) -> None:
        self.says = says

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return self.says(text_pairs)  # type: ignore[no-any-return]


class Filter(BaseDocumentCompressor):
    """Keeps the documents that a function keeps."""

    says: Callable[[Sequence[Document]], Sequence[Document]]

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        return self.says(documents)


def ranked(reranker: object) -> dict[str, float]:
    """Return the score of each sentence."""
    sentences = sentences_of(PASSAGES)
    scores = resolve_reranker(reranker).scores(PLAN, sentences)
    return dict(zip([each.text for each in sentences], scores, strict=True))


def test_a_cross_encoder_reads_the_plan_with_each_titled_sentence() -> None:
    pairs: list[tuple[str, str]] = []

    def says(asked: list[tuple[str, str]]) -> list[float]:
        pairs.extend(asked)
        return [float("Haldruvin" in text) for _, text in asked]

    assert ranked(Scorer(says))[BUILDER] == 1.0
    assert pairs[4] == (PLAN, f"Stari Most\n{BUILDER}")


def test_a_compressor_ranks_what_it_gives_back() -> None:
    compressor = Filter(
        says=lambda documents: [each for each in documents if "bridge" in each.page_content]
    )
    scores = ranked(compressor)
    kept = [text for text, score in scores.items() if score > 0]
    assert kept == ["The old bridge of Mostar stands in Bosnia.", BUILDER]


@pytest.mark.parametrize("name", ["hybrid", "words"])
def test_rerankers_by_name(name: str) -> None:
    scores = ranked(name)
    assert scores[BUILDER] > scores["The rind is white."]


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        ("hybird", "hybird"),
        ("cross-encoder", "cross-encoder:MODEL"),
        (3, "3"),
        (Scorer, "Scorer"),
        ("cross-encoder:there/is-none", "there/is-none"),
    ],
)
def test_what_is_no_reranker_is_refused(choice: object, value: str) -> None:
    with pytest.raises(BadInput, match=value):
        resolve_reranker(choice)


def raising(*_: object) -> Any:
    raise RuntimeError("no access with sk-proj-abcdefghijklmnop1234")


FAILING = {
    "raises": Scorer(raising),
    "NaN": Scorer(lambda pairs: [math.nan] * len(pairs)),
    "too few": Scorer(lambda pairs: [1.0] * (len(pairs) - 1)),
    "words": Scorer(lambda pairs: ["good"] * len(pairs)),
    "a compressor that raises": Filter(says=raising),
}


@pytest.mark.parametrize("reranker", FAILING.values(), ids=FAILING)
def test_one_that_fails_costs_its_ranking_and_warns(reranker: object) -> None:
    model = ScriptedModel(["the bridge", "Haldruvin built it.", "<complete>"])
    graph = build_rpg_paper(model=model, sources=Shelf(), reranker=reranker)
    result = graph.invoke(QUESTION)
    assert result["answer"]
    (warning,) = [each for each in result["warnings"] if "reranker" in each]
    assert "abcdefghij" not in warning
