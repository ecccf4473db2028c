"""The verdicts of a check, in the forms in which models write them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from stepcraft import RatContext, build_rat
from tests.scripted import ScriptedModel, block
from tests.shelf import QUESTION, Shelf, ids, shown

DRAFT = """\
# Oster

Haldruvin built the Oster bridge in 1837. It is of steel, e.g. of iron.

| arches | metres |
|---|---|
| four | 20 |"""
LINES = "2.1 contradicted p1\n2.2 not found\n3.1 not found"
FIXED = block(2, "bridge in 1837", "bridge in 1873")


def checked(*replies: str, draft: str = DRAFT, **context: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    graph = build_rat(model=model, sources=Shelf())
    result = graph.invoke({**QUESTION, "draft": draft}, context=RatContext(**context))
    return result, model


def written(draft: str, *replies: str) -> tuple[Any, ScriptedModel]:
    """Return the result of RAT for a draft of its own, which is judged part by part."""
    model = ScriptedModel([draft, *replies])
    return build_rat(model=model, sources=Shelf()).invoke(QUESTION), model


def verdicts(result: Any) -> list[tuple[str, str]]:
    return [(each["text"], each["verdict"]) for each in result["checks"]]


def test_every_statement_has_a_verdict_and_the_passages_that_decide() -> None:
    result, model = checked(f"1.1 contradicted p1\n1.2 not found\n2.1 not found\n\n{FIXED}")
    assert shown(model.calls[0].prompt, "part")[0].startswith(
        "# Oster\n\n\u27e61.1\u27e7 Haldruvin"
    )
    assert result["answer"] == DRAFT.replace("1837", "1873")


@pytest.mark.parametrize(
    "lines",
    [
        "1.1 contradicted p2\n1.2 not found\n2.1 not found",
        "1.1 CONTRADICTED [p2]\n1.2, 2.1 NOT FOUND",
        "**1.1**: contradicted (p2)\n- 1.2: not_found\n- 2.1: unsupported",
        "| 1.1 | contradicted | p2 |\n| 1.2 | not found | |\n| 2.1 | not found | |",
        "\u27e61.1\u27e7 contradicted p2\n\u27e61.2\u27e7 not found\n\u27e62.1\u27e7 not supported",
        "PART 1.1\uff1acontradicted p2\nPART 1.2\uff1aNot found\nPART 2\uff1anot found",
        "Verdicts:\n```\n1.1 contradicted p2\n1.2-1.2 not found\n2.1 not found\n```",
        "`1.1` \u2192 contradicted p2\nStatements 1.2 and 2.1: not found",
        "1.1 is contradicted by p2\n1.2/2.1 = not found",
        "Part 1, statement 1: contradicted p2\nPart 1, statement 2: not found\nPart 2, claim 1: not found",
        "**Part 1**\n1. contradicted p2\n2. not found\n\n## Part 2:\n1. not found",
        "Part 1: 1 contradicted p2, 2 not found\nPart 2: 1 not found",
        "| Part 1 | 1 | contradicted | p2 |\n| Part 1 | 2 | not found | |\n| Part 2 | 1 | not found | |",
        "1.1-2.1 not found\n1.1 contradicted p2",
        "1-1 contradicted p2\n1-2 not found\n2-1 not found",
        "Contradicted: 1.1 (p2)\n**Not found:** 1.2, 2.1",
        "1. Contradicted: 1.1 (p2)\n2. Not found: 1.2 and 2.1",
        "1.1 refuted p2\n1.2 not mentioned\n2.1 not mentioned",
        '1.1 "Haldruvin built the Oster bridge in 1837." contradicts p2\n1.2 and 2.1 not found',
        "1.1 supported p1\nWait, p2 says 1873.\n1.1 contradicted p2\n1.2-2.1 not found",
        "1.1 contradicted p2\n1.2-2.1 not found\n\nSummary:\n1.1 contradicted p2\n1.2-2.1 not found",
        "| Statement | Verdict      |\n|-----------|--------------|\n"
        "| 1.1       | contradicted | p2\n| 1.2       | not found    |\n|       2.1 | not found    |",
        "| # | Statement | Verdict | By |\n|---|---|---|---|\n"
        "| **1.1** | Haldruvin built it, 1837. | contradicted | p2 |\n"
        "| **1.2** | Supported by steel | not found | |\n| 2.1 | 4 and 20 | **Not found** | |",
        "| 1 | 1.1 | contradicted | p2 |\n| 2 | 1.2 | not found | |\n| 3 | 2.1 | not found | |",
        "| 1.1 | contradicted | supported by none but p2 |\n| 1.2-2.1 | not found | supported by none |",
        "1.1 'Haldruvin built it' contradicted p2\n1.2-2.1 \u2018It\u2019s steel\u2019 \u2013 not found",
        "1.1          contradicted p2\n1.2          not found\n2.1          not found",
        "**1.1** \u2013 \u274c **Contradicted** (p2)\n**1.2** \u2013 \u2753 **Not found**\n2.1 not found",
    ],
)
def test_verdicts_are_read_in_many_forms(lines: str) -> None:
    result, model = checked(f"{lines}\n{block(1, '1837', '1873')}")
    assert verdicts(result) == [
        ("Haldruvin built the Oster bridge in 1837.", "contradicted"),
        ("It is of steel, e.g. of iron.", "not found"),
        ("| four | 20 |", "not found"),
    ]
    assert result["checks"][0]["evidence"] == ["Oster"]
    assert result["revisions"][0]["evidence"] == ["Oster"]
    assert len(model.calls) == 1
    assert not result["warnings"]


@pytest.mark.parametrize(
    "tally",
    [
        "Summary: 1 contradicted, 2 not found.",
        "**0 supported, 1 contradicted, 2 not found**",
        "In total, 1 of 3 statements is contradicted and 2 are not found.",
        "Overall, 75% supported.",
        "(3 not found, 0 supported)",
        "**Summary**\n- Supported: 0\n- Contradicted: 1\n- **Not found**: 2 statements",
        "Supported: 2\nNot found: 1",
        "Supported: 2 Statements\nNot found: 1 Statement",
    ],
)
def test_a_line_that_counts_verdicts_is_no_verdict(tally: str) -> None:
    lines = "1.1 contradicted p2\n1.2 not found\n2.1 not found"
    expected, _ = checked(f"{lines}\n\n{FIXED}")
    result, _ = checked(f"{lines}\n\n{tally}\n\n{FIXED}")
    assert (result["checks"], result["warnings"]) == (expected["checks"], expected["warnings"])
    assert result["answer"] == DRAFT.replace("1837", "1873")


def test_words_that_were_not_found_are_named() -> None:
    result, _ = checked('1.1 supported p1\n1.2 not found "of steel"\n2.1 supported p2')
    assert (result["checks"][1]["words"], verdicts(result)[1][1]) == ("of steel", "not found")
    result, _ = checked(
        '1.1 supported p1\n1.2 not found "of steel", "of iron" p2\n2.1 supported p2'
    )
    assert [each["words"] for each in result["checks"]] == ["", "of steel", "of iron", ""]


@pytest.mark.parametrize(
    ("quoted", "words"),
    [
        ('"isn\'t for"', ["isn\u2019t for"]),
        ('"lasts 2 days", "30 days"', ["lasts **2 days**", "30\u00a0days"]),
        ('"2 days or 30 days with keep"', ["**2 days** or 30\u00a0days\nwith `keep`"]),
        ('"**lasts** 2"', ["lasts **2"]),
        ('"for teams" (p2 has "for users")', ["for teams"]),
        ('"for users"', [""]),
        ('"**"', ["**"]),
    ],
)
def test_words_are_named_as_in_the_statement(quoted: str, words: list[str]) -> None:
    draft = "It isn\u2019t for teams and lasts **2 days** or 30\u00a0days\nwith `keep`."
    result, _ = checked(f"1.1 not found {quoted}", draft=draft)
    assert [each["words"] for each in result["checks"]] == words


@pytest.mark.parametrize(
    "line",
    [
        '1.2 partly supported p2, "of iron" not found',
        '1.2 supported p2, not found "of iron"',
        '1.2 supported p2 but "of iron" not found',
        '1.2 supported p2 ("of iron" is not found)',
    ],
)
def test_a_detail_that_was_not_found_is_never_called_supported(line: str) -> None:
    result, _ = checked(f"1.1 supported p1\n{line}\n2.1 supported p2")
    assert (result["checks"][1]["words"], verdicts(result)[1][1]) == ("of iron", "not found")


@pytest.mark.parametrize(
    ("passages", "numbers"),
    [
        ("p1-p3", [1, 2, 3]),
        ("p2, 3", [2, 3]),
        ("by passages 1 and 3", [1, 3]),
        ("pp. 2\u20133", [2, 3]),
        ("[2][3]", [2, 3]),
        ("[1, 3]", [1, 3]),
        ("p2/p3", [2, 3]),
        ("p2 (3 times), 2 arches [of 1873]", [2]),
        ("p2 \u2013 1873, not 1837", [2]),
        ("(p2) - 3, not two", [2]),
        ("p2\u20141873, not 1837", [2]),
        ("p1, p2 ... 1873, not 1837", [1, 2]),
        ("p1 \u2013 p3", [1, 2, 3]),
        ("[p1] - [p3]", [1, 2, 3]),
        ("passages 1 \u2013 3", [1, 2, 3]),
        ("[1 \u2013 3]", [1, 2, 3]),
        ("p1 to 3", [1, 2, 3]),
    ],
)
def test_all_passages_that_a_line_names_are_read(passages: str, numbers: list[int]) -> None:
    draft = "Haldruvin built the Oster bridge. Its mayor was Ilse."
    result, model = checked(f"1.1-1.2 supported {passages}", draft=draft)
    named = [ids(result)[number - 1] for number in numbers]
    assert [each["evidence"] for each in result["checks"]] == [named, named]
    assert (len(model.calls), result["warnings"]) == (1, [])


def test_numbers_that_could_mean_parts_or_statements_are_handed_back() -> None:
    lines = "First paragraph:\n1. supported p1\n2. not found\nThe table:\n1. contradicted p2"
    result, model = checked(lines, "1.1-1.2 supported p1\n2.1 not found")
    assert "part 1 has several verdicts" in model.calls[1].messages[-1].text
    assert [verdict for _, verdict in verdicts(result)] == ["supported", "supported", "not found"]
    assert result["warnings"] == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('contradicted p1\n1.1 not found "four"', [("contradicted", "")]),
        ('contradicted p1\nIt says two.\n1.1 not found "four"', [("contradicted", "")]),
        ('contradicted p1 "of steel"\n1.1 supported p1', [("contradicted", "of steel")]),
        ("contradicted p1\n1.1 supported p1", [("contradicted", "")]),
        ("contradicted p1\n1.1 not found", [("contradicted", "")]),
        ("not found\n1.1 contradicted p1", [("contradicted", "")]),
        ('not found "four"\n1.1 supported p1', [("not found", "four")]),
        ('supported p1\n1.1 not found "four"', [("not found", "four")]),
        (
            'not found "of steel"\n1.1 not found "four"',
            [("not found", "of steel"), ("not found", "four")],
        ),
        ('not found "four"\nWait, p1 has it.\n1.1 supported p1', [("supported", "")]),
        ('not found "four"\n\nFinal verdicts:\n1.1 supported p1', [("supported", "")]),
        ("contradicted p1\n\nFinal verdicts:\n1.1 supported p1", [("supported", "")]),
        ("contradicted, hmm, let me see. 1.1 is supported by p1.", [("supported", "")]),
        ("not found p1\n1.1 supported p1", [("supported", "")]),
        ("contradicted p2\nActually, 1.1 is supported by p1.", [("supported", "")]),
        ("contradicted p1: it was actually built later\n1.1 supported p1", [("contradicted", "")]),
        ("contradicted p1 (actually 1873)\n1.1 supported p1", [("contradicted", "")]),
        ("contradicted p1\n1.1 supported p1\n1.1 supported p1", [("contradicted", "")]),
        ('not found "four"\n1.1 supported p1\n1.1 supported p2', [("not found", "four")]),
    ],
)
def test_of_two_lines_on_a_statement_the_last_counts_unless_it_is_about_the_rest(
    lines: str, expected: list[tuple[str, str]]
) -> None:
    draft = "Its arches are four and of steel."
    result, _ = checked(f"1.1 {lines}\n{block(1, 'steel', 'stone')}", draft=draft)
    assert [(each["verdict"], each["words"]) for each in result["checks"]] == expected
    assert ("of stone" in result["answer"]) is (expected[0][0] == "contradicted")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('1 contradicted p1\n1 not found "four"', [("contradicted", ""), ("not found", "four")]),
        ('1 not found "four"\n1 contradicted p1', [("contradicted", ""), ("not found", "four")]),
        ('1 not found "four"\n1 supported p1', [("not found", "four")]),
        ('1 supported p1\n1 not found "four"', [("not found", "four")]),
        ("1 not found\n\nSummary:\n1 not found", [("not found", "")]),
    ],
)
def test_a_part_can_be_contradicted_and_lack_details(
    lines: str, expected: list[tuple[str, str]]
) -> None:
    draft = "It is of steel. It has four arches."
    result, model = written(draft, f"{lines}\n{block(1, 'steel', 'stone')}")
    assert [(each["verdict"], each["words"]) for each in result["checks"]] == expected
    assert (len(model.calls), result["warnings"]) == (2, [])


@pytest.mark.parametrize(
    ("draft", "words", "named"),
    [
        (
            "It is old. Its old gate is open. It is red.",
            "old",
            ["It is old.", "Its old gate is open."],
        ),
        ("It is old. It is golden. It is red.", "old", ["It is old."]),
        ("It is golden. It is red.", "old", ["It is golden."]),
        ("It has 4 arches. It has 14 arches.", "4 arches", ["It has 4 arches."]),
        ("It is old. It is red. It is old.", "old", ["It is old."]),
        ("It is old. It is red.", "old. It", ["It is old. It is red."]),
        ("It is old. It is red.", "blue", ["It is old. It is red."]),
    ],
)
def test_words_that_were_not_found_are_named_in_each_sentence(
    draft: str, words: str, named: list[str]
) -> None:
    result, _ = written(draft, f'1 not found "{words}"')
    assert verdicts(result) == [(each, "not found") for each in named]
    result, _ = written(draft, f'1 contradicted p1 "{words}"\n{block(1, draft, "It is new.")}')
    assert verdicts(result) == [(named[0], "contradicted")]


def test_a_missing_detail_in_a_second_reply_takes_back_no_contradiction() -> None:
    lines = '1 contradicted p1\n1 not found "gate"\n'
    first = f"{lines}{block(1, 'steel', 'stone')}\n{block(1, 'six', 'two')}"
    draft = "It is of steel. It has four arches. It has a gate."
    result, _ = written(draft, first, lines + block(1, "four", "two"))
    assert result["answer"] == "It is of stone. It has two arches. It has a gate."
    assert [each["verdict"] for each in result["checks"]] == ["contradicted", "not found"]


def test_several_verdicts_on_a_part_are_handed_back() -> None:
    lines = "1 contradicted p1\nThe second sentence:\n1 supported p2"
    result, model = written("It is of steel. It has four arches.", lines, "1 supported p2")
    assert "part 1 has several verdicts: write one line for it" in model.calls[2].prompt
    assert [each["verdict"] for each in result["checks"]] == ["supported"]
    assert result["warnings"] == []


@pytest.mark.parametrize(
    ("lines", "verdict", "several"),
    [
        ("1.1 supported p1\n1.2 not found", "not found", True),
        ("1.1 contradicted p1; 1.2 supported p2", "contradicted", True),
        ("Part 1: 1 supported p1, 2 not found", "not found", True),
        ('1.1 supported p1\n1.2 not found "four"', "not found", False),
        ("1.1 supported p1\n1.2 supported p2", "supported", False),
        ("1.1-1.2 supported p1", "supported", False),
        ("1.1 supported p1", "supported", False),
        ("1 supported p1 (1.2 is not supported)", "supported", False),
    ],
)
def test_verdicts_on_sentences_count_for_their_part(
    lines: str, verdict: str, *, several: bool
) -> None:
    reply = f"{lines}\n{block(1, 'steel', 'stone')}" if verdict == "contradicted" else lines
    result, model = written("It is of steel. It has four arches.", reply, reply)
    assert [each["verdict"] for each in result["checks"]] == [verdict]
    assert len(model.calls) == 2 + several
    assert ("part 1 has several verdicts" in str(result["warnings"])) is several


def test_of_several_verdicts_on_a_part_the_worst_stays() -> None:
    lines = "1 supported p1\n1 not found"
    result, _ = written("It is of steel. It has four arches.", lines, lines)
    assert [each["verdict"] for each in result["checks"]] == ["not found"]


@pytest.mark.parametrize("again", ["Correction:", "Wait, no."])
def test_a_verdict_on_a_part_can_be_taken_back(again: str) -> None:
    result, model = written("It is of steel. It is old.", f"1 not found\n{again}\n1 supported p1")
    assert [each["verdict"] for each in result["checks"]] == ["supported"]
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    "lines",
    [
        "1.1 supported p1; 1.2 contradicted p2 (1873); 2.1 not found",
        "1.1 supported p1. 1.2 contradicted p2: it was built from 1873. 2.1 not found",
        "| 1.1 supported p1 | 1.2 contradicted p2 (3) | 2.1 not found p1 |",
    ],
)
def test_numbers_behind_a_verdict_hide_no_other(lines: str) -> None:
    result, _ = checked(lines, lines)
    assert [verdict for _, verdict in verdicts(result)] == [
        "supported",
        "contradicted",
        "not found",
    ]


def test_a_version_in_parentheses_is_no_exception() -> None:
    lines = "1 supported p1 (1.1 and 1.2 are not supported by Foo)\n2 not found"
    result, model = checked(lines)
    assert [verdict for _, verdict in verdicts(result)] == ["supported", "not found"]
    assert len(model.calls) == 1


def test_a_statement_without_a_verdict_is_reported() -> None:
    result, _ = checked("1.1 supported p1")
    assert "no verdict on 2 statements" in str(result["warnings"])
    result, _ = checked("NO CHANGE")
    assert "no verdict on 3 statements" in str(result["warnings"])


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("1.1 contradicted p1\n1.2-2.1 not found", "no block changes it"),
        (f"1.1-2.1 supported p1\n{block(1, '1837', '1873')}", "nothing in this part"),
        (f"1.1-2.1 supported p1\n{block(1, new='It is old.')}", "adds nothing"),
        ("The year is wrong. No change elsewhere.", "neither a verdict nor a change"),
        ("1.1-2.1 supported p1\n**<<<<<<< PART 1**\n1837\n=======\n1873\n", "a block begins with"),
        ("1.1-2.1 supported p1\nOLD: 1837\nNEW: 1873", "a block begins with"),
    ],
)
def test_a_draft_that_comes_in_is_corrected_and_nothing_else(reply: str, reason: str) -> None:
    result, model = checked(reply, reply)
    assert len(model.calls) == 2
    assert reason in model.calls[1].messages[-1].text
    assert result["answer"] == DRAFT
    assert result["revisions"] == []
    assert reason in str(result["warnings"])


def test_each_contradicted_statement_has_to_change() -> None:
    lines = "1.1-1.2 contradicted p1\n2.1 not found\n"
    result, model = checked(lines + block(1, "1837", "1873"), "NO CHANGE")
    assert "It is of steel" in model.calls[1].messages[-1].text
    assert "in 1837" not in model.calls[1].messages[-1].text
    assert "in 1873" in result["answer"]
    assert "It is of steel" in str(result["warnings"])
    # A verdict on a whole part does not say which of its statements is wrong.
    _, model = checked("1 contradicted p1\n2 not found\n" + block(1, "1837", "1873"))
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    ("draft", "change"),
    [
        ("The port is 80 [1]. It is of steel [2, 3].", ""),
        ("The port is 80. It is of steel.", block(1, "of steel.", "of  steel.")),
        ("The port is 80. It is of steel [1].", block(1, "steel [1].", "steel [2].")),
        ("It is of steel. The port is 80. It is of steel.", block(1, "steel. The", "oak. The")),
    ],
)
def test_a_change_of_marks_or_spaces_or_another_statement_corrects_nothing(
    draft: str, change: str
) -> None:
    last = draft.count("It") + draft.count("The")
    reply = f"1 contradicted p1\n1.{last} contradicted p1\n{change}"
    if draft.startswith("The"):
        reply = f"1.1 supported p1\n1.2 contradicted p1\n{change}"
    result, model = checked(reply, reply, draft=draft)
    assert "It is of steel" in model.calls[1].messages[-1].text
    assert "is contradicted, and no block changes it" in str(result["warnings"])


def test_what_a_second_reply_takes_back_is_not_changed() -> None:
    draft = "Haldruvin built it in 1837. It is of steel. It has two arches."
    first = f"1.1-1.2 contradicted p1\n1.3 supported p2\n{block(1, '1837', '1873')}"
    second = "1.1 supported p1\n1.2 contradicted p2\n"
    result, model = checked(first, second + block(1, "steel", "granite"), draft=draft)
    assert len(model.calls) == 2
    assert result["answer"] == draft.replace("steel", "granite")
    assert [verdict for _, verdict in verdicts(result)] == [
        "supported",
        "contradicted",
        "supported",
    ]
    assert result["warnings"] == []


def test_a_second_verdict_takes_the_place_of_the_first() -> None:
    draft = "Yes. Haldruvin built it in 1837. Yes."
    first = '1.1 supported p1\n1.2 contradicted p1\n1.3 not found "Yes"'
    second = f"1.2 contradicted p1\n1.3 supported p2\n{block(1, '1837', '1873')}"
    result, _ = checked(first, second, draft=draft)
    assert [(each["statement"], each["verdict"]) for each in result["checks"]] == [
        (1, "supported"),
        (2, "contradicted"),
        (3, "supported"),
    ]
    result, _ = checked("1.1 supported p1\n1.2 contradicted p1", second, draft=draft)
    assert result["warnings"] == []


@pytest.mark.parametrize("new", ["1873 (see p1)", "1873, according to p1"])
def test_numbers_of_passages_in_new_words_are_warned_of(new: str) -> None:
    lines = "1.1 contradicted p1\n1.2-2.1 not found\n"
    result, _ = checked(lines + block(1, "1837", new))
    assert "only the check sees: p1" in str(result["warnings"])
    result, _ = checked(lines + block(1, "1837", "1873 (p1)"))
    assert result["answer"] == DRAFT.replace("1837", "1873")
    result, _ = checked(lines + block(1, "1837", "1873 in p95"))
    assert result["warnings"] == []


def test_a_draft_may_be_completed_where_the_caller_asks_for_it() -> None:
    result, model = checked(block(1, new="It has four arches."), scope="complete")
    assert len(model.calls) == 1
    assert "iron. It has four arches.\n\n|" in result["answer"]


def test_what_a_second_reply_leaves_out_is_kept_from_the_first() -> None:
    first = (
        f"1.1 contradicted p1\n1.2 contradicted p2\n2.1 supported p1\n{block(1, '1837', '1873')}"
    )
    first += f"\n{block(1, 'of bronze', 'of granite')}"
    result, _ = checked(first, block(1, "of steel, e.g. of iron", "of granite"))
    assert "in 1873. It is of granite." in result["answer"]
    assert [verdict for _, verdict in verdicts(result)] == [
        "contradicted",
        "contradicted",
        "supported",
    ]
    assert not [each for each in result["warnings"] if "left out" in each]
    # A change that is written anew takes the place of the earlier one.
    result, _ = checked(
        first, f"{block(1, 'in 1837', 'in 1874')}\n{block(1, 'of steel', 'of stone')}"
    )
    assert "in 1874. It is of stone, e.g." in result["answer"]


@pytest.mark.parametrize(
    ("earlier", "later", "added"),
    [
        ("It has arches, a gate and stairs.", "It has four arches, a gate and stairs.", ["four"]),
        ("Start the lift.", "Stop the start of the lift.", ["Start the", "Stop the"]),
        ("It has four arches.", "It has two towers.", ["four", "two"]),
        ("Span 3 has arches of stone.", "Span 4 has arches of stone.", ["Span 3", "Span 4"]),
        ("It has arches and towers.", "It has arches.", ["towers", "has arches."]),
        ("It has arches.", "Arches, towers, stairs and gates are open.", ["has arches", "gates"]),
    ],
)
def test_an_addition_that_a_second_reply_words_anew_is_made_once(
    earlier: str, later: str, added: list[str]
) -> None:
    wrong = block(1, "of bronze", "of granite")
    replies = (f"{block(1, new=earlier)}\n{wrong}", block(1, new=later))
    result, model = checked(*replies, draft="Oster is a bridge.", scope="complete")
    assert len(model.calls) == 2
    assert all(words in result["answer"] for words in added)
    assert (earlier in result["answer"]) is (len(added) > 1)


def test_a_second_round_sees_what_changed() -> None:
    replies = [
        f"1.1 contradicted p1\n1.2-2.1 not found\n{block(1, '1837', '1873')}",
        "1.1-1.2 supported p1",
    ]
    result, model = checked(*replies, rounds=2)
    assert [len(shown(call.prompt, "part")) for call in model.calls] == [2, 1]
    assert [each["round"] for each in result["checks"]] == [1, 1, 1, 2, 2]


STEEL = "Haldruvin built Oster in 1873. It is of steel. It has two arches."
SOUND = ("It is of steel.", "supported")
ARCHES = ("It has two arches.", "supported")
LOST = ("Haldruvin built Oster in 1873.", "not found")
WRONG = ("Haldruvin built Oster in 1873.", "contradicted")
THREE = [
    ("Haldruvin built Oster in 1873.", "supported"),
    ("It is of steel.", "not found"),
    ("It has two arches.", "contradicted"),
]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("1. 1.1 supported p1\n2. 1.2 not found\n3. 1.3 contradicted p2", THREE),
        ("1 supported p1\n2 not found\n3 contradicted p2", THREE),
        ("1) supported p1\n2) not found\n3) contradicted p2", THREE),
        ("1.1 supported p1; 1.2 not found; 1.3 contradicted p2", THREE),
        ("1.1, 1.2 supported p1. 1.3 partly contradicted p2", [THREE[0], SOUND, THREE[2]]),
        ("1.1 partly supported p1\n1.2-3 supported", [LOST, SOUND, ARCHES]),
        ("1.1 supported p1, contradicted p2 (the year)\n1.2-3 supported", [WRONG, SOUND, ARCHES]),
        ("1.1\uff0c1.3 supported p1\n1.2 not found", [THREE[0], THREE[1], ARCHES]),
        ("1.1 1.3 supported p1\n1.2 not found", [THREE[0], THREE[1], ARCHES]),
        ("1.1 + 1.3 supported p1\n1.2 not found", [THREE[0], THREE[1], ARCHES]),
        ("1.1 to 1.3 supported p1", [THREE[0], SOUND, ARCHES]),
        ("1.1\u20131.3 supported p1", [THREE[0], SOUND, ARCHES]),
        (
            '1.1 contradicted p1: it says "1873", and p1 "1837"\n1.2-3 supported',
            [WRONG, SOUND, ARCHES],
        ),
    ],
)
def test_each_statement_has_the_verdict_of_its_number(
    lines: str, expected: list[tuple[str, str]]
) -> None:
    changes = "\n".join(
        block(1, old, new)
        for old, new, (_, verdict) in zip(
            ("1873", "steel", "two"), ("1837", "iron", "four"), expected, strict=True
        )
        if verdict == "contradicted"
    )
    result, _ = checked(f"{lines}\n{changes}", draft=STEEL)
    assert (verdicts(result), result["warnings"]) == (expected, [])


@pytest.mark.parametrize(
    "remark",
    [
        ": TLS 1.0, 1.1 are not supported",
        ". 1.2 is supported at least.",
        ": only TLS 1.2, 1.7 are supported",
        ": TLS 1.2, 1.3 are supported",
        " (1.0, 1.1 are not supported)",
        " \u2013 of 90 days, 60 are supported",
    ],
)
def test_a_remark_is_no_verdict_on_a_statement_that_has_one(remark: str) -> None:
    lines = f"1.1-1.2 not found\n1.3 contradicted p1{remark}\n{block(1, 'two', 'four')}"
    result, model = checked(lines, draft=STEEL)
    expected = [LOST, THREE[1], THREE[2]]
    assert (verdicts(result), len(model.calls), result["warnings"]) == (expected, 1, [])


@pytest.mark.parametrize(
    "lines",
    [
        "1.1 supported (p1) | 1.2: not found | 1.3: contradicted (p2)",
        "1.1 supported p1 (says 1873); 1.2 not found; 1.3 contradicted p2",
        "1.1 is supported by p1, which says 1873. 1.2 is not found. 1.3 is contradicted by p2.",
        "1.1-1.3 supported as p1 says; 1.2 not found; 1.3 contradicted p2",
        "1.1-1.3 supported by p1, 1.2 not found, 1.3 contradicted p2",
        "1.1-1.3 supported p1\nBut wait, 1.2 is not found. 1.3 is contradicted by p2",
        "1 is supported by p1, which says so. 2 is not found. 3 is contradicted by p2, by four.",
        "1.1-1.3 supported p1\n1.2 not found, none names it. 1.3 contradicted p2, which says four",
        "1.1 supported p1\n1.2 supported, hmm, let me see. 1.2 is not found.\n1.3 contradicted p2",
    ],
)
def test_verdicts_within_a_line_are_read(lines: str) -> None:
    result, model = checked(f"{lines}\n{block(1, 'two', 'four')}", draft=STEEL)
    assert (verdicts(result), len(model.calls), result["warnings"]) == (THREE, 1, [])


def test_a_verdict_on_what_is_not_there_is_handed_back() -> None:
    result, model = checked(
        "1.1-3 supported p1\n2.4 contradicted p2", "1.1-3 supported p1", draft=STEEL
    )
    assert "there is no 2.4." in model.calls[1].prompt
    assert [verdict for _, verdict in verdicts(result)] == ["supported"] * 3


def test_a_range_says_nothing_of_a_part_without_statements() -> None:
    draft = "Haldruvin built it.\n\n[docs]: https://x.org/old\n\nIt has four arches."
    result, model = checked(f"1.1-3.1 supported p1\n{block(2, '/old', '/new')}", draft=draft)
    assert [part for part, _ in verdicts(result)] == ["Haldruvin built it.", "It has four arches."]
    assert (result["answer"], len(model.calls)) == (draft.replace("old", "new"), 1)


def test_a_part_without_a_verdict_is_said() -> None:
    draft = f"Haldruvin built Oster. {'It is a bridge. ' * 20}\n\n{'Its mayor was Q. ' * 20}"
    for reply, parts, warned in (
        ("1 supported p1; 2 not found", [1, 2], False),
        ("1 supported p1\n2 partly supported p2", [1, 2], False),
        ("1 supported p1", [1], True),
    ):
        result, _ = written(draft, reply)
        assert [each["part"] for each in result["checks"]] == parts
        assert ("no verdict on 1 part" in str(result["warnings"])) is warned


def test_a_verdict_by_a_passage_that_was_not_found_is_handed_back() -> None:
    lines = "1.1-2.1 supported {}"
    result, model = checked(lines.format("p1-p999"), lines.format("p1"))
    assert "there is no p3; p4; p5; p6; p7; and 992 more." in model.calls[1].messages[-1].text
    assert {tuple(each["evidence"]) for each in result["checks"]} == {("Haldruvin",)}


def test_a_verdict_by_a_passage_that_was_left_out_is_handed_back() -> None:
    shelf = Shelf(passages={"Haldruvin": "Haldruvin built it. " * 200})
    for second, warning in (
        (
            "1.1 not found",
            "no verdict on \u201cHaldruvin built it.\u201d: a passage found for it was left out",
        ),
        ("1.1 supported p1", "no verdict on 1 statement"),
    ):
        model = ScriptedModel(["1.1 supported p1", second])
        graph = build_rat(model=model, sources=shelf, settings=RatContext(max_input_tokens=600))
        result = graph.invoke({**QUESTION, "draft": "Haldruvin built it."})
        assert "there is no p1." in model.calls[1].messages[-1].text
        assert verdicts(result) == []
        assert warning in str(result["warnings"])


@pytest.mark.parametrize("last", ["Oster is of steel.", "Oster is of steel [1]."])
def test_not_found_is_no_verdict_on_a_statement_whose_passage_was_left_out(last: str) -> None:
    passages = {"mayor": "The mayor was Ilse Quandt. " * 200, "Oster": "Oster has arches."}
    shelf = Shelf(passages=passages)
    given: Any = {"question": "What is true?", "draft": f"The mayor was Otto. {last}"}
    model = ScriptedModel(["1.1-1.2 not found"])
    graph = build_rat(model=model, sources=shelf, settings=RatContext(max_input_tokens=1_200))
    result = graph.invoke(given)
    assert shown(model.calls[0].prompt, "passage") == [passages["Oster"]]
    assert verdicts(result) == [(last, "not found")]
    assert "no verdict on \u201cThe mayor was Otto.\u201d: a passage" in str(result["warnings"])


def test_a_corrected_statement_may_stand_in_another_part() -> None:
    draft = "Oster\n\nIt has four arches.\n\nHaldruvin\n\nIt has four arches."
    lines = "1.1 supported p2\n2.1 contradicted p1\n3.1 not found\n4.1 supported p2\n"
    result, model = checked(lines + block(2, "four", "two"), draft=draft)
    assert (len(model.calls), result["warnings"]) == (1, [])
    assert result["answer"].count("two arches") == 1


def test_a_part_that_is_deleted_leaves_the_numbers_of_the_others() -> None:
    draft = "It is of steel.\n\nHaldruvin built it in 1837.\n\nThe Oster bridge has four arches."
    first = "1.1 contradicted p2\n2.1 contradicted p1\n3.1 supported p2\n"
    gone = "<<<<<<< PART 1\nIt is of steel.\n=======\n>>>>>>> END"
    result, _ = checked(
        f"{first}{gone}\n{block(2, '1837', '1873')}", "2.1 supported", draft=draft, rounds=2
    )
    assert [(each["round"], each["part"]) for each in result["checks"]][-1] == (2, 2)
    assert result["answer"].strip().startswith("Haldruvin built it in 1873.")


def test_a_reason_is_told_once() -> None:
    result, _ = checked("Well.", "Hm.")
    assert str(result["warnings"]).count("neither a verdict nor a change") == 1
    assert "the draft is unchecked, in part or in whole" in result["warnings"]


NUMBERED = "The port is 80. The host is local.\n\n- It is free.\n- It restarts.\n\nIt has an end."


def test_numbers_from_one_to_the_last_are_those_of_the_statements() -> None:
    lines = "1. supported p1\n2. contradicted p1\n3. not found\n4-5. supported p1\n"
    result, model = checked(lines + block(1, "local", "remote"), draft=NUMBERED)
    assert [(each["part"], each["statement"], each["verdict"]) for each in result["checks"]] == [
        (1, 1, "supported"),
        (1, 2, "contradicted"),
        (2, 1, "not found"),
        (2, 2, "supported"),
        (3, 1, "supported"),
    ]
    assert (len(model.calls), result["warnings"]) == (1, [])


@pytest.mark.parametrize(
    "exception",
    [
        ", except 2.2 not found",
        " except 2.2, which is not found",
        " (except for 2.2: not found)",
        ", but statement 2.2 is not mentioned",
        " (2.2 not found)",
        ", apart from 2.2 (not found in any passage)",
        "; 2.2 not found",
    ],
)
def test_an_exception_has_its_own_verdict(exception: str) -> None:
    result, _ = checked(f"1.1-3.1 supported p1{exception}", draft=NUMBERED, max_calls=1)
    assert [each["verdict"] for each in result["checks"]] == [
        *["supported"] * 3,
        "not found",
        "supported",
    ]
    assert result["warnings"] == []


def test_several_exceptions_are_read() -> None:
    lines = "1.1-3.1 supported p1, but 1.2 and 2.1 are not found and 3.1 is contradicted by p1"
    result, _ = checked(lines, draft=NUMBERED, max_calls=1)
    found = ["supported", "not found", "not found", "supported", "contradicted"]
    assert [each["verdict"] for each in result["checks"]] == found


@pytest.mark.parametrize(
    ("remark", "verdict"),
    [
        (", but 3.9 is not mentioned", "not found"),
        (", but 1.2 is not mentioned", "not found"),
        (" (1.2 is not supported on Windows)", "supported"),
        (" (only on TLS 1.1, for 1.0 is not supported)", "supported"),
        (" and 3 are supported", "supported"),
        (" (1873), 2.1 supported p1", "supported"),
    ],
)
def test_a_number_outside_the_range_is_no_exception(remark: str, verdict: str) -> None:
    lines = f"1.1 supported p1\n1.2 supported p1{remark}\n2.1-3.1 supported p1"
    result, model = checked(lines, draft=NUMBERED)
    assert result["checks"][1]["verdict"] == verdict
    assert [each["verdict"] for each in result["checks"]].count("supported") >= 4
    assert (len(model.calls), result["warnings"]) == (1, [])


def test_numbers_beyond_the_parts_that_count_nothing_are_handed_back() -> None:
    right = "1.1-3.1 supported p1"
    result, model = checked("1 supported p1\n4 contradicted p1", right, draft=NUMBERED)
    assert "there is no 4." in model.calls[1].messages[-1].text
    assert {verdict for _, verdict in verdicts(result)} == {"supported"}


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("supported p1 (an unknown id gives 404 Not Found)", "supported"),
        ("supported p1 (400 bad request, 404 not found)", "supported"),
        ("supported p1: the message is `not found`", "supported"),
        ("supported p1 (that it is not supported on Windows, p1 says too)", "supported"),
        ("supported p1 (the arches are not mentioned)", "not found"),
        ("supported p1 (arches not mentioned)", "not found"),
        ("supported p1 (the arches not found)", "not found"),
        ("supported p1 but the number is not found", "not found"),
        ("supported p1 \u2013 the number isn't mentioned", "not found"),
        ("supported p1, but the number was not found in p1", "not found"),
        ("supported p1 - the arches weren\u2019t found", "not found"),
        ("supported p1. The number is not found in p1.", "not found"),
        ("supported p1 (returns 404 not found)", "supported"),
        ("supported p1 (no conflicting value was found)", "supported"),
        ("supported p1 (an error if the key is not found)", "supported"),
        ("supported p1 and is not contradicted by any passage", "supported"),
        ("supported p1 (not found in p2)", "supported"),
        ("supported p1 (not mentioned in p2)", "supported"),
        ("supported p1 (command not found)", "supported"),
        ("supported p1 (returned whenever the command is not found)", "supported"),
        ("supported p1, but the number is not given in the passages", "not found"),
        ("supported in part p1", "not found"),
        ("supported in part by p1 and in part by p2", "supported"),
        ("supported p1: a cost is not mentioned in the statement", "supported"),
        ("supported only partly by p1", "not found"),
        ('supported p1: "Arches are fixed" (it says they may not be moved)', "supported"),
        ('supported p1, as it is not limited: "up to four"', "supported"),
        ('supported p1: "do not count" and "four"', "supported"),
        ("supported p1 (p2: not found)", "supported"),
        ("supported p1; p2 not mentioned", "supported"),
        ("supported p1 (p2: contradicted)", "contradicted"),
        ("supported p1; not found", "not found"),
        ("contradicted p1 (the arches are not mentioned)", "contradicted"),
    ],
)
def test_a_remark_counts_if_it_is_about_the_statement(line: str, verdict: str) -> None:
    result, model = checked(f"1.1 {line}", draft="It has four arches.", max_calls=1)
    assert ([each["verdict"] for each in result["checks"]], len(model.calls)) == ([verdict], 1)


@pytest.mark.parametrize(
    "reply",
    [
        "Supported: 1, 3\nContradicted: 2",
        "**Supported:** 1\n**Contradicted:** 2\n**Supported:** 3",
        "Supported: 1.1, 1.3\nContradicted: 1.2",
    ],
)
def test_verdicts_above_the_numbers_of_statements_are_no_counts(reply: str) -> None:
    draft = "It is of steel. It has four arches. It is old."
    result, _ = checked(f"{reply}\n{block(1, 'four', 'three')}", draft=draft)
    words = [verdict for _, verdict in verdicts(result)]
    assert words == ["supported", "contradicted", "supported"]


def test_a_list_of_verdicts_with_one_part_each_is_no_count() -> None:
    draft = "It is of steel.\n\nIt has four arches."
    result, _ = checked("Supported: 1\nNot found: 2", draft=draft)
    assert [verdict for _, verdict in verdicts(result)] == ["supported", "not found"]


@pytest.mark.parametrize(
    "line",
    [
        'supported p2. Not found: "four"',
        'supported p2 | not found: "four"',
        'supported p2, only "four" was not found',
        'supported p2 (except "four")',
        'supported p2 but not "four"',
        'supported p2, "four" missing',
        'supported p2, but it does not say "four"',
        'supported p2. Missing: "four"',
        'supported p2; "four" (missing)',
        'supported p2, except the number ("four")',
        'supported p2, but not the number: "four"',
        'supported p2. Missing detail: "four"',
        'supported p2, not the number: "four"',
        'supported p2, "four" is in no passage, and not clear',
    ],
)
def test_a_detail_that_is_excepted_is_not_found(line: str) -> None:
    result, _ = checked(f"1.1 {line}", draft="It has four arches.")
    assert [(each["verdict"], each["words"]) for each in result["checks"]] == [
        ("not found", "four")
    ]


def test_a_quotation_in_single_quotes_ends_at_its_own_quote() -> None:
    line = "1.1 'It has four arches' contradicted p2: says 'it has five', supported by p3"
    result, _ = checked(line, draft="It has four arches.")
    assert [each["verdict"] for each in result["checks"]] == ["contradicted"]
