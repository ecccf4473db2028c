"""Look up the names in the steps' code without a model; unknown names may be made up."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import StepcraftError
from stepcraft.evidence import Evidence
from stepcraft.llm.limits import limits_of
from stepcraft.llm.resources import Resources
from stepcraft.nodes.begin import store_of_run
from stepcraft.progress import counted, emit
from stepcraft.schema import described
from stepcraft.text.names import mentions, names_in

_SHOWN = 5
"""The maximum number of places listed for a name."""
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


def check_names(state: Any, resources: Resources[AagContext]) -> dict[str, Any]:
    """Return the names in the steps, in order, with the places that contain them."""
    if not resources.settings(state).names:
        return {}
    names = dict(islice(names_in(state["steps"]).items(), _MOST_NAMES))
    places = {name: _places_at_hand(name, state) for name in names}
    missing = [name for name, at_hand in places.items() if not at_hand]
    places |= _places_in_memory(missing, state, resources)
    checked = [
        CheckedName(
            name=name, step=step, found_in=places[name][:_SHOWN], verified=bool(places[name])
        )
        for name, step in names.items()
    ]
    unknown = sum(not each["verified"] for each in checked)
    if checked:
        outcome = f"{unknown} unknown" if unknown else "all known"
        emit(
            resources.graph,
            "check_names",
            f"Looked up {counted(len(checked), 'name')} in the steps: {outcome}.",
        )
    return {"names": checked}


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
) -> dict[str, list[str]]:
    """Search the memory for each name by keyword until the run's deadline."""
    settings = resources.settings(state)
    limits = limits_of(state, settings)
    places: dict[str, list[str]] = {name: [] for name in names}
    if not names:
        return places
    with suppress(StepcraftError):  # the searches have already reported any problem with the memory
        memory = resources.target.memory(settings, store_of_run())
        for name in names:
            if limits.seconds_left() == 0:
                break
            hits = [hit.procedure for hit in memory.search(name, _SHOWN, alpha=0)]
            places[name] = [each.id for each in hits if mentions(each.text(), name)]
    return places
