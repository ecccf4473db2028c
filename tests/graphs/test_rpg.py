"""RPG, call by call: plan, write from the evidence, check, trace."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import BadInput, RpgContext, build_rpg
from stepcraft.nodes.trace import short_answer
from stepcraft.text.sections import parse
from tests.scripted import ScriptedModel, block
from tests.shelf import BRIDGE, QUESTION, THREAD, Shelf, ids, shown

PLAN = "KIND: long\n- works of Haldruvin\n- mayor in 1873"
GAPS = "NOTHING"
LONG = "Haldruvin built it in 1873 [p3]. It is a fine bridge. The mayor was Ilse Quandt [p2]."
"""The question finds the bridge [p1] and the mayor [p2], the plan the builder [p3]."""


def run(
    *replies: Any, given: Any = None, shelf: Shelf | None = None, **context: Any
) -> tuple[Any, ScriptedModel, Shelf]:
    model, shelf = ScriptedModel(replies), shelf or Shelf()
    graph = build_rpg(model=model, sources={"bridges": shelf})
    settings = RpgContext(**{"rounds": 2, **context})
    return graph.invoke(given or QUESTION, context=settings), model, shelf


def test_a_long_answer_takes_four_calls_where_nothing_is_wrong() -> None:
    result, model, shelf = run(PLAN, GAPS, LONG, "NO CHANGE")
    assert model.nodes == ["plan", "look_again", "generate", "revise"]
    assert shelf.queries[:3] == [QUESTION["question"], "works of Haldruvin", "mayor in 1873"]
    assert result["queries"] == shelf.queries[:3]
    assert result["form"] == "long"
    assert [each["supported"] for each in result["sentences"]] == [True, False, True]


def test_marks_are_numbered_by_first_use_and_point_to_the_cited_evidence() -> None:
    result, _, _ = run(
        PLAN, GAPS, "The mayor was Ilse Quandt [p2]. Haldruvin built it [p3].", "NO CHANGE"
    )
    assert result["answer"] == "The mayor was Ilse Quandt [1]. Haldruvin built it [2]."
    cited = [each["evidence"] for each in result["sentences"]]
    assert cited == [[each] for each in ids(result)]


def test_the_changes_of_the_check_keep_marks() -> None:
    change = block(1, "in 1873 [p3]", "in 1873 with four arches [p1]")
    result, model, _ = run(PLAN, GAPS, LONG, change, "NO CHANGE")
    assert model.nodes == ["plan", "look_again", "generate", "revise", "revise"]
    assert "four arches [1]" in result["answer"]


def test_an_addition_rests_on_the_passages_that_it_cites() -> None:
    shelf = Shelf(passages={**BRIDGE, "fine": "A fine is due for riding on it."})
    draft = "It has arches [p1]. It is fine."
    reply = f"1 supported p1\n{block(1, new='Four of them [p3].')}"
    result, _, _ = run(PLAN, GAPS, draft, reply, rounds=1, shelf=shelf)
    assert result["revisions"][0]["evidence"] == ["mayor"]
    assert ids(result) == ["Oster", "mayor"]


@pytest.mark.parametrize("scope", ["correct", "complete", None])
def test_the_check_adds_nothing_where_it_only_corrects(scope: Any) -> None:
    addition = block(1, new="It has four arches [p1].")
    replies = [addition, addition] if scope == "correct" else [addition]
    result, _, _ = run(PLAN, GAPS, LONG, *replies, scope=scope, rounds=1)
    assert ("four arches" in result["answer"]) == (scope != "correct")


def test_a_fence_is_one_part() -> None:
    text = "She governed then [p2]:\n\n```python\n" + "bridge = build()\n\n" * 40 + "```"
    _, model, _ = run(PLAN, GAPS, text, "NO CHANGE")
    assert shown(model.calls[3].prompt, "part") == [text]


def test_marks_stay_where_they_stand_and_others_go() -> None:
    draft = (
        "By [p2], it was in 1873:\n\n$$x \\in [1, 2]$$ [p3]\n\nSorting [3, 1] gives [1, 3] [p9]."
    )
    result, _, _ = run(PLAN, GAPS, draft, "NO CHANGE")
    assert result["answer"] == (
        "By [1], it was in 1873:\n\n$$x \\in [1, 2]$$ [2]\n\nSorting [3, 1] gives [1, 3]."
    )
    assert "".join(each["text"] for each in result["sentences"]) == result["answer"]
    assert [len(each["evidence"]) for each in result["sentences"]] == [2, 0]


@pytest.mark.parametrize("text", ["See section [9] of the law.", "Press [9] to stop."])
def test_plain_brackets_that_name_no_passage_stay(text: str) -> None:
    result, _, _ = run(PLAN, GAPS, text, "NO CHANGE")
    assert result["answer"] == text
    result, _, _ = run(PLAN, GAPS, f"It has arches [1]. {text}", "NO CHANGE")
    assert result["answer"] == f"It has arches [1]. {text}"


def test_a_draft_with_plain_numbers_is_read_with_the_marks_of_its_changes() -> None:
    change = block(1, new="It has four arches [p1].")
    result, _, _ = run(PLAN, GAPS, "The mayor was Ilse Quandt [2].", change, "NO CHANGE")
    assert result["first_draft"] == "The mayor was Ilse Quandt [p2]."
    assert "Quandt [1]." in result["answer"]
    assert "arches [2]." in result["answer"]


@pytest.mark.parametrize(
    ("draft", "answer", "warnings"),
    [
        ("It has arches (p1). So (p2, p3).", "It has arches [1]. So [2][3].", []),
        ("It has arches (p1; p2). So (p3 and p1).", "It has arches [1][2]. So [3][1].", []),
        ("So `f (p1, p2)` (p1).\n\n```\n(p2)\n```", "So `f (p1, p2)` [1].\n\n```\n(p2)\n```", []),
        ("It is 2 ms (p95) [p1]. See page 2.", "It is 2 ms (p95) [1]. See page 2.", []),
        ("It has arches.", "It has arches.", ["trace: no sentence of the answer cites a passage"]),
    ],
)
def test_an_answer_whose_citations_are_in_parentheses_or_missing(
    draft: str, answer: str, warnings: list[str]
) -> None:
    result, _, _ = run(PLAN, GAPS, draft, "1 supported p1", "1 supported p1")
    assert (result["answer"], result["warnings"]) == (answer, warnings)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: Washington, D.C.", "Washington, D.C."),
        ("**Answer: Washington, D.C.**", "Washington, D.C."),
        ("Answer: __init__ [p3]", "__init__"),
        ("It was Acme.\n\n**Answer**: Acme Inc.", "Acme Inc."),
        ("Final answer: 1889.", "1889"),
        ("**Final answer:** **42.**", "42"),
        ("Answer:**1889**", "1889"),
        ("- Answer: No.", "No"),
        ("Answer: **A** and **B**", "**A** and **B**"),
        ("Answer: J. R. R. Tolkien.", "J. R. R. Tolkien"),
        ("Answer: It fell. Then it rose.", "It fell. Then it rose."),
        ("Answer: 1888\nAnswer: 1889", "1889"),
        ("\u7b54\u6848\uff1a1889\u5e74\u3002", "1889\u5e74"),
        ("Antwort: 3.14.", "3.14"),
        ("R\u00e9ponse : Paris", "Paris"),
        ("Respuesta\uff1a *Il Duomo*", "Il Duomo"),
        ("It is known.\n\nHaldruvin.", "Haldruvin"),
        ("Answer: 5 p.m.", "5 p.m."),
        ("Answer: 5th Ave.", "5th Ave."),
        ("Respuesta: EE. UU.", "EE. UU."),
        ("\u7b54\uff1a1889\u5e74", "1889\u5e74"),
        ("\u7b54\u6848\u662f\uff1a1889", "1889"),
        ("\u3010\u7b54\u6848\u30111889", "1889"),
        ("\u0627\u0644\u062c\u0648\u0627\u0628: 1889", "1889"),
        ("\u0110\u00e1p \u00e1n: 1889", "1889"),
        ("Kurze Antwort: 1889", "1889"),
        ("The answer is: 1889", "1889"),
        ("**Answer**\n1889", "1889"),
        ("It is known.\n\n#### 1889", "1889"),
        ("It is known.\n\n### Answer\n1889", "1889"),
        ("It is known.\n\nAnswer\n1889", "1889"),
        ("It is known.\n\n<answer>1889</answer>", "1889"),
        ("So:\n\n$\\boxed{1889}$", "1889"),
    ],
)
def test_the_forms_of_a_short_answer(text: str, answer: str) -> None:
    result, _, _ = run("KIND: short\n- Oster", GAPS, text, "NO CHANGE")
    assert result["answer"] == answer


def test_an_answer_with_many_tags_takes_linear_time() -> None:
    """What is quadratic in it would take minutes, which the test's time-out ends."""
    text = "<answer>\n" * 100_000
    assert short_answer(f"{text}1889</answer>\n") == "1889"
    assert short_answer(f"{text}\n\n</answer> 1889") == "</answer> 1889"


def test_no_more_is_looked_up_than_the_settings_allow() -> None:
    result, _, _ = run(PLAN, "- arches\n- bridges", LONG, "NO CHANGE", max_queries=1)
    assert result["queries"] == [QUESTION["question"], "works of Haldruvin", "arches"]


def test_prose_around_a_list_is_no_query() -> None:
    plan = "KIND: long\nHere are the queries I suggest\n1. works of Haldruvin\n\nThey cover it all."
    result, _, _ = run(plan, "NOTHING\n\nThe passages name both.", LONG, "NO CHANGE")
    assert result["queries"][1:] == ["works of Haldruvin"]
    assert result["usage"]["nodes"]["look_again"]["calls"] == 1


@pytest.mark.parametrize(
    "reply",
    [
        "I would look for the bridge. Then I would look for the mayor.",
        "The question has two parts.\nOne is about a bridge.",
        "I cannot help with that",
        "<query>works of Haldruvin</query>",
    ],
)
def test_a_plan_without_a_list_is_handed_back(reply: str) -> None:
    result, model, _ = run(reply, PLAN, reply, GAPS, LONG, "NO CHANGE")
    assert model.nodes[:4] == ["plan", "plan", "look_again", "look_again"]
    assert result["queries"][1:] == ["works of Haldruvin", "mayor in 1873"]


def test_what_is_missing_is_looked_up_before_the_answer_is_written() -> None:
    more = "Still missing:\n- arches of Oster\n- works of haldruvin\n- of the mayor\n- bridges"
    result, model, shelf = run("KIND: long\n- works of Haldruvin", more, LONG, "NO CHANGE")
    assert shown(model.calls[1].prompt, "searched") == [
        f"{QUESTION['question']}\nworks of Haldruvin"
    ]
    found = ["arches of Oster", "of the mayor", "bridges"]  # the other was searched for
    assert result["queries"][2:] == shelf.queries[2:5] == found


def test_the_writer_sees_what_the_second_look_saw_and_behind_it_what_that_found() -> None:
    _, model, _ = run("KIND: long\n- builder", "- works of Haldruvin", LONG, "NO CHANGE")
    second, writer = (model.calls[place].prompt for place in (1, 2))
    behind = second.index("<searched>")
    assert writer[:behind] == second[:behind]
    assert [len(shown(each, "passage")) for each in (second, writer)] == [2, 3]


@pytest.mark.parametrize(
    ("replies", "looks", "nodes"),
    [
        ([], 1, []),
        (["Nothing is missing."], 5, ["look_again"]),
        (["- mayor", "- Haldruvin", "- who"], 4, ["look_again"] * 3),
        (["- mayor", "- Mayor"], 4, ["look_again"] * 2),
        ([RuntimeError("503")], 4, ["look_again"]),
    ],
)
def test_there_are_as_many_looks_as_bring_something(
    replies: list[Any], looks: int, nodes: list[str]
) -> None:
    result, model, _ = run("KIND: long\n- Oster", *replies, LONG, "NO CHANGE", looks=looks)
    assert model.nodes == ["plan", *nodes, "generate", "revise"]
    assert result["answer"].startswith("Haldruvin built it")


@pytest.mark.parametrize("plan", ["KIND: short\n- builder of Oster", "- builder of Oster"])
def test_a_short_answer_looks_twice(plan: str) -> None:
    given = {**QUESTION, "kind": "auto" if "KIND" in plan else "short"}
    _, model, shelf = run(plan, "- works of Haldruvin", "Answer: 1873", "NO CHANGE", given=given)
    assert model.nodes == ["plan", "look_again", "generate", "revise"]
    assert "works of Haldruvin" in shelf.queries
    _, model, _ = run(plan, "Answer: 1873", "NO CHANGE", given=given, looks=1)
    assert model.nodes == ["plan", "generate", "revise"]


def after_question(prompt: str) -> list[tuple[str, str]]:
    """Return the name and the id of each section of a prompt's material behind the question."""
    return [(each.name, each.id) for each in parse(prompt) if each.name in {"part", "passage"}]


DRAFT = "It has arches [p1]. " + "Haldruvin was its builder. " * 12 + "\n\nThe mayor was Quandt."


def test_the_check_begins_with_what_the_writer_saw_and_shows_what_was_found_since() -> None:
    looks = ("KIND: long\n- arches of Oster", "NOTHING")
    _, model, _ = run(*looks, DRAFT, "NO CHANGE", k=1)
    writer, check = (call.messages[-1].text for call in model.calls[2:])
    assert check[: check.index("<part")].rstrip() == writer[: writer.index("Answer the")].rstrip()
    *before, first, found, second, last = after_question(check)
    assert [name for name, _ in before] == ["passage"] * len(before)
    assert [first[1], second[1]] == ["1", "2"]
    numbers = [int(each[1:]) for _, each in (found, last)]
    assert min(numbers) == len(before) + 1


def test_a_part_stands_above_what_it_cites_where_what_the_writer_saw_has_no_room() -> None:
    model = ScriptedModel([PLAN, DRAFT, "1-3 not found", "1-3 not found"])
    long = Shelf(passages={word: f"{text} {'More. ' * 300}" for word, text in BRIDGE.items()})
    graph = build_rpg(model=model, sources={"bridges": long})
    result = graph.invoke(QUESTION, context=RpgContext(looks=1, max_input_tokens=2_500))
    assert result["warnings"] == []
    for call in model.calls[2:]:
        assert after_question(call.messages[-1].text)[0][0] == "part"
    assert ("passage", "p1") in after_question(model.calls[2].messages[-1].text)


@pytest.mark.parametrize(("length", "word"), [("brief", "Be brief"), ("full", "Leave nothing")])
def test_the_length_of_an_answer_is_a_setting(length: str, word: str) -> None:
    _, model, _ = run(PLAN, GAPS, LONG, "NO CHANGE", length=length)
    assert word in model.calls[2].prompt


def test_a_short_answer_is_the_answer_and_nothing_else() -> None:
    short = "Haldruvin built the Oster bridge in 1873 [p3].\n\nAnswer: Haldruvin."
    result, model, _ = run("KIND: short\n- works of Haldruvin", GAPS, short, "NO CHANGE")
    assert (result["answer"], result["form"], ids(result)) == ("Haldruvin", "short", ["Haldruvin"])
    assert "Answer:" in model.calls[3].prompt
    assert "one fact" in model.calls[1].prompt
    assert result["sentences"][0]["supported"]


def test_nothing_is_added_to_a_short_answer() -> None:
    draft = "Haldruvin built it [p2].\n\nAnswer: Haldruvin."
    mayor = "The mayor was Ilse Quandt [p3]."
    behind, before = block(1, new=mayor), block(1, "built it [p2].", f"built it [p2]. {mayor}")
    plan = "KIND: short\n- works of Haldruvin"
    result, model, _ = run(plan, GAPS, draft, behind, before, rounds=1)
    assert "a part of the short answer" in model.calls[4].prompt
    assert (result["answer"], "Quandt" in str(result["sentences"])) == ("Haldruvin", True)


@pytest.mark.parametrize(("given", "context"), [({}, {"kind": "short"}), ({"kind": "short"}, {})])
def test_the_kind_that_is_asked_for_is_not_planned(given: Any, context: Any) -> None:
    replies = ["- builder", GAPS, "Answer: Haldruvin", "NO CHANGE"]
    result, model, _ = run(*replies, given={**QUESTION, **given}, **context)
    assert result["answer"] == "Haldruvin"
    assert "KIND" not in model.calls[0].prompt


def test_a_name_in_code_that_its_passage_lacks_is_not_supported() -> None:
    result, _, _ = run(
        PLAN, GAPS, "Call `bridge.build()` [p3]. Haldruvin built it [p3].", "NO CHANGE"
    )
    assert [each["supported"] for each in result["sentences"]] == [False, True]


@pytest.mark.parametrize("verdict", ["not found", "contradicted"])
def test_a_sentence_with_words_that_the_check_rejects_is_not_supported(verdict: str) -> None:
    draft = "Haldruvin built it in 1873 with 400 masons [p3]. The mayor was Ilse Quandt [p2]."
    replies = [PLAN, GAPS, draft, f'1 {verdict} "with 400 masons"', "NO CHANGE"]
    result, _, _ = run(*replies, rounds=1)
    assert [each["unconfirmed"] for each in result["sentences"]] == [["with 400 masons"], []]
    assert [each["supported"] for each in result["sentences"]] == [False, True]


@pytest.mark.parametrize("reply", ['1 not found "Press [1] to see"', "1 not found"])
def test_a_label_in_rejected_words_does_not_make_them_supported(reply: str) -> None:
    draft = "Press [1] to see who built it [p3]. The mayor was Ilse Quandt [p2]."
    result, _, _ = run(PLAN, GAPS, draft, reply, rounds=1)
    assert not result["sentences"][0]["supported"]


def test_a_sentence_that_the_check_corrected_is_supported() -> None:
    draft = "Haldruvin built it in 1837 [p3]. The mayor was Ilse Quandt [p2]."
    reply = '1 contradicted "1837" p3\n' + block(1, "1837", "1873")
    result, _, _ = run(PLAN, GAPS, draft, reply, rounds=1)
    assert "built it in 1873 [1]" in result["answer"]
    assert [each["supported"] for each in result["sentences"]] == [True, True]


def test_a_part_that_was_not_found_has_no_supported_sentence() -> None:
    draft = "Haldruvin built it in 1873 [p3]. It has 400 rooms [p2]."
    result, _, _ = run(PLAN, GAPS, draft, "1 not found", rounds=1)
    assert [each["unconfirmed"] for each in result["sentences"]] == [
        ["Haldruvin built it in 1873."],
        ["It has 400 rooms."],
    ]


@pytest.mark.parametrize("reply", ['1 not found "400 rooms"', "1 not found"])
def test_a_failed_search_for_one_sentence_confirms_no_other_that_was_not_found(reply: str) -> None:
    def fail(query: str) -> None:
        if query == "It is a fine bridge.":
            raise OSError("down")

    draft = "It has 400 rooms [p2]. It is a fine bridge."
    result, _, _ = run(PLAN, GAPS, draft, reply, rounds=1, shelf=Shelf(fail=fail))
    assert [each["text"] for each in result["checks"]] == ["It has 400 rooms."]
    assert [each["supported"] for each in result["sentences"]] == [False, False]


@pytest.mark.parametrize("reply", ["1 not found", "1 contradicted p1"])
@pytest.mark.parametrize(
    "draft",
    [
        "It has 400 rooms[p2]. It is 80 m\u00b2[p1].",
        "It has 400 rooms ([p2]). It cost 100 \u20ac **[p1]**, or *100 \u20ac*[p1].",
        "It has 400 rooms<sup>[p2]</sup>. It cost 100 \u20ac ([p1], [p2]).",
        "| Rooms | Note |\n|---|---|\n| 400[p2] | It has 400 rooms [p2]. It is large[p1]. |",
        "400\u5ba4\uff08[p2]\uff09\u3002\u5927\u304d\u3044[p1]\u3002",
        "Press [9] to see `items[1]`[p1]. Key [3] of arr[1] is $.items[1] ([p2]).",
    ],
)
def test_no_citing_sentence_of_a_rejected_part_is_supported(draft: str, reply: str) -> None:
    result, _, _ = run(PLAN, GAPS, draft, reply, reply, rounds=1)
    assert [each["supported"] for each in result["sentences"]] == [False] * len(result["sentences"])
    assert not any("trace" in each for each in result["warnings"] if "brackets" not in each)


def test_a_number_in_brackets_distinguishes_two_statements() -> None:
    draft = "Key [8] opens the bridge [p2]. Key [9] opens the bridge [p2]."
    result, _, _ = run(PLAN, GAPS, draft, '1 not found "Key [9] opens"', rounds=1)
    assert [each["unconfirmed"] for each in result["sentences"]] == [[], ["Key [9] opens"]]


def test_rejected_words_stay_unconfirmed_if_others_in_their_sentence_change() -> None:
    draft = "Haldruvin built it in 1837 with 400 masons[p3]. The mayor was Ilse Quandt [p2]."
    reply = f'1 not found "with 400 masons"\n{block(1, "1837", "1873")}'
    result, _, _ = run(PLAN, GAPS, draft, reply, rounds=1)
    assert "1873" in result["answer"]
    assert [each["supported"] for each in result["sentences"]] == [False, True]


@pytest.mark.parametrize(
    ("verdict", "rounds", "others"),
    [("not found", 1, False), ("contradicted p3", 1, True), ("not found", 2, True)],
)
def test_a_change_to_one_sentence_confirms_no_other_that_was_not_found(
    verdict: str, rounds: int, others: bool
) -> None:
    draft = "It has 400 rooms[p2]. Haldruvin built it in 1837[p3]. It is 80 m long [p1]."
    replies = [f"1 {verdict}\n{block(1, '1837', '1873')}", "1 supported p1"]
    result, _, _ = run(PLAN, GAPS, draft, *replies, rounds=rounds)
    assert [each["supported"] for each in result["sentences"]] == [others, True, others]
    assert not any("trace" in each for each in result["warnings"])


def test_a_sentence_that_was_not_found_stays_so_if_its_part_changes_twice() -> None:
    draft = "It has 400 rooms[p2]. Haldruvin built it in 1837[p3]."
    replies = [f"1 not found\n{block(1, '1837', '1873')}", block(1, "1873", "1873 or 1874")]
    result, _, _ = run(PLAN, GAPS, draft, *replies, rounds=2)
    assert "1873 or 1874" in result["answer"]
    assert [each["supported"] for each in result["sentences"]] == [False, True]


def test_a_changed_list_leaves_sentences_of_other_parts_supported() -> None:
    items = "- Oster\n- H\n- Q\n- Rome"
    lists = f"The masons came from all of these places{' by the river' * 20}:\n\n{items}"
    ends = "Haldruvin built it in 1873, and the mayor of the town opened it [p3]."
    draft = f"{ends} {'It is old and long. ' * 12}\n\n{lists}\n\nQueues are common in Oster [p1]."
    verdicts = "1 supported p3\n2 not found\n3 supported p1"
    reply = f"{verdicts}\n{block(2, '- Q' + chr(10) + '- Rome', '- Rome')}"
    result, _, _ = run(PLAN, GAPS, draft, reply, rounds=1)
    assert "- Q" not in result["answer"]
    cited = {
        each["text"][:6]: each["supported"] for each in result["sentences"] if each["evidence"]
    }
    assert cited == {"Haldru": True, "Queues": True}


def test_rejected_words_that_are_in_no_sentence_are_named() -> None:
    draft = "It is old[^1] and has 400 rooms [p2].\n\n[^1]: A note."
    result, _, _ = run(PLAN, GAPS, draft, '1 not found "400 rooms"', rounds=1)
    assert "trace: not confirmed, but in no sentence: \u201c400 rooms\u201d" in result["warnings"]


def test_a_plan_without_a_query_is_handed_back() -> None:
    result, model, _ = run("KIND: long", PLAN, GAPS, LONG, "NO CHANGE")
    assert model.nodes[:3] == ["plan", "plan", "look_again"]
    assert result["queries"][1:] == ["works of Haldruvin", "mayor in 1873"]


def test_a_plan_that_fails_leaves_the_question() -> None:
    result, model, shelf = run(RuntimeError("no plan"), GAPS, LONG, "NO CHANGE")
    assert shelf.queries[0] == QUESTION["question"]
    assert model.nodes == ["plan", "look_again", "generate", "revise"]
    assert "no plan" in str(result["warnings"])


def test_a_second_turn_has_its_own_evidence() -> None:
    second = ["KIND: long\n- mayor", GAPS, "Ilse Quandt [p1].", "NO CHANGE"]
    model = ScriptedModel([PLAN, GAPS, LONG, "NO CHANGE", *second])
    graph = build_rpg(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    graph.invoke(QUESTION, THREAD)
    result = graph.invoke({"question": "Who was mayor?"}, THREAD)
    assert ids(result) == ["mayor"]
    assert result["usage"]["calls"] == 4


def test_an_unknown_kind_is_refused_before_any_call() -> None:
    with pytest.raises(BadInput, match="haiku"):
        run(given={**QUESTION, "kind": "haiku"})


def test_a_statement_that_cites_is_not_looked_up_again_and_another_once() -> None:
    draft = "Haldruvin built it [p3]. It is a fine bridge."
    _, _, shelf = run(PLAN, GAPS, draft, "NO CHANGE")
    assert shelf.queries[3:] == ["It is a fine bridge."]


def test_what_was_left_out_of_the_writers_prompt_is_shown_to_the_check() -> None:
    passages = {word: f"{word}: {'and so on, ' * 150}" for word in ("Oster", "mayor")}
    model = ScriptedModel([PLAN, "It is so [p1]. Of the mayor.", "NO CHANGE"])
    shelf = Shelf(passages=passages)
    graph = build_rpg(model=model, sources=shelf)
    instructions = "Answer at length. " * 200
    settings = RpgContext(looks=1, max_input_tokens=1_600, long_instructions=instructions)
    result = graph.invoke({"question": "Oster, and its mayor?"}, context=settings)
    shown_to = [
        [each.id for each in parse(call.prompt) if each.name == "passage"] for call in model.calls
    ]
    assert shown_to[1] == ["p2"]
    assert shown_to[2] == ["p1", "p2"]
    assert "generate: 1 of 2 passages" in str(result["warnings"])
    assert "Oster, and its mayor? It is so." in shelf.queries


def test_a_plain_mark_in_a_change_cites_the_passage_of_that_number() -> None:
    draft = "The mayor was Quandt [p3]. It has two arches."
    result, _, _ = run(
        PLAN, GAPS, draft, f"1 contradicted p1\n{block(1, 'two arches.', 'four [1].')}"
    )
    assert result["answer"] == "The mayor was Quandt [1]. It has four [2]."
    assert ids(result) == ["mayor", "Oster"]


@pytest.mark.parametrize(
    ("new", "answer"),
    [
        ("Press [9]", "Press [9] to stop [1]."),
        ("Press [9] or [4]", "Press [9] or [4] to stop [1]."),
        ("Press it [1]", "Press it [1] to stop [2]."),
        ("Press it [p9]", "Press it to stop [1]."),
    ],
)
def test_a_plain_number_in_a_change_that_names_no_passage_stays(new: str, answer: str) -> None:
    change = block(1, "Press the key", new)
    result, _, _ = run(PLAN, GAPS, "Press the key to stop [p2].", change, rounds=1)
    assert result["answer"] == answer


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("two arches[^1]", "four arches[^1]", "Key [3] shows four arches[^1] [2]."),
        ("two arches[^1]", "four arches[^1], [1]", "Key [3] shows four arches[^1], [2] [3]."),
        ("[3] shows two", "[3] shows four", "Key [3] shows four arches[^1] [2]."),
        ("[3] shows two", "[3] shows, by [1], four", "Key [3] shows, by [2], four arches[^1] [3]."),
        ("shows two", "shows, by [3], four", "Key [3] shows, by [1], four arches[^1] [2]."),
    ],
)
def test_a_label_in_the_replaced_words_does_not_become_a_citation(
    old: str, new: str, after: str
) -> None:
    draft = "Haldruvin built it [p3]. Key [3] shows two arches[^1] [p2].\n\n[^1]: A note."
    result, _, _ = run(PLAN, GAPS, draft, f"1 contradicted p1\n{block(1, old, new)}", rounds=1)
    assert result["answer"] == f"Haldruvin built it [1]. {after}\n\n[^1]: A note."


@pytest.mark.parametrize(("part", "old"), [(1, "burst: [2]"), (2, "burst:   [2]")])
def test_a_number_in_brackets_in_code_is_no_citation_wherever_a_change_of_it_is_found(
    part: int, old: str
) -> None:
    draft = "It was built [p3]:\n\n```yaml\nlimit:   80\nburst:   [2]\n```"
    change = block(part, old, old.replace("2", "1"))
    result, _, _ = run(PLAN, GAPS, draft, f"1 contradicted p1\n{change}", rounds=1)
    assert result["answer"] == draft.replace("[2]", "[1]").replace("[p3]", "[1]")


@pytest.mark.parametrize("label", ["[P1]", "[Doc 1]", "[Ref 2]", "\u30101\u3011", "[^1]"])
def test_labels_of_the_question_or_a_passage_are_no_citations(label: str) -> None:
    given = {"question": f"{QUESTION['question']} Does {label} stand on it?"}
    draft = f"Haldruvin put {label} on it [p3]. It has two arches [p1]."
    verdicts = '1 not found "on it"\n' + block(1, "two arches", f"four arches and {label}")
    result, _, _ = run(PLAN, GAPS, draft, verdicts, given=given, rounds=1)
    answer = f"Haldruvin put {label} on it [1]. It has four arches and {label} [2]."
    assert (result["answer"], result["warnings"]) == (answer, [])
    assert [each["unconfirmed"] for each in result["sentences"]] == [["on it"], []]
    assert [len(each["evidence"]) for each in result["sentences"]] == [1, 1]


@pytest.mark.parametrize("mark", ["[P1]", "[p1]", "[1]", "[Passage 1]", "[Doc 1]", "\u30101\u3011"])
def test_marks_in_the_usual_forms_count_where_passages_have_them_too(mark: str) -> None:
    given = {"question": f"{QUESTION['question']} [1] and [p1]?"}
    result, _, _ = run(PLAN, GAPS, f"It has arches {mark}.", "1 supported p1", given=given)
    assert (result["answer"], result["warnings"]) == ("It has arches [1].", [])


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("The mayor[2] was **Quandt**[1]. It has [p1] arches[9].", "[2], [1]"),
        ("The mayor was Quandt [p2], argv[1] the first.", "[1]"),
        ("The mayor was `argv[1]`, $x[2]$, [Quandt][3] [p2].\n\n[3]: https://example.org", ""),
        ("The mayor was Quandt [1][2]. It has arches.[3]", ""),
    ],
)
def test_numbers_in_brackets_that_were_not_read_as_citations_are_named(
    text: str, unread: str
) -> None:
    result, _, _ = run(PLAN, GAPS, text, "1 supported p1", rounds=1)
    warning = f"trace: brackets that were not read as citations: {unread}"
    assert [each for each in result["warnings"] if "read" in each] == [warning] * bool(unread)
