"""The report of a run of RPG: what each sentence rests on, and what was planned, chosen and written in turn."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepcraft.evidence import Evidence
from stepcraft.report._grounds import Ground, grounds, places, stated
from stepcraft.report._html import NOTHING, Html, element, joined, listed, phrase, prose, section
from stepcraft.report._parts import badge, counted, passage
from stepcraft.report._sentences import answer
from stepcraft.segments import Segment
from stepcraft.text.clean import clean
from stepcraft.text.diff import Piece, shortened

TITLE = "Retrieve, plan, generate"


def facts(result: Mapping[str, Any]) -> list[str]:
    """The run in a few numbers."""
    segments: list[Segment] = result["segments"]
    bare = sum(segment["unsupported"] for segment in segments)
    return [
        counted(len(segments), "segment"),
        *([f"{bare:,} without evidence"] if bare else []),
        counted(sum(len(segment["sentences"]) for segment in segments), "chosen sentence"),
        counted(len(result["evidence"]), "passage"),
    ]


def sections(given: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str, Html]]:
    """Each with its name and what the navigation calls it."""
    told = stated(result, inline=given.get("citations") == "inline")
    return [
        ("answer", "Answer", section("answer", "Answer", answer(told))),
        ("segments", "Segments", _segments(result)),
        ("passages", "Passages", _passages(result["evidence"])),
    ]


def _segments(result: Mapping[str, Any]) -> Html:
    numbered = enumerate(result["segments"], 1)
    shown = listed(
        (_segment(number, one, result["evidence"]) for number, one in numbered), "ol", class_="cards"
    )
    why = "Nothing was planned: the question was answered at once."
    return section("segments", "Plan by plan", shown if result["segments"] else why)


def _segment(number: int, segment: Segment, evidence: Sequence[Evidence]) -> Html:
    name = f"segment-{number}"
    plan = phrase(segment["plan"]) if segment["plan"].strip() else f"Segment {number}"
    bare = badge("without evidence", "skipped") if segment["unsupported"] else NOTHING
    heading = element("h3", plan, " ", bare, id=name)
    used = listed(map(_chosen, grounds([segment], evidence)), "ul", class_="passages")
    return element("article", heading, prose(segment["text"]), used, aria_labelledby=name)


def _chosen(ground: Ground) -> Html:
    """What was chosen, marked in the passage where it stands; what is far from it is left out."""
    count = element("span", counted(len(ground.sentences), "sentence"), class_="score")
    title = element(
        "a",
        ground.passage["title"].strip() or "Untitled",
        href=f"#passage-{ground.number}",
        dir="auto",
    )
    text = clean(ground.passage["text"]).strip()
    found = places(text, [clean(sentence) for sentence in ground.sentences])
    if len(found) < len(ground.sentences):
        shown = listed((element("mark", phrase(sentence)) for sentence in ground.sentences), class_="prose")
    else:
        pieces = (
            part if kind == "same" else element("mark", part)
            for kind, part in shortened([*_pieces(text, found)], 160)
        )
        shown = element("div", *pieces, class_="prose", dir="auto")
    return joined([element("p", count, " of ", title), shown])


def _pieces(text: str, found: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    end = 0
    for start, stop in found:
        yield from [Piece("same", text[end:start])] if start > end else []
        yield Piece("added", text[start:stop])
        end = stop
    yield from [Piece("same", text[end:])] if text[end:] else []


def _passages(evidence: Sequence[Evidence]) -> Html:
    scored = any(found["score"] for found in evidence)  # passages that were given have no score
    shown = [
        element("li", passage(found, scored=scored), id=f"passage-{number}")
        for number, found in enumerate(evidence, 1)
    ]
    listing = element("ol", *shown, class_="sources") if shown else "Nothing was found."
    return section("passages", "Passages", joined([listing]))
