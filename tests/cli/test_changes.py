"""`stepcraft rat --show-changes`: the outcome of each thought, with colours and without."""

from __future__ import annotations

import io
from typing import Any

from langchain_core.documents import Document
from rich.console import Console

from stepcraft import RatContext, build_rat
from stepcraft.cli.result import show_revisions
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, thinker

RED_STRUCK, GREEN, BOLD = "\x1b[9;31m", "\x1b[32m", "\x1b[1m"


def ran(changes: str = ".x.", shelf: Shelf | None = None, **context: Any) -> dict[str, Any]:
    graph = build_rat(model=ScriptedModel(thinker(changes)), retriever=shelf or Shelf())
    result: dict[str, Any] = graph.invoke(QUESTION, context=RatContext(**context))
    return result


def shown(result: Any, **console: Any) -> str:
    out = io.StringIO()
    show_revisions(result, Console(file=out, width=40, **console))
    return out.getvalue()


def coloured(result: Any) -> str:
    return shown(result, force_terminal=True, color_system="standard", no_color=False, _environ={})


def revision(**parts: Any) -> Any:
    """Return a result with one revision."""
    usual = {"step": 1, "thought": "x", "query": "q", "evidence": [], "before": "x", "after": "x"}
    given = {**usual, **parts}
    return {"revisions": [{"skipped": "", "changed": given["before"] != given["after"], **given}]}


def test_every_revision_with_its_query_its_change_and_its_sources() -> None:
    first, second, third = shown(ran()).strip().split("\n\nThought ")
    assert first.splitlines() == [
        "Thought 1 of 3: not changed",
        "looked up: query for The bridge was built in 1566. after 29",
        "The bridge was built in 1566.",
        "  1.00  On query for The bridge was built in 1566.  (shelf/0.md:1)",
        "  0.90  On query for The bridge was built in 1566.  (shelf/1.md:1)",
    ]
    assert second.startswith("2 of 3: changed\nlooked up: query for Its builder was Haldruvin.")
    assert "Its builder was Haldruvin.{+ (checked against" in second
    assert third.startswith("3 of 3: not changed\n")


def test_a_skipped_thought_says_why() -> None:
    text = shown(ran(max_retrievals=2, window=1))
    reason = "only the first 2 thoughts were checked: max_retrievals=2 is reached"
    assert f"Thought 3 of 3: skipped, {reason}\nIt was rebuilt in 2004.\n" in text


def test_what_was_removed_is_red_and_struck_what_was_added_green() -> None:
    text = coloured(revision(before="built in 1566.", after="built in 1567."))
    assert f"built in {RED_STRUCK}1566\x1b[0m{GREEN}1567\x1b[0m." in text
    assert "[-" not in text


def test_without_colours_the_changes_are_marked() -> None:
    result = revision(before="built in 1566.", after="built in 1567.")
    for text in (shown(result), shown(result, force_terminal=True, color_system="standard", no_color=True)):
        assert "built in [-1566-]{+1567+}." in text
    assert "\x1b" not in shown(result)


def test_long_stretches_that_stay_the_same_are_shortened() -> None:
    before = f"{'Some words. ' * 100}It was built in 1566. {'Other words. ' * 100}"
    text = shown(revision(before=before, after=before.replace("1566", "1567")))
    assert "It was built in [-1566-]{+1567+}. Other words. " in text
    assert text.count("…") == 2
    assert len(text) < 400
    assert len(shown(revision(thought="word " * 1_000))) < 300


def test_text_from_outside_is_shown_as_it_is() -> None:
    hostile = "[red]not red[/red] [/] [link=http://x]\x1b[31m\x07\u202e"
    shelf = Shelf(
        says=lambda _: [Document(hostile, metadata={"title": f"T {hostile}", "source": f"S {hostile}"})]
    )
    parts = {"query": hostile, "before": hostile, "after": f"{hostile} and", "thought": hostile}
    told = [ran(shelf=shelf), revision(**parts), revision(skipped=hostile), revision(thought=hostile)]
    for result in told:
        text = shown(result)
        assert "[red]not red[/red] [/] [link=http://x]" in text
        assert not set("\x1b\x07\u202e") & set(text)
        assert "\x1b[31m" not in coloured(result)


def test_odd_results() -> None:
    assert shown({"revisions": []}) == ""
    nameless = {"id": "1", "title": "", "text": "t", "source": "", "score": 0.0}
    lines = shown(revision(query="", evidence=[nameless])).splitlines()
    assert lines == ["Thought 1 of 1: not changed", "x", "  0.00  untitled", ""]
