"""A person's decision on an action, in the format of LangChain's HumanInTheLoopMiddleware."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

from langchain.agents.middleware.human_in_the_loop import (
    ActionRequest,
    ApproveDecision,
    EditDecision,
    HITLRequest,
    RejectDecision,
    RespondDecision,
    ReviewConfig,
)
from langgraph.types import interrupt
from pydantic import Discriminator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.secrets import excerpt

T = TypeVar("T")

Decision: TypeAlias = ApproveDecision | EditDecision | RejectDecision


class _Response(TypedDict):
    """A LangChain HITLResponse with exactly one decision."""

    decisions: Annotated[
        list[Annotated[Decision | RespondDecision, Discriminator("type")]],
        Field(min_length=1, max_length=1),
    ]


_RESPONSE = TypeAdapter(_Response)
_EXAMPLES = (
    'resume with {"decisions": [{"type": "approve"}]}, '
    '{"decisions": [{"type": "edit", "edited_action": {"name": "…", "args": {…}}}]} '
    'or {"decisions": [{"type": "reject", "message": "…"}]}'
)


def ask_person(
    action: str, args: dict[str, Any], description: str, read: Callable[[Decision], T]
) -> T:
    """Ask a person for a decision by calling `interrupt` with LangChain's HITLRequest.

    The person is asked again if the response cannot be used.

    Args:
        action: The name of the action.
        args: Its arguments, which an edit replaces.
        description: The text that the person is shown.
        read: Converts a decision into the result; raises BadInput if it cannot be used.

    Raises:
        GraphInterrupt: The person has not answered yet.
    """
    config = ReviewConfig(
        action_name=action, allowed_decisions=["approve", "edit", "reject", "respond"]
    )
    problem = ""
    while True:
        text = "\n\n".join(filter(None, [problem, description]))
        request = ActionRequest(name=action, args=args, description=text)
        response = interrupt(HITLRequest(action_requests=[request], review_configs=[config]))
        try:
            return read(read_decision(response, action))
        except BadInput as error:
            problem = str(error)


def read_decision(response: Any, action: str) -> Decision:
    """Return the decision in a response. A `respond` decision counts as a rejection.

    Args:
        response: The response, which may have any form.
        action: The name of the action that the person was asked about.

    Raises:
        BadInput: The response has the wrong form, has a message or an edit that its decision would
            ignore, or edits another action.
    """
    try:
        (decision,) = _RESPONSE.validate_python(response)["decisions"]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise BadInput(
            f"the response cannot be used: {where}: {first['msg']}; {_EXAMPLES}"
        ) from error
    kind, raw = decision["type"], response["decisions"][0]
    if kind != "edit" and raw.get("edited_action"):
        raise BadInput(f"only a decision of type edit has an edited_action; {_EXAMPLES}")
    if kind in {"approve", "edit"} and raw.get("message"):
        raise BadInput(f"a decision of type {kind} has no message, reject with it; {_EXAMPLES}")
    if decision["type"] == "edit" and (name := decision["edited_action"]["name"]) != action:
        raise BadInput(f"the edited_action must be {action!r}, not {excerpt(name)}; {_EXAMPLES}")
    if decision["type"] == "respond":
        return RejectDecision(type="reject", message=decision["message"])
    return decision
