"""Split the draft into the parts that are looked up and changed as one (RAT §3.2)."""

import re
from collections.abc import Sequence
from typing import Any

from stepcraft.nodes.state import Part
from stepcraft.text.citations import without_marks
from stepcraft.text.markdown import lines
from stepcraft.text.thoughts import split_thoughts

BLOCK = 250
"""Characters after which a block ends at the next list item, heading or blank line."""
LONGEST_QUERY = 1_500
"""Characters of a part that are searched for."""

_BEGINS = re.compile(r"\s{0,3}(?:\d{1,3}[.)]|[-*+]|#{1,6})\s")


def split_blocks(text: str) -> list[str]:
    """Split a text at blank lines, list items and headings, never inside a fence."""
    blocks, block = list[str](), ""
    for line, is_code in lines(text):
        begins = not is_code and (not line.strip() or _BEGINS.match(line))
        if begins and len(block) > BLOCK:
            blocks.append(block)
            block = ""
        block += line
    return [*blocks, block] if block.strip() or not blocks else [*blocks[:-1], blocks[-1] + block]


def as_parts(texts: Sequence[str], *, model_queries: bool) -> list[Part]:
    """Return texts as parts, each its own query unless the model writes the queries."""
    return [Part(text=text, query="" if model_queries else part_query(text)) for text in texts]


def part_query(text: str) -> str:
    """Return what a part is looked up by: its words without marks of citations."""
    return without_marks(text).strip()[:LONGEST_QUERY]


def split_into_thoughts(state: Any) -> dict[str, Any]:
    """Return the thoughts of the draft as its parts."""
    texts = split_thoughts(state["draft"])
    return {"parts": as_parts(texts, model_queries=state["model_queries"])}


def split_into_blocks(state: Any) -> dict[str, Any]:
    """Return the blocks of the draft as its parts."""
    texts = split_blocks(state["draft"])
    return {"parts": as_parts(texts, model_queries=state["model_queries"])}


def split_into_steps(state: Any) -> dict[str, Any]:
    """Return the drafted steps as the parts."""
    return {"parts": as_parts(state["steps"], model_queries=state["model_queries"])}
