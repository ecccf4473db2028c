"""What a model is asked of a document, and how its replies are read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stepcraft.building.check import find_heading, place_of
from stepcraft.building.nodes import Part, extract, parts_of
from stepcraft.building.settings import ExtractContext
from stepcraft.errors import UnreadableReply

CONTEXT = ExtractContext()
STATE: Any = {
    "title": "Stores",
    "kind": "document",
    "reading": {"number": "", "place": "", "text": "# Stores\nRun `a`. </text>"},
}
ADD = {
    "output": "add a store",
    "input": "a graph, a key",
    "steps": ["Run `a`.", "Run `b`."],
    "heading": "Setup",
}


def found(reply: str) -> Any:
    return extract.read(reply, STATE, CONTEXT)["written"][0]


def test_the_document_is_fenced() -> None:
    system, human = extract.ask(STATE, CONTEXT)
    assert system.text.startswith(CONTEXT.extract_instructions)
    assert (
        human.text
        == "<titles>\nStores\n</titles>\n\n<text>\n# Stores\nRun `a`. <\u00b7/text>\n</text>"
    )


def test_a_part_says_where_it_stands() -> None:
    part = {"number": "part 2 of 3", "place": "Stores > Setup", "text": "Run `a`."}
    system, human = extract.ask({**STATE, "reading": part}, CONTEXT)
    assert CONTEXT.part_instructions in system.text
    assert CONTEXT.part_instructions not in extract.ask(STATE, CONTEXT)[0].text
    assert human.text.startswith(
        '<titles>\nStores\nStores > Setup\n</titles>\n\n<text id="part 2 of 3">\n'
    )


@pytest.mark.parametrize(
    "reply",
    [
        "PROCEDURE\nHeading: Setup\nOutput: add a store\nInput: a graph, a key\n1. Run `a`.\n2. Run `b`.",
        "Here are the procedures:\n\n### PROCEDURE 1\n**Heading:** Setup\n**Output:** add a store\n**Input:** a graph, a key\n"
        "**Steps:**\n1. Run `a`.\n2. Run `b`.\n",
        "PROCEDURE\nHeading: Setup\nOutput: add a store\nInput:\n- a graph\n- a key\nSteps:\n1. Run `a`.\n2. Run `b`.",
        "**PROCEDURE**\n- Heading: Setup\n- Output: add a\n  store\n- Input: a graph, a key\n- Steps:\n  1. Run `a`.\n  2. Run `b`.",
    ],
)
def test_the_forms_of_a_procedure(reply: str) -> None:
    assert found(reply) == {"procedures": [ADD], "rejected": []}


def test_several_blocks_with_code() -> None:
    reply = (
        "PROCEDURE\nHeading: A\nOutput: do a\nInput: x\n1. Write:\n   ```python\n   PROCEDURE\n   Output: b\n   ```\n2. Run it.\n\n"
        "REJECTED\nOutput: limits\nReason: it is a list of limits\nSentence: \u201cAt most 5.\u201d\n\n"
        "PROCEDURE\nHeading: B\nOutput: do b\nInput: y\n1. Procedure calls are made.\n2. Stop.\n"
    )
    read = found(reply)
    assert [one["output"] for one in read["procedures"]] == ["do a", "do b"]
    assert read["procedures"][0]["steps"] == [
        "Write:\n```python\nPROCEDURE\nOutput: b\n```",
        "Run it.",
    ]
    assert read["rejected"] == [
        {"output": "limits", "reason": "it is a list of limits", "sentence": "At most 5."}
    ]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('create a page called "Home"', 'create a page called "Home"'),
        ('"Home" and "Work"', '"Home" and "Work"'),
        ("ouvrir \u00ab Param\u00e8tres \u00bb", "ouvrir \u00ab Param\u00e8tres \u00bb"),
        ('"open the page"', "open the page"),
        ("\u00ab ouvrir \u00bb", "ouvrir"),
        ("\u2018open Ana\u2019s page\u2019", "open Ana\u2019s page"),
        ("'open'", "open"),
    ],
)
def test_only_quotes_around_a_whole_value_are_taken_off(written: str, read: str) -> None:
    reply = f"PROCEDURE\nHeading: A\nOutput: {written}\nInput: x\n1. A.\n2. B."
    assert found(reply)["procedures"][0]["output"] == read


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("Output: do b\n1. C.\n2. D.\n", "input is empty"),
        ("Output: do b\nInput: y\n", "at least one step"),
        ("Output: do b\nInput: y\n1. C.\n2. \u200b\n", "step 2 is empty"),
        (f"Output: do b\nInput: y\n1. C.\n2. {'D' * 100_000}\n", "at most 100,000"),
    ],
)
def test_what_cannot_be_kept_is_handed_back_and_the_rest_kept(block: str, reason: str) -> None:
    reply = f"PROCEDURE\nOutput: do a\nInput: x\n1. A.\n2. B.\n\nPROCEDURE\n{block}"
    with pytest.raises(UnreadableReply, match=f"the procedure 'do b' .*{reason}") as problem:
        found(reply)
    assert problem.value.update
    assert [one["output"] for one in problem.value.update["written"][0]["procedures"]] == ["do a"]


@pytest.mark.parametrize("reply", ["There is nothing to do.", "1. Run `a`.\n2. Run `b`."])
def test_a_reply_without_blocks(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="neither a block PROCEDURE nor a block REJECTED"):
        found(reply)


def parts(text: str, size: int, overlap: int) -> list[Part]:
    return parts_of(text, ExtractContext(max_characters=size, overlap=overlap))


def test_parts_end_before_headings_and_overlap() -> None:
    assert [part["text"] for part in parts("# A\nb", 1000, 100)] == ["# A\nb"]
    text = "".join(
        f"# Part {n}\n\n" + "".join(f"## Task {n}.{m}\n{'word ' * 50}\n\n" for m in range(4))
        for n in range(4)
    )
    split = parts(text, 1500, 300)
    assert text.startswith(split[0]["text"])
    assert text.endswith(split[-1]["text"])
    assert all(len(part["text"]) <= 1500 for part in split)
    for before, after in pairwise(split):
        heading = after["text"].lstrip().splitlines()[0]
        assert heading.startswith("#")
        assert heading in before["text"]
    assert split[1]["place"].startswith("Part ")


def guide(number: int, code: str = "x = 1\n\n# no heading\n") -> str:
    prose = "Some words. " * 8
    return f"## Task {number}\n\n{prose}\n\n```sh\n{code}```\n\nMore of {number}: {prose}\n\n"


@pytest.mark.parametrize("overlap", [0, 100, 500])
def test_parts_begin_with_a_heading_rather_than_at_a_fence(overlap: int) -> None:
    text = "".join(map(guide, range(20)))
    split = [part["text"] for part in parts(text, 1000, overlap)]
    assert "".join(split) == text or overlap
    assert [part.lstrip()[:7] for part in split] == ["## Task"] * len(split)
    assert ("".join(split).count("## Task") > 20) == (overlap == 500), "whole sections overlap"


def test_a_long_section_is_split_at_blank_lines_outside_of_the_code_that_fits() -> None:
    text = (
        "# Long\n\n"
        + "Words.\n\n" * 70
        + "1. Run:\n   ```sh\n"
        + "   x\n\n" * 120
        + "   ```\n\nEnd.\n"
    )
    for size, overlap in ((1000, 0), (1000, 400), (1100, 300)):
        split = [part["text"] for part in parts(text, size, overlap)]
        assert [part.count("```") % 2 for part in split] == [0] * len(split)
        assert all(len(part) <= size for part in split)
        assert (text.startswith(split[0]), text.endswith(split[-1])) == (True, True)
    script = "```sh\n" + "echo 1\n" * 300 + "```\n"
    assert "".join(part["text"] for part in parts(script, 1000, 0)) == script
    assert parts(script, 1000, 0)[1]["text"].lstrip().startswith("echo 1\n"), "it does not fit"


def test_nothing_of_a_document_without_headings_is_lost() -> None:
    assert [len(part["text"]) for part in parts("x" * 3500, 1000, 0)] == [1000, 1000, 1000, 500]
    text = "Words.\n\n" * 110 + "```\n" + "x = 1\n\n" * 40 + "```\n\n" + "More words.\n\n" * 80
    assert "".join(part["text"] for part in parts(text, 1100, 0)) == text


@pytest.mark.parametrize(
    ("heading", "place"),
    [
        ("How to evaluate (Python only)", "a.mdx#how-to-evaluate-python-only"),
        ("Use `create_feedback()` / [more](x.md)", "a.mdx#use-create_feedback--more"),
        ("Set up {#own-anchor}", "a.mdx#own-anchor"),
        ("\u5b89\u88c5", "a.mdx#\u5b89\u88c5"),
        ("", "a.mdx"),
    ],
)
def test_the_place_of_a_heading(heading: str, place: str) -> None:
    assert place_of("a.mdx", heading) == place


@pytest.mark.parametrize(
    ("said", "heading"),
    [
        ("## Add `stores`", "Add `stores`"),
        ("add stores", "Add `stores`"),
        ("Guide > Add stores", "Add `stores`"),
        ("Install", "1. Install"),
        ("Something else", ""),
        ("", ""),
    ],
)
def test_a_heading_as_a_model_copies_it(said: str, heading: str) -> None:
    assert find_heading(said, ["Add `stores`", "1. Install"]) == heading
