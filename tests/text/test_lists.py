"""Lists as models write them, read back as steps, questions and edits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.text.lists import numbered, read_bullets, read_lines, read_steps

ANY = st.text(st.characters())  # lone surrogates included
LISTISH = st.text(st.sampled_from("1a.)-*#`[ \n:"))
WORD = st.text(st.sampled_from("bdgklmprtuw\u00e4\u0436\u5b89"), min_size=2, max_size=6)
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(" ".join)

STYLES = [
    "{n}. ", "{n}) ", "({n}) ", "{n}: ", "{n}\\. ", "- ", "* ", "+ ", "\u2022 ", "\u2022", "\u2013 ", "- [ ] ", "- [x] ",
    "Step {n}: ", "step {n}. ", "STEP {n} - ", "Step {n} \u2013 ", "Step {n} of 3: ", "**Step {n}:** ", "**Step {n}**: ",
    "**{n}.** ", "__{n}.__ ", "### {n}. ", "### Step {n}: ", "## **Step {n}:** ", "{n}. Step {n}: ", "- **Step {n}:** ",
    "{n}\u3001", "{n}\uff09", "{f}\uff0e", "{f}\u3001", "\uff08{n}\uff09", "\u7b2c{n}\u6b65\uff1a",
    "**\u7b2c{n}\u6b65\uff1a** ", "{o} ",
]  # fmt: skip


def written(style: str, steps: list[str], between: str) -> str:
    bullets = [style.format(n=n + 1, f="１２３"[n], o="①②③"[n]) for n in range(len(steps))]
    return between.join(bullet + step for bullet, step in zip(bullets, steps, strict=True))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("between", ["\n", "\n\n"])
@settings(max_examples=15)
@given(steps=st.lists(SENTENCE, min_size=2, max_size=3))
def test_every_bullet_is_read(style: str, between: str, steps: list[str]) -> None:
    text = written(style, steps, between)
    assert read_steps(text) == steps
    assert (
        read_steps(f"Sure, here are the steps:\n\n{text}\n\nLet me know if you have questions.")
        == steps
    )
    assert read_steps(f"```\n{text}\n```") == steps
    named = [item for item in read_bullets(text) if not item.endswith(tuple(steps))]
    assert named == []
    assert len(read_bullets(text)) == len(steps)


@pytest.mark.parametrize("bullet", ["- ", "* ", "1. ", "• ", ""])
@pytest.mark.parametrize(
    "item", ["Step 3: Add salt.", "**Step 3:** Add salt.", "Step 3 - Add salt.", "第3步：加盐。"]
)
def test_the_step_that_a_bullet_is_about_stays(bullet: str, item: str) -> None:
    assert read_bullets(f"{bullet}{item}\n{bullet}{item}") == [item, item]


REPLIES = {
    "a loose list with bold titles": (
        "Here's how to set it up:\n\n**1. Install**\n\nRun `pip install x`.\n\n**2. Configure**\n\nEdit `a.toml`.\n\n"
        "Then save it.\n\nLet me know if you'd like a script for this!",
        ["**Install**\nRun `pip install x`.", "**Configure**\nEdit `a.toml`.\nThen save it."],
    ),
    "bold titles behind the number": (
        "1. **Install** the package.\n2. **Run** it.",
        ["**Install** the package.", "**Run** it."],
    ),
    "headings for steps, with nested bullets": (
        "# Adding memory\n\n### Step 1: Make a store\n- Import `Store`.\n- Build it.\n\n### Step 2: Pass it on\n"
        "#### Details\nGive it to `compile`.\n\n### Summary\nIt remembers now.",
        [
            "Make a store\n- Import `Store`.\n- Build it.",
            "Pass it on\n#### Details\nGive it to `compile`.",
        ],
    ),
    "phases": (
        "## Phase 1: Prepare\n1. Peel.\n2. Cut.\n\n## Phase 2: Cook\n\nNow it gets hot.\n\n3. Fry.\n\n## Serve\n\n4. Plate.",
        ["Peel.", "Cut.", "Fry.", "Plate."],
    ),
    "indented sub-bullets": (
        "1. Prepare:\n   - wash\n   - peel\n     * thinly\n2. Boil.",
        ["Prepare:\n- wash\n- peel\n  * thinly", "Boil."],
    ),
    "sub-bullets at the margin": (
        "1. Prepare:\n- wash\n- peel\n2. Boil.",
        ["Prepare:\n- wash\n- peel", "Boil."],
    ),
    "numbers below bullets": (
        "- Prepare:\n  1. wash\n  2. peel\n- Boil.",
        ["Prepare:\n1. wash\n2. peel", "Boil."],
    ),
    "letters below numbers": (
        "1. Prepare\na) wash\nb) peel\n2. Boil",
        ["Prepare\na) wash\nb) peel", "Boil"],
    ),
    "decimal sub-numbers": (
        "1. Prepare\n1.1 Wash\n1.2 Peel\n2. Boil",
        ["Prepare\n1.1 Wash\n1.2 Peel", "Boil"],
    ),
    "code at the margin": (
        "1. Write the file:\n\n```yaml\n1. not a step\n# nor a heading\n\n- nor this\n```\n\n2. Run it.",
        ["Write the file:\n```yaml\n1. not a step\n# nor a heading\n\n- nor this\n```", "Run it."],
    ),
    "indented code": (
        "1. Run:\n   ```python\n   def f():\n       return 1\n   ```\n2. Stop.",
        ["Run:\n```python\ndef f():\n    return 1\n```", "Stop."],
    ),
    "code in a list in a fence": (
        "Here you go:\n\n```markdown\n1. Install:\n```bash\npip install x\n```\n2. Run\n```\n\nHope this helps!",
        ["Install:\n```bash\npip install x\n```", "Run"],
    ),
    "an unclosed fence around the list": ("```\n1. Peel\n2. Boil", ["Peel", "Boil"]),
    "a stray fence at the end": ("1. Peel\n2. Boil\n```", ["Peel", "Boil"]),
    "a closing remark without a blank line": (
        "1. Peel\n2. Boil\nLet me know how it goes!",
        ["Peel", "Boil"],
    ),
    "a closing remark of its own kind": (
        "1. Peel\n2. Boil\n\nThe soup is mild and keeps for days.",
        ["Peel", "Boil"],
    ),
    "a rule and a section at the end": (
        "1. Peel\n2. Boil\n\n---\n\n## Notes\n- It is hot",
        ["Peel", "Boil"],
    ),
    "other lists before and after": (
        "**Requirements:**\n- a pot\n- a knife\n\n**Steps:**\n1. Peel\n2. Boil\n\n**Tips:**\n- Use thyme",
        ["Peel", "Boil"],
    ),
    "a note of the model": (
        "1. Peel\n2. [[ Boil ]] it\n\nNote that I marked one step.",
        ["Peel", "[[ Boil ]] it"],
    ),
    "numbers on their own line": ("1.\nPeel\n2.\nBoil", ["Peel", "Boil"]),
    "step words on their own line": ("**Step 1**\nPeel\n\n**Step 2**\nBoil", ["Peel", "Boil"]),
    "blank items": ("1. Peel\n2. \n3. **\n4. Boil", ["Peel", "Boil"]),
    "nothing between number and text": ("1.安装\n2.运行 `x`", ["安装", "运行 `x`"]),
    "one item": ("Sure:\n\n1. Peel them.\n\nEat them raw.", ["Peel them.\nEat them raw."]),
    "lines without bullets": (
        "Sure, here it is:\nPeel.\n\nBoil.\nI hope this helps!",
        ["Peel.", "Boil."],
    ),
    "lines without bullets, with code": (
        "Run:\nthis\n```\nx\n```\nStop",
        ["this\n```\nx\n```", "Stop"],
    ),
    "mixed bullets": ("* Peel\n- Cut\n+ Boil", ["Peel", "Cut", "Boil"]),
    "tabs": ("1.\tPeel\n\t- thinly\n2.\tBoil", ["Peel\n- thinly", "Boil"]),
    "right-aligned numbers": (" 9. Peel\n10. Boil", ["Peel", "Boil"]),
    "windows newlines": ("1. Peel\r\n2. Boil\r\n", ["Peel", "Boil"]),
}


@pytest.mark.parametrize(("reply", "steps"), REPLIES.values(), ids=REPLIES.keys())
def test_replies_as_models_write_them(reply: str, steps: list[str]) -> None:
    assert read_steps(reply) == steps


@pytest.mark.parametrize("style", ["", "- ", "1. ", "* "])
@pytest.mark.parametrize(
    "step",
    [
        "3.5 GB of RAM is needed", "-v mounts a folder", "2 eggs are beaten", "--force overwrites", "*args are passed",
        "1.2.3 is installed", "16:9 is chosen", "10-12 minutes later", "e.g. salt it", "stepwise refine it",
        "Step back from it", "C. difficile is cultured", "3D print it", "2x fold it", "(optional) salt it",
        "#1 is picked", "**Bold** is kept", "`a.b()` is called", "\uff13\uff0e\uff15GB is needed", "5\u00a0g are added",
    ],
)  # fmt: skip
def test_no_letter_of_a_step_is_cut_off(style: str, step: str) -> None:
    assert read_steps(f"{style}First this\n{style}{step}") == ["First this", step]


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "Peel the potatoes and boil them.", "#", "```\n```", "1.", "- \n- ", "---"],
)
def test_no_list_gives_no_steps(text: str) -> None:
    assert read_steps(text) == []


FURTHER = st.lists(
    st.tuples(st.sampled_from(["", "- ", "1. ", "  "]), SENTENCE).map("".join), max_size=3
)


@st.composite
def clean_step(draw: st.DrawFn) -> str:
    further = draw(FURTHER)
    if further and all(line.startswith(" ") for line in further):
        further[0] = further[0].strip()
    code = draw(st.sampled_from(["", "\n```py\nx = 1\n\n    2. y\n- z\n```"]))
    return (
        "\n".join(
            [
                draw(st.sampled_from(["", "- ", "2. ", "3.5 ", "# ", "**"])) + draw(SENTENCE),
                *further,
            ]
        )
        + code
    )


@given(st.lists(clean_step(), max_size=14))
def test_numbered_reads_back(steps: list[str]) -> None:
    assert read_steps(numbered(steps)) == steps


@given(ANY | LISTISH)
def test_any_text_can_be_read_and_no_item_is_blank(text: str) -> None:
    for item in [*read_steps(text), *read_lines(text), *read_bullets(text)]:
        assert item == item.strip("\n")
        assert item.strip()


@given(
    st.lists(st.lists(SENTENCE, min_size=1, max_size=3), min_size=1, max_size=4),
    st.sampled_from(["   - ", "- ", "   "]),
)
def test_no_step_loses_what_stands_below_it(items: list[list[str]], below: str) -> None:
    text = "\n".join(
        f"{n}. {first}" + "".join(f"\n{below}{line}" for line in rest)
        for n, (first, *rest) in enumerate(items, 1)
    )
    steps = read_steps(text)
    assert [" ".join(step.replace("- ", "").split()) for step in steps] == [
        " ".join(item) for item in items
    ]


def test_numbered_indents_below_the_text() -> None:
    steps = ["Run:\n```\nx\n\ny\n```", *["Wait"] * 8, "Stop\n- now"]
    assert numbered(steps).startswith("1. Run:\n   ```\n   x\n\n   y\n   ```\n2. Wait\n")
    assert numbered(steps).endswith("\n10. Stop\n    - now")
    assert numbered([]) == ""
    assert numbered(steps, code_at_margin=True).startswith("1. Run:\n```\nx\n\ny\n```\n2. Wait\n")
    assert numbered(steps, code_at_margin=True).endswith("\n10. Stop\n    - now")
    assert numbered(["", "a"], code_at_margin=True) == "1. \n2. a"


def test_read_lines_of_questions() -> None:
    reply = """Here are the questions you asked for:

## Questions
1. "How is a store made?"
Q2: What does `compile` take?
**Question 3:** Which key is needed?
- how is a store made?
* What is "x"?

```
```
Let me know if you need more!"""
    assert read_lines(reply) == [
        "How is a store made?",
        "What does `compile` take?",
        "Which key is needed?",
        'What is "x"?',
    ]


def test_read_lines_of_a_fence() -> None:
    assert read_lines("```text\n1. How?\n2. Why?\n```") == ["How?", "Why?"]
    assert read_lines("How?\nWhy?") == ["How?", "Why?"]


def test_read_bullets_takes_bullets_only() -> None:
    assert read_bullets(
        "The steps lack two things:\n\n* Use the store\n  in step 2.\n* Name the key."
    ) == [
        "Use the store\nin step 2.",
        "Name the key.",
    ]
    assert read_bullets("NO UPDATE REQUIRED") == []
    assert read_bullets("All is well.\nNothing is to be changed.") == []
