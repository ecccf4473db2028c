"""Stream a run's progress messages, for `stream_mode="custom"`.

Events are plain JSON: {"type": "progress", "graph", "node", "text"}, where `text` is a
human-readable sentence; {"type": "draft", "graph", "draft"}, the answer before it is checked; and
at the end {"type": "answer", "graph", "answer"}, replacing the draft.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.config import get_stream_writer


def emit(graph: str, node: str, text: str) -> None:
    """Stream a sentence about what a node is about to do or has done."""
    _write({"type": "progress", "graph": graph, "node": node, "text": text[:500]})


def emit_draft(graph: str, draft: str) -> None:
    """Stream a draft that is about to be checked."""
    _write({"type": "draft", "graph": graph, "draft": draft})


def emit_answer(graph: str, answer: str) -> None:
    """Stream the final answer of a run."""
    _write({"type": "answer", "graph": graph, "answer": answer})


def _write(event: Mapping[str, Any]) -> None:
    try:
        write = get_stream_writer()
    except RuntimeError:  # outside of a run, for example when a node's function is called directly
        return
    write(event)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 step", "7 steps"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def beginning(text: str, length: int = 200) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "\u2026"


def quoted(text: str) -> str:
    """Return the beginning of a text as a single line in quotation marks."""
    return f"\u201c{beginning(text, 120)}\u201d"


def joined(items: Sequence[str], most: int = 30) -> str:
    """Join the first items with semicolons, followed by the number of remaining items."""
    more = [f"and {len(items) - most:,} more"] if len(items) > most else []
    return "; ".join([*items[:most], *more])
