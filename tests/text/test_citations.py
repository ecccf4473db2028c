r"""Marks such as [p3]: what is read as one, where the sentences that cite end, what stays as it is."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stepcraft.text.citations import (
    cited_sentences,
    marks,
    named_passages,
    with_prompt_marks,
    without_marks,
)

SAME = {number: number for number in range(1, 10)}


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("It was built [p1].", [1]),
        ("It was built[p3][p1], and fell [p2].", [3, 1, 2]),
        ("It was built [p1, p3; P2] [p 4].", [1, 3, 2, 4]),
        ("It was built [p1-p3] and fell [p5\u20136].", [1, 2, 3, 5, 6]),
        ("It [p1]: [p2](https://example.org), ![a [p3]](x.png) and [the docs](x [p4])", [1, 4]),
        (
            "\u6865\u5efa\u4e8e1566\u5e74\u30101\u3011\u3002\u3010p3\u3011\u30102\u2020L3-L8\u3011",
            [1, 3, 2],
        ),
        ("\u67e5\u8be2\uff3b2\uff3d\uff3bp3\uff3d\u3010\uff14\u3011", [2, 3, 4]),
        ("Fast.[^1] Small.[^2]\n\n[^1]: See the paper.", [2]),
        (
            "A [citation:1], [Passage 2], [passages 3 and 4], [Source: 5], [evidence 6], [doc7].",
            [*range(1, 8)],
        ),
        ("See https://example.org/docs[p3]. (https://example.org)[p2]", [3, 2]),
        ("It costs $5 [p1] and $6 [p2].", [1, 2]),
        ("Sorting [p1] gives [1] and [2].", [1]),
        ("It was built [p1, p2, and p3], [p1/p4] [p5 p6].", [1, 2, 3, 4, 5, 6]),
        (
            r"Yes [see p1], [cf. p2], [p3|p4], [5, p6], [p7 und p8], \[p9\].",
            [*range(1, 10)],
        ),
        ("It costs $5[p1] or 6$[p2].", [1, 2]),
        # prices and tickers are no formulas
        ("Foo is cheap ($$) [p1].\n\nBar is cheap ($$) [p2].", [1, 2]),
        ("- Price: $$\n- Food: good [p1]\n- Price: $$ [p2]", [1, 2]),
        ("Apple ($AAPL) [p1] and Microsoft ($MSFT) [p2] rose.", [1, 2]),
        # no other mark
        ("Sorting [3, 1, 2] gives [1, 2, 3]. It is stable [2].", [2]),
        ("Le tableau vaut [1, 2] ; il est trié [3].", [3]),
        ("The mayor was Q [2]. It has arches [1, 3].", [2, 1, 3]),
        ("It is old [2]. The range [1, 3] is closed.", [2]),
        ("It was built [1][2], and fell. [3] So it is [4], [5].", [1, 2, 3, 4, 5]),
        ("According to [2], so it is.[1] [3] says so.", [2, 1, 3]),
        ("\u6865\u5efa\u4e8e1566\u5e74[2]\u3002[5]", [2, 5]),
        ("\uc9c0\uc5b4\uc84c\ub2e4[1]. [2]\uc5d0 \ub530\ub974\uba74", [1, 2]),
        ("\u0e21\u0e31\u0e19\u0e40\u0e01\u0e48\u0e32[1]", [1]),
        ("- [ ] open [2]\n- [x] done", [2]),
        (r"The function is $x \in [1, 2]$, zero elsewhere [3].", [3]),
        ("All is so [p1 to p3].", [1, 2, 3]),
        ("All is so [p1 through 3] [p2 + p5].", [1, 2, 3, 5]),
        ("It is old [p1, section 3] [p2: arches] [p4, page 9].", [1, 2, 4]),
        ("It is old [p3, p3].", [3]),
        ("The plan is free [3]. A key lasts 5 days [1-2].", [3, 1, 2]),
        ("It is old [P2]. It has arches.[P1]", [2, 1]),
        ("It keeps 30 days [1].\n\nSources:\n[1]: Handbook, p. 3", [1]),
        ("It is [1], see [2].\n\n[1]: Handbook.\n[2]: Manual (p. 3)", [1, 2]),
        ("It keeps 30 days [2]. See [the docs][1].\n\n[1]: docs/handbook.md", [2]),
        ("It is [2]. See [a][1], [b][3].\n\n[1]: www.a.org 'A'\n[3]: handbook.md", [2]),
        ("Put [P1] or \u3010P2\u3011 in front [p3], not [P1/P2] [see 2].", [3]),
    ],
)
def test_marks(text: str, cited: list[int]) -> None:
    assert marks(text) == cited
    assert marks(with_prompt_marks(text)) == cited


@pytest.mark.parametrize(
    "text",
    [
        "Sorting [3, 1, 2] gives [1, 2, 3].",
        "Read argv[1], `a[p1]`, m[1][2], f(x)[1] and a[0][1].",
        "The interval [0, 1] and the range [1-2]; x = [1], [1] + [2] = [3].",
        r"The function is $x \in [1, 2]$ and $x [1]$, $A[p2]$.",
        "$$\nx [p1]\n\n$$ \\( [p2] \\) \\[ [p3] \\] \\begin{align}\nx &= y [p4] \\end{align}",
        "https://example.org/x[1]?a=[2] https://example.org/x[p1]?a=[p2]",
        "See [the docs][1], [2] and [3](https://example.org).\n\n[1]: https://a.org\n[2]: https://b.org",
        "```\nx [p9]\n``` \n\n- [x] done in [2024] by [0]",
        "It is [1]st, [1](a), [1]_b, [1][x] and [1][0].",
        "A map of [P], [p], [page 3], [p. 3] and (p3).",
        "",
    ],
)
def test_what_cites_nothing(text: str) -> None:
    assert marks(text) == []
    assert cited_sentences(text, {}) == cited_sentences(without_marks(text), SAME)
    assert "".join(sentence for sentence, _ in cited_sentences(text, {})) == text


@pytest.mark.parametrize(
    ("text", "final"),
    [
        (
            "It rose [p5], fell [p2][p5] and rose [p2, p5].",
            "It rose [1], fell [2][1] and rose [2][1].",
        ),
        ("According to [p2], it is small.", "According to [2], it is small."),
        ("It rose [p9], and fell [p9][p2], [p9]. [p9]", "It rose, and fell [2]."),
        ("See [9] of the law. It fell [2].", "See [9] of the law. It fell [2]."),
        ("[p9] It rose.\n[p9] It fell.", "It rose.\nIt fell."),
        ("| x [p5] | y |\n|---|---|\n| z. [p2] | |", "| x [1] | y |\n|---|---|\n| z. [2] | |"),
        ("## Rise [p2]\n\n- It rose.  [p5]\n", "## Rise [2]\n\n- It rose.  [1]\n"),
        ("$$x$$ [p2]\n\nIt rose.", "$$x$$ [2]\n\nIt rose."),
    ],
)
def test_marks_are_renumbered_where_they_stand(text: str, final: str) -> None:
    assert "".join(sentence for sentence, _ in cited_sentences(text, {5: 1, 2: 2})) == final


WORDS = st.text("aZ .!\n|#*-\u3002\u6865", max_size=8)
MARK = st.sampled_from(["[p1]", "[p2]", "[P3, p1]", "\u30102\u3011", "[passage 1]"])
NUMBERS = {1: 2, 2: 1, 3: 3}


@pytest.mark.parametrize(
    "mark",
    ["([p1])", "*[p1]*", "**[p1]**", "<sup>[p1]</sup>", "(see [p1])", "(Source: [p1])", "[[p1]]",
     "[p1]", "([p1], [p1])"],
)  # fmt: skip
def test_marks_after_a_full_stop_belong_to_the_sentence_before_them(mark: str) -> None:
    text = f"It is old. {mark} It is high. {mark} Nobody knows why."
    cited = cited_sentences(text, {1: 1})
    assert [numbers for _, numbers in cited] == [[1], [1], []]
    assert "".join(sentence for sentence, _ in cited) == text.replace("p1", "1")


@given(st.lists(st.tuples(WORDS, MARK)), WORDS)
def test_nothing_but_marks_changes(chunks: list[tuple[str, str]], last: str) -> None:
    text = "".join(words + mark for words, mark in chunks) + last
    assume(not re.search(r"^\u3010.\u3011\w", text, re.MULTILINE))  # the label of a section
    final = "".join(
        words + "".join(f"[{NUMBERS[int(number)]}]" for number in re.findall(r"\d", mark))
        for words, mark in chunks
    )
    sentences = cited_sentences(text, NUMBERS)
    assert "".join(sentence for sentence, _ in sentences) == final + last
    assert {NUMBERS[each] for each in marks(text)} == {
        each for _, cited in sentences for each in cited
    }


@pytest.mark.parametrize("start", ["", "# ", "**"])
def test_the_label_of_a_section_is_no_mark(start: str) -> None:
    text = f"{start}\u30101\u3011Scope\nIt is so\u30102\u3011.\n\n{start}\u30103\u3011Dates"
    assert marks(text) == [2]
    assert without_marks(text) == text.replace("\u30102\u3011", "")
    assert marks("\u30101\u3011\u6307\u51fa\uff0cso.") == marks("\u30101\u2020a\u3011so.") == [1]


@given(st.text("[]p123,.:- a`($\\^\n\u3010\u3011", max_size=60))
def test_any_text_is_its_sentences(text: str) -> None:
    final = "".join(sentence for sentence, _ in cited_sentences(text, {}))
    assert final == without_marks(text)
    assert marks(with_prompt_marks(text)) == marks(text)


@pytest.mark.parametrize(
    "piece", ["[p1", "$$ ", "\\[\\(", "[a](", "[1] ", "\\begin{a}", "[1]: x\n"]
)
def test_long_texts(piece: str) -> None:
    assert cited_sentences("a://" + piece * 20_000, SAME)


@pytest.mark.parametrize("heading", ["**Rye**", "**1. Rye:** [p2]", "# Rye\n\n## Rye", "__Rye__:"])
def test_a_heading_belongs_to_the_sentence_below_it(heading: str) -> None:
    text = f"{heading}\n\nIt is old [p1]. It is good.\n\n{heading}\n\nOats are older."
    assert [(text.split()[-1], {*cited} - {2}) for text, cited in cited_sentences(text, SAME)] == [
        ("[1].", {1}),
        ("good.", set()),
        ("older.", set()),
    ]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It is old. [p1] It is good.[p2]", [("It is old. [1]", [1]), (" It is good.[2]", [2])]),
        ('So "it is." [p1] Next.', [('So "it is." [1]', [1]), (" Next.", [])]),
        ("It is old\u3002[p1]\u65b0", [("It is old\u3002[1]", [1]), ("\u65b0", [])]),
        (
            "It is old\u0964 [p1] \u092f\u0939",
            [("It is old\u0964 [1]", [1]), (" \u092f\u0939", [])],
        ),
        ("1. [p1] Rye.\n2. [p2] Oats.", [("1. [1] Rye.\n", [1]), ("2. [2] Oats.", [2])]),
        ("9. [p1] Rye.\n10. [p2] Oats.", [("9. [1] Rye.\n", [1]), ("10. [2] Oats.", [2])]),
        ("It was Acme Inc. [p1] that fell.", [("It was Acme Inc. [1] that fell.", [1])]),
        (
            "Call it:\n\n```\nf()\n``` [p2]\n\nThen wait [p1].",
            [("Call it:\n\n```\nf()\n``` [2]\n\n", [2]), ("Then wait [1].", [1])],
        ),
        (
            "The sum is\n\n$$\nx. Y = [1]\n$$\n\nas shown [p2].",
            [("The sum is\n\n$$\nx. Y = [1]\n$$\n\nas shown [2].", [2])],
        ),
        (
            "It holds.\n\n\\[x\\]\n[p1]\n\nSo.",
            [("It holds.\n\n\\[x\\]\n[1]\n\n", [1]), ("So.", [])],
        ),
        ("It is:\n$$x$$\n[p1] So it is.", [("It is:\n$$x$$\n[1]", [1]), (" So it is.", [])]),
        ("$x. Y$ [p1] is. $z$ is.", [("$x. Y$ [1] is.", [1]), (" $z$ is.", [])]),
        (
            "| a | b |\n|:--|--:|\n| x [p1] | y |\n| z | w [p2] |",
            [("| a | b |\n", []), ("|:--|--:|\n| x [1] | y |\n", [1]), ("| z | w [2] |", [2])],
        ),
    ],
)
def test_what_a_sentence_cites(text: str, sentences: list[tuple[str, list[int]]]) -> None:
    assert cited_sentences(text, SAME) == sentences


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("It fell [p3], twice [p1, p2].", "It fell, twice."),
        ("It fell.[p3]\n\nIt rose \u30101\u3011 [passage 2].", "It fell.\n\nIt rose."),
        ("Press [1] to go on.", "Press [1] to go on."),
        (
            "Put [P1] in front [p2], or [P1, P2] [see 1][cf. p1].",
            "Put [P1] in front, or [P1, P2] [see 1].",
        ),
        ("Write `a[p1]`, or [p2](https://example.org).",) * 2,
        ("```\nx[p1]\n```\n\nFast.[^1]\n\n[^1]: See [2].",) * 2,
    ],
)
def test_only_the_marks_that_prompts_show_go_where_none_were_asked_for(
    text: str, rest: str
) -> None:
    assert without_marks(text, plain=False) == rest


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("According to p2, it is old [p2]. But p1's builder (p3; p3) says so.", ["p2", "p1", "p3"]),
        ("It is old, says passage p2.", ["p2"]),
        ("It is old (p1, p2) [p1].", ["p1", "p2"]),
        ("It is old [p1], [p2, p3]. See p9 or p0.", []),
        ("Call `p1`, $p2$, `f(p3)` and [p1](https://example.org/p2#p3).\n\n```\np1\n```", []),
        ("A <p1> tag, 10p2, p1.example.org, /p2/, --p3, p1=3, p2-large, P1 and mp3.", []),
        ("Its latency went from p4 to p5, a P4 incident.", []),
    ],
)
def test_numbers_of_passages_outside_of_marks(text: str, named: list[str]) -> None:
    assert named_passages(text, 5, unless_in="What is a P4 incident, or p5?") == named


def test_capital_marks_are_read_in_lists_and_those_of_a_chat_product_are_removed() -> None:
    assert marks("It is old [P1, P3]. It is hot [P1; P2].") == [1, 3, 2]
    for mark in ("\u301012\u2020source\u3011", "[^7]"):
        assert without_marks(f"It is of 1837{mark}.", 0, plain=False) == "It is of 1837."
