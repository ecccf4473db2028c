"""RPG, call by call: the order and number of model calls and searches, its signals, limits and failures."""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from pydantic import PrivateAttr

from stepcraft import BadInput, ModelFailure, NoAnswer, RpgContext, build_rpg
from tests.bridge import GIVEN, PASSAGES, PLANS, QUESTION, documents, planner
from tests.scripted import ScriptedModel
from tests.shelf import Shelf, section

CYCLE = ["plan", "answer"]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    """Runs RPG either way."""

    def rpg(model: Any, given: Any = GIVEN, shelf: Any = None, **context: Any) -> Any:
        graph = build_rpg(model=model, retriever=shelf)
        if request.param == "sync":
            return graph.invoke(given, context=RpgContext(**{"paper": True, **context}))
        return asyncio.run(graph.ainvoke(given, context=RpgContext(**{"paper": True, **context})))

    return rpg


@pytest.mark.parametrize(
    ("kind", "context", "calls"),
    [
        pytest.param("long", {}, CYCLE * 3, id="long"),
        pytest.param("short", {}, CYCLE, id="short"),
        pytest.param("multihop", {}, [*CYCLE * 3, "combine"], id="multihop: seven, the most"),
        pytest.param("long", {"max_cycles": 4}, [*CYCLE * 3, "plan"], id="complete before the cap"),
        pytest.param("multihop", {"max_cycles": 1}, [*CYCLE, "combine"], id="multihop, one cycle"),
        pytest.param("short", {"max_cycles": 3}, CYCLE, id="short has one cycle"),
        pytest.param("long", {"plan": False, "max_evidence_tokens": 13}, ["answer"] * 3, id="long, no plan"),
        pytest.param("long", {"plan": False}, ["answer"], id="no plan, all that fits selected at once"),
        pytest.param("short", {"plan": False}, ["answer"], id="short, no plan"),
        pytest.param(
            "multihop",
            {"plan": False, "max_evidence_tokens": 13},
            [*["answer"] * 3, "combine"],
            id="multihop, no plan",
        ),
        pytest.param("long", {"retrieve": False}, CYCLE * 3, id="long, no evidence"),
        pytest.param("short", {"retrieve": False}, CYCLE, id="short, no evidence"),
        pytest.param("multihop", {"retrieve": False}, [*CYCLE * 3, "combine"], id="multihop, no evidence"),
        pytest.param("long", {"select": False}, CYCLE * 3, id="long, whole passages"),
        pytest.param("short", {"select": False}, CYCLE, id="short, whole passages"),
        pytest.param("multihop", {"select": False}, [*CYCLE * 3, "combine"], id="multihop, whole passages"),
        pytest.param("long", {"plan": False, "select": False}, ["answer"], id="plain RAG"),
        pytest.param("long", {"plan": False, "retrieve": False}, ["answer"], id="the model alone"),
    ],
)
def test_calls(run: Any, kind: str, context: Any, calls: list[str]) -> None:
    model = ScriptedModel(planner())
    result = run(model, {**GIVEN, "kind": kind}, **context)
    assert model.nodes == calls
    assert result["usage"]["calls"] == len(calls)
    assert {node: used["calls"] for node, used in result["usage"]["nodes"].items()} == Counter(calls)
    assert result["warnings"] == []


def test_output(run: Any) -> None:
    shelf = Shelf(says=documents)
    result = run(ScriptedModel(planner()), QUESTION, shelf)
    assert set(result) == {"answer", "sentences", "plans", "segments", "evidence", "warnings", "usage"}
    assert shelf.queries == [(QUESTION["question"], 5)]
    assert result["plans"] == PLANS
    assert result["answer"] == "\n\n".join(f"On {plan}: so it was." for plan in PLANS)
    first, second, _ = result["segments"]
    assert set(first) == {"plan", "sentences", "text", "evidence", "unsupported"}
    assert (first["plan"], first["text"], first["unsupported"]) == (
        PLANS[0],
        f"On {PLANS[0]}: so it was.",
        False,
    )
    chosen = first["sentences"][0]
    assert (chosen["passage"], chosen["position"]) == ("bridge", 0)
    assert chosen["text"] == "The Old Bridge of Mostar was built in 1566."
    assert second["evidence"] == list(dict.fromkeys(one["passage"] for one in second["sentences"]))
    used = list(dict.fromkeys(id_ for segment in result["segments"] for id_ in segment["evidence"]))
    assert [passage["id"] for passage in result["evidence"]] == used
    assert "bread" not in used


def test_no_sentence_is_selected_twice(run: Any) -> None:
    result = run(ScriptedModel(planner()))
    chosen = [
        (one["passage"], one["position"]) for segment in result["segments"] for one in segment["sentences"]
    ]
    assert len(chosen) == len(set(chosen)) > 2


def test_the_planner_sees_plans_and_segments_but_no_evidence(run: Any) -> None:
    model = ScriptedModel(planner())
    run(model)
    asked = [call.prompt for call in model.calls if call.node == "plan"]
    assert section(asked[0], "plans") == section(asked[0], "text") == ""
    assert section(asked[2], "plans") == f"1. {PLANS[0]}\n2. {PLANS[1]}"
    assert section(asked[2], "text") == f"On {PLANS[0]}: so it was.\n\nOn {PLANS[1]}: so it was."
    assert all("1566" not in prompt and "<evidence" not in prompt for prompt in asked)
    written = [call.prompt for call in model.calls if call.node == "answer"]
    assert "1566" in section(written[0], "evidence") or "1566" in written[0]
    assert section(written[1], "text") == f"On {PLANS[0]}: so it was."


def test_the_answer_so_far_is_not_taken_again(run: Any) -> None:
    """Models like to begin with what was there."""
    plain = planner()

    def repeating(node: str, prompt: str) -> str:
        reply = plain(node, prompt)
        return f"{section(prompt, 'text')}\n\n{reply}".strip() if node == "answer" else reply

    assert run(ScriptedModel(repeating))["answer"] == run(ScriptedModel(plain))["answer"]


@pytest.mark.parametrize("kind", ["long", "short", "multihop"])
def test_where_no_facts_are_needed_the_answer_is_written_at_once(run: Any, kind: str) -> None:
    model = ScriptedModel(planner(["<no_info>"]))
    result = run(model, {**GIVEN, "kind": kind})
    assert model.nodes == ["plan", "answer"]
    assert (result["plans"], result["evidence"]) == ([], [])
    assert "<evidence" not in model.calls[1].prompt
    assert [(one["plan"], one["sentences"], one["unsupported"]) for one in result["segments"]] == [
        ("", [], True)
    ]
    assert result["answer"] == "On the question: so it was."


def test_no_info_is_not_obeyed_later(run: Any) -> None:
    result = run(ScriptedModel(planner([PLANS[0], "<no_info>", PLANS[1]])), max_evidence_tokens=15)
    assert result["plans"] == [PLANS[0], QUESTION["question"], PLANS[1]]
    assert [segment["unsupported"] for segment in result["segments"]] == [False, False, False]


def test_nothing_is_complete_before_it_is_written(run: Any) -> None:
    result = run(ScriptedModel(planner(["<complete>", "<complete>"])))
    assert result["plans"] == [QUESTION["question"]]


def test_a_plan_that_is_made_again_gets_other_sentences_or_ends_the_run(run: Any) -> None:
    model = ScriptedModel(planner([PLANS[0], f"{PLANS[0].upper()}!", PLANS[0]]))
    result = run(model, max_evidence_tokens=15)
    assert model.nodes == CYCLE * 3
    texts = [one["text"] for segment in result["segments"] for one in segment["sentences"]]
    assert len(texts) == len(set(texts)) >= 3
    model = ScriptedModel(planner([PLANS[0], f"{PLANS[0].upper()}!", PLANS[0]]))
    assert run(model)["plans"] == [PLANS[0]]
    assert model.nodes == [*CYCLE, "plan"]


def test_without_a_fitting_sentence_the_segment_is_flagged(run: Any) -> None:
    result = run(ScriptedModel(planner(["quantum chromodynamics of gluons"])), {**GIVEN, "kind": "short"})
    segment = result["segments"][0]
    assert (segment["sentences"], segment["evidence"], segment["unsupported"]) == ([], [], True)
    assert result["evidence"] == []


def test_temperature(run: Any) -> None:
    for context, sent in (({}, 0.0), ({"temperature": 0.7}, 0.7), ({"temperature": None}, None)):
        model = ScriptedModel(planner())
        run(model, **context)
        assert {call.kwargs.get("temperature") for call in model.calls} == {sent}


@pytest.mark.parametrize(
    ("kind", "most", "calls"),
    [
        ("long", 1, ["answer"]),
        ("long", 2, CYCLE),
        ("long", 3, CYCLE),
        ("long", 4, CYCLE * 2),
        ("long", 6, CYCLE * 3),
        ("short", 1, ["answer"]),
        ("short", 2, CYCLE),
        ("multihop", 1, ["answer"]),
        ("multihop", 2, ["answer", "combine"]),
        ("multihop", 3, [*CYCLE, "combine"]),
        ("multihop", 5, [*CYCLE * 2, "combine"]),
        ("multihop", 7, [*CYCLE * 3, "combine"]),
    ],
)
def test_a_budget_of_calls_is_kept_and_the_answer_still_written(
    run: Any, kind: str, most: int, calls: list[str]
) -> None:
    model = ScriptedModel(planner())
    result = run(model, {**GIVEN, "kind": kind}, max_calls=most)
    assert model.nodes == calls
    assert result["answer"]
    full = calls.count("answer") == (1 if kind == "short" else 3) and "plan" in calls
    assert any("max_calls" in warning for warning in result["warnings"]) is not full


def test_the_call_for_the_end_is_not_spent_on_retries(run: Any) -> None:
    plain = planner()

    def reply(node: str, prompt: str) -> Any:
        second = node == "answer" and section(prompt, "text")
        return ConnectionError("gone") if second else plain(node, prompt)

    model = ScriptedModel(reply)
    result = run(model, {**GIVEN, "kind": "multihop"}, max_calls=5, retry_wait_s=0)
    assert model.nodes == [*CYCLE, "plan", "answer", "combine"]
    assert result["answer"] == "Mimar Serun"


def test_a_deadline_ends_with_what_there_is(run: Any) -> None:
    result = run(ScriptedModel(planner(), latency=0.3), deadline_s=0.8)
    assert len(result["segments"]) == 1
    assert result["answer"] == result["segments"][0]["text"]
    assert "the deadline of 0.8 s has passed" in result["warnings"][-1]


@pytest.mark.parametrize("fails", ["plan", "answer", "combine"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_step_that_fails_costs_that_step(run: Any, fails: str, at: int) -> None:
    plain = planner()

    def reply(node: str, prompt: str) -> Any:
        made = len(section(prompt, "plans").splitlines())
        here = made == at if node == "plan" else at < 3 and f"<plan>\n{PLANS[at]}\n" in prompt
        return (
            ValueError("no such luck")
            if node == fails and (here or fails == "combine")
            else plain(node, prompt)
        )

    result = run(ScriptedModel(reply), {**GIVEN, "kind": "multihop"}, retry_wait_s=0)
    assert len(result["warnings"]) == 1
    assert (
        f"{fails} was skipped: the model could not be asked: ValueError: no such luck"
        in result["warnings"][0]
    )
    plans = {"plan": [[QUESTION["question"], *PLANS[1:]], PLANS[:1], PLANS[:2]][at]}.get(fails, PLANS)
    assert result["plans"] == plans
    missing = PLANS[at] if fails == "answer" else ""
    assert [segment["plan"] for segment in result["segments"]] == [plan for plan in plans if plan != missing]
    joined = "\n\n".join(segment["text"] for segment in result["segments"])
    assert result["answer"] == (joined if fails == "combine" else "Mimar Serun")


def test_a_search_that_fails_leaves_segments_without_evidence(run: Any) -> None:
    def fallen(_query: str) -> Any:
        raise OSError("the shelf fell over")

    result = run(ScriptedModel(planner()), QUESTION, Shelf(says=fallen))
    assert result["warnings"] == ["retrieve: a search failed: the shelf fell over"]
    assert [segment["unsupported"] for segment in result["segments"]] == [True, True, True]


def test_without_any_segment_there_is_no_answer(run: Any) -> None:
    def refuse(node: str, prompt: str) -> str:
        return "I'm sorry, I can't help with that." if node == "answer" else planner()(node, prompt)

    with pytest.raises(NoAnswer, match="no segment was written: answer was skipped: the model declined"):
        run(ScriptedModel(refuse))


def test_a_model_that_refuses_every_call_is_an_error(run: Any) -> None:
    class Denied(Exception):
        status_code = 401

    with pytest.raises(ModelFailure, match="refuses every call"):
        run(ScriptedModel(lambda *_: Denied("wrong key")))


def test_the_search_is_made_beside_the_first_plan(run: Any) -> None:
    model = ScriptedModel(planner())
    graph = build_rpg(model=model, retriever=Shelf(says=documents))
    steps = [
        set(update)
        for update in graph.stream(QUESTION, context=RpgContext(paper=True), stream_mode="updates")
    ]
    assert {"begin"} in steps[:1]
    order = [next(iter(step)) for step in steps]
    assert set(order[1:3]) == {"retrieve", "plan"}
    assert [call.superstep for call in model.calls[:1]] == [2]


class Watched(DeterministicFakeEmbedding):
    """Notes when it is given sentences."""

    _began: list[float] = PrivateAttr(default_factory=list)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self._began.append(time.perf_counter())
        return super().embed_documents(texts)


@pytest.mark.parametrize("given", [QUESTION, GIVEN])
def test_sentences_are_made_ready_beside_the_first_plan_and_once(given: Any) -> None:
    embeddings = Watched(size=8)
    model = ScriptedModel(planner(), latency=0.2)
    build_rpg(model=model, retriever=Shelf(says=documents), reranker=embeddings).invoke(given)
    (began,) = embeddings._began
    planned = model.calls[0].ended
    assert planned is not None
    assert began < planned


@pytest.mark.parametrize(
    "given", [{"passages": PASSAGES}, {"passages": [passage["text"] for passage in PASSAGES]}]
)
def test_passages_that_are_given_are_not_searched(run: Any, given: Any) -> None:
    shelf = Shelf()
    result = run(ScriptedModel(planner()), {**QUESTION, **given}, shelf)
    assert shelf.queries == []
    assert "1566" in result["evidence"][0]["text"]


def test_the_prompt_is_kept_short_by_leaving_out_the_sentences_that_fit_least(run: Any) -> None:
    model = ScriptedModel(planner())
    many = [f"The Old Bridge of Mostar has the builder number {number}." for number in range(60)]
    result = run(model, {**QUESTION, "passages": [" ".join(many)]}, max_input_tokens=600, max_cycles=1)
    shown = section(model.calls[1].prompt, "evidence").splitlines()
    assert 0 < len(shown) < 60
    assert [one["text"] for one in result["segments"][0]["sentences"]] == shown
    assert (
        "sentences, the least similar, were left out to keep within 600 input tokens" in result["warnings"][0]
    )


def test_one_model_for_one_node(run: Any) -> None:
    planning, writing = ScriptedModel(planner()), ScriptedModel(planner())
    graph = build_rpg(model=writing, node_models={"plan": planning})
    graph.invoke(GIVEN, context=RpgContext(paper=True))
    assert (set(planning.nodes), set(writing.nodes)) == ({"plan"}, {"answer"})


def test_without_a_source_nothing_is_asked() -> None:
    model = ScriptedModel([])
    with pytest.raises(BadInput, match=r"no source is named .*corpus:PATH"):
        build_rpg(model=model).invoke(QUESTION)
    result = build_rpg(model=ScriptedModel(planner())).invoke(QUESTION, context={"retrieve": False})
    assert result["answer"]


@pytest.mark.parametrize("kind", ["long", "short", "multihop"])
def test_without_a_key(kind: str) -> None:
    result = build_rpg().invoke({**GIVEN, "kind": kind}, context={"citations": "inline"})
    assert "Haldruvin" in "".join(segment["text"] for segment in result["segments"])
    assert "[1]" in result["segments"][0]["text"]
    assert result["answer"]
    assert "no language model wrote this" in result["warnings"][0]
