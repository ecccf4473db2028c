"""Usage of models and the limits of a run: `max_calls`, `deadline_s` and the limit of a single step.

Parallel branches share no counter: the node that fans out gives each branch its part of the remaining calls
(`branches`). Deadlines are measured on the monotonic clock of the process. When a run began is therefore kept in an
untracked channel, which no checkpoint stores: after a resumption the deadline counts from the resumption. A branch is
sent the seconds that the run had taken instead, and counts on from there in whatever process it begins.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AIMessage
from langgraph.channels import UntrackedValue
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context
from stepcraft.schema import described


@described
class NodeUsage(TypedDict):
    """Model calls, repeated attempts included, and input and output tokens as the provider counts them."""

    calls: Annotated[int, Field(description="Model calls, repeated attempts included.")]
    input_tokens: Annotated[int, Field(description="Tokens read.")]
    output_tokens: Annotated[int, Field(description="Tokens written.")]
    cached_input_tokens: Annotated[
        NotRequired[int],
        Field(description="Tokens read from the provider's cache; absent where it reports none."),
    ]


@described
class Usage(NodeUsage):
    """The usage of a run, in total and by node."""

    nodes: dict[str, NodeUsage]
    """The usage of each node that asked a model."""
    discarded: NotRequired[NodeUsage]
    """Usage of discarded speculative steps; part of the totals."""


def _zero() -> NodeUsage:
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def no_usage() -> Usage:
    """The usage of a run that has made no call."""
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0, "nodes": {}}


def totals(usage: NodeUsage | Usage) -> NodeUsage:
    """The totals of a usage, without its nodes."""
    return _sum(_zero(), usage)


def add_usage(left: Usage, right: Usage) -> Usage:
    """A reducer: the sum of two usages, in total and by node. Each parallel branch reports its own usage."""
    left = left or no_usage()
    nodes = dict(left["nodes"])
    for name, used in right["nodes"].items():
        nodes[name] = _sum(nodes.get(name, _zero()), used)
    usage = Usage(**_sum(left, right), nodes=nodes)  # type: ignore[typeddict-item]  # mypy asks for the optional key
    if "discarded" in left or "discarded" in right:
        usage["discarded"] = _sum(left.get("discarded", _zero()), right.get("discarded", _zero()))
    return usage


def _sum(left: NodeUsage | Usage, right: NodeUsage | Usage) -> NodeUsage:
    total: NodeUsage = {
        "calls": left["calls"] + right["calls"],
        "input_tokens": left["input_tokens"] + right["input_tokens"],
        "output_tokens": left["output_tokens"] + right["output_tokens"],
    }
    if cached := left.get("cached_input_tokens", 0) + right.get("cached_input_tokens", 0):
        total["cached_input_tokens"] = cached
    return total


def add_warnings(left: list[str], right: list[str]) -> list[str]:
    """A reducer: both lists, each warning once."""
    return list(dict.fromkeys([*left, *right]))


class Budgeted(TypedDict):
    """The keys of every graph's state that hold its warnings, its usage and its limits."""

    warnings: Annotated[list[str], add_warnings]
    """Sentences about what went wrong or was left out in the run."""
    usage: Annotated[Usage, add_usage]
    """Model calls and tokens so far, in total and by node."""
    started: NotRequired[Annotated[float | None, UntrackedValue(float, guard=False)]]
    """When this process began or resumed the run, on the monotonic clock."""
    settings: dict[str, Any]
    """The settings that the run began with (`Context.for_state`), which hold when it is resumed."""
    share: NotRequired[int]
    """Model calls that this branch may make; only in the input of a parallel branch."""
    answered: NotRequired[bool]
    """Whether a model had answered this run before the branch began; only in the input of a parallel branch."""
    elapsed: NotRequired[float]
    """Seconds that the run had taken when the branch was sent; only in the input of a parallel branch."""
    calls_allowed: NotRequired[Annotated[int | None, UntrackedValue(int, guard=False)]]
    """Model calls that the user of the run had left today when it began; absent without a limit. They are counted
    where they are made: this one is for plans."""
    step_started: NotRequired[Annotated[float, UntrackedValue(float, guard=False)]]
    """When this process began or resumed the branch, on the monotonic clock."""


def calls_left(state: Mapping[str, Any], context: Context) -> int | None:
    """Model calls that a step with this state may make; None without a limit."""
    limits = [limit for limit in (context.max_calls, state.get("calls_allowed")) if limit is not None]
    if not limits:
        return None
    allowed = int(state.get("share", min(limits)))
    return max(0, allowed - (state.get("usage") or no_usage())["calls"])


def too_few_calls(state: Mapping[str, Any], context: Context) -> str:
    """The warning of a run that has used up `max_calls`, or what its user had left today."""
    of_user = state.get("calls_allowed")
    if of_user is not None and (context.max_calls is None or of_user < context.max_calls):
        return f"the run stopped early: its user had only {of_user} of today's model calls left, which were not enough"
    return (
        f"the run stopped early: max_calls={context.max_calls} model calls were not enough; "
        "raise it for a complete answer"
    )


def too_late(context: Context) -> str:
    """The warning of a run whose `deadline_s` has passed."""
    return (
        f"the run stopped early: the deadline of {context.deadline_s or 0:g} s has passed; "
        "raise deadline_s for a complete answer"
    )


def branches(state: Mapping[str, Any], left: int | None, count: int) -> list[dict[str, Any]]:
    """The limits that `Send` gives to each of `count` parallel branches.

    Args:
        state: The state of the node that fans out.
        left: The calls that are left, as `calls_left` says; each branch gets an equal part, the first ones the rest.
        count: How many branches there are.
    """
    now = time.monotonic()
    common = {
        "settings": state["settings"],
        "started": None,
        "elapsed": now - (state.get("started") or now),
        "usage": no_usage(),
        "answered": has_answered(state),
    }
    if (allowed := state.get("calls_allowed")) is not None:
        common["calls_allowed"] = allowed
    if left is None:
        return [common] * count
    part, rest = divmod(left, count)
    return [{**common, "share": part + (number < rest)} for number in range(count)]


def has_answered(state: Mapping[str, Any]) -> bool:
    """Whether a model has been called in this run, in the branches before this step included."""
    return bool(state.get("answered") or (state.get("usage") or no_usage())["calls"])


@dataclass
class Budget:
    """The limits of one step and its usage, while it runs."""

    node: str
    context: Context
    left: int | None
    """Model calls that the step may still make; None without a limit."""
    started: float
    """When the run began, on this process's monotonic clock."""
    step_started: float | None
    """When the branch of the step began; None outside of branches."""
    is_started: bool
    """Whether the state holds `started`. It does not at the start of a branch or after a resumption."""
    used: NodeUsage = field(default_factory=_zero)
    notes: list[str] = field(default_factory=list[str])
    """Warnings on the settings of a resumed run, and on counts that failed."""
    too_few: str = ""
    """The warning for when no call is left."""
    refused: str = ""
    """Why the user of the run may make no more calls; "" while it may."""

    @classmethod
    def of(cls, node: str, state: Mapping[str, Any], context: Context) -> "Budget":
        """The budget of a step that is given this state."""
        now, started, elapsed = time.monotonic(), state.get("started"), state.get("elapsed")
        return cls(
            node,
            context,
            calls_left(state, context),
            started or now - (elapsed or 0.0),
            state.get("step_started") or (None if elapsed is None else now),
            started is not None,
            notes=context.resumption_warnings(state),
            too_few=too_few_calls(state, context),
        )

    def seconds_left(self) -> float | None:
        """Seconds until the nearest deadline, not below 0; None without one."""
        left = [seconds for seconds in (self._run_left(), self._step_left()) if seconds is not None]
        return max(0.0, min(left)) if left else None

    def _run_left(self) -> float | None:
        limit = self.context.deadline_s
        return None if limit is None else self.started + limit - time.monotonic()

    def _step_left(self) -> float | None:
        limit = self.context.step_limit_s
        if limit is None or self.step_started is None:
            return None
        return self.step_started + limit - time.monotonic()

    def spent(self) -> str | None:
        """The warning about the limit that is reached, or None."""
        if self.refused:
            return self.refused
        if self.left is not None and self.left <= 0:
            return self.too_few
        run_left = self._run_left()
        if run_left is not None and run_left <= 0:
            return too_late(self.context)
        if self.seconds_left() == 0:
            return f"{self.node}: the step took longer than step_deadline_s allows"
        return None

    def reserve(self, calls: int) -> None:
        """Leave this many calls to later steps."""
        if self.left is not None:
            self.left -= calls

    def call_made(self) -> None:
        """Count one attempt at a model call, whatever its outcome."""
        self.used["calls"] += 1
        if self.left is not None:
            self.left -= 1

    def tokens_used(self, reply: AIMessage) -> None:
        """Count the tokens that the provider reports."""
        if reply.usage_metadata:
            self.used["input_tokens"] += reply.usage_metadata["input_tokens"]
            self.used["output_tokens"] += reply.usage_metadata["output_tokens"]
            if cached := reply.usage_metadata.get("input_token_details", {}).get("cache_read"):
                self.used["cached_input_tokens"] = self.used.get("cached_input_tokens", 0) + cached

    def update(self, warnings: Iterable[str]) -> dict[str, Any]:
        """The state update of the step: its usage, its warnings and, where the state lacks them, its clocks."""
        update: dict[str, Any] = {
            "usage": {**self.used, "nodes": {self.node: self.used} if self.used["calls"] else {}},
            "warnings": [*self.notes, *warnings],
        }
        if not self.is_started:
            update["started"] = self.started
            if self.step_started is not None:
                update["step_started"] = self.step_started
        return update
