"""Rerankers: LangChain's own, names for them, and those that fail."""

import asyncio
import math
import threading

import pytest
from langchain_core.documents import Document

from stepcraft.errors import BadInput
from stepcraft.rerank.resolve import resolve_reranker
from tests.selecting import BRIDGE, BUILDER, CHEESE, Filter, Letters, Scorer, Selecting, both, evidence

PLAN = "who built the bridge of Mostar"
PASSAGES = evidence(CHEESE, BRIDGE, titles=["Brie", "Stari Most"])


def test_a_cross_encoder_reads_the_plan_with_each_titled_sentence() -> None:
    asked: list[tuple[str, str]] = []

    def says(pairs: list[tuple[str, str]]) -> list[float]:
        asked.extend(pairs)
        return [float("Haldruvin" in text) for _, text in pairs]

    assert [one["text"] for one in Selecting(Scorer(says))(PLAN, PASSAGES)] == [BUILDER]
    assert asked[4] == (PLAN, f"Stari Most\n{BUILDER}")
    assert len(asked) == 6


def test_a_compressor_keeps_what_it_gives_back() -> None:
    compressor = Filter(says=lambda given: [one for one in given if "bridge" in one.page_content][::-1])
    found = both(Selecting(compressor), PLAN, PASSAGES)
    assert [(one["position"], one["score"]) for one in found] == [(0, 0.5), (1, 1.0)]


def test_a_compressor_that_tells_scores_is_believed() -> None:
    def says(given):
        return [
            Document(one.page_content[:5], metadata={**one.metadata, "relevance_score": 0.7})
            for one in given[1:3]
        ]

    found = Selecting(Filter(says=says))(PLAN, PASSAGES)
    assert [(one["position"], one["score"]) for one in found] == [(1, 0.7), (2, 0.7)]
    assert found[0]["text"] == "It is made of the milk of cows."


def test_a_compressor_that_gives_back_nothing_selects_nothing() -> None:
    selecting = Selecting(Filter(says=lambda given: []))
    assert both(selecting, PLAN, PASSAGES) == []
    assert selecting.warnings == []


def test_embeddings_rank_by_vectors_alone() -> None:
    found = Selecting(Letters())(BUILDER, evidence(CHEESE, BUILDER), threshold=-1.0)
    assert max(found, key=lambda one: one["score"])["text"] == BUILDER


@pytest.mark.parametrize("name", ["hybrid", "words", "vectors", "wordllama"])
def test_rerankers_by_name(name: str) -> None:
    found = Selecting()(PLAN, PASSAGES, reranker=name)
    assert BUILDER in [one["text"] for one in found]
    assert [one["text"] for one in found] == [one["text"] for one in Selecting(name)(PLAN, PASSAGES)]


def test_the_context_goes_before_what_the_graph_was_built_with() -> None:
    silent = Scorer(lambda pairs: [0.0] * len(pairs))
    assert Selecting(silent)(PLAN, PASSAGES) == []
    assert Selecting(silent)(PLAN, PASSAGES, reranker="words") != []


def raising(*_: object) -> list[float]:
    raise RuntimeError("no access with sk-proj-abcdefghijklmnop")


FAILING = {
    "raises": Scorer(raising),
    "NaN": Scorer(lambda pairs: [math.nan] * len(pairs)),
    "one NaN": Scorer(lambda pairs: [1.0] * (len(pairs) - 1) + [math.nan]),
    "infinite": Scorer(lambda pairs: [math.inf] * len(pairs)),
    "too few": Scorer(lambda pairs: [1.0] * (len(pairs) - 1)),
    "too many": Scorer(lambda pairs: [1.0] * (len(pairs) + 1)),
    "none": Scorer(lambda pairs: []),
    "words": Scorer(lambda pairs: ["good"] * len(pairs)),
    "nothing": Scorer(lambda pairs: None),
    "a matrix": Scorer(lambda pairs: [[1.0, 2.0]] * len(pairs)),
    "strangers": Filter(says=lambda given: [Document("never seen")]),
    "a compressor that raises": Filter(says=raising),
    "NaN told": Filter(says=lambda given: [Document("", metadata={**one.metadata, "relevance_score": math.nan}) for one in given]),
}  # fmt: skip


@pytest.mark.parametrize("reranker", FAILING.values(), ids=FAILING)
def test_one_that_fails_costs_its_ranking_and_warns_once(reranker: object) -> None:
    selecting = Selecting(reranker)
    assert both(selecting, PLAN, PASSAGES, threshold=0.99) == Selecting()(PLAN, PASSAGES) != []
    (warning,) = selecting.warnings
    assert type(reranker).__name__ in warning
    assert "abcdefghij" not in warning


def test_embeddings_that_fail_cost_their_ranking() -> None:
    class Broken(Letters):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise ConnectionError("gone")

    selecting = Selecting(Broken())
    for _ in range(2):
        assert selecting(PLAN, PASSAGES) == Selecting()(PLAN, PASSAGES)
        assert len(selecting.warnings) == 1


def test_words_are_left_where_the_default_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "nobody:model")
    selecting = Selecting(Scorer(raising))
    assert selecting(PLAN, PASSAGES) == Selecting("words")(PLAN, PASSAGES) != []
    assert [warning.split()[3] for warning in selecting.warnings] == ["Scorer", "hybrid"]


def test_one_that_outlasts_the_deadline_is_left_to_itself() -> None:
    ends = threading.Event()
    selecting = Selecting(Scorer(lambda pairs: [1.0] * len(pairs) if ends.wait(60) else []))
    try:
        assert selecting(PLAN, PASSAGES, deadline_s=0.2) == Selecting()(PLAN, PASSAGES)
        assert "longer than the deadline" in selecting.warnings[0]
    finally:
        ends.set()


def test_a_slow_one_does_not_hold_up_the_event_loop() -> None:
    goes_on = threading.Event()
    selecting = Selecting(Scorer(lambda pairs: [1.0] * len(pairs) if goes_on.wait(60) else []))

    async def beside() -> list:
        run = asyncio.create_task(selecting.on_loop(PLAN, PASSAGES))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, goes_on.set)
        return await run

    assert len(asyncio.run(beside())) == 6
    assert selecting.warnings == []


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("hybird", "there is no reranker 'hybird'"),
        ("cross-encoder", "needs a model"),
        ("cross-encoder:", "needs a model"),
        ("nobody:model", "nobody"),
        (3, "reranker=3 cannot be used"),
        (Letters, "Letters cannot be used: it is a class"),
        (object(), "cannot be used"),
    ],
)
def test_what_is_no_reranker_is_refused_with_what_there_is(choice: object, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        resolve_reranker(choice)


def test_a_cross_encoder_by_name_needs_its_packages_or_its_model() -> None:
    with pytest.raises(BadInput, match=r"cross-encoder:there/is-none .*(pip install|cannot be loaded)"):
        resolve_reranker("cross-encoder:there/is-none")
