"""Sections of a prompt: material from outside can neither close its section nor open another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.clean import clean
from stepcraft.text.sections import NAMES, parse, restored, section

TAGS = st.lists(
    st.sampled_from(
        ["<", ">", "/", " ", "\n", "text", "evidence", 'id="1"', "id = '1'", "</text>", "<text>", "a"]
    )
).map("".join)


@pytest.mark.parametrize(
    "tag",
    [
        "<question>",
        "</question>",
        '<evidence id="1">',
        "<evidence id='1'>",
        "</ evidence >",
        "< text>",
        "<TEXT>",
        "</\ntext\n>",
        '< evidence  id = "1" >',
    ],
)
def test_a_tag_that_could_open_or_close_a_section_is_neutralised(tag: str) -> None:
    (found,) = parse(section("text", f"a {tag} b"))
    assert found.text == f"a \u2039{tag[1:]} b"
    assert restored(found.text) == f"a {tag} b"


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
    (found,) = parse(section("question", text))
    assert found.text == text
    assert restored(text) == text


def test_sections_are_parsed_in_order() -> None:
    prompt = "\n\n".join([section("goal", "a\nb"), "<text>\nunclosed", section("evidence", "", id="7"), "c"])
    assert [(one.name, one.id, one.text) for one in parse(prompt)] == [
        ("goal", "", "a\nb"),
        ("evidence", "7", ""),
    ]


@given(st.sampled_from(NAMES), TAGS)
def test_no_text_leaves_its_section(name: str, text: str) -> None:
    whole = section(name, text, id="1") + "\n\n" + section("goal", "b")
    assert [(one.name, one.id) for one in parse(whole)] == [(name, "1"), ("goal", "")]
    assert restored(next(parse(whole)).text) == clean(text)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'verse' .*NAMES"):
        section("verse", "a")
