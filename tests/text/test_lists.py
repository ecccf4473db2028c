"""Lists as models write them, read back as steps, questions and edits."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.text.lists import (
    numbered,
    outside_steps,
    read_bullets,
    read_items,
    read_lines,
    read_steps,
    without_number,
)

ANY = st.text(st.characters()) | st.text(st.sampled_from("1a.)-*#`[ \n:"))
WORD = st.text(st.sampled_from("bdgklmprtuw\u00e4\u0436\u5b89"), min_size=2, max_size=6)
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(" ".join)

BULLETS = [
    "{n}. ", "{n}) ", "({n}) ", "**{n}.** ", "### {n}. ", "- ", "* ", "+ ", "\u2022 ", "- [ ] ", "- [x] ",
    "{n}: ", "{n} - ", "{n} \u2013 ", "{n} \u2014 ", "{n}.- ", "{n}.", "{a}) ", "({a}) ",
    "{n}\u3001", "{wide}\uff0e", "{wide}\uff09", "\uff08{n}\uff09", "({n})", "{n}\uff1a", "{circled}", "{circled} ",
    "{n}\ufe0f\u20e3 ", "{han}\u3001", "{han}\uff0e", "\uff08{han}\uff09", "**{han}\u3001** ",
    "{arabic}- ", "{arabic}. ", "{devanagari}. ", "{devanagari}) ",
    "\u30fb", "\u25cf ", "\u25cf", "\u25aa ", "\u2023 ", "\u25e6 ", "\u2013 ", "\u2014 ",
]  # fmt: skip
STEPS = [
    "Step {n}: ", "step {n}. ", "STEP {n} - ", "Step {n} \u2013 ", "Step {n} of 3: ", "**Step {n}:** ", "**Step {n}**: ",
    "### Step {n}: ", "## **Step {n}:** ", "{n}. Step {n}: ", "- **Step {n}:** ",
    "\u7b2c{han}\u6b65\uff1a", "\u7b2c{n}\u6b65: ", "\u7b2c{han}\uff0c", "\u6b65\u9aa4{n}\uff1a", "**\u6b65\u9aa4 {n}\uff1a** ",
    "\u30b9\u30c6\u30c3\u30d7{n}\uff1a", "\u624b\u9806{wide}. ", "{n}\ub2e8\uacc4: ", "Schritt {n}: ", "### Schritt {n} - ",
    "\u00c9tape {n} : ", "\u00c9tape n\u00b0 {n}. ", "Paso {n}: ", "**Passo {n}:** ", "**Passo {n}** \u2013 ", "Schritt {n} von 3: ",
    "\u0428\u0430\u0433 {n}: ", "Krok {n}: ", "\u062e\u0637\u0648\u0629 {arabic}: ", "\u091a\u0930\u0923 {devanagari}: ",
    "\u0e02\u0e31\u0e49\u0e19\u0e15\u0e2d\u0e19\u0e17\u0e35\u0e48 {n}: ", "B\u01b0\u1edbc {n}: ",
]  # fmt: skip


def begin(style: str, number: int) -> str:
    """Return the beginning of an item in a style."""
    places = {
        "a": "abc",
        "wide": "\uff11\uff12\uff13",
        "circled": "\u2460\u2461\u2462",
        "han": "\u4e00\u4e8c\u4e09",
        "arabic": "\u0661\u0662\u0663",
        "devanagari": "\u0967\u0968\u0969",
    }
    return style.format(n=number, **{name: all_[number - 1] for name, all_ in places.items()})


@pytest.mark.parametrize("style", [*BULLETS, *STEPS])
@settings(max_examples=8)
@given(steps=st.lists(SENTENCE, min_size=2, max_size=3), between=st.sampled_from(["\n", "\n\n"]))
def test_every_bullet_is_read(style: str, steps: list[str], between: str) -> None:
    text = between.join(begin(style, number) + step for number, step in enumerate(steps, 1))
    for reply in (text, f"Sure, here:\n\n{text}\n\nLet me know more.", f"```\n{text}\n```"):
        assert read_steps(reply) == steps
    assert outside_steps(text, steps) == []
    framed = f"# Steps\n\nSure, here:\n\n{text}\n\nLet me know more."
    assert outside_steps(framed, steps) == ["Sure, here:", "Let me know more."]
    assert style in STEPS or read_bullets(text) == steps


def test_the_step_that_an_item_is_about_stays() -> None:
    for item in ("Step 3: Add salt.", "**Step 3:** Add salt."):
        assert read_bullets(f"- {item}\n- {item}") == [item, item]
    for margin in ("", "  "):
        text = f"{margin}Step 3: Add salt.\n{margin}Step 5: Stir."
        assert read_bullets(text) == ["Step 3: Add salt.", "Step 5: Stir."]


def test_labels_may_count_in_words_and_in_digits() -> None:
    assert read_steps("Step one: Mix it.\nStep 2: Bake it.") == ["Mix it.", "Bake it."]


def test_a_heading_is_no_step_and_one_within_the_last_step_stays() -> None:
    assert read_steps("# Bread\nMix it.\nBake it.") == ["Mix it.", "Bake it."]
    text = "### Step 1: Mix\nIt.\n\n### Step 2: Bake\n\n#### Heat\nHot."
    assert read_steps(text) == ["Mix\nIt.", "Bake\n\n#### Heat\nHot."]


REPLIES = {
    "a loose list with bold titles": (
        "Here's how to set it up:\n\n**1. Install**\n\nRun `pip install x`.\n\n**2. Configure**\n\nEdit `a.toml`.\n\n"
        "Then save it.",
        ["**Install**\n\nRun `pip install x`.", "**Configure**\n\nEdit `a.toml`.\n\nThen save it."],
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
    "number words": (
        "**Step One:** Mix.\n- use flour\n\n**Step Two:** Bake.\n- use the oven",
        ["Mix.\n- use flour", "Bake.\n- use the oven"],
    ),
    "Roman numbers": ("I. Mix\n   - flour\nII. Bake", ["Mix\n- flour", "Bake"]),
    "letters above numbers": (
        "A. Mix\n   1. flour\n   2. water\nB. Bake\n   1. oven",
        ["Mix\n1. flour\n2. water", "Bake\n1. oven"],
    ),
    "numbers of two levels": ("1.1 Mix\n   - flour\n1.2 Bake", ["Mix\n- flour", "Bake"]),
    "bold lines above bullets": (
        "**Mix**\n- flour\n\n**Bake**\n- oven",
        ["**Mix**\n- flour", "**Bake**\n- oven"],
    ),
    "a range of steps": ("Step 1-2: Mix and rest\nStep 3: Bake", ["Mix and rest", "Bake"]),
    "escaped numbers": ("1\\. Mix\n   - flour\n2\\. Bake", ["Mix\n- flour", "Bake"]),
    "a JSON array": ('```json\n["Mix", "Bake"]\n```', ["Mix", "Bake"]),
    "a quotation": ("> 1. Mix\n> 2. Bake", ["Mix", "Bake"]),
    "two steps with letters": ("a) Wash them.\nb) Peel them.", ["Wash them.", "Peel them."]),
    "two steps with dashes behind their numbers": ("1 - Wash.\n2 - Peel.", ["Wash.", "Peel."]),
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
    "code at the margin between indented lines": (
        "1. Write:\n   - a file\n     * short\n```py\nif x:\n    y\n```\n\n   Save it.\n2. Run it.",
        ["Write:\n- a file\n  * short\n```py\nif x:\n    y\n```\n\nSave it.", "Run it."],
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
    "one item": ("Sure:\n\n1. Peel them.\n\nEat them raw.", ["Peel them.\n\nEat them raw."]),
    "lines without bullets": ("Sure, here it is:\nPeel.\n\nBoil.", ["Peel.", "Boil."]),
    "lines without bullets, with code": (
        "Run:\nthis\n```\nx\n```\nStop",
        ["this\n```\nx\n```", "Stop"],
    ),
    "tabs": ("-\tPeel\n\t- thinly\n-\tBoil", ["Peel\n- thinly", "Boil"]),
    "labels with numbers below them": (
        "Schritt 1: Prepare:\n1. wash\n2. peel\nSchritt 2: Cook:\n1. boil",
        ["Prepare:\n1. wash\n2. peel", "Cook:\n1. boil"],
    ),
    "numbers in circles below numbers": (
        "1. Prepare:\n\u2460 wash\n\u2461 peel\n2. Boil",
        ["Prepare:\n\u2460 wash\n\u2461 peel", "Boil"],
    ),
    "notes that are counted below numbers": (
        "1. Peel\nNote 1: thinly\nNote 2: all\n2. Boil\nNote 3: hot",
        ["Peel\nNote 1: thinly\nNote 2: all", "Boil\nNote 3: hot"],
    ),
    "labels after bullets or numbers": (
        "- Q1: revenue\n- Q2: revenue",
        ["Q1: revenue", "Q2: revenue"],
    ),
    "Chinese numerals above ten": (
        "\n".join(
            f"{number}\u3001{name}"
            for number, name in zip(
                [*"\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341", "\u5341\u4e00"],
                "abcdefghijk",
                strict=True,
            )
        ),
        [*"abcdefghijk"],
    ),
    "numbers in another order": ("2: b\n4: d\n1: a", ["2: b", "4: d", "1: a"]),
    "a tag around the list": ("<steps>\n1. Peel\n2. Boil\n</steps>", ["Peel", "Boil"]),
    "an object of JSON": ('{"steps": [{"step": 1, "do": "Peel"}, "Boil"]}', ["Peel", "Boil"]),
    "an object of JSON with numbers": ('{"1": "Peel", "2": "Boil"}', ["Peel", "Boil"]),
    "objects of JSON with titles": (
        '[{"title": "Peel", "description": "Peel it."}, {"title": "Boil", "text": "Boil it."}]',
        ["Peel: Peel it.", "Boil: Boil it."],
    ),
    "numbers in JSON": ('{"steps": ["1. Peel", "2. 3 of them"]}', ["Peel", "3 of them"]),
    "labels in JSON": ('["Step 1: Peel", "Step 2: Boil\\n1. salt"]', ["Peel", "Boil\n1. salt"]),
    "one number in JSON": ('["Peel", "2. Gang einlegen"]', ["Peel", "2. Gang einlegen"]),
    "steps of JSON among other lists": (
        '{"resources": ["leeks", "salt"], "Steps": ["Peel", "Boil"], "notes": ["It keeps."]}',
        ["Peel", "Boil"],
    ),
    "a list of JSON with another name, and an empty one": (
        '{"warnings": [], "plan": ["Peel", "Boil"]}',
        ["Peel", "Boil"],
    ),
    "objects of JSON with lists that say nothing": (
        '[{"step": "Peel", "tools": []}, {"step": "Boil", "heat": {}, "minutes": 5}]',
        ["Peel", "Boil"],
    ),
    "notes below the steps": ("1. Peel\n2. Boil\n\n## Notes\n\n1. It keeps.", ["Peel", "Boil"]),
    "notes within a step of headings": (
        "## Step 1: Peel\n1. Wash.\n2. Peel.\n\n#### Note\nThinly.\n\n## Step 2: Boil\n1. Boil.\n\n## Notes\n- Hot.",
        ["Peel\n1. Wash.\n2. Peel.\n\n#### Note\nThinly.", "Boil\n1. Boil."],
    ),
    "tips within numbered headings": (
        "### 1. Peel\nIt.\n#### Hinweis\n- Thinly.\n### 2. Boil\n\n### Tipps\n1. Salt.\n2. Stir.",
        ["Peel\nIt.\n#### Hinweis\n- Thinly.", "Boil"],
    ),
    "a heading that begins with the verb note": (
        "## Peel\n1. Wash\n2. Peel\n\n## Note the time\n1. Boil\n2. Stop\n\n## Note\n1. Hot.",
        ["Wash", "Peel", "Boil", "Stop"],
    ),
    "a comment in code": (
        "1. Boil:\n```sh\n# Note: it is hot\nboil\n```\n2. Eat",
        ["Boil:\n```sh\n# Note: it is hot\nboil\n```", "Eat"],
    ),
    "variations with numbers": (
        "1. Peel\n\n## Variations\n1. With nuts\n2. With raisins",
        ["Peel"],
    ),
    "headings with code within a step": (
        "# Soup\n\n1. **Peel**\n\n## By hand\n```sh\npeel\n```\n\n### Machine\n- Fast.\n\n2. Boil\n\n## If it burns\nStop.",
        ["**Peel**\n\n## By hand\n```sh\npeel\n```\n\n### Machine\n- Fast.", "Boil"],
    ),
    "headings of the level of the steps": (
        "## Step 1: Peel\nIt.\n\n## Option A\nThinly.\n\n# Cook\nIt.\n\n## Step 2: Boil",
        ["Peel\nIt.\n\n## Option A\nThinly.", "Boil"],
    ),
    "headings between items": (
        "1. Peel\n\n## Cook\n2. Boil\n\n## Serve\n3. Eat",
        ["Peel", "Boil", "Eat"],
    ),
    "headings of the level above the steps": (
        "## Prepare\n1. Peel\n\n## Cook\nNow it gets hot.\n\n2. Boil",
        ["Peel", "Boil"],
    ),
    "sections of steps": ("1. Peel\n2. Cut\n\n## Boil\n1. Boil", ["Peel", "Cut", "Boil"]),
    "what is needed, then the steps": (
        "**You need**\n1. leeks\n2. salt\n\n**Steps**\n1. Peel\n2. Boil",
        ["Peel", "Boil"],
    ),
    "a bold tip between steps with a title": (
        "**You need**\n- leeks\n\n**Steps**\n1. Peel\n\n**Tip:** Thinly.\n\n2. Boil\n3. Eat\n\n**Serves** 4\n\n1. Wash",
        ["Peel\n\n**Tip:** Thinly.", "Boil", "Eat"],
    ),
    "numbers of what is needed, then labels": (
        "Ingredients:\n1. flour\n2. salt\n\nSteps:\nStep 1: Mix.\nStep 2: Bake.",
        ["Mix.", "Bake."],
    ),
    "labels with a total": ("Step 1/2: Peel\nStep 2/2: Boil", ["Peel", "Boil"]),
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
        "**Bold** is kept", "`a.b()` is called", "10:30 start", "1-based counting", "2024 - a year", "2- or 3-inch pieces",
        "Python 3: the language", "3\uff0e5 GB", "\u4e09\u3001\u56db\u5929", "2\u30013\u5929", "2.\u00aa vez", "f(2) is 4",
        "\u2460\u3068\u2461", "\uff082\uff09\u3067", "World War 2",
    ],
)  # fmt: skip
def test_no_letter_of_a_step_is_cut_off(style: str, step: str) -> None:
    assert read_steps(f"{style}First this\n{style}{step}") == ["First this", step]


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n\t", "Peel them and boil them.", "#", "```\n```", "1."),
        "| Step | Action |\n|---|---|\n| 1 | Peel |\n| 2 | Boil |",
        "Here are the steps:\n\n<steps>\n<step>Peel.</step>\n<step>Boil.</step>\n</steps>",
        '{\n"steps": ["Peel",\n"Boil"',
        '[{"title": "Peel", "actions": ["Wash.", "Peel."]},\n{"title": "Boil", "actions": ["Boil."]}]',
        '{"resources": ["leeks"], "notes": ["It keeps."]}',
        '{"steps": [{"step": "Run", "code": {"text": "boil"}}, {"step": "Stop", "code": {}}]}',
    ],
)
def test_no_list_gives_no_steps(text: str) -> None:
    assert read_steps(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "1-wire sensors are read.\n2-wire sensors are read.",
        "1-Zimmer-Wohnungen z\u00e4hlen.\n2-Zimmer-Wohnungen z\u00e4hlen.",
        "eth0: up\neth1: up\neth2: down",
        "Q1: open\nQ2: closed",
        "Day 1: Soak them.\nDay 2: Cook them.",
    ],
)
def test_a_number_that_belongs_to_a_word_is_no_label(text: str) -> None:
    assert read_steps(text) == read_lines(text) == text.split("\n")


def test_steps_may_be_lettered() -> None:
    text = "A. Install.\nWith pip.\nB. Run.\nWith uvicorn."
    assert read_steps(text) == ["Install.\nWith pip.", "Run.\nWith uvicorn."]


BEGUN = st.sampled_from(["", "- ", "2. ", "3.5 ", "# ", "**"])
BELOW = st.lists(st.tuples(st.sampled_from(["", "- ", "1. ", "# "]), SENTENCE), max_size=3)
BLOCK = st.sampled_from(["", "\n```py\nx = 1\n\n    2. y\n- z\n```"])


def step_of(begun: str, first: str, below: list[tuple[str, str]], code: str) -> str:
    return "\n".join([begun + first, *map("".join, below)]) + code


CLEAN_STEP = st.builds(step_of, BEGUN, SENTENCE, BELOW, BLOCK)


@given(st.lists(CLEAN_STEP, max_size=14))
def test_numbered_reads_back(steps: list[str]) -> None:
    assert read_steps(numbered(steps)) == steps


@pytest.mark.parametrize("style", [style for style in [*BULLETS, *STEPS] if style.endswith(" ")])
@settings(max_examples=5)
@given(steps=st.lists(CLEAN_STEP, min_size=2, max_size=3))
def test_steps_of_several_lines_are_read_in_every_style(style: str, steps: list[str]) -> None:
    items = [begin(style, number) + step for number, step in enumerate(steps, 1)]
    assert read_steps("\n".join(item.replace("\n", "\n   ") for item in items)) == steps


BODY = st.lists(st.tuples(st.sampled_from(["", "- ", "1.1 ", "a) ", "  "]), SENTENCE), max_size=3)


@given(st.sampled_from([*BULLETS, *STEPS]), st.lists(BODY, min_size=2, max_size=3))
def test_no_line_of_an_item_is_lost(style: str, bodies: list[list[tuple[str, str]]]) -> None:
    items = [
        "\n".join([f"{begin(style, number)}Do", *map("".join, body)])
        for number, body in enumerate(bodies, 1)
    ]
    read = "\n".join(read_steps("\n".join(items)))
    assert [line for line in read.split() if line not in ("Do", "-", "1.1", "a)")] == [
        word for body in bodies for _, line in body for word in line.split()
    ]


def test_a_line_that_only_ends_like_a_line_of_a_step_is_outside() -> None:
    outside = ["Works with Python (>= 3.11)", "Made to enjoy: Enjoy."]
    text = "\n".join([*outside, "1. Run:\n```py\nprint(\n)\n```\n2. Enjoy."])
    assert outside_steps(text, read_steps(text)) == outside
    inside = "## Step 1: Peel\n> 2. Step 2: Boil\n### Eat\n1.1 Eat\n- [ ] Step 3\n- - Peel"
    assert outside_steps(inside, ["Peel", "Boil", "Eat"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"{number % 900}. a\n### Note" for number in range(18_000)),
        "**Mix**\n- a\n" * 20_000,
    ],
)
def test_long_lists_are_read_in_seconds(text: str) -> None:
    start = time.process_time()
    read_steps(text)
    assert time.process_time() - start < 10


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
        ("1\u3001How?\n2\u3001Why?", ["How?", "Why?"]),
        ("\u2460How?\n\u2461Why?", ["How?", "Why?"]),
        ("\u95ee\u98981\uff1aHow?\n\u95ee\u98982\uff1aWhy?", ["How?", "Why?"]),
        ("Python 2: how?\nPython 3: how?", ["Python 2: how?", "Python 3: how?"]),
        ("World War 1\nWorld War 2", ["World War 1", "World War 2"]),
    ],
)
def test_lines_go_without_bullets_quotes_and_headings(reply: str, lines: list[str]) -> None:
    assert read_lines(reply) == lines


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ('Here\n\n## Q\n1. "How?"\n- how?\n* Is "x" it?\nDone.', ["How?", 'Is "x" it?']),
        ("1. How?\n   - for whom\n2. Why?", ["How?", "Why?"]),
        ("- **A b c:**\n  - how\n  - what\n- **B**:\n  - when", ["how", "what", "when"]),
        ("1. **A b c**\n   - how\n   - what\n2. B\n   - when", ["how", "what", "B"]),
        (
            "1. **Port of X**\n   - Finds the port\n2. **Y**\n   - **Why:** so",
            ["**Port of X**", "**Y**"],
        ),
        ("- limit per key\n  - as asked\n- B c:\n  - when", ["limit per key", "when"]),
        ("- **limit**\n  - because it is asked\n- keys\n  - It is asked.", ["**limit**", "keys"]),
        ('["How?", "Why?"]', ["How?", "Why?"]),
        ('```json\n{"queries": [{"query": "How?"}, {"query": "Why?"}]}\n```', ["How?", "Why?"]),
        ('{"queries": [{"query": "How?", "why": "so"}]}', []),
        ('{"queries": []}', []),
        ('{"known": ["Who?"], "queries": ["How?", "Why?"]}', ["How?", "Why?"]),
        ("{}", []),
        ("How?\nWhy?", []),
    ],
)
def test_items_are_those_of_the_outer_list(reply: str, items: list[str]) -> None:
    assert read_items(reply) == items


def test_read_bullets_takes_bullets_only() -> None:
    text = "The steps lack two things:\n\n* Use the store\n  in step 2.\n* Name the key."
    assert read_bullets(text) == ["Use the store\nin step 2.", "Name the key."]
    assert read_bullets("All is well.\nNothing is to be changed.") == []


def test_counted_examples_below_bullets_are_part_of_the_last_one() -> None:
    examples = "**Example 1:**\nAdd login\n\n**Example 2:**\nFix crash"
    read = read_bullets(f"- Say what it does.\n- Be brief.\n\n{examples}")
    assert read == ["Say what it does.", f"Be brief.\n\n{examples}"]


@pytest.mark.parametrize(
    ("line", "begin"),
    [
        ("- Peel", "-"), ("  3) Peel", "  3)"), ("\t\u2022Peel", "\t\u2022"), ("- [x] Peel\n", "- [x]"), ("1.\u5b89", "1."),
        ("1\u3001Peel", "1\u3001"), ("\u2460 Peel", "\u2460"), ("### 2. Peel", "### 2."), ("Step 3: Peel", "Step 3:"),
        ("\u7b2c\u4e09\u6b65\uff1aPeel", "\u7b2c\u4e09\u6b65\uff1a"), ("1.", "1."),
        ("3.5 GB", ""), ("16:9", ""), ("1-based", ""), ("-v", ""), ("- - -", ""), ("---\n", ""), ("\n", ""), ("Schritt 1: a", ""),
    ],
)  # fmt: skip
def test_an_item_loses_its_bullet_or_number(line: str, begin: str) -> None:
    bare = line.removeprefix(begin).strip() if begin else line
    assert without_number(line, bullets=True) == bare


@pytest.mark.parametrize(
    "number",
    [
        "3. ",
        "3) ",
        "(3) ",
        "**3.** ",
        "### 3. ",
        "Step 3: ",
        "\uff13\uff0e",
        "\u7b2c\u4e09\u6b65\uff1a",
    ],
)
def test_a_step_loses_its_number_and_nothing_else(number: str) -> None:
    for step in (
        "Heat it:\n```sh\n3. x\n  y\n```",
        "Heat it",
        "- Heat\n- Stir",
        "a 3.5 l pot",
    ):
        assert without_number(number + step.replace("\n", "\n   ")) == step
        assert without_number(step) == step


def test_bold_labels_are_part_of_their_steps() -> None:
    text = "**Step 1** Mix the flour.\n\n- **Step 2** Bake it."
    assert outside_steps(text, ["Mix the flour.", "Bake it."]) == []


@pytest.mark.parametrize(
    ("reply", "steps"),
    [
        ('{"search_queries": ["a b"], "filters": ["x"]}', ["a b"]),
        ('{"revised_steps": ["Mix."], "notes": ["Hot."]}', ["Mix."]),
        ('{"resources": ["flour"], "notes": ["Hot."]}', []),
        ('[{"step": "Mix", "sources": [1, 2]}, {"step": "Bake", "sources": [3]}]', ["Mix", "Bake"]),
    ],
)
def test_lists_in_json_are_known_by_similar_names(reply: str, steps: list[str]) -> None:
    assert read_steps(reply) == steps
