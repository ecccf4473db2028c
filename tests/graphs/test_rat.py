"""RAT, call by call: the order and number of model calls and searches, its window, its limits, its failures."""

import asyncio
import threading
from collections import Counter
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from stepcraft import BadInput, NoAnswer, RatContext, build_rat
from tests.scripted import ScriptedModel
from tests.shelf import DRAFT, QUESTION, THOUGHTS, Shelf, section, thinker

STEP = ["to_query", "revise"]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    """Runs RAT either way."""

    def sync(model: Any, shelf: Any = None, **context: Any) -> Any:
        graph = build_rat(model=model, retriever=shelf or Shelf())
        return graph.invoke(QUESTION, context=RatContext(**context))

    def on_a_loop(model: Any, shelf: Any = None, **context: Any) -> Any:
        graph = build_rat(model=model, retriever=shelf or Shelf())
        return asyncio.run(graph.ainvoke(QUESTION, context=RatContext(**context)))

    return sync if request.param == "sync" else on_a_loop


@pytest.mark.parametrize(
    ("context", "calls", "searches"),
    [
        pytest.param({"window": 1}, ["draft", *STEP * 3, "finish"], 3, id="RAT"),
        pytest.param({"window": 1, "finish": "thoughts"}, ["draft", *STEP * 3], 3, id="thoughts"),
        pytest.param({"window": 1, "finish": "article"}, ["draft", *STEP * 3, "finish"], 3, id="article"),
        pytest.param(
            {"window": 1, "query": "draft"}, ["draft", *["revise"] * 3, "finish"], 3, id="no to_query"
        ),
        pytest.param({"query_from": "draft"}, ["draft", *STEP, "finish"], 1, id="CoT+RAG"),
        pytest.param(
            {"query_from": "draft", "query": "draft"}, ["draft", "revise", "finish"], 1, id="draft is query"
        ),
        pytest.param({"query_from": "question"}, ["draft", "revise", "finish"], 1, id="RAG-1"),
        pytest.param({"causal": False}, ["draft", *["to_query"] * 3, "revise", "finish"], 3, id="not causal"),
        pytest.param(
            {"max_retrievals": 2, "window": 1}, ["draft", *STEP * 2, "finish"], 2, id="two searches"
        ),
        pytest.param(
            {"split": "model", "window": 1},
            ["draft", "split", *STEP * 3, "finish"],
            3,
            id="split by the model",
        ),
    ],
)
def test_calls(run: Any, context: Any, calls: list[str], searches: int) -> None:
    shelf = Shelf()
    think = thinker("xxx")
    model = ScriptedModel(
        lambda node, prompt: "=====\n".join(THOUGHTS) if node == "split" else think(node, prompt)
    )
    result = run(model, shelf, **context)
    assert model.nodes == calls
    assert len(shelf.queries) == searches
    assert result["usage"]["calls"] == len(calls)
    assert {node: used["calls"] for node, used in result["usage"]["nodes"].items()} == Counter(calls)
    assert "discarded" not in result["usage"]


def test_output(run: Any) -> None:
    result = run(ScriptedModel(thinker(".x.")))
    assert set(result) == {"answer", "draft", "revisions", "evidence", "warnings", "usage"}
    assert (result["answer"], result["draft"], result["warnings"]) == ("The answer.", DRAFT, [])
    assert [revision["changed"] for revision in result["revisions"]] == [False, True, False]
    second = result["revisions"][1]
    assert (second["step"], second["thought"], second["skipped"]) == (2, THOUGHTS[1], "")
    assert second["before"] == THOUGHTS[0] + THOUGHTS[1]
    assert second["after"].startswith("The bridge was built in 1566.\n\nIts builder was Haldruvin. (checked")
    assert second["after"].endswith(")\n\n")
    assert second["query"].startswith("query for Its builder was Haldruvin.")
    assert [passage["source"] for passage in second["evidence"]] == ["shelf/0.md:1", "shelf/1.md:1"]
    assert result["revisions"][2]["before"] == second["after"] + THOUGHTS[2]
    assert len(result["evidence"]) == 6


PATTERNS = ["".join(pattern) for pattern in product(".x", repeat=5)]


@given(
    changes=st.sampled_from(PATTERNS),
    window=st.integers(2, 8) | st.just("auto"),
    scope=st.sampled_from(["prefix", "thought"]),
    rewrite=st.sampled_from(["patch", "whole"]),
)
@settings(max_examples=60, deadline=None)
def test_every_window_gives_what_strict_order_gives(
    changes: str, window: Any, scope: str, rewrite: str
) -> None:
    draft = "\n\n".join(f"Claim number {number}." for number in range(5))

    def outcome(width: Any) -> Any:
        model = ScriptedModel(thinker(changes, draft))
        graph = build_rat(model=model, retriever=Shelf())
        written = "whole" if width == 1 else rewrite
        context = RatContext(window=width, revise_scope=scope, rewrite=written, finish="thoughts")
        result = graph.invoke(QUESTION, context=context)
        thrown = result["usage"].pop("discarded", {"calls": 0})["calls"]
        assert result["usage"].pop("calls") == len(model.calls) == 11 + thrown
        return thrown, {name: result[name] for name in ("answer", "revisions", "evidence", "warnings")}

    _, strict = outcome(1)
    thrown, ahead = outcome(window)
    assert ahead == strict
    assert [revision["changed"] for revision in strict["revisions"]] == [change == "x" for change in changes]
    if window == "auto" and changes == "xxxxx":
        assert thrown == 0


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [(".....", [1, 2, 2]), ("xxxxx", [1, 1, 1, 1, 1]), (".x...", [1, 2, 1, 2]), ("........", [1, 2, 4, 1])],
)
def test_auto_doubles_while_nothing_changes(changes: str, rounds: list[int]) -> None:
    draft = "\n\n".join(f"Claim number {number}." for number in range(len(changes)))
    graph = build_rat(model=ScriptedModel(thinker(changes, draft)), retriever=Shelf())
    seen: list[int] = []
    for update in graph.stream(QUESTION, stream_mode="updates"):
        if "step" in update:
            seen[-1] += 1
        else:
            seen.append(0)
    assert [count for count in seen if count] == rounds


@pytest.mark.parametrize("causal", [True, False])
def test_no_query_sees_a_later_thought_unless_it_is_not_causal(run: Any, causal: bool) -> None:
    model = ScriptedModel(thinker("..."))
    run(model, causal=causal)
    first = next(call for call in model.calls if call.node == "to_query")
    assert (THOUGHTS[2] in first.prompt) is not causal


@pytest.mark.parametrize("show_rest", [True, False])
def test_the_rest_is_shown_to_the_revision_alone(run: Any, show_rest: bool) -> None:
    model = ScriptedModel(thinker("..."))
    run(model, show_rest=show_rest, window=1)
    rests = [section(call.prompt, "rest") for call in model.calls if call.node == "revise"]
    assert rests[0] == ("Its builder was Haldruvin.\n\nIt was rebuilt in 2004." if show_rest else "")
    assert rests[-1] == ""


@pytest.mark.parametrize(
    "reply",
    [
        "NO CHANGE",
        "No change.",
        "**NO CHANGE**",
        "NO CHANGE\n\nIt is right.",
        "The text agrees with the evidence.\n\nNO CHANGE",
        "No change is needed: the text is right.",
        f"<text>\n{DRAFT}\n</text>",
        "```\nNO CHANGE\n```",
        " ".join(DRAFT.split()),
    ],
)
def test_no_change(run: Any, reply: str) -> None:
    think = thinker("...")
    model = ScriptedModel(lambda node, prompt: reply if node == "revise" else think(node, prompt))
    result = run(model, query_from="draft", finish="thoughts")
    assert result["answer"] == DRAFT
    assert [revision["changed"] for revision in result["revisions"]] == [False]


def test_a_remark_is_not_taken_for_the_first_paragraph(run: Any) -> None:
    think = thinker("...")
    model = ScriptedModel(lambda node, prompt: "Agreed." if node == "revise" else think(node, prompt))
    result = run(model, window=1, finish="thoughts")
    assert result["answer"] == DRAFT
    assert (
        "Reply with the changed paragraphs behind their numbers, or with NO CHANGE" in model.calls[3].prompt
    )


def test_a_reply_that_lost_most_of_the_text_is_asked_for_again(run: Any) -> None:
    lost = iter(["Gone.", "The bridge was built in 1567.\n\nIts builder was Haldruvin."])
    think = thinker("...")

    def reply(node: str, prompt: str) -> str:
        second = node == "revise" and section(prompt, "text").endswith("Haldruvin.")
        return next(lost) if second else think(node, prompt)

    result = run(ScriptedModel(reply), window=1, finish="thoughts")
    assert result["answer"].startswith("The bridge was built in 1567.\n\nIts builder was Haldruvin.\n\n")
    assert result["warnings"] == []


A, B, C = (thought.strip() for thought in THOUGHTS)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("[2] Its builder was Hayruddin.", f"{A}\n\nIts builder was Hayruddin.\n\n{C}"),
        ("The changed paragraph:\n[2] X.", f"{A}\n\nX.\n\n{C}"),
        ("**[2]** X.\n\n[3]: Y.", f"{A}\n\nX.\n\nY."),
        ("[1+] X.\n[3+] Y.\n[3+] Z.", f"{A}\n\nX.\n\n{B}\n\n{C}\n\nY.\n\nZ."),
        ("[0+] X.", f"X.\n\n{DRAFT}"),
        ("[2-]", f"{A}\n\n{C}"),
        ("[3]-\n[1]+ X.", f"{A}\n\nX.\n\n{B}"),
        ("[2] X, of\n\ntwo paragraphs.", f"{A}\n\nX, of\n\ntwo paragraphs.\n\n{C}"),
        ("[1] NO CHANGE\n[2] X.\n[3] unchanged", f"{A}\n\nX.\n\n{C}"),
        (f"[1] {A}\n\n[2] {B}\n\n[3] {C}", DRAFT),
        ("[1] ```py\nx\n```\n\n[2] X.\n\n[3] ```py\ny\n```", "```py\nx\n```\n\nX.\n\n```py\ny\n```"),
        (f"{A}\n\nX.\n\n{C}", f"{A}\n\nX.\n\n{C}"),
    ],
)
def test_a_revision_writes_the_changed_paragraphs_alone(run: Any, reply: str, answer: str) -> None:
    think = thinker("...")
    model = ScriptedModel(lambda node, prompt: reply if node == "revise" else think(node, prompt))
    result = run(model, query_from="draft", finish="thoughts")
    assert result["answer"] == answer
    assert section(model.calls[-1].prompt, "text") == f"[1] {A}\n\n[2] {B}\n\n[3] {C}"
    assert result["revisions"][0]["changed"] is (answer != DRAFT)


def test_an_added_paragraph_stands_between_blank_lines_at_every_step(run: Any) -> None:
    def reply(node: str, prompt: str) -> str:
        number = section(prompt, "text").count("\n\n") + 1
        return f"[{number}+] Added." if node == "revise" else think(node, prompt)

    think = thinker("...")
    result = run(ScriptedModel(reply), finish="thoughts")
    assert result["answer"] == f"{A}\n\nAdded.\n\n{B}\n\nAdded.\n\n{C}\n\nAdded."


def test_a_paragraph_that_is_not_there_is_handed_back_once_and_then_left_out(run: Any) -> None:
    think = thinker("...")
    model = ScriptedModel(lambda node, prompt: "[2] X.\n[7] Y." if node == "revise" else think(node, prompt))
    result = run(model, query_from="draft", finish="thoughts")
    assert [call.node for call in model.calls] == ["draft", "to_query", "revise", "revise"]
    assert "paragraph 7 is not there: the paragraphs are 1 to 3" in model.calls[-1].prompt
    assert result["answer"] == f"{A}\n\nX.\n\n{C}"
    assert "paragraph 7 is not there" in " ".join(result["warnings"])


def test_a_text_with_numbers_of_its_own_is_shown_without_further_ones(run: Any) -> None:
    draft = f"{A}\n\n[1] A history of bridges."
    think = thinker("...", draft)
    reply = "[1] X.\n\n[1] A history of bridges."
    model = ScriptedModel(lambda node, prompt: reply if node == "revise" else think(node, prompt))
    result = run(model, query_from="draft", finish="thoughts")
    assert section(model.calls[-1].prompt, "text") == draft
    assert result["answer"] == reply


@pytest.mark.parametrize("fails", ["to_query", "retrieve", "revise", "nothing found"])
def test_a_step_that_fails_costs_that_step(run: Any, fails: str) -> None:
    think = thinker("xxx")

    def reply(node: str, prompt: str) -> Any:
        about = section(prompt, "thought") or section(prompt, "text")
        if node == fails and "Haldruvin" in about and "2004" not in about:
            return ValueError("no such luck")
        return think(node, prompt)

    def moody(query: str) -> list[Document] | None:
        if "Haldruvin" in query and fails == "retrieve":
            raise OSError("the shelf fell over")
        return [] if "Haldruvin" in query and fails == "nothing found" else None

    result = run(ScriptedModel(reply), Shelf(says=moody), retry_wait_s=0)
    assert [bool(revision["skipped"]) for revision in result["revisions"]] == [False, True, False]
    assert [revision["changed"] for revision in result["revisions"]] == [True, False, True]
    why = {"retrieve": "the shelf fell over", "nothing found": "nothing was found for query for Its"}
    assert why.get(fails, "no such luck") in result["revisions"][1]["skipped"]
    assert THOUGHTS[1] in result["revisions"][2]["after"]
    assert result["answer"] == "The answer."


def test_a_step_that_takes_too_long_is_given_up(run: Any) -> None:
    def slow(query: str) -> None:
        if "Haldruvin" in query:
            never.wait(1.5)

    never = threading.Event()
    result = run(ScriptedModel(thinker("xxx")), Shelf(says=slow), step_deadline_s=1.0, window=1)
    never.set()
    assert [revision["changed"] for revision in result["revisions"]] == [True, False, True]
    assert "longer than" in result["revisions"][1]["skipped"]


@pytest.mark.parametrize(("most", "checked"), [(1, 0), (2, 0), (4, 1), (5, 1), (6, 2), (8, 3), (9, 3)])
def test_a_budget_of_calls_is_kept_and_the_answer_still_written(run: Any, most: int, checked: int) -> None:
    model = ScriptedModel(thinker("..."))
    result = run(model, max_calls=most)
    assert len(model.calls) <= most
    assert sum(not revision["skipped"] for revision in result["revisions"]) == checked
    assert result["answer"] == ("The answer." if most > 1 else DRAFT)
    assert any("max_calls" in warning for warning in result["warnings"]) is (checked < 3)


def test_a_draft_that_is_not_written_is_no_answer(run: Any) -> None:
    with pytest.raises(NoAnswer, match="no draft was written"):
        run(ScriptedModel(lambda *_: "I'm sorry, I can't help with that."))


def test_without_a_source_nothing_is_asked() -> None:
    model = ScriptedModel([])
    with pytest.raises(BadInput, match=r"no source is named .*corpus:PATH"):
        build_rat(model=model).invoke(QUESTION)


def test_several_sources_take_turns(run: Any) -> None:
    first, second = Shelf(), Shelf()
    result = run(ScriptedModel(thinker("...")), [first, second], passages_per_step=1, query_from="question")
    assert first.queries == second.queries == [(QUESTION["question"], 1)]
    assert len(result["revisions"][0]["evidence"]) == 2


@pytest.mark.parametrize(
    ("finish", "passages"), [("answer", 2), ("article", 2), ("thoughts", 1), ("code", 1)]
)
def test_passages_for_each_thought(run: Any, finish: str, passages: int) -> None:
    shelf = Shelf()
    run(ScriptedModel(thinker("...")), shelf, finish=finish)
    assert {count for _, count in shelf.queries} == {passages}


def test_code(run: Any) -> None:
    think = thinker("...", finish="```python\nprint(1)\n```")
    model = ScriptedModel(think)
    result = run(model, finish="code", language="Rust")
    assert result["answer"] == "print(1)"
    assert all("Rust" in call.prompt for call in model.calls if call.node in {"draft", "finish"})


def test_the_next_prompt_begins_as_the_one_before(run: Any) -> None:
    model = ScriptedModel(thinker("..."))
    run(model, window=1)
    for node in STEP:
        prompts = [call.prompt for call in model.calls if call.node == node]
        for earlier, later in pairwise(prompts):
            assert later.startswith(earlier.partition("\n</text>")[0])


@pytest.mark.parametrize("metadata", [{"notes": None}, {"notes": ["A draft."]}, {"composed_of": 3}])
def test_metadata_of_a_users_own_documents_has_no_meaning_here(metadata: dict[str, Any]) -> None:
    shelf = Shelf(says=lambda _query: [Document("It was 1566.", metadata=metadata)])
    result = build_rat(model=ScriptedModel(thinker("...")), retriever=shelf).invoke(QUESTION)
    assert result["warnings"] == []
    assert "composed_of" not in result["evidence"][0]


def test_the_keyless_model_splits_a_draft() -> None:
    shelf = Shelf(says=lambda _query: [Document("The bridge of Mostar was built in 1566.")])
    asked = {"question": 'Who built the "bridge of Mostar" and the "bridge of Konjic"?'}
    graph = build_rat(retriever=shelf)
    split, whole = (graph.invoke(asked, context={"split": name}) for name in ("model", "paragraphs"))
    assert len(split["revisions"]) > 1
    assert split["warnings"] == whole["warnings"]
    assert [one["thought"] for one in split["revisions"]] == [one["thought"] for one in whole["revisions"]]
