"""Lists as models write them, read back as steps, questions and edits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.text.lists import numbered, read_bullets, read_lines, read_steps

ANY = st.text(st.characters()) | st.text(st.sampled_from("1a.)-*#`[ \n:"))
WORD = st.text(st.sampled_from("bdgklmprtuw\u00e4\u0436\u5b89"), min_size=2, max_size=6)
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(" ".join)

BULLETS = ["{n}. ", "{n}) ", "({n}) ", "**{n}.** ", "### {n}. ", "- ", "* ", "+ ", "\u2022 ", "- [ ] ", "- [x] "]  # fmt: skip
STEPS = [
    "Step {n}: ", "step {n}. ", "STEP {n} - ", "Step {n} \u2013 ", "Step {n} of 3: ", "**Step {n}:** ", "**Step {n}**: ",
    "### Step {n}: ", "## **Step {n}:** ", "{n}. Step {n}: ", "- **Step {n}:** ",
]  # fmt: skip


@pytest.mark.parametrize("style", [*BULLETS, *STEPS])
@settings(max_examples=15)
@given(steps=st.lists(SENTENCE, min_size=2, max_size=3), between=st.sampled_from(["\n", "\n\n"]))
def test_every_bullet_is_read(style: str, steps: list[str], between: str) -> None:
    text = between.join(style.format(n=number) + step for number, step in enumerate(steps, 1))
    for reply in (text, f"Sure, here:\n\n{text}\n\nLet me know more.", f"```\n{text}\n```"):
        assert read_steps(reply) == steps
    assert style in STEPS or read_bullets(text) == steps


def test_the_step_that_a_bullet_is_about_stays() -> None:
    for item in ("Step 3: Add salt.", "**Step 3:** Add salt."):
        assert read_bullets(f"- {item}\n- {item}") == [item, item]


REPLIES = {
    "a loose list with bold titles": (
        "Here's how to set it up:\n\n**1. Install**\n\nRun `pip install x`.\n\n**2. Configure**\n\nEdit `a.toml`.\n\n"
        "Then save it.",
        ["**Install**\nRun `pip install x`.", "**Configure**\nEdit `a.toml`.\nThen save it."],
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
    "sub-bullets, numbers and letters at the margin": (
        "1. Prepare:\n- wash\n- peel\n1.1 dry\na) cut\n2. Boil.",
        ["Prepare:\n- wash\n- peel\n1.1 dry\na) cut", "Boil."],
    ),
    "numbers below bullets": (
        "- Prepare:\n  1. wash\n  2. peel\n- Boil.",
        ["Prepare:\n1. wash\n2. peel", "Boil."],
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
        "Here is the list:\n\n```markdown\n1. Install:\n```bash\npip install x\n```\n2. Run\n```",
        ["Install:\n```bash\npip install x\n```", "Run"],
    ),
    "an unclosed fence around the list": ("```\n1. Peel\n2. Boil", ["Peel", "Boil"]),
    "a stray fence at the end": ("1. Peel\n2. Boil\n```", ["Peel", "Boil"]),
    "other lists and a closing remark": (
        "**Requirements:**\n- a pot\n- a knife\n\n**Steps:**\n1. Peel\n2. [[ Boil ]] it\n\n**Tips:**\n- Use thyme\n\n"
        "The soup is mild and keeps for days.",
        ["Peel", "[[ Boil ]] it"],
    ),
    "a rule and a section at the end": (
        "1. Peel\n2. Boil\n\n---\n\n## Notes\n- It is hot",
        ["Peel", "Boil"],
    ),
    "numbers on their own line": ("1.\nPeel\n2.\nBoil", ["Peel", "Boil"]),
    "step words on their own line": ("**Step 1**\nPeel\n\n**Step 2**\nBoil", ["Peel", "Boil"]),
    "blank items": ("1. Peel\n2. \n4. Boil", ["Peel", "Boil"]),
    "one item": ("Sure:\n\n1. Peel them.\n\nEat them raw.", ["Peel them.\nEat them raw."]),
    "lines without bullets": ("Sure, here it is:\nPeel.\n\nBoil.", ["Peel.", "Boil."]),
    "lines without bullets, with code": (
        "Run:\nthis\n```\nx\n```\nStop",
        ["this\n```\nx\n```", "Stop"],
    ),
    "tabs": ("-\tPeel\n\t- thinly\n-\tBoil", ["Peel\n- thinly", "Boil"]),
    "right-aligned numbers, windows newlines": (" 9. Peel\r\n10. Boil\r\n", ["Peel", "Boil"]),
}


@pytest.mark.parametrize(("reply", "steps"), REPLIES.values(), ids=REPLIES.keys())
def test_replies_as_models_write_them(reply: str, steps: list[str]) -> None:
    assert read_steps(reply) == steps


@pytest.mark.parametrize("style", ["", "- ", "1. "])
@pytest.mark.parametrize(
    "step",
    [
        "3.5 GB of RAM is needed", "-v mounts a folder", "2 eggs are beaten", "--force overwrites", "*args are passed",
        "1.2.3 is installed", "16:9 is chosen", "10-12 minutes later", "e.g. salt it", "stepwise refine it",
        "Step back from it", "C. difficile is cultured", "3D print it", "(optional) salt it", "#1 is picked",
        "**Bold** is kept", "`a.b()` is called",
    ],
)  # fmt: skip
def test_no_letter_of_a_step_is_cut_off(style: str, step: str) -> None:
    assert read_steps(f"{style}First this\n{style}{step}") == ["First this", step]


@pytest.mark.parametrize("text", ["", " \n\t", "Peel them and boil them.", "#", "```\n```", "1."])
def test_no_list_gives_no_steps(text: str) -> None:
    assert read_steps(text) == []


BEGUN = st.sampled_from(["", "- ", "2. ", "3.5 ", "# ", "**"])
BELOW = st.lists(st.tuples(st.sampled_from(["", "- ", "1. ", "# "]), SENTENCE), max_size=3)
BLOCK = st.sampled_from(["", "\n```py\nx = 1\n\n    2. y\n- z\n```"])


def step_of(begun: str, first: str, below: list[tuple[str, str]], code: str) -> str:
    return "\n".join([begun + first, *map("".join, below)]) + code


CLEAN_STEP = st.builds(step_of, BEGUN, SENTENCE, BELOW, BLOCK)


@given(st.lists(CLEAN_STEP, max_size=14))
def test_numbered_reads_back(steps: list[str]) -> None:
    assert read_steps(numbered(steps)) == steps


@given(ANY)
def test_any_text_can_be_read_and_no_item_is_blank(text: str) -> None:
    for item in [*read_steps(text), *read_lines(text), *read_bullets(text)]:
        assert item == item.strip("\n")
        assert item.strip()


def test_numbered_indents_below_the_text() -> None:
    steps = ["Run:\n```\nx\n\ny\n```", *["Wait"] * 8, "Stop\n- now"]
    assert numbered(steps).startswith("1. Run:\n   ```\n   x\n\n   y\n   ```\n2. Wait\n")
    assert numbered(steps).endswith("\n10. Stop\n    - now")
    assert numbered(steps, code_at_margin=True).startswith("1. Run:\n```\nx\n\ny\n```\n2. Wait\n")
    assert numbered(steps, code_at_margin=True).endswith("\n10. Stop\n    - now")
    assert numbered(["", "a"]) == "1. \n2. a"


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        ('Here:\n\n## Q\n1. "How?"\n- how?\n* Is "x" it?\nWhy?', ["How?", 'Is "x" it?', "Why?"]),
        ("```text\n1. How?\n2. Why?\n```", ["How?", "Why?"]),
    ],
)
def test_lines_go_without_bullets_quotes_and_headings(reply: str, lines: list[str]) -> None:
    assert read_lines(reply) == lines


def test_read_bullets_takes_bullets_only() -> None:
    text = "The steps lack two things:\n\n* Use the store\n  in step 2.\n* Name the key."
    assert read_bullets(text) == ["Use the store\nin step 2.", "Name the key."]
    assert read_bullets("All is well.\nNothing is to be changed.") == []
