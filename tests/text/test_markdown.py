"""Code in Markdown: which lines and characters belong to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.citations import marks
from stepcraft.text.markdown import as_shown, code_blocks, lines, outside_code

MARKDOWN = st.lists(
    st.sampled_from(
        ["```", "````", "~~~", "```py", "`", "a", "[1]", "]]", " ", "\t", "\n", "\n", "\r\n"]
    )
).map("".join)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```py\nb\n```\nc", ["```py\nb\n```"]),
        ("```\na\n```\n```\nb\n```", ["```\na\n```", "```\nb\n```"]),
        ("~~~\n```\na\n~~~ \nb", ["~~~\n```\na\n~~~"]),
        ("```\na\n```py\nb\n```\nc", ["```\na\n```py\nb\n```"]),
        ("- a\n\n      ```\n  b\n      ```\n  c", ["      ```\n  b\n      ```"]),
        ("[[a\n```\nb\n```]]\nc", ["```\nb\n```"]),
        ("```\na\n``` [1][2]\nb", ["```\na\n```"]),
        ("```\na\n``` \u30101\u3011\nb", ["```\na\n```"]),
        ("```\r\na\r\n```\r\nb", ["```\r\na\r\n```"]),
        ("```ls``` lists\nb", []),
        ("~~~\na\n~~~\nb", ["~~~\na\n~~~"]),
        ("a ```\nb\n", []),
        ("[[```\na\n```]]\nb", []),
        ("a\n```\nb", ["```\nb"]),
        ("", []),
    ],
)
def test_blocks(text: str, code: list[str]) -> None:
    assert [text[block.start : block.stop] for block in code_blocks(text)] == code


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("Call `a` and ``b``.", ["Call ", " and ", "."]),
        ("```ls``` lists", [" lists"]),
        ("`a``b` c", [" c"]),
        ("`a`\n```\n`b\n```\n`c`", ["\n", "\n"]),
    ],
)
def test_what_is_outside_of_code(text: str, prose: list[str]) -> None:
    assert [text[start:stop] for start, stop in outside_code(text)] == prose


def test_lines() -> None:
    text = "a\n```\nb\n\n```\nc\n~~~\nd"
    flags = [False, True, True, True, True, False]
    assert [code for _, code in lines(text)] == [*flags, True, True]
    assert [code for _, code in lines(text, unclosed=False)] == [*flags, False, False]


@given(MARKDOWN)
def test_lines_and_spans_cover_the_text(text: str) -> None:
    assert "".join(line for line, _ in lines(text)) == text
    ends = [offset for span in outside_code(text) for offset in span]
    assert ends == sorted(ends)
    for block in code_blocks(text):
        assert text[: block.start].endswith("\n") or not block.start
        assert text[block.start : block.stop].lstrip(" \t").startswith(("```", "~~~"))


@pytest.mark.parametrize("marker", ["1. ", "12) ", "- ", "  * ", "- 1. "])
def test_a_list_item_may_begin_with_a_fence(marker):
    text = f"{marker}```shell\n   run [1]\n   ```\n   It asks [2].\n\nBehind `it`.\n"
    assert [row for row, is_code in lines(text) if is_code] == ["   run [1]\n", "   ```\n"]
    assert [block.closed for block in code_blocks(text)] == [True]
    assert marks(text) == [2]


def test_a_fence_behind_the_marker_of_an_item_closes_no_block():
    text = "```md\n1. ```sh\n   run\n```\nBehind.\n"
    assert [row for row, is_code in lines(text) if not is_code] == ["Behind.\n"]


def test_a_quotation_may_hold_a_block():
    text = "> ```\n> a [1]\n> ```\nBehind [2].\n"
    assert [row for row, is_code in lines(text) if not is_code] == ["Behind [2].\n"]
    assert marks(text) == [2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <!-- b --> c {/* d\n\ne */} f", f"a{' ' * 12}c{' ' * 6}\n\n{' ' * 6}f"),
        ("a <!-- b\n\nc --> d", "a <!-- b\n\nc --> d"),
        ("<!-- a\n\nb --> c", "      \n\n      c"),
        ("a\n<!-- b\n\nc", "a\n      \n\n "),
        ("a <!-- b\n\nc <!-- d --> e", "a <!-- b\n\nc            e"),
        ("a {/* b `{/* c */}` d", f"a{' ' * 17}` d"),
        ("`<!--` a <!--> b {/* c", "`<!--` a       b {/* c"),
        ("{/*/} a */} b", "            b"),
    ],
)
def test_comments_are_not_shown(text: str, shown: str) -> None:
    assert as_shown(text) == shown


@pytest.mark.parametrize("piece", ["{/*", "x <!-- ", "x <!-- {/*", "<!--x\n\n", "x <!-- a\n\n"])
def test_hostile_comments_take_linear_time(piece: str) -> None:
    """What is quadratic in them would take minutes, which the test's time-out ends."""
    assert len(as_shown(piece * 100_000)) == len(piece) * 100_000
