"""What a person decides on an action.

It has the form of LangChain's HumanInTheLoopMiddleware, which its inboxes show.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from langgraph.types import interrupt
from pydantic import BaseModel, Field, ValidationError

from stepcraft.errors import BadInput

T = TypeVar("T")


class EditedAction(BaseModel):
    """The action as a person has edited it."""

    args: dict[str, Any]


class Decision(BaseModel):
    """A decision: approve, edit with the arguments as they are to be, or reject with a reason."""

    type: Literal["approve", "edit", "reject"]
    edited_action: EditedAction | None = None
    message: str = ""


class Response(BaseModel):
    """LangChain's HITLResponse with one decision."""

    decisions: list[Decision] = Field(min_length=1, max_length=1)


RESPONSES = (
    'resume with {"decisions": [{"type": "approve"}]}, '
    '{"decisions": [{"type": "edit", "edited_action": {"name": "…", "args": {…}}}]} '
    'or {"decisions": [{"type": "reject", "message": "…"}]}'
)


def ask_person(
    action: str, args: dict[str, Any], description: str, read: Callable[[Decision], T]
) -> T:
    """Ask a person by `interrupt` with LangChain's HITLRequest.

    The person is asked again where the response cannot be used.

    Args:
        action: The name of the action.
        args: Its arguments, which an edit replaces.
        description: What the person is shown.
        read: Makes the result of a decision; raises BadInput where it cannot be used.

    Raises:
        GraphInterrupt: The person has not answered yet.
    """
    problem = ""
    while True:
        text = "\n\n".join(filter(None, [problem, description]))
        response = interrupt(
            {
                "action_requests": [{"name": action, "args": args, "description": text}],
                "review_configs": [
                    {"action_name": action, "allowed_decisions": ["approve", "edit", "reject"]}
                ],
            }
        )
        try:
            return read(read_decision(response))
        except BadInput as error:
            problem = str(error)


def read_decision(response: object) -> Decision:
    """Return the decision of a response.

    Raises:
        BadInput: It has another form, an edit has no action, or a rejection no reason.
    """
    try:
        decision = Response.model_validate(response).decisions[0]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise BadInput(
            f"the response cannot be used: {where}: {first['msg']}; {RESPONSES}"
        ) from error
    if (decision.type == "edit") != (decision.edited_action is not None):
        raise BadInput(f"an edit, and nothing else, has an edited_action; {RESPONSES}")
    if decision.type == "reject" and not decision.message.strip():
        raise BadInput(f"a rejection needs a message that says what is wrong; {RESPONSES}")
    return decision
