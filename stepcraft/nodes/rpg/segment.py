"""One segment of an outline, which is written in parallel with the others, and how they are put together."""

from collections.abc import Mapping
from typing import Annotated, Any

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage, add_usage, add_warnings
from stepcraft.progress import ProgressData, Said, counted, publish_segment, quoted
from stepcraft.segments import Outlined, Segment, Selected, used
from stepcraft.text.citations import renumbered
from stepcraft.text.sections import NO_INFO


class SegmentState(Budgeted):
    """The state of one segment of an outline."""

    question: str
    answer_style: str
    plan: str
    place: int
    """Its index in the outline."""
    topics: list[str]
    """The topics of all segments of the outline."""
    signal: str
    plans: list[str]
    evidence: list[Evidence]
    selected: list[Selected]
    segments: list[Segment]
    outlined: list[Outlined]


class SegmentOutput(TypedDict):
    """What a segment of an outline returns."""

    outlined: list[Outlined]
    warnings: Annotated[list[str], add_warnings]
    usage: Annotated[Usage, add_usage]


def finds_nothing(state: Mapping[str, Any]) -> bool:
    """Whether a plan has no evidence, so that no segment is written for it."""
    context = RpgContext.current(state)
    return context.retrieve and context.grounding == "open" and bool(state["plan"]) and not state["selected"]


def note(state: SegmentState) -> dict[str, Any]:
    """The segment with its place."""
    segments = state["segments"]
    topic = (state["plans"] or [state["plan"]])[-1]
    return {
        "outlined": [Outlined(place=state["place"], plan=topic, segments=segments)],
        "warnings": [] if segments or not finds_nothing(state) else [f"nothing was found on: {topic}"],
    }


def describe_start(state: Mapping[str, Any]) -> Said:
    """The topic of a segment."""
    return Said(f"Writing on {quoted(state['plan'])}.", {"topic": state["plan"]})


def describe_outlined(update: Mapping[str, Any]) -> Said:
    """Whether a segment was written on its topic."""
    made: Outlined = update["outlined"][-1]
    data: ProgressData = {"topic": made["plan"]}
    if warnings := update.get("warnings"):
        data["warnings"] = warnings
    if made["segments"]:
        data["sentences"] = sum(len(one["sentences"]) for one in made["segments"])
        return Said(f"Wrote on {quoted(made['plan'])}.", data)
    if warnings:
        data["reason"] = warnings[0]
    return Said(f"Nothing was written on {quoted(made['plan'])}.", data, skipped=True)


def publish_outlined(graph: str, update: Mapping[str, list[Outlined]]) -> None:
    """Stream a segment of the outline from the graph itself; what a subgraph streams, few callers ask for."""
    for made in update["outlined"]:
        for segment in made["segments"]:
            publish_segment(graph, segment)


def gather(state: Mapping[str, Any]) -> dict[str, Any]:
    """Put the segments in the order of the outline; their marks are numbered through."""
    made: list[Outlined] = sorted(state["outlined"], key=lambda one: one["place"])
    segments: list[Segment] = []
    for segment in (segment for one in made for segment in one["segments"]):
        known = used([*segments, segment])
        numbers = {place: known.index(id_) + 1 for place, id_ in enumerate(segment["evidence"], 1)}
        marked = RpgContext.current(state).marks
        segments.append(
            {**segment, "text": renumbered(segment["text"], numbers) if marked else segment["text"]}
        )
    return {
        "segments": segments,
        "plans": [one["plan"] for one in made],
        "missing": [one["plan"] for one in made if not one["segments"]],
        "outlined": Overwrite([]),
        "outline": [],
        "plan": "",
        "signal": "" if segments else NO_INFO,
    }


def describe(_state: Mapping[str, Any], update: Mapping[str, Any]) -> Said:
    """How many segments there are."""
    segments = len(update["segments"])
    if not segments:
        return Said("Nothing was found on any topic.", {"segments": 0})
    return Said(f"Put {counted(segments, 'segment')} together.", {"segments": segments})
