"""Pause until a person accepts the steps, edits them, or rejects them with a reason."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt
from typing_extensions import TypedDict

from stepcraft.access import caller
from stepcraft.concurrency import in_thread
from stepcraft.contexts.aag import AagContext
from stepcraft.errors import BadInput, StepcraftError
from stepcraft.evidence import Evidence
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.aag.critic import Critique, seen
from stepcraft.nodes.aag.names import CheckedName, NamesNode
from stepcraft.nodes.aag.remember import flags_of
from stepcraft.nodes.aag.response import FORMS, Response, Review, read_response
from stepcraft.nodes.aag.steps import steps_update
from stepcraft.progress import Said, counted, quoted, tell
from stepcraft.schema import described
from stepcraft.text.lists import numbered

_EXCERPT = 300
"""Characters of each procedure in a request."""


@described
class ReviewEvidence(TypedDict):
    """The beginning of a procedure that the steps rest on."""

    id: str
    title: str
    text: str
    """Its first 300 characters."""
    score: float


@described
class RememberOffer(TypedDict):
    """What becomes of the steps once they are approved."""

    memory: str
    """The name of the memory that they are added to."""
    flags: list[str]
    """What speaks against remembering them; they are then remembered only with `"force": true`."""
    problem: str
    """Why they cannot be remembered at all, "" if they can."""


class _Action(TypedDict):
    name: str
    args: dict[str, Any]
    description: str


class _ReviewConfig(TypedDict):
    action_name: str
    allowed_decisions: list[str]


@described
class ReviewRequest(TypedDict):
    """What a run asks by `interrupt` before its steps are final, as plain JSON."""

    type: Literal["review"]
    question: str
    """The goal."""
    steps: list[str]
    """The steps to be approved."""
    critiques: list[Critique]
    """What the critic and earlier reviews asked for, and what became of it."""
    evidence: list[ReviewEvidence]
    """The procedures that were found."""
    unverified: list[CheckedName]
    """The names in the code of the steps that were found nowhere, so that they may be invented."""
    warnings: list[str]
    """The warnings of the run so far."""
    remember: RememberOffer | None
    """Where approved steps are remembered; None if they are not."""
    problem: str
    """Why it is asked again, "" the first time."""
    responses: str
    """The responses that are understood."""
    action_requests: list[_Action]
    """The steps once more as LangChain's inboxes show what they are asked."""
    review_configs: list[_ReviewConfig]
    """What they may answer."""


class ReviewNode(Runnable[Any, dict[str, Any]]):
    """Asks a person, again where the response cannot be used.

    Args:
        resources: What the graph was built with.
        names: Looks up the names of steps that a person wrote.
    """

    def __init__(self, resources: GraphResources, names: NamesNode) -> None:
        self.name = self.node = "review"
        self.description = (
            "Pause until a person accepts the steps, edits them, or rejects them with a reason."
        )
        self.resources = resources
        self.names = names

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """What the person said, with the steps of an edit, or with the reason of a rejection as the edit to apply.

        Raises:
            GraphInterrupt: The person has not answered yet.
        """
        update = self._reviewed(input, AagContext.of(self.resources.settings(input)))
        tell(self.resources.method, self.node, "finished", lambda: _told(update))
        return update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, in a thread, because memories block."""
        return await asyncio.wrap_future(in_thread(partial(self.invoke, input, config)))

    def _reviewed(self, state: Mapping[str, Any], context: AagContext) -> dict[str, Any]:
        shown = {**state}
        if context.remember and not context.names:
            shown["names"] = self.names.check(shown, context)
        edited: dict[str, Any] = {}
        problem = ""
        while True:
            offer = self._offer(shown, context) if context.remember else None
            request = _request(shown, offer, problem)
            try:
                response = read_response(self._ask(request))
            except BadInput as error:
                problem = str(error)
                continue
            if response.type == "edit":
                edited = steps_update(response.steps)
                if context.names or context.remember:
                    edited["names"] = self.names.check({**shown, **edited}, context)
                shown |= edited
                if context.remember and not response.force and (flags := flags_of(shown, shown["names"])):
                    problem = (
                        f"these steps of yours would not be remembered: {'; '.join(flags)}; accept them without being "
                        'remembered, accept them with "force": true, or edit them'
                    )
                    continue
            if not context.names:
                edited.pop("names", None)
            return {**edited, **_outcome(response, shown, is_edited=bool(edited))}

    def _ask(self, request: ReviewRequest) -> object:
        try:
            return interrupt(request)
        except GraphInterrupt:
            steps = counted(len(request["steps"]), "step")
            waiting = Said(f"Waiting for a review of {steps}.", {"steps": len(request["steps"])})
            tell(self.resources.method, self.node, "started", lambda: waiting)
            raise

    def _offer(self, state: Mapping[str, Any], context: AagContext) -> RememberOffer:
        name, problem = "", ""
        try:
            self.resources.policy.check_remember()
            memory = self.resources.searched.open_memory(context)
            name = memory.name
            if memory.read_only:
                problem = f"the memory {name} can only be searched"
        except StepcraftError as error:
            problem = str(error)
        return RememberOffer(memory=name, flags=flags_of(state, state["names"]), problem=problem)


def check_can_pause() -> None:
    """Refuse a run that would pause and could not be resumed.

    Whether a run has a checkpointer is an implementation detail of LangGraph: where it is not told, every run passes.

    Raises:
        BadInput: The run has no checkpointer.
    """
    if get_config().get("configurable", {}).get("__pregel_checkpointer", ...) is None:
        raise BadInput(
            "review=True and remember=True pause the run for a person, which takes a checkpointer: build the graph, or "
            "its parent, with checkpointer=InMemorySaver() or another, or run it on a thread of a LangGraph server"
        )


def _request(state: Mapping[str, Any], offer: RememberOffer | None, problem: str) -> ReviewRequest:
    evidence: list[Evidence] = state["evidence"]
    steps: list[str] = state["steps"]
    notes = [problem, *(offer["flags"] if offer else [])]
    told = "\n\n".join([state["question"], numbered(steps), *filter(None, notes)])
    return ReviewRequest(
        type="review",
        question=state["question"],
        steps=steps,
        critiques=state["critiques"],
        evidence=[
            ReviewEvidence(
                id=passage["id"],
                title=passage["title"],
                text=passage["text"][:_EXCERPT],
                score=passage["score"],
            )
            for passage in evidence
        ],
        unverified=[one for one in state["names"] if not one["verified"]],
        warnings=state["warnings"],
        remember=offer,
        problem=problem,
        responses=FORMS,
        action_requests=[_Action(name="review", args={"steps": steps}, description=told)],
        review_configs=[_ReviewConfig(action_name="review", allowed_decisions=["approve", "edit", "reject"])],
    )


def _outcome(response: Response, shown: Mapping[str, Any], *, is_edited: bool) -> dict[str, Any]:
    """The update for a response; a reason is applied as an edit, whatever `max_updates` says."""
    at_server = caller()
    rejects = response.type == "reject"
    said = Review(
        type="reject" if rejects else "edit" if is_edited else "accept",
        steps=shown["steps"],
        reason=response.reason,
        by=at_server.identity if at_server else response.by,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        force=response.force,
    )
    asked = [Critique(edits=[response.reason], status="open")] if rejects else []
    return {
        "reviews": [*(shown.get("reviews") or []), said],
        "critiques": [*seen(shown["critiques"]), *asked],
        "edits": [response.reason] if rejects else [],
    }


def _told(update: Mapping[str, Any]) -> Said:
    said: Review = update["reviews"][-1]
    steps = counted(len(said["steps"]), "step")
    if said["type"] == "reject":
        return Said(
            f"The steps were rejected: {quoted(said['reason'])}.",
            {"response": "reject", "edits": [said["reason"]]},
        )
    outcome = f"Accepted {steps}." if said["type"] == "accept" else f"The reviewer wrote {steps} instead."
    return Said(outcome, {"response": said["type"], "steps": len(said["steps"])})
