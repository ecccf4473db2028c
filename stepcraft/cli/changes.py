"""Shows on a terminal what RAT changed, thought by thought, and on which evidence."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from stepcraft.evidence import Evidence
from stepcraft.nodes.rat.accept import Revision
from stepcraft.text.clean import clean
from stepcraft.text.diff import Piece, shortened, word_diff

_STYLES = {"same": "", "removed": "red strike", "added": "green"}
_MARKS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
_THOUGHT = 160
"""So many characters of a thought that stays as it is are shown."""


def show_changes(result: Mapping[str, Any], console: Console) -> None:
    """Each revision with its query, its word diff and its sources; without colours the changes are marked."""
    revisions: list[Revision] = result["revisions"]
    for revision in revisions:
        for line in _shown(revision, len(revisions), coloured=_has_colours(console)):
            console.print(line, soft_wrap=True)
        console.print()


def _has_colours(console: Console) -> bool:
    return console.color_system is not None and not console.no_color


def _shown(revision: Revision, count: int, *, coloured: bool) -> list[Text]:
    lines = [Text(f"Thought {revision['step']} of {count}: {_outcome(revision)}", style="bold")]
    if revision["query"]:
        lines.append(Text(f"looked up: {_in_one_line(revision['query'])}", style="dim"))
    lines.append(_changed(revision, coloured=coloured))
    return [*lines, *map(_source, revision["evidence"])]


def _outcome(revision: Revision) -> str:
    """Changed, not changed, or skipped and why."""
    if revision["skipped"]:
        return f"skipped, {_in_one_line(revision['skipped'])}"
    return "changed" if revision["changed"] else "not changed"


def _in_one_line(text: str) -> str:
    """The text without control characters and line breaks."""
    return " ".join(clean(text).split())


def _changed(revision: Revision, *, coloured: bool) -> Text:
    if not revision["changed"]:
        thought = _in_one_line(revision["thought"])
        return Text(thought if len(thought) <= _THOUGHT else f"{thought[:_THOUGHT]}…")
    pieces = shortened(word_diff(clean(revision["before"]).strip(), clean(revision["after"]).strip()))
    return _coloured(pieces) if coloured else _marked(pieces)


def _coloured(pieces: Sequence[Piece]) -> Text:
    return Text.assemble(*((text, _STYLES[kind]) for kind, text in pieces))


def _marked(pieces: Sequence[Piece]) -> Text:
    return Text("".join(f"{_MARKS[kind][0]}{text}{_MARKS[kind][1]}" for kind, text in pieces))


def _source(passage: Evidence) -> Text:
    source = f"  ({_in_one_line(passage['source'])})" if passage["source"] else ""
    title = _in_one_line(passage["title"]) or "untitled"
    return Text(f"  {passage['score']:.2f}  {title}{source}", style="dim")
