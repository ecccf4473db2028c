"""The report of a run of AAG: the steps, what was asked on the way, and what the critic wanted."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepcraft.evidence import Evidence
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.critic import Critique
from stepcraft.report._html import NOTHING, Html, element, joined, listed, phrase, prose, section
from stepcraft.report._parts import badge, counted, passage
from stepcraft.text.sections import NOT_SAID

TITLE = "Analogy-augmented generation"

_BECAME = {
    "content": ("nothing to change", "same"),
    "open": ("not applied", "skipped"),
    "unverified": ("applied, not looked at again", "changed"),
    "verified": ("applied and looked at again", "changed"),
    "skipped": ("could not be applied", "skipped"),
}


def facts(result: Mapping[str, Any]) -> list[str]:
    """The run in a few numbers."""
    edits = sum(len(critique["edits"]) for critique in result["critiques"])
    return [
        counted(len(result["steps"]), "step"),
        counted(len(result["questions"]), "question"),
        counted(edits, "edit"),
        counted(len(result["evidence"]), "procedure"),
    ]


def sections(given: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str, Html]]:
    """Each with its name and what the navigation calls it."""
    return [
        ("steps", "Steps", _steps(given, result)),
        ("questions", "Questions", _questions(result["questions"], result["evidence"])),
        ("critiques", "Critiques", _critiques(result["critiques"])),
        ("procedures", "Procedures", _procedures(result["evidence"])),
    ]


def _steps(given: Mapping[str, Any], result: Mapping[str, Any]) -> Html:
    steps = listed(map(prose, result["steps"]), "ol", class_="steps")
    return section("steps", "Steps", _resources(given.get("resources") or ""), steps)


def _resources(resources: str | Sequence[str]) -> Html:
    named = resources if isinstance(resources, str) else ", ".join(resources)
    if not named.strip():
        return NOTHING
    return element("p", element("b", "Resources"), " ", phrase(named), class_="note")


def _questions(questions: Sequence[Answered], evidence: Sequence[Evidence]) -> Html:
    titles = {found["id"]: (number, found["title"]) for number, found in enumerate(evidence, 1)}
    shown = listed((_question(asked, titles) for asked in questions), "ol", class_="cards")
    return section("questions", "Questions and answers", shown if questions else "Nothing was asked.")


def _question(asked: Answered, titles: Mapping[str, tuple[int, str]]) -> Html:
    told = asked["answer"] not in {"", NOT_SAID}
    answer = prose(asked["answer"]) if told else element("p", "No answer was found.", class_="note")
    known = [_named(*titles[name]) for name in asked["evidence"] if name in titles]
    return element("article", phrase(asked["question"], "h3"), answer, listed(known, class_="passages"))


def _named(number: int, title: str) -> Html:
    return element("a", title.strip() or "Untitled", href=f"#procedure-{number}", dir="auto")


def _critiques(critiques: Sequence[Critique]) -> Html:
    shown = listed(
        (_critique(number, said) for number, said in enumerate(critiques, 1)), "ol", class_="cards"
    )
    return section("critiques", "Critiques and edits", shown if critiques else "The critic was not asked.")


def _critique(number: int, said: Critique) -> Html:
    heading = element("h3", f"Critique {number} ", badge(*_BECAME[said["status"]]))
    return element("article", heading, listed(map(prose, said["edits"])))


def _procedures(evidence: Sequence[Evidence]) -> Html:
    shown = [
        element("li", passage(found), id=f"procedure-{number}") for number, found in enumerate(evidence, 1)
    ]
    listing = element("ol", *shown, class_="sources") if shown else "Nothing was found."
    return section("procedures", "Procedures that were used", joined([listing]))
