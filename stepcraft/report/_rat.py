"""The report of a run of RAT: what each thought was checked against, and what it was changed to."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepcraft.nodes.rat.accept import Revision
from stepcraft.report._html import NOTHING, Html, element, listed, phrase, prose, section
from stepcraft.report._parts import badge, changes, counted, passages, source_line

TITLE = "Retrieval-augmented thoughts"


def facts(result: Mapping[str, Any]) -> list[str]:
    """The run in a few numbers."""
    revisions: list[Revision] = result["revisions"]
    changed = sum(revision["changed"] for revision in revisions)
    skipped = sum(bool(revision["skipped"]) for revision in revisions)
    return [
        counted(len(revisions), "thought"),
        f"{changed:,} changed",
        *([f"{skipped:,} skipped"] if skipped else []),
        counted(len(result["evidence"]), "passage"),
    ]


def sections(_given: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str, Html]]:
    """Each with its name and what the navigation calls it."""
    return [
        ("answer", "Answer", _answer(result)),
        ("thoughts", "Thoughts", _thoughts(result["revisions"])),
        ("sources", "Sources", _sources(result)),
    ]


def _answer(result: Mapping[str, Any]) -> Html:
    answer = section("answer", "Answer", prose(result["answer"]))
    draft = section("draft", "Draft", prose(result["draft"]))
    return element("div", answer, draft, class_="columns")


def _thoughts(revisions: Sequence[Revision]) -> Html:
    shown = listed(map(_thought, revisions), "ol", class_="cards")
    return section("thoughts", "Thought by thought", shown if revisions else "No thought was checked.")


def _thought(revision: Revision) -> Html:
    name = f"thought-{revision['step']}"
    heading = element("h3", f"Thought {revision['step']} ", _outcome(revision), id=name)
    parts = [heading, _why(revision), _query(revision), _text(revision), passages(revision["evidence"])]
    return element("article", *parts, aria_labelledby=name)


def _outcome(revision: Revision) -> Html:
    if revision["skipped"]:
        return badge("skipped", "skipped")
    return badge("changed", "changed") if revision["changed"] else badge("not changed", "same")


def _why(revision: Revision) -> Html:
    return phrase(revision["skipped"], "p", class_="note") if revision["skipped"] else NOTHING


def _query(revision: Revision) -> Html:
    if not revision["query"]:
        return NOTHING
    return element("p", element("b", "Looked up"), " ", phrase(revision["query"]), class_="note")


def _text(revision: Revision) -> Html:
    if revision["changed"]:
        return changes(revision["before"], revision["after"])
    return prose(revision["thought"])


def _sources(result: Mapping[str, Any]) -> Html:
    found = listed(map(source_line, result["evidence"]), "ol", class_="sources")
    return section("sources", "Sources", found if result["evidence"] else "Nothing was found.")
