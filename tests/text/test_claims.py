"""The statements of a text, and their numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.text.claims import claims, with_numbers, without_numbers
from tests.text.test_changes import BARE_TABLE, TABLE, drafts


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("It is old. It has 3.5 arches, e.g. Mr. Smith's!", ["It is old.", "It has 3.5 arches, e.g. Mr. Smith's!"]),
        ('He said "Never." Then he left.', ['He said "Never."', "Then he left."]),
        ("Built in 1837 [p1]. It fell. [p2] It rose.[p3][p4]", ["Built in 1837 [p1].", "It fell. [p2]", "It rose.[p3][p4]"]),
        ("- a is b\n  - c is d\n1. e is f\n   and g\n> h is i", ["a is b", "c is d", "e is f\n   and g", "h is i"]),
        ("# Heading\n\n**Bold heading**\n\n---\n\nText.", ["Text."]),
        ("Heading\n=======\n\nText.", ["Text."]),
        (TABLE, ["| 1 | 2 |"]),
        (BARE_TABLE, ["1 | 2"]),
        ("| Limit | 9 a day |\n|---|---|\n| Keys | 5 |", ["| Limit | 9 a day |", "| Keys | 5 |"]),
        ("**Price** | $9\n--|--\nTax | 19 %", ["**Price** | $9", "Tax | 19 %"]),
        ("| Plan | 2024 |\n|---|---|\n| Pro | 9 |", ["| Pro | 9 |"]),
        ("| Country | 20 m |\n|---|---|\n| A | 9 |", ["| A | 9 |"]),
        ("| Plan | 2024 (EUR) |\n|---|---|\n| Pro | 9 |", ["| Pro | 9 |"]),
        ("| | 1st half |\n|---|---|\n| Pro | 9 |", ["| Pro | 9 |"]),
        ("| Plan | Q1 2024 |\n|---|---|\n| Pro | 9 |", ["| Pro | 9 |"]),
        ("| Year | 9 m | 8 m |\n|---|---|---|\n| A | 1 | 2 |", ["| A | 1 | 2 |"]),
        ("A.\n```py\nx = 1. y\n```\nB.", ["A.", "```py\nx = 1. y\n```", "B."]),
        ("- a:\n\n  ```\n  x\n  ```\n", ["a:", "  ```\n  x\n  ```"]),
        ("So $x = 1.5$ holds.\n\n$$\nx. y\n$$\n", ["So $x = 1.5$ holds.", "$$\nx. y\n$$"]),
        ("```\nx\n```\nA.\n\n$$\ny\n$$\n", ["```\nx\n```", "A.", "$$\ny\n$$"]),
        ("\u5b83\u5f88\u65e7\u3002\u5b83\u5f88\u9ad8\u3002", ["\u5b83\u5f88\u65e7\u3002", "\u5b83\u5f88\u9ad8\u3002"]),
        ("\u0647\u0644 \u0647\u0630\u0627\u061f \u0646\u0639\u0645.", ["\u0647\u0644 \u0647\u0630\u0627\u061f", "\u0646\u0639\u0645."]),
        ("\u0e21\u0e31\u0e19\u0e40\u0e01\u0e48\u0e32", ["\u0e21\u0e31\u0e19\u0e40\u0e01\u0e48\u0e32"]),
        ("", []),
        # A number is the marker of an item only where it begins a line.
        ("O da oydu. 2. Mehmed ald\u0131 onu.\n2. So. 3. Ok", ["O da oydu.", "2. Mehmed ald\u0131 onu.", "So.", "3. Ok"]),
        # Bold text is a statement unless it titles what is below it.
        ("**It is 8.** Yes.\n", ["**It is 8.**", "Yes."]),
        ("> __It is 8!__\n", ["__It is 8!__"]),
        ("__It is 8.__ So **a** or **b**", ["__It is 8.__", "So **a** or **b**"]),
        ("__A__ is __b__\n\nC.", ["__A__ is __b__", "C."]),
        ("- **Port: 80**\n- **Host: a**\n", ["**Port: 80**", "**Host: a**"]),
        ("**Note:** A.\n- **Note**:\n  B.", ["**Note:** A.", "B."]),
        ("So. **It is 8**\nA.", ["So.", "**It is 8**", "A."]),
        ("**It is 8**\n", ["**It is 8**"]),
        # A title that says something is a statement, unless it is the number and title of a step.
        ("**Answer: two keys**\n\nA.", ["**Answer: two keys**", "A."]),
        ("**Port: 80**\n**Time: 3 s**\n\nA.", ["**Port: 80**", "**Time: 3 s**", "A."]),
        ("**14 days**\n\nA.", ["**14 days**", "A."]),
        ("**\u7aef\u53e3\u662f80**\nA.", ["**\u7aef\u53e3\u662f80**", "A."]),
        ("**Step 1: Install it**\nA.", ["A."]),
        ("**2. Install it**\nA.", ["A."]),
        ("**Phase 2**\n\nA.", ["A."]),
        ("**Phase 2: wait 3 days**\n\nA.", ["**Phase 2: wait 3 days**", "A."]),
        ("> [!NOTE]\n> **Ports**\n> A.\n> B is\n> c.", ["A.", "B is\n> c."]),
        ("# Why? How?\n\nA.\n\n[1]: https://a.b\n<br>", ["A."]),
        # A row is one statement, whatever its cells hold.
        ("| a |\n|---|\n| A is. So is B. |\n| D<br>E |", ["| A is. So is B. |", "| D<br>E |"]),
        ("a | b\n--|--\nIt is. So. | x\n\nA is. B is.", ["It is. So. | x", "A is.", "B is."]),
        # Marks, quotes, emphasis and tags belong to the sentence that they follow.
        *(
            (f"It is 8.{mark} It is 9.{mark}\n", [f"It is 8.{mark}", f"It is 9.{mark}"])
            for mark in (
                "[1]", "[^a]", "[2, 3]", "[p1][p2]", "\u3010" "4\u2020a\u3011", "[[1]](#a)", "([a](b))", "\u00b9",
                "<sup>1</sup>", '<sup><a href="#1">1</a></sup>', "<ref name='a'/>", "\u2020", "^[1]^", "<!-- a -->", " [1] [2]", " [3](a)",
                " ([p1])", " (see [p1][p2])", " *[p1]*", " <sup>[p1]</sup>", " \u30101\u3011", " [passage 1]",
                "_", "***", "~~", "\u201c", "\u00bb", " \u00bb", "\u2018", "</b>", "$", "\\)", ')"',
            )
        ),
        # A line above a rule is a heading only if it is a paragraph without a full stop.
        ("Limits\n---\n\nLimits\r\n======\r\nnpm is.", ["npm is."]),
        ("Node.js 2.1\n---\nIt is 8.[1]\n---\nSo is it. B is\n---\n", ["It is 8.[1]", "So is it.", "B is"]),
        ("- A is b\n---\n> C is d\n---\n1. E is f\n   ---\n", ["A is b", "C is d", "E is f"]),
        ("- A\n- # B\n  c is.\n\nD is\ne\n---\n", ["A", "c is.", "D is\ne"]),
        ("**Port: 80**\n---\n**Ports**\n---\nA.", ["**Port: 80**", "A."]),
        (f"{TABLE.strip()}\n---\n", ["| 1 | 2 |"]),
        (f"{TABLE.strip()}\n|---|---|\n| 3 | 4 |\na is. B.", ["| 1 | 2 |", "| 3 | 4 |", "a is.", "B."]),
        ("> | a | b |\r\n> |---|---|\r\n> | 1 | 2 |\r\n", ["| 1 | 2 |"]),
        ("Use a | b:\n- c is | d. E is.\n", ["Use a | b:", "c is | d.", "E is."]),
        ("- `._*`\n- `_`\n\n___\n\n_ _ _\n", ["`._*`", "`_`"]),
        ("The sign is vague. # begins a comment.", ["The sign is vague.", "# begins a comment."]),
        ("<p>A is.</p><p>B is.</p>", ["A is.", "B is."]),
        ("A is.<br/>B is<br>C is.", ["A is.", "B is<br>", "C is."]),
    ],
)  # fmt: skip
def test_statements_are_sentences_rows_and_code(text: str, statements: list[str]) -> None:
    assert [text[start:stop] for start, stop in claims(text)] == statements


@settings(max_examples=200, deadline=None)
@given(drafts | st.text())
def test_statements_are_in_order_and_their_numbers_can_be_removed(text: str) -> None:
    places = [place for span in claims(text) for place in span]
    assert places == sorted(places)
    assert all(text[start:stop].strip() for start, stop in claims(text))
    assert without_numbers(with_numbers(text, 3)) == text


SENTENCES = [
    "The port is 80.",
    "**It is open.**",
    "So is z. B. the host!",
    "\u201eIst es 8?\u201c",
    "Built in 1837.[2]",
]


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6), st.sampled_from(["{}\n", "- {}\n", "> {}\n"]))  # fmt: skip
def test_each_sentence_is_a_statement_and_a_row_is_one(said: list[str], line: str) -> None:
    text = line.format(" ".join(said))
    assert [text[start:stop] for start, stop in claims(text)] == said
    row = f"| {' '.join(said)} | x |"
    text = f"| a | b |\n|---|---|\n{row}\n"
    assert [text[start:stop] for start, stop in claims(text)] == [row]


LAYOUTS = [
    "\n{}\n\n",
    "\n{}\n\n---\n",
    "# Heading\n\n{}\n",
    "## Heading: 2 keys. #\n{}\n",
    "\nHeading\n===\n\n{}\n",
    "\nHeading\n---\n{}\n",
    "**Heading**\n\n{}\n",
    "***\n{}\n",
    "- {}\n",
    "- {}\n---\n",
    "1. # Heading\n   {}\n",
    "2) {}\n\n___\n",
    "> {}\n\n",
    "> ## Heading\n> {}\n>\n",
    "> {}\n---\n",
    "| a | b |\n|---|:-:|\n| c |\n\n{}\n",
    "\na | b\n--|--\n{}\n",
    "<br>\n\n{}\n",
]
SAID = ["npm allows {}", "iPhones last {}.", "It is {}.[1]", "**it is {}.**", "`npm` has {}", "\u0447\u0430\u0441 {}", "\u5b83\u662f{}\u3002"]  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(SAID)), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)
def test_each_sentence_has_a_number_in_every_layout(
    blocks: list[tuple[str, str]], end: str
) -> None:
    said = [sentence.format(number) for number, (_, sentence) in enumerate(blocks)]
    text = "".join(layout.format(each) for (layout, _), each in zip(blocks, said, strict=True))
    text = text.replace("\n", end)
    stated = [text[start:stop] for start, stop in claims(text)]
    assert [each for each in stated if each != "| c |"] == said


def test_front_matter_is_no_statement() -> None:
    text = "---\ntitle: Tea\nby: Ana\n---\n\nTea is hot.\n"
    assert [text[start:stop] for start, stop in claims(text)] == ["Tea is hot."]
    assert claims("Docker vs. Podman\n====\n") == []
