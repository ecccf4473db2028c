"""The paper's RAT, call by call: each thought is looked up and revised after those before it."""

from typing import Any

import pytest

from stepcraft_papers.contexts import RatPaperContext
from stepcraft_papers.graphs.rat import build_rat_paper
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, shown

THOUGHTS = ["Haldruvin, 1837.\n\n", "The bridge is the Oster.\n\n", "The mayor was Quandt."]
DRAFT = "".join(THOUGHTS)
MENDED = DRAFT.replace("1837", "1873")
QUERIES = {"Haldruvin year": "1837", "Oster arches": "Oster", "mayor 1873": "mayor"}
STEP = ["to_query", "revise"]


def reply(node: str, prompt: str) -> str:
    [text, thought] = ["".join(shown(prompt, name)) for name in ("text", "thought")]
    queries = [query for query, word in QUERIES.items() if word in (thought or DRAFT)]
    part = (node == "revise" and thought) or text
    revision = part.replace("1837", "1873") if "1837" in part else "NO CHANGE"
    replies = {"draft": DRAFT, "to_query": "\n".join(queries), "revise": revision}
    return replies.get(node, "The answer.")


def run(shelf: Shelf, script: Any = reply, **context: Any) -> tuple[Any, ScriptedModel]:
    graph: Any = build_rat_paper(model=(model := ScriptedModel(script)), sources=shelf)
    return graph.invoke(QUESTION, context=RatPaperContext(**context)), model


@pytest.mark.parametrize(
    ("context", "calls", "searches"),
    [
        ({}, ["draft", *STEP * 3, "finish"], 3),  # RAT
        ({"finish": "thoughts"}, ["draft", *STEP * 3], 3),  # thoughts
        ({"query": "draft"}, ["draft", *["revise"] * 3, "finish"], 3),  # no query
        ({"query_from": "draft"}, ["draft", *STEP, "finish"], 1),  # CoT+RAG
        ({"query_from": "question"}, ["draft", "revise", "finish"], 1),  # RAG-1
        ({"causal": False}, ["draft", *STEP, "finish"], 3),  # not causal
        ({"max_retrievals": 2}, ["draft", *STEP * 2, "finish"], 2),  # two searches
    ],
)
def test_calls(context: Any, calls: list[str], searches: int) -> None:
    result, model = run(shelf := Shelf(), **context)
    assert (model.nodes, len(shelf.queries)) == (calls, searches)
    assert result["answer"] == ("The answer." if "finish" in calls else MENDED)
    assert result["revisions"][-1]["after"] == MENDED


def test_a_thought_is_looked_up_after_the_revised_text_and_revised_beside_the_rest() -> None:
    result, model = run(Shelf())
    to_query, revise = [call.prompt for call in model.calls[3:5]]
    assert shown(to_query, "text") == [MENDED.removesuffix(THOUGHTS[2]).strip()]
    assert shown(to_query, "thought") == [THOUGHTS[1].strip()]
    assert shown(revise, "rest") == [THOUGHTS[2]]
    assert shown(revise, "passage") == ["The Oster bridge has four arches of granite."]
    first = result["revisions"][0]
    assert (first["query"], first["evidence"]) == ("Haldruvin year", ["Haldruvin"])
    assert (first["before"], first["after"]) == (THOUGHTS[0], "Haldruvin, 1873.\n\n")


def test_a_step_that_fails_keeps_its_text_and_says_why() -> None:
    def fail(query: str) -> None:
        if "year" in query:
            raise ConnectionError("the wire is cut")

    def broken(node: str, prompt: str) -> Any:
        if node == "to_query" and shown(prompt, "thought") == [THOUGHTS[1].strip()]:
            return ValueError("overloaded")
        return "Mayor." if node == "revise" else reply(node, prompt)

    result, _ = run(Shelf(fail=fail), broken, finish="thoughts")
    reasons = zip(("is cut", "overloaded", "most of the text"), result["revisions"], strict=True)
    assert all(reason in revision["skipped"] for reason, revision in reasons)
    assert result["answer"] == DRAFT
