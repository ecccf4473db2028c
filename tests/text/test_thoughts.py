"""Drafts cut into thoughts: nothing is lost, and what belongs together stays together."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepcraft.text.thoughts import split_thoughts

LINES = [
    "",
    "",
    "  ",
    "A claim.",
    "桥建于一五六六年。",
    "# Title",
    "**Part**",
    "__Part__:",
    "=====",
    "---",
    "- an item",
    "  its second paragraph",
    "2. an item",
    "    indented",
    "STEP 1: do",
    "**Step 2** do",
    "| a | b |",
    "|---|---|",
    "```python",
    "```",
    "````",
    "~~~",
    "    ```",
    "```code``` in a sentence",
    "\tx",
]

drafts = st.lists(st.sampled_from(LINES) | st.text(max_size=20), max_size=25).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines))
)


@given(drafts | st.text())
@example("")
@example("\n\n")
@example("\n\nA claim.\n\n\n")
@example("```\nnever closed\n\nand on")
@example("STEP 1: a\r\nSTEP 2: b")
@example("a\x0b\x0b\x1c\x85b")
def test_nothing_is_lost(draft: str) -> None:
    thoughts = split_thoughts(draft)
    assert "".join(thoughts) == draft
    assert all(thoughts)
    assert all(thought.strip() for thought in thoughts) or not draft.strip()


CASES: dict[str, list[str]] = {
    "paragraphs": ["One.\n\n", "Two,\nstill two.\n\n\n", "Three."],
    "blank lines first": ["\n \nOne.\n\n", "Two.\n"],
    "lines of blanks": ["One.\n \t\n", "Two."],
    "crlf": ["One.\r\n\r\n", "## Head\r\n\r\nTwo.\r\n\r\n", "Three."],
    "chinese": ["桥建于一五六六年。\n\n", "建造者是海鲁丁。"],
    "headings": ["# Title\n\n## Part\n\nOne.\n\n", "## Part\nTwo.\n\n", "Three.\n\n", "# Last"],
    "bold headings": ["**Part**\n\nOne.\n\n", "__Part__:\n\nTwo."],
    "bold words in a sentence": ["**It** was built by **him**\n\n", "Three."],
    "underlined headings": ["Part\n====\n\nOne.\n\n", "Part\n---\n\nTwo."],
    "a rule": ["One.\n\n", "---\n\nTwo.\n\n", "* * *\n\nThree."],
    "a list": [
        "Names:\n- one\n- two\n\n",
        "- three\n\n  its second paragraph\n\n  its third\n\n",
        "Four.",
    ],
    "a list under a heading": ["# Part\n\n- one\n\n  more of it\n\n", "- two"],
    "items apart": ["1. one\n\n", "2. two\n\n   more of it\n\n", "  3. three"],
    "indented after a paragraph": ["One.\n\n", "  Two."],
    "code": ["So:\n\n", "```python\nx = 1\n\n# a comment\n\ny = 2\n```\n\n", "Two."],
    "code under its sentence": ["So:\n~~~\na\n\nb\n~~~\nand on.\n\n", "Two."],
    "code in code": ["````\n```\n\na\n```\n\nb\n````\n\n", "Two."],
    "an unclosed fence": ["One.\n\n", "```\na\n\nSTEP 1: b\nSTEP 2: c\n\n# d\n\ne"],
    "code of a list": ["- so:\n\n  ```\n  a\n\n  b\n  ```\n\n", "- two"],
    "steps": ["STEP 1: mine.\nWith a pick.\n", "STEP 2: smelt.\n", "STEP 3: craft."],
    "steps with words before": ["So:\n", "**Step 1:** mine.\n", "**Step 2:** smelt."],
    "steps in code": ["```\nSTEP 1: a\nSTEP 2: b\n```\n"],
    "one step": ["Then comes the rest.\nStep 2 is the last."],
    "blank": [" \n\n"],
    "empty": [],
}


@pytest.mark.parametrize("thoughts", CASES.values(), ids=CASES)
def test_cases(thoughts: list[str]) -> None:
    assert split_thoughts("".join(thoughts)) == thoughts
