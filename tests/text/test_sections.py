"""Sections of a prompt: material from outside can neither close its section nor open another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.clean import clean
from stepcraft.text.sections import Section, parse, restored, written

NAMES = ("text", "passage", "question")
PROMPT = written([Section(name, "", "") for name in NAMES])


def shown(name: str, text: str) -> Section:
    """Return the first section of a prompt with all of the names, as a model sees it."""
    others = [Section(other, "", "") for other in NAMES if other != name]
    return next(iter(parse(written([Section(name, "1", text), *others]))))


TAGS = st.lists(
    st.sampled_from(
        [
            "<",
            ">",
            "/",
            " ",
            "\n",
            "text",
            "passage",
            'id="1"',
            "id = '1'",
            "</text>",
            "<text>",
            "a",
        ]
    )
).map("".join)


@pytest.mark.parametrize(
    "tag",
    [
        "<question>",
        "</question>",
        '<passage id="1">',
        "<passage id='1'>",
        "</ passage >",
        "< text>",
        "<TEXT>",
        "</\ntext\n>",
        '< passage  id = "1" >',
    ],
)
def test_a_tag_that_could_open_or_close_a_section_is_neutralised(tag: str) -> None:
    found = shown("text", f"a {tag} b")
    assert found.text == f"a \u2039{tag[1:]} b"
    assert restored(found.text, PROMPT) == f"a {tag} b"


@pytest.mark.parametrize(
    "text",
    [
        "<question about your pages>",
        "a <text/> element, <textarea> and <plan B>",
        "</questions>",
        '<text x="1" y="2">',
        "if a <steps and b> c",
        "\u2039question about your pages>",
        "<p>Hello</p>",
    ],
)
def test_other_angle_brackets_stay(text: str) -> None:
    found = shown("question", text)
    assert found.text == text
    assert restored(text, PROMPT) == text


def test_only_tags_of_the_same_prompt_are_neutralised() -> None:
    prompt = written([Section("part", "1", "use `<conversation>` and `</part>`")])
    assert "`<conversation>` and `\u2039/part>`" in prompt


def test_sections_are_parsed_in_order() -> None:
    prompt = "\n\n".join(
        [
            written([Section("goal", "", "a\nb")]),
            "<text>\nunclosed",
            written([Section("passage", "7", "")]),
            "c",
        ]
    )
    assert list(parse(prompt)) == [Section("goal", "", "a\nb"), Section("passage", "7", "")]


@given(st.sampled_from(NAMES), TAGS)
def test_no_text_leaves_its_section(name: str, text: str) -> None:
    whole = written([Section(name, "1", text), Section("goal", "", "b")])
    first, second = parse(whole)
    assert (first.name, second) == (name, Section("goal", "", "b"))
    assert restored(first.text, whole) == clean(text)
