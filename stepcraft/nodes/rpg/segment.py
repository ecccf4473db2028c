"""One segment of an outline, which is written in parallel with the others, and how they are put together."""

from collections.abc import Mapping
from typing import Annotated, Any

from langgraph.runtime import get_runtime
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage, add_usage, add_warnings
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


def publish_outlined(made: dict[str, Any]) -> dict[str, Any]:
    """Stream a segment of the outline from the graph itself; what a subgraph streams, few callers ask for."""
    for one in made["outlined"]:
        for segment in one["segments"]:
            get_runtime().stream_writer({"segment": segment})
    return made


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
