"""Look up the names in the steps' code without a model; unknown names may be made up."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NotRequired

from langgraph.errors import GraphBubbleUp
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.evidence import Evidence
from stepcraft.llm.limits import limits_of
from stepcraft.llm.resources import Resources
from stepcraft.memory.outcomes import has_expired
from stepcraft.nodes.begin import store_of_run
from stepcraft.progress import counted, emit, joined, quoted
from stepcraft.schema import described
from stepcraft.secrets import masked_line
from stepcraft.text.names import mentions, names_in

_SHOWN = 5
"""The maximum number of places listed for a name."""
_HITS = 50
"""The number of procedures that a search returns. Few of them may contain the name, as an index
splits `create_agent` into two words.
"""
_MOST_NAMES = 200


@described
class CheckedName(TypedDict):
    """A name that occurs in the code of the steps."""

    name: str
    """The name."""
    step: int
    """The number of the first step that contains it."""
    found_in: list[str]
    """"goal", "resources", or the ids of procedures and passages that contain it (at most five)."""
    verified: bool
    """Whether it was found anywhere."""
    unsearched: NotRequired[bool]
    """Whether the memory was not searched for it, because a search failed or time ran out."""


def check_names(state: Any, resources: Resources[AagContext]) -> dict[str, Any]:
    """Return the names in the steps, in order, with the places that contain them."""
    if not resources.settings(state).names:
        return {}
    every = names_in(state["steps"])
    names = dict(islice(every.items(), _MOST_NAMES))
    places = {name: _places_at_hand(name, state) for name in names}
    missing = [name for name, at_hand in places.items() if not at_hand]
    searched, problem = _places_in_memory(missing, state, resources)
    places |= searched
    checked = [
        CheckedName(
            name=name, step=step, found_in=places[name][:_SHOWN], verified=bool(places[name])
        )
        for name, step in names.items()
    ]
    left = [name for name in missing if name not in searched]
    for each in checked:
        if each["name"] in left:
            each["unsearched"] = True
    warnings: list[str] = []
    if left:
        shown = joined([*map(quoted, left)], _SHOWN)
        warnings.append(f"check_names: names that were not looked up: {shown}, because {problem}")
    if len(every) > len(names):
        warnings.append(
            f"check_names: only the first {len(names)} of {len(every):,} names were looked up"
        )
    looked_up = [each for each in checked if "unsearched" not in each]
    unknown = sum(not each["verified"] for each in looked_up)
    if looked_up:
        outcome = f"{unknown} unknown" if unknown else "all known"
        emit(
            resources.graph,
            "check_names",
            f"Looked up {counted(len(looked_up), 'name')} in the steps: {outcome}.",
        )
    return {"names": checked, "warnings": warnings}


def _places_at_hand(name: str, state: Mapping[str, Any]) -> list[str]:
    evidence: Sequence[Evidence] = state["evidence"]
    texts = {
        "goal": state["task"],
        "resources": state["task_resources"],
        **{passage["id"]: f"{passage['title']}\n{passage['text']}" for passage in evidence},
    }
    return [place for place, text in texts.items() if mentions(text, name)]


def _places_in_memory(
    names: Sequence[str], state: Any, resources: Resources[AagContext]
) -> tuple[dict[str, list[str]], str]:
    """Search the memory for each name by keyword, until a search fails or the deadline passes.

    Return the ids of the procedures that contain each name, and why any names are missing.
    """
    settings = resources.settings(state)
    limits = limits_of(state, settings)
    options = {"where": settings.where} if settings.where else {}
    places: dict[str, list[str]] = {}
    if not names:
        return places, ""
    try:
        memory = resources.target.memory(settings, store_of_run())
        for name in names:
            if limits.seconds_left() == 0:
                return places, "the deadline has passed"
            found = [hit.procedure for hit in memory.search(name, _HITS, alpha=0, **options)]
            valid = [each for each in found if not has_expired(each)]
            places[name] = [each.id for each in valid if mentions(each.text(), name)]
    except GraphBubbleUp:
        raise
    except Exception as error:
        return places, f"a search failed: {masked_line(error) or type(error).__name__}"
    return places, ""
