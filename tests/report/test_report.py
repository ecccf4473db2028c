"""The page of a run: its content, and its accessibility."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage

from stepcraft import BadInput
from stepcraft.graphs.aag import build_aag
from stepcraft.graphs.rat import build_rat
from stepcraft.graphs.rpg import build_rpg
from stepcraft.report import page
from tests.report.reports import GOAL, QUESTION, RUNS, STEPS, Reader, aag, rag, rat


def test_question_and_figures() -> None:
    seen = Reader(page("rat", QUESTION, rat(), STEPS, trace_id="0199"))
    assert seen.texts("h1") == [QUESTION["question"]]
    assert seen.texts("title") == [f"{QUESTION['question']} · Stepcraft"]
    assert seen.texts("p", "method") == ["Stepcraft · Retrieval-augmented thoughts"]
    facts = ["2 changes", "3 passages", "3 model calls", "12.5 s", "trace 0199"]
    assert seen.texts("ul", "facts") == ["".join(facts)]


def test_the_question_of_messages() -> None:
    messages = [HumanMessage("Who built it?"), AIMessage("A draft.")]
    assert Reader(page("rat", {"messages": messages}, rat())).texts("h1") == ["Who built it?"]
    with pytest.raises(BadInput):
        page("rat", {}, rat())


@pytest.mark.parametrize(
    "message", [("human", "Who built it?"), {"role": "user", "content": "Who built it?"}]
)
def test_messages_have_the_forms_that_graphs_take(message: Any) -> None:
    assert Reader(page("rat", {"messages": [message]}, rat())).texts("h1") == ["Who built it?"]


@pytest.mark.parametrize(
    "messages",
    [
        "Who built it?",
        {"role": "user", "content": "Who built it?"},
        ("human", "Who built it?"),
        HumanMessage("Who built it?"),
        (HumanMessage("Who built it?"), AIMessage("A draft.")),
        [RemoveMessage("1"), HumanMessage("Who built it?")],
    ],
)
def test_messages_can_be_one_or_many_and_remove_others(messages: Any) -> None:
    assert Reader(page("rat", {"messages": messages}, rat())).texts("h1") == ["Who built it?"]


def test_messages_stay_as_they_are() -> None:
    message = HumanMessage("Who built it?")
    page("rat", {"messages": [message]}, rat())
    assert message.id is None


def test_answer_warnings_and_draft() -> None:
    seen = Reader(page("rat", QUESTION, rat()))
    sections = seen.sections()
    assert list(sections) == ["warnings", "answer", "checks", "changes", "evidence", "cost"]
    assert sections["warnings"] == "Warningsrevise: a reply could not be read"
    assert sections["answer"].startswith("AnswerHaldruvin built it.1 It fell in 1993.")
    assert sections["changes"].endswith("The draftHaldruvin built it. It fell in 1992.")


def test_every_change_by_part_and_round_with_its_passages() -> None:
    seen = Reader(page("rat", QUESTION, rat()))
    assert seen.texts("article") == [
        "Part 2 round 1It fell in 19921994.Title 2Title 3",
        "Part 2 round 2It fell in 19941993.Title 3",
    ]
    assert (seen.texts("del"), seen.texts("ins")) == (["1992", "1994"], ["1994", "1993"])


def test_the_rest_of_a_long_text_is_folded() -> None:
    before = f"{'Some words. ' * 100}It was built in 1566. {'Other words. ' * 100}"
    revision = {**rat()["revisions"][0], "before": before, "after": before.replace("1566", "1567")}
    seen = Reader(page("rat", QUESTION, rat(revisions=[revision])))
    short, whole = seen.texts("div", "diff")
    assert (short.count("…"), len(short) < 400, len(whole) > 2_000) == (2, True, True)
    assert (seen.texts("del"), seen.texts("ins")) == (["1566"] * 2, ["1567"] * 2)


def test_a_draft_in_which_nothing_was_wrong() -> None:
    unchanged = rat(revisions=[], first_draft="It fell.", answer="It fell.")
    assert Reader(page("rat", QUESTION, unchanged)).sections()["changes"] == (
        "ChangesThe check changed nothing."
    )


def test_steps_queries_and_resources() -> None:
    result = aag()
    seen = Reader(page("aag", GOAL, result))
    sections = seen.sections()
    assert sections["answer"].startswith(
        "AnswerResources rye flour, a sourdough starterUse oven_kit()"
    )
    assert len(seen.texts("ol", "steps")) == 1
    assert sections["queries"] == f"Looked up{''.join(result['queries'])}"
    assert seen.texts("article")[0].startswith(
        "Step 2 round 1Mix `rye flour` and water. Let it rise."
    )
    assert seen.texts("ins") == ["Let it rise."]


def test_an_answer_that_says_more_than_its_steps_is_shown_whole() -> None:
    result = aag()
    seen = Reader(page("aag", GOAL, {**result, "answer": f"{result['answer']}\n\nAsk first."}))
    assert seen.sections()["answer"].endswith("3. Let it rise. Ask first.")


def test_unverified_names_come_first_and_the_others_with_their_places() -> None:
    names = Reader(page("aag", GOAL, aag())).sections()["names"]
    unverified, _, verified = names.partition("2 names that also stand elsewhere")
    assert unverified.endswith("oven_kit step 1 unverified")
    assert (
        verified == "rye flour step 2 the resources, Title 1dough step 2 a procedure of the memory"
    )


def test_names_that_were_not_looked_up_are_not_said_to_stand_nowhere() -> None:
    left = [{**each, "unsearched": True} for each in aag()["names"][:1]]
    names = Reader(page("aag", GOAL, aag(names=left))).sections()["names"]
    assert "stand nowhere else" not in names
    assert names.endswith("were not looked up.oven_kit step 1 not looked up")


def test_reviews() -> None:
    seen = Reader(page("aag", GOAL, aag()))
    assert seen.sections()["reviews"] == (
        "ReviewsReview 1 rejectedIt has to rise.2026-01-01T09:00:00+00:00"
        "Review 2 approved2026-01-01T09:05:00+00:00 by adaRemembered as 0b7c."
    )


def test_evidence_with_scores_and_sources() -> None:
    result = rag()
    seen = Reader(page("rag", QUESTION, result))
    assert list(seen.sections()) == ["answer", "evidence", "cost"]
    for passage in result["evidence"]:
        line = f"{passage['score']:.2f} {passage['title']}{passage['text']}{passage['source']}"
        assert line in seen.sections()["evidence"]


@pytest.mark.parametrize("build", [build_aag, build_rat, build_rpg])
def test_the_output_of_every_method_has_a_page(build: Any) -> None:
    graph = build()
    result = graph.invoke(GOAL)
    sections = Reader(page(graph.name, GOAL, result)).sections()
    assert {"warnings", "answer", "evidence", "cost"} <= sections.keys()
    assert all(passage["title"] in sections["evidence"] for passage in result["evidence"])


def test_a_graph_of_a_paper_has_answer_evidence_and_cost() -> None:
    revisions = [{"step": 1, "query": "a", "before": "b", "after": "c", "skipped": ""}]
    seen = Reader(page("rat_paper", QUESTION, rag(revisions=revisions)))
    assert list(seen.sections()) == ["answer", "evidence", "cost"]


def test_time_and_tokens_by_node() -> None:
    seen = Reader(page("rat", QUESTION, rat(), STEPS))
    rows = [row for row in seen.texts("tr") if row.startswith(("draft", "Total"))]
    assert rows == ["draft13.25 s31,200345", "Total312.5 s31,200345", "draft0.25 s3.50 s"]
    assert [bar.attributes["x"] for bar in seen.all("rect")] == ["0.00", "2.00", "28.00"]


@pytest.mark.parametrize(("graph", "inputs", "run"), RUNS)
def test_a_screen_reader_finds_its_way(graph: str, inputs: Any, run: Any) -> None:
    seen = Reader(page(graph, inputs, run(), STEPS))
    levels = [int(element.tag[1]) for element in seen.seen if re.fullmatch("h[1-6]", element.tag)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(below <= above + 1 for above, below in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(seen.all(landmark)) == 1
    names = [element.attributes["id"] for element in seen.seen if "id" in element.attributes]
    assert len(names) == len(set(names))
    links = [str(element.attributes.get("href")) for element in seen.seen]
    targets = [link[1:] for link in links if link.startswith("#")]
    labels = [element.attributes.get("aria-labelledby", names[0]) for element in seen.seen]
    assert {*targets, *labels} <= {*names}
