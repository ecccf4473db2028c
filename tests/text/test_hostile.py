"""Hostile text: everything that reads text takes linear time."""

import time
from collections.abc import Callable

import pytest

from stepcraft.text import citations, clean, lists, markdown, sections, sentences, thoughts

FUNCTIONS: dict[str, Callable[[str], object]] = {
    "clean": clean.clean,
    "normalised": clean.normalised,
    "terms": clean.terms,
    "without_markers": clean.without_markers,
    "unfenced": clean.unfenced,
    "is_refusal": clean.is_refusal,
    "read_steps": lists.read_steps,
    "read_bullets": lists.read_bullets,
    "read_lines": lists.read_lines,
    "sentences": sentences.sentences,
    "passage_sentences": sentences.passage_sentences,
    "section": lambda text: sections.section("text", text),
    "restored": sections.restored,
    "parse": lambda text: list(sections.parse(text)),
    "with_marks_of": lambda text: citations.with_marks_of(text, {1}),
    "marks": citations.marks,
    "split_thoughts": thoughts.split_thoughts,
    "placed_in": lambda text: thoughts.placed_in(text, [text[:100], text[100:]]),
    "lines": lambda text: list(markdown.lines(text)),
    "outside_code": lambda text: list(markdown.outside_code(text)),
}
UNITS = [
    " ", "\n", "\t", "\t\t\n", "\r\n", "#", "# a\n", "## a\n\n", "*", "**", "**a", "**a** ", "_", "__a", "-", "- ", "- a\n",
    "- a\n\nb\n", "---\n\n", "=", "~", "~~~\n", "`", "``", "`a", "```\n", "```sh\n", " ```", "[", "]", "[[", "[]][", "[[ - ",
    "[1", "[1,", "[1] ", "\u3010 1", "(", "1", "1.", "1. ", "1. a\n", "1. A. ", "1-", "Step 1 ", "STEP 1: a\n", "第", "一", "中",
    "它会运行。", "。", "\"", "'", "\u201c", '"Go. ', ".", ". ", "a. A", "Dr. ", ", e.g. by ", "sure ", "I'm sorry ", "let me know\n", "a\n",
    "a:\n\n", "<", "<text ", "<text>\n", "</ text ", '<text id="', "<text id='", "\u2039text ", "\u0301\u0316", "\u200b", "é", "x", "\\",
]  # fmt: skip


def seconds(function: Callable[[str], object], text: str) -> float:
    begun = time.thread_time()
    function(text)
    return time.thread_time() - begun


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_no_text_is_a_trap(function: Callable[[str], object]) -> None:
    for unit in UNITS:
        text = "- a\n\n" + unit * (200_000 // len(unit)) + "x"
        # Any of three tries will do: a machine that runs other things takes up to twice the time.
        assert any(seconds(function, text) < 0.5 for _ in range(3)), f"200 KB of {unit!r}"
