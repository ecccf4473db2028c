"""Procedures: what they refuse, and what makes them the same."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import Procedure

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
WORD = st.text("abcäß长期 -.", min_size=1, max_size=12).filter(lambda text: text.strip())
SPACE = st.text(" \t\n\u200b\u00ad\ufeff\r", max_size=3)


@given(WORD, WORD, st.lists(WORD, min_size=1, max_size=4), st.data())
def test_the_same_content_has_the_same_id_whatever_its_space_and_invisible_marks(
    output, given_, steps, data
):
    def dressed(text: str) -> str:
        spaces = iter(
            lambda: data.draw(
                SPACE.filter(lambda space: space.strip("\u200b\u00ad\ufeff") or not space)
            ),
            None,
        )
        return (
            next(spaces)
            + "".join(f" {next(spaces)}" if char == " " else char for char in text)
            + next(spaces)
        )

    plain = Procedure(output=output, input=given_, steps=steps)
    other = Procedure(
        output=dressed(output), input=dressed(given_), steps=[dressed(step) for step in steps]
    )
    assert other.id == plain.id
    assert uuid.UUID(plain.id).version == 5


@pytest.mark.parametrize(
    "other",
    [
        {"output": "a, b"},
        {"input": "x y"},
        {"steps": ["one two"]},
        {"steps": ["two", "one"]},
        {"output": "x", "input": "a"},
    ],
)
def test_other_content_has_another_id(other):
    content = {"output": "a", "input": "x", "steps": ["one", "two"]}
    assert Procedure(**content).id != Procedure(**content | other).id


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"output": " \n"}, "output is empty"),
        ({"input": "\u200b\ufeff"}, "input is empty"),
        ({"output": 5}, "output must be a text, not int"),
        ({"steps": []}, "at least one step"),
        ({"steps": ["one", "\t"]}, "step 2 is empty"),
        ({"steps": "one"}, "must be a list"),
        ({"steps": [{"text": "one"}]}, "step 1 must be a text"),
        ({"source": 3}, "source must be a text"),
        ({"metadata": {"a": object()}}, "metadata must be a mapping of JSON"),
        ({"metadata": {"a": float("nan")}}, "metadata must be a mapping of JSON"),
        ({"metadata": [1]}, "metadata must be a mapping"),
        ({"id": "seven"}, "id must be a UUID"),
        ({"tags": {"team": " \ufeff"}}, "tags must be names with texts"),
        ({"tags": {"team": "\x00"}}, "tags must be names with texts"),
        ({"output": "x" * 1_000_000}, "1,000,002 characters"),
    ],
)
def test_what_is_no_procedure_is_refused_with_the_reason(fields, reason):
    with pytest.raises(BadInput, match=reason):
        Procedure(**{"output": "a", "input": "b", "steps": ["c"]} | fields)


@given(TEXT, TEXT, st.lists(TEXT, max_size=3), st.dictionaries(TEXT, TEXT, max_size=2))
def test_any_text_makes_a_procedure_that_can_be_written_or_is_refused(
    output, given_, steps, metadata
):
    try:
        procedure = Procedure(output=output, input=given_, steps=steps, metadata=metadata)
    except BadInput:
        return
    line = json.dumps(procedure.to_dict(), ensure_ascii=False).encode()
    assert Procedure.from_dict(json.loads(line)) == procedure
    shown = [procedure.output, procedure.input, *procedure.steps]
    assert not any(ord(char) < 32 and char not in "\t\n" for text in shown for char in text)


def test_it_reads_as_one_text():
    procedure = Procedure(output="make tea", input="leaves, water", steps=["Boil.", "Pour."])
    assert procedure.text() == "how to make tea using leaves, water\n1. Boil.\n2. Pour."
