"""Split the draft into parts, each of which is looked up and changed as a unit (RAT §3.2)."""

import re
from collections.abc import Sequence
from typing import Any

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import BadInput
from stepcraft.llm.calls import Inline
from stepcraft.llm.resources import Resources
from stepcraft.nodes.state import Part
from stepcraft.progress import joined, quoted
from stepcraft.text.citations import marks, without_marks
from stepcraft.text.claims import claims
from stepcraft.text.lists import numbered, outside_steps, read_steps
from stepcraft.text.markdown import lines
from stepcraft.text.thoughts import split_thoughts

BLOCK = 250
"""The length after which a block ends at the next list item, heading or blank line."""
LONGEST_QUERY = 1_500
"""The maximum number of characters in a query."""

_QUOTED = 5
"""The maximum number of lines that a warning quotes."""

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


def as_parts(state: Any, texts: Sequence[str], *, by_statement: bool) -> list[Part]:
    """Return texts as parts with their queries.

    With `by_statement`, each statement becomes two queries: by itself, and preceded by the
    question. If the draft was written from passages, which the check sees too, the statement by
    itself is the only query, and a statement that cites a passage gets none. If the model writes
    the queries, the parts have none yet.

    Args:
        state: The state of the run.
        texts: The texts of the parts.
        by_statement: Whether each statement, rather than the whole part, is looked up.
    """

    def queries(text: str) -> list[str]:
        if state["model_queries"]:
            return []
        if not by_statement:
            return [part_query(text)]
        return claim_queries(text, state["task"], cites=bool(state["passages_seen"]))

    return [Part(text=text, queries=queries(text)) for text in texts]


def part_query(text: str) -> str:
    """Return the query for a part: its text without citation marks."""
    return without_marks(text).strip()[:LONGEST_QUERY]


def claim_queries(text: str, question: str, *, cites: bool) -> list[str]:
    """Return the queries for the statements in a part."""
    queries: list[str] = []
    for start, stop in claims(text):
        if not (cites and marks(text[start:stop], plain=False)):
            statement = part_query(text[start:stop])
            queries.append(statement)
            if not cites:
                queries.append(f"{question} {statement}"[:LONGEST_QUERY])
    return list(dict.fromkeys(queries)) or ([] if cites else [part_query(text)])


@Inline
def split_into_thoughts(state: Any, resources: Resources[RatContext]) -> dict[str, Any]:
    """Split the draft into thoughts, which become its parts.

    A draft that comes from a caller, another node or a person is only corrected, and each of its
    statements gets a verdict.
    """
    draft: str = state["first_draft"]
    update: dict[str, Any] = {}
    if draft != state.get("own_draft"):
        scope = resources.settings(state).scope or "correct"
        update = {"answer": draft, "passages_seen": 0, "scope": scope, "judges_statements": True}
    return {**update, **_parts({**state, **update}, split_thoughts(draft), by_statement=True)}


@Inline
def split_into_blocks(state: Any) -> dict[str, Any]:
    """Split the draft into blocks, which become its parts."""
    return _parts(state, split_blocks(state["first_draft"]), by_statement=True)


@Inline
def split_into_steps(state: Any) -> dict[str, Any]:
    """Split the draft into steps, which become its parts, each looked up as a whole.

    If a person has edited the steps in the state, those are used instead. If the graph did not
    write the draft, and it is not JSON, a warning quotes the lines that belong to no step.
    """
    draft, steps, warnings = state["first_draft"], state["steps"], list[str]()
    if draft == state.get("own_draft"):  # unlike the steps, which a person may have edited
        draft = numbered(steps)
    elif draft != numbered(steps):
        steps = read_steps(draft) or [draft]
        is_json = draft.lstrip().startswith(("[", "{"))
        warnings = [] if is_json else left_out("split", draft, steps)
    parts = _parts(state, steps, by_statement=False)
    return {"first_draft": draft, "steps": steps, **parts, "warnings": warnings}


def left_out(node: str, text: str, steps: Sequence[str]) -> list[str]:
    """Return a warning that quotes the lines of a text that belong to no step, if there are any."""
    lines = joined([*map(quoted, outside_steps(text, steps))], _QUOTED)
    return [f"{node}: text outside the list of steps was left out: {lines}"] if lines else []


def _parts(state: Any, texts: Sequence[str], *, by_statement: bool) -> dict[str, Any]:
    if not state["first_draft"].strip():
        raise BadInput(
            "there is no draft to split; a node that writes it must return it as `first_draft`"
        )
    parts = as_parts(state, texts, by_statement=by_statement)
    return {"parts": parts, "pending": [*range(1, len(parts) + 1)]}
