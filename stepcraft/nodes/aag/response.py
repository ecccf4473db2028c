"""What a person answers to a review of the steps, in the forms that programs, inboxes and people in Studio use."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.nodes.aag.steps import steps_update
from stepcraft.nodes.begin import MAX_CHARACTERS, checked_text
from stepcraft.schema import described
from stepcraft.secrets import excerpt
from stepcraft.text.lists import read_steps

FORMS = '{"type": "accept"}, {"type": "edit", "steps": ["…"]} or {"type": "reject", "reason": "…"}'
"""The responses, for messages."""

_LONGEST_NAME = 200
_ACCEPTS = frozenset({"accept", "accepted", "approve", "approved", "yes", "ok", "okay"})
_REJECTS = frozenset({"reject", "rejected", "no"})
_KINDS: dict[str, Literal["accept", "edit", "reject"]] = {
    "accept": "accept",
    "approve": "accept",
    "edit": "edit",
    "reject": "reject",
    "response": "reject",
    "respond": "reject",
}
"""What the types of responses mean, those of LangChain's inboxes included."""


@described
class Review(TypedDict):
    """What a person said of the steps."""

    type: Literal["accept", "edit", "reject"]
    """`accept` and `edit` approve the steps; a `reject` is applied as an edit, and the steps are reviewed again."""
    steps: list[str]
    """The steps that were approved or rejected; those of an `edit` are the person's."""
    reason: str
    """Why they were rejected, "" otherwise."""
    by: str
    """Who said it: the authenticated user of a server, else the name that came with the response; "" if unknown."""
    at: str
    """When, as ISO 8601 in UTC."""
    force: bool
    """Whether they are remembered although something speaks against it."""


class Response(NamedTuple):
    """A response as it was read."""

    type: Literal["accept", "edit", "reject"]
    steps: list[str]
    """The steps of an edit; empty otherwise."""
    reason: str
    by: str
    force: bool


def read_response(given: object) -> Response:
    """Read a response.

    Beside the forms of a dict, "accept", True, a list of steps (an edit) and any other text (the reason of a rejection)
    are read, also as JSON in a text; so are the responses of LangChain's inboxes: `{"decisions": [{"type": "approve"}]}`
    and `[{"type": "accept", "args": null}]`.

    Raises:
        BadInput: It is none of them, or lacks its steps or its reason.
    """
    if isinstance(given, str):
        given = _typed(given)
    if given is True:
        given = {"type": "accept"}
    if isinstance(given, Mapping) and isinstance(given.get("decisions"), list):
        given = given["decisions"]
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], Mapping):
        given = given[0]
    if isinstance(given, list):
        given = {"type": "edit", "steps": given}
    if not isinstance(given, Mapping):
        raise BadInput(f"the response {excerpt(given)} is not understood; answer {FORMS}")
    said = cast("Mapping[str, Any]", given)
    kind = _KINDS.get(str(said.get("type")).strip().lower())
    if kind is None:
        raise BadInput(f"the response has the type {excerpt(said.get('type'))}; answer {FORMS}")
    by, force = checked_text("by", said.get("by") or "")[:_LONGEST_NAME], said.get("force", False)
    if not isinstance(force, bool):
        raise BadInput(f"force={excerpt(force)} cannot be used: it should be true or false")
    steps = _steps(said) if kind == "edit" else []
    return Response(kind, steps, _reason(said) if kind == "reject" else "", by, force)


def approval(state: Mapping[str, Any]) -> Review | None:
    """The review that approved the steps as they are now; None where nobody did.

    It may be one that `update_state` wrote, with no more than its type and the steps.
    """
    reviews = state.get("reviews") or [None]
    last = cast("object", reviews[-1])
    if not isinstance(last, Mapping):
        return None
    said = cast("Mapping[str, Any]", last)
    kind = said.get("type")
    if kind not in ("accept", "edit") or said.get("steps") != state["steps"]:
        return None
    by, at = str(said.get("by") or ""), str(said.get("at") or "")
    return Review(type=kind, steps=state["steps"], reason="", by=by, at=at, force=said.get("force") is True)


def _typed(text: str) -> object:
    """What a person typed: JSON, a word for yes, or the reason of a rejection."""
    said = checked_text("response", text)
    word = said.strip("\"'.! ").lower()
    if word in _ACCEPTS:
        return {"type": "accept"}
    if word in _REJECTS:
        return {"type": "reject"}
    if said[:1] in ("{", "["):
        try:
            return cast("object", json.loads(said))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"the response begins as JSON and is none: {error}; answer {FORMS}") from error
    return {"type": "reject", "reason": said}


def _steps(said: Mapping[str, Any]) -> list[str]:
    """The steps of an edit. Inboxes send the arguments of the action that they were shown."""
    held: Any = said
    for key in ("edited_action", "args", "args"):
        if isinstance(held, Mapping) and "steps" not in held:
            held = cast("Mapping[str, Any]", held).get(key, held)
    steps: Any = cast("Mapping[str, Any]", held).get("steps") if isinstance(held, Mapping) else None
    if isinstance(steps, str):
        steps = read_steps(checked_text("steps", steps))
    if not isinstance(steps, list) or not steps:
        raise BadInput('an edit needs all steps as they are to be: {"type": "edit", "steps": ["…", "…"]}')
    texts = [
        checked_text(f"step {number}", step) for number, step in enumerate(cast("list[object]", steps), 1)
    ]
    if "" in texts:
        raise BadInput(f"step {texts.index('') + 1} of the edit is empty; give it a text, or leave it out")
    if (size := sum(map(len, texts))) > MAX_CHARACTERS:
        raise BadInput(
            f"the steps of the edit have {size:,} characters; at most {MAX_CHARACTERS:,} are taken"
        )
    shown: list[str] = steps_update(texts)["steps"]
    if not shown:
        raise BadInput("the steps of the edit are empty; give them a text")
    return shown


def _reason(said: Mapping[str, Any]) -> str:
    """The reason of a rejection; it is applied as an edit, so there has to be one."""
    named = (said.get(key) for key in ("reason", "message", "args"))
    reason = checked_text("reason", next((one for one in named if one), ""))
    if not reason:
        raise BadInput(
            'a rejection needs a reason, which is applied as an edit: {"type": "reject", "reason": "…"}'
        )
    return reason
