"""RAT, call by call: draft, look up every part, change what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from stepcraft import (
    BadInput,
    NoAnswer,
    RatContext,
    aag_builder,
    build_aag,
    build_rat,
    build_rpg,
    rat_builder,
    rpg_builder,
)
from stepcraft.graphs.rat import RatInput, RatOutput
from stepcraft.nodes.begin import empty_check
from stepcraft.retrieval.target import OpenedSource
from tests.scripted import ScriptedModel, block
from tests.shelf import BRIDGE, QUESTION, THREAD, Shelf, ids, shown

DRAFT = "Haldruvin built the Oster bridge in 1837.\n\nIts mayor was unknown (to be looked up)."
CHANGES = "\n\n".join(
    [
        block(1, "in 1837", "in 1873"),
        block(2, "Its mayor was unknown (to be looked up).", "The mayor in 1873 was Ilse Quandt."),
    ]
)
ANSWER = "Haldruvin built the Oster bridge in 1873.\n\nThe mayor in 1873 was Ilse Quandt."


def run(
    *replies: Any, given: Any = None, shelf: Shelf | None = None, **context: Any
) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    graph = build_rat(model=model, sources=shelf or Shelf())
    settings = RatContext(**{"rounds": 2, **context})
    return graph.invoke(given or QUESTION, context=settings), model


def test_a_question_takes_three_calls_for_any_number_of_thoughts() -> None:
    shelf = Shelf()
    result, model = run(DRAFT, CHANGES, "NO CHANGE", shelf=shelf)
    assert model.nodes == ["draft", "revise", "revise"]
    assert result["answer"] == ANSWER
    assert result["first_draft"] == DRAFT
    changes = [
        (each["round"], each["part"], each["before"].strip()) for each in result["revisions"]
    ]
    assert changes == [(1, number, part) for number, part in enumerate(DRAFT.split("\n\n"), 1)]
    nodes = result["usage"]["nodes"]
    assert (nodes["draft"]["calls"], nodes["revise"]["calls"]) == (1, 2)
    assert shelf.queries[0] == QUESTION["question"]
    prompt = model.calls[1].prompt
    assert shown(prompt, "part") == DRAFT.split("\n\n")
    passages = shown(prompt, "passage")
    assert len(passages) == len(set(passages)) == 3
    # Only what changed is looked up and shown again.
    second = model.calls[2].prompt
    assert shown(second, "part") == ANSWER.split("\n\n")
    assert shelf.queries[3:] == ANSWER.split("\n\n")


@pytest.mark.parametrize(
    ("query", "is_web", "asks"),
    [("auto", False, False), ("auto", True, True), ("claims", True, False), ("model", False, True)],
)
def test_the_model_writes_the_queries_for_web_searches_alone(
    query: Any, is_web: bool, asks: bool
) -> None:
    searched = OpenedSource("pages", Shelf(), is_web=is_web)
    assert empty_check(RatContext(query=query), [searched])["model_queries"] is asks


@pytest.mark.parametrize(
    ("draft", "replies"), [(DRAFT, [CHANGES, "NO CHANGE"]), (ANSWER, ["NO CHANGE"])]
)
def test_a_draft_that_comes_in_is_checked_and_a_right_one_stays_word_for_word(
    draft: str, replies: list[str]
) -> None:
    result, model = run(*replies, given={**QUESTION, "draft": draft})
    assert model.nodes == ["revise"] * len(replies)
    assert result["answer"] == ANSWER
    assert bool(result["revisions"]) == (draft == DRAFT)


@pytest.mark.parametrize("scope", [None, "complete"])
@pytest.mark.parametrize("way", ["input", "node", "node with the answer", "saved state"])
def test_a_draft_is_checked_alike_however_it_comes_in(way: str, scope: Any) -> None:
    model = ScriptedModel({"draft": ["Not known."], "revise": ["1.1 supported p1; 2.1 not found"]})
    settings = RatContext(scope=scope)
    builder: Any = rat_builder(model=model, sources=Shelf(), settings=settings)
    if way.startswith("node"):
        update = {"first_draft": DRAFT, **({"answer": DRAFT} if "answer" in way else {})}
        del builder.nodes["draft"]
        builder.add_node("draft", lambda _state: update)
    graph = builder.compile(
        checkpointer=InMemorySaver(), interrupt_after=["draft"] if way == "saved state" else None
    )
    result = graph.invoke({**QUESTION, "draft": DRAFT if way == "input" else ""}, THREAD)
    if way == "saved state":
        graph.update_state(THREAD, {"first_draft": DRAFT})
        result = graph.invoke(None, THREAD)
    assert [each["statement"] for each in result["checks"]] == [1, 1]
    assert (result["first_draft"], result["answer"]) == (DRAFT, DRAFT)
    assert ("Add nothing" in model.calls[-1].prompt) == (scope is None)


@pytest.mark.parametrize(
    ("builder", "node"), [(rat_builder, "draft"), (rpg_builder, "generate"), (aag_builder, "draft")]
)
@pytest.mark.parametrize("update", [{"answer": DRAFT}, {"first_draft": " "}])
def test_a_node_that_writes_no_draft_is_reported(builder: Any, node: str, update: Any) -> None:
    made = builder(model=ScriptedModel(lambda *_: "- Oster"), sources=Shelf(), memory=None)
    del made.nodes[node]
    made.add_node(node, lambda _state: update)
    with pytest.raises(BadInput, match="`first_draft`"):
        made.compile().invoke(QUESTION)


def test_an_ai_message_after_the_question_is_a_draft_only_with_check_last() -> None:
    call = {"name": "look", "args": {}, "id": "1"}
    messages = [
        HumanMessage(QUESTION["question"]),
        AIMessage("", tool_calls=[call]),
        ToolMessage("nothing", tool_call_id="1"),
        AIMessage(DRAFT),
    ]
    result, model = run(CHANGES, "NO CHANGE", given={"messages": messages}, check_last=True)
    assert model.nodes == ["revise", "revise"]
    assert result["messages"][-1].text == ANSWER
    _, model = run(DRAFT, "NO CHANGE", given={"messages": messages})
    assert model.nodes == ["draft", "revise"]
    for given in (QUESTION, {"messages": [*messages, HumanMessage("And when?")]}):
        with pytest.raises(BadInput, match="check_last"):
            run(given=given, check_last=True)


@pytest.mark.parametrize("finish", ["article", "code"])
def test_a_form_takes_a_further_call(finish: str) -> None:
    result, model = run(DRAFT, "NO CHANGE", "# Bridges", finish=finish)
    assert model.nodes == ["draft", "revise", "finish"]
    assert result["answer"] == "# Bridges"
    assert shown(model.calls[2].prompt, "text") == [DRAFT]


@pytest.mark.parametrize("finish", ["article", "code"])
def test_a_form_that_is_cut_off_leaves_the_checked_text(finish: str) -> None:
    cut = AIMessage("# Bridges\n\nHaldruvin", response_metadata={"finish_reason": "length"})
    result, model = run(DRAFT, CHANGES, cut, finish=finish, rounds=1)
    assert model.nodes == ["draft", "revise", "finish"]
    assert result["answer"] == ANSWER
    assert "the answer is the checked text" in str(result["warnings"])


def test_the_model_writes_the_queries_where_asked_to() -> None:
    shelf = Shelf()
    queries = "PART 1: Oster bridge builder year\nPART 2: mayor 1873"
    result, model = run(DRAFT, queries, "NO CHANGE", shelf=shelf, query="model")
    assert model.nodes == ["draft", "to_query", "revise"]
    assert shelf.queries[1:] == ["Oster bridge builder year", "mayor 1873"]
    assert result["answer"] == DRAFT


def test_parts_are_looked_up_by_their_own_words_where_the_model_writes_no_query() -> None:
    shelf = Shelf()
    result, model = run(ANSWER, "?", "?", "NO CHANGE", shelf=shelf, query="model")
    assert model.nodes == ["draft", "to_query", "to_query", "revise"]
    assert (shelf.queries[1:], result["answer"]) == (ANSWER.split("\n\n"), ANSWER)


def test_a_run_says_how_many_passages_each_search_adds() -> None:
    graph = build_rat(model=ScriptedModel([DRAFT, CHANGES]), sources=Shelf())
    events = graph.stream(QUESTION, stream_mode="custom")
    texts = [each["text"] for each in events if each.get("node") == "retrieve"]
    assert texts == [
        f"Searching for \u201c{QUESTION['question']}\u201d.",
        "Found 2 new passages.",
        "Running 2 searches.",
        "Found 1 new passage.",
    ]


def test_the_check_begins_with_the_passages_that_the_writer_saw() -> None:
    _, model = run(DRAFT, "NO CHANGE")
    writer, check = (call.prompt for call in model.calls)
    behind = writer.rindex("</passage>")
    assert check[:behind] == writer[:behind]


def test_parts_that_do_not_fit_one_prompt_are_checked_one_after_the_other() -> None:
    draft = "\n\n".join(f"Oster has {number} arches. " * 60 for number in range(3))
    change = block(2, "Oster has 1 arches. " * 59 + "Oster", "Oster")
    result, model = run(
        "NO CHANGE",
        change,
        "NO CHANGE",
        given={**QUESTION, "draft": draft},
        max_input_tokens=900,
        rounds=1,
    )
    assert [len(shown(call.prompt, "part")) for call in model.calls] == [1, 1, 1]
    assert [each["part"] for each in result["revisions"]] == [2]
    assert result["answer"].count("1 arches") == 1
    _, model = run(
        "NO CHANGE", given={**QUESTION, "draft": draft}, max_input_tokens=900, max_calls=1
    )
    assert model.nodes == ["revise"]


@pytest.mark.parametrize(("size", "calls"), [(3_000, 1), (3_001, 2)])
def test_a_check_leaves_2000_tokens_for_its_instructions_and_its_reply(
    size: int, calls: int
) -> None:
    draft = f"{'a' * 5_998}\n\n{'b' * 4 * (size - 1_500)}"
    _, model = run(
        *["NO CHANGE"] * calls,
        given={**QUESTION, "draft": draft},
        shelf=Shelf(passages={"a": "a", "b": "b"}),
        max_input_tokens=5_000,
        rounds=1,
    )
    assert len(model.calls) == calls


def test_the_passages_of_a_part_take_their_room_in_its_check() -> None:
    tokens = {"first": 2_000, "second": 700, "third": 700}
    _, model = run(
        *["NO CHANGE"] * 2,
        given={**QUESTION, "draft": "\n\n".join(f"{word} {'x' * 2_000}" for word in tokens)},
        shelf=Shelf(passages={word: "y" * 4 * size for word, size in tokens.items()}),
        max_input_tokens=5_000,
        rounds=1,
    )
    assert [len(shown(call.prompt, "part")) for call in model.calls] == [1, 2]


@pytest.mark.parametrize(("size", "calls"), [(2_500, 1), (2_501, 2)])
def test_what_the_writer_saw_takes_its_part_of_a_check(size: int, calls: int) -> None:
    _, model = run(
        f"{'a' * 5_998}\n\n{'b' * 4 * (size - 1_500)}",
        *["NO CHANGE"] * calls,
        shelf=Shelf(passages={"Oster": "o" * 4 * 500}),
        max_input_tokens=5_000,
        rounds=1,
    )
    assert model.nodes == ["draft", *["revise"] * calls]


def test_old_words_that_stand_nowhere_are_handed_back_once() -> None:
    wrong = CHANGES.replace("in 1837", "in 1999")
    result, model = run(DRAFT, wrong, CHANGES, "NO CHANGE")
    assert result["answer"] == ANSWER
    assert "in 1999" in model.calls[2].messages[-1].text
    result, _ = run(DRAFT, wrong, block(1, "in 1837", "in 1873"), "NO CHANGE")
    assert result["answer"] == ANSWER, "the change of the other part is kept"
    result, _ = run(DRAFT, wrong, wrong, "NO CHANGE")
    assert result["answer"] == ANSWER.replace("1873", "1837", 1)
    assert "in 1999" in str(result["warnings"])


def test_what_the_model_wrote_is_judged_part_by_part() -> None:
    draft = "Haldruvin built it in 1873. It is old.\n\nThe mayor was Ilse Quandt."
    result, _ = run(draft, "1 supported p1")
    assert [each["text"] for each in result["checks"]] == draft.split("\n\n")[:1]
    assert result["warnings"] == ["revise: the check gave no verdict on 1 part"]
    result, _ = run(draft, "NO CHANGE")
    assert result["warnings"] == ["revise: the check gave no verdict on 2 parts"]
    result, _ = run(draft, '1 not found "is old"\n2 supported p2')
    assert [(each["text"], each["words"]) for each in result["checks"]] == [
        ("It is old.", "is old"),
        ("The mayor was Ilse Quandt.", ""),
    ]


def test_no_query_is_longer_than_1500_characters() -> None:
    long, shelf = "Oster " + "has an arch and " * 200 + "falls.", Shelf()
    run("NO CHANGE", given={**QUESTION, "draft": long}, shelf=shelf)
    assert shelf.queries == [long[:1_500], f"{QUESTION['question']} {long}"[:1_500]]


def test_nothing_is_asked_where_nothing_was_found() -> None:
    result, model = run(DRAFT, shelf=Shelf(passages={}))
    assert model.nodes == ["draft"]
    assert result["answer"] == DRAFT
    assert "unchecked" in " ".join(result["warnings"])


def test_what_several_sources_find_is_interleaved_by_rank_and_told_apart() -> None:
    shelves = [
        Shelf(passages={word: f"{word} {words}" for word in words}) for words in ("ab", "ca")
    ]
    graph = build_rat(model=ScriptedModel(["A draft.", "NO CHANGE"]), sources=shelves)
    first, second, third, fourth = ids(graph.invoke({"question": "a b c"}))
    assert (first, second, third) == ("a", "c", "b")
    assert fourth.startswith("a-")


class Pages(BaseRetriever):
    """Finds the same words on three pages, without ids."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del query, run_manager
        pages = [{"source": f"{page}.md"} for page in "abc"]
        return [Document("Oster has arches.", metadata=each) for each in pages]


def test_the_same_words_on_three_pages_are_three_passages_with_ids_of_their_own() -> None:
    graph = build_rat(model=ScriptedModel(["A draft.", "NO CHANGE"]), sources=Pages())
    result = graph.invoke(QUESTION)
    assert len({*ids(result)}) == len(ids(result)) == 3


class Chunks(BaseRetriever):
    """Finds chunks of one document, which have its id; the last of them is empty."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager
        facts = {"id": "doc", "source": "doc.md"}
        return [Document(text, metadata=facts) for text in (f"On {query}", "")]


def test_an_empty_chunk_hides_no_other_of_its_document() -> None:
    graph = build_rat(model=ScriptedModel([DRAFT, "1-2 not found"]), sources=Chunks())
    found = graph.invoke(QUESTION)["evidence"]
    words = [QUESTION["question"], *DRAFT.split("\n\n")]
    assert [each["text"] for each in found] == [f"On {each}" for each in words]


def test_a_passage_that_a_person_leaves_out_is_not_found_again() -> None:
    model = ScriptedModel([DRAFT, "1-2 not found"])
    saved: Any = {"checkpointer": InMemorySaver(), "interrupt_before": ["draft"]}
    graph = build_rat(model=model, sources=Shelf(), **saved)
    graph.invoke(QUESTION, THREAD)
    evidence = graph.get_state(THREAD).values["evidence"]
    left = [{**each, "text": ""} if each["id"] == "mayor" else each for each in evidence]
    graph.update_state(THREAD, {"evidence": left})
    assert ids(graph.invoke(None, THREAD)) == ["Oster", "mayor", "Haldruvin"]
    assert not any(BRIDGE["mayor"] in call.prompt for call in model.calls)


def test_a_search_that_fails_costs_its_part_and_is_said_once() -> None:
    def fail(query: str) -> None:
        if query != QUESTION["question"]:
            raise ConnectionError("the wire is cut")

    result, model = run(DRAFT, "1-2 not found", shelf=Shelf(fail=fail))
    assert model.nodes == ["draft", "revise"]
    (warning,) = result["warnings"]
    assert "the wire is cut" in warning
    assert "unchecked" in warning
    assert ids(result)


def test_what_one_of_two_sources_could_not_be_asked_is_not_called_not_found() -> None:
    def fail(_query: str) -> None:
        raise ConnectionError("the wire is cut")

    def verdicts(*shelves: Shelf) -> list[str]:
        model = ScriptedModel(["1.1 supported p1\n2.1 not found"] * 2)
        graph = build_rat(model=model, sources=shelves)
        result = graph.invoke({**QUESTION, "draft": "Oster has four arches.\n\nIt is old."})
        return [each["verdict"] for each in result["checks"]]

    assert verdicts(Shelf(), Shelf()) == ["supported", "not found"]
    assert verdicts(Shelf(), Shelf(fail=fail)) == ["supported"]


def test_a_check_that_fails_leaves_the_draft_and_says_so() -> None:
    result, _ = run(DRAFT, RuntimeError("out of order"))
    assert result["answer"] == DRAFT
    assert "unchecked" in str(result["warnings"])
    assert "out of order" in str(result["warnings"])


def test_without_a_draft_there_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match="out of order"):
        run(RuntimeError("out of order"))


def test_tags_of_the_prompt_in_a_draft_come_back_as_they_were() -> None:
    draft = "Write `<part>` and `<conversation>` around it; Haldruvin says so."
    change = block(1, "`<\u00b7part>`", "`<question>`")
    result, model = run(change, "NO CHANGE", given={**QUESTION, "draft": draft})
    assert "`<\u00b7part>` and `<conversation>`" in model.calls[0].prompt
    assert result["answer"] == draft.replace("<part>", "<question>")


@pytest.mark.parametrize(
    ("draft", "change", "answer"),
    [
        ("Built in 1837 [p1].", ("1837", "1873 [p1]"), "Built in 1873."),
        ("Press [1]. So it is [p2][p3].", ("So", "Then [p1]"), "Press [1]. Then it is."),
        ("```\nb = 2 # x[p1]\n```", ("b = 2", "b = a[p2]"), "```\nb = a[p2] # x[p1]\n```"),
        ("Built in 1837.", ("1837", "1873[p1]"), "Built in 1873."),
        ("Built in 1837.", ("1837", "1873 [p1, p2]"), "Built in 1873."),
        ("Built in 1837.", ("1837", "1873 (p1)"), "Built in 1873."),
        ("Built in 1837.", ("1837", "1873 (p95)"), "Built in 1873 (p95)."),
        ("Built (p1) in 1837.", ("(p1) in 1837", "(p1) in 1873"), "Built (p1) in 1873."),
        ("Built in 1837.", ("", "It has arches [p2]."), "Built in 1837. It has arches."),
    ],
)
def test_an_answer_has_no_ids_of_passages(draft: str, change: tuple[str, str], answer: str) -> None:
    result, _ = run(draft, block(1, *change), rounds=1)
    assert result["answer"] == answer
    assert "[p2]" in result["answer"] or "[p" not in str(result["revisions"])


NAMED = "the draft names passages by numbers that only the prompt has: "


@pytest.mark.parametrize("build", [build_rat, build_rpg, build_aag])
def test_the_number_of_a_passage_in_a_draft_is_warned_of(build: Any) -> None:
    draft = "1. According to p2, build it [p1].\n2. Ask the mayor of `p1`."
    replies = {"plan": ["KIND: long\n- mayor"], "draft": [draft], "generate": [draft]}
    checks = {"look_again": ["NOTHING"], "revise": ["NO CHANGE"], "critic": ["NO CHANGE"]}
    for question, warnings in ((QUESTION["question"], [f"{NAMED}p2"]), ("Oster, mayor, P2?", [])):
        graph = build(model=ScriptedModel({**replies, **checks}), sources=Shelf())
        result = graph.invoke({"question": question, "goal": question})
        assert [each for each in result["warnings"] if "names passages" in each] == warnings


@pytest.mark.parametrize(
    ("draft", "old", "new"),
    [
        ("Built in 1837 [p1]. It has arches \u30102\u3011.", "1837 [p1]", "1873 [p1]"),
        ("Built in 1837[^2].\n\n[^2]: A book.", "1837[^2].", "1873[^2] [p1]."),
        ("Built in 1837[^2].\n\n[^2]: A book.", "1837[^2].", "1873[p1][^2][p1, p2]."),
        ("Built in 1837 [p2], I think.", "1837 [p2], I", "1873 [p1][p2] (p1), I"),
        ("```sh\nbuild 1837\n```", "```sh\nbuild 1837\n```", "```sh\nbuild 1873\n``` [p1]"),
        ("Run `build 1837` now.", "`build 1837`", "`build 1873` [p1]"),
    ],
)
def test_the_marks_of_a_draft_that_comes_in_stay(draft: str, old: str, new: str) -> None:
    result, _ = run(block(1, old, new), given={**QUESTION, "draft": draft}, rounds=1)
    assert result["answer"].rstrip() == draft.replace("1837", "1873")
    assert "only the check sees" not in str(result["warnings"])


@pytest.mark.parametrize("label", ["[P1]", "[Doc 1]", "[see 1]", "\u30101\u3011"])
def test_labels_of_a_draft_that_comes_in_stay_in_new_words(label: str) -> None:
    draft = f"Haldruvin put {label} on it in 1837."
    given = {**QUESTION, "draft": f"{draft}\n\nIt has arches."}
    result, _ = run(block(1, "in 1837", f"in 1873, not {label} [p1]"), given=given, rounds=1)
    assert result["answer"].startswith(draft.replace("1837", f"1873, not {label}"))


def test_the_number_of_a_passage_in_code_is_warned_of() -> None:
    draft = "```sh\nbuild 1837\n```"
    change = block(1, "build 1837", "build 1873  # [p1]")
    result, _ = run(change, given={**QUESTION, "draft": draft}, rounds=1)
    assert "only the check sees: p1" in str(result["warnings"])


class Conversation(RatInput, RatOutput):
    """The state of a parent graph."""


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 10**400, "high", None])
def test_a_score_that_is_no_number_is_zero(score: Any) -> None:
    result, _ = run(DRAFT, "NO CHANGE", shelf=Shelf.model_construct(score=score, queries=[]))
    assert {each["score"] for each in result["evidence"]} == {0.0}


@pytest.mark.parametrize("mark", ["[p2]", "[^2]", "\u30102\u3011"])
def test_a_mark_in_a_draft_that_comes_in_does_not_spare_its_statement_a_search(mark: str) -> None:
    shelf = Shelf()
    draft = f"Haldruvin built it{mark}. It has arches."
    graph = build_rat(model=ScriptedModel(["1 supported p1"]), sources=shelf)
    graph.invoke({**QUESTION, "draft": draft})
    assert len(shelf.queries) == 4


def test_two_sources_of_one_name_are_both_searched() -> None:
    first, second = Shelf(), Shelf(passages={"Oster": "Oster has four arches."})
    graph = build_rat(model=ScriptedModel(["1.1 supported p1"]), sources=[first, second])
    result = graph.invoke({**QUESTION, "draft": "Oster has four arches."})
    assert {each["text"] for each in result["evidence"]} >= {"Oster has four arches."}
    assert first.queries == second.queries != []


@pytest.mark.parametrize(
    ("reply", "failed"), [("1.1 supported p1\n2.1 supported p2", False), ("What?", True)]
)
def test_the_message_of_a_node_has_the_warnings_of_its_check(reply: str, failed: bool) -> None:
    settings = RatContext(check_last=True)
    rat = build_rat(model=ScriptedModel([reply] * 4), sources=Shelf(), settings=settings)
    parent = StateGraph(MessagesState).add_node("rat", rat).add_edge(START, "rat").compile()
    given: Any = {"messages": [HumanMessage(QUESTION["question"]), AIMessage(ANSWER)]}
    warnings = rat.invoke(given)["warnings"]
    assert bool(warnings) == failed
    metadata = parent.invoke(given)["messages"][-1].response_metadata
    assert metadata == ({"stepcraft": {"warnings": warnings}} if failed else {})


@pytest.mark.parametrize(
    "reply", [AIMessage(""), AIMessage("", additional_kwargs={"refusal": "No."})]
)
def test_a_last_message_without_text_cannot_be_checked(reply: AIMessage) -> None:
    graph = build_rat(model=ScriptedModel([]), sources=Shelf())
    messages = [HumanMessage("Who built it?"), reply]
    with pytest.raises(BadInput, match="the last AI message cannot be checked"):
        graph.invoke({"messages": messages}, context=RatContext(check_last=True))


def test_a_draft_is_one_text():
    with pytest.raises(BadInput, match="draft must be a text, not list"):
        build_rat(sources=Shelf()).invoke({**QUESTION, "draft": ["a", "b"]})


@pytest.mark.parametrize("draft", ["\n", " \t"])
def test_a_blank_draft_is_refused(draft: str) -> None:
    with pytest.raises(BadInput, match="the draft has no words"):
        build_rat(sources=Shelf()).invoke({**QUESTION, "draft": draft})
