"""What a run has used and what it may still use.

A run's limits hold over parallel branches without anything shared between them: the router that fans out deals
each branch its share of the calls that are left. The clock is a value that no checkpoint keeps, so the deadline
of a resumed run counts from its resumption. What is sent to a branch is kept: it tells how long the run had taken,
and the branch counts on from there when it begins, in whatever process and however much later.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AIMessage
from langgraph.channels import UntrackedValue
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context


class NodeUsage(TypedDict):
    """Model calls, repeated ones included, and the tokens that were read and written."""

    calls: int
    input_tokens: int
    output_tokens: int


class Usage(NodeUsage):
    """The whole run's, and by node."""

    nodes: dict[str, NodeUsage]
    discarded: NotRequired[NodeUsage]
    """What of it went into steps whose results were thrown away, where a graph works ahead."""


def _nothing() -> NodeUsage:
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def no_usage() -> Usage:
    """Nothing used yet."""
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0, "nodes": {}}


def totals(usage: NodeUsage | Usage) -> NodeUsage:
    """The sums alone."""
    return {
        "calls": usage["calls"],
        "input_tokens": usage["input_tokens"],
        "output_tokens": usage["output_tokens"],
    }


def add_usage(left: Usage, right: Usage) -> Usage:
    """The sum, node by node. A reducer: with it parallel branches report their own share."""
    total = left or no_usage()
    nodes = dict(total["nodes"])
    for name, used in right["nodes"].items():
        nodes[name] = _sum(nodes[name], used) if name in nodes else used
    summed = Usage(**_sum(total, right), nodes=nodes)  # type: ignore[typeddict-item]  # discarded comes below
    if "discarded" in total or "discarded" in right:
        summed["discarded"] = _sum(total.get("discarded", _nothing()), right.get("discarded", _nothing()))
    return summed


def _sum(left: NodeUsage, right: NodeUsage) -> NodeUsage:
    return {
        "calls": left["calls"] + right["calls"],
        "input_tokens": left["input_tokens"] + right["input_tokens"],
        "output_tokens": left["output_tokens"] + right["output_tokens"],
    }


def add_warnings(left: list[str], right: list[str]) -> list[str]:
    """Both lists, each line once. A reducer."""
    return list(dict.fromkeys([*left, *right]))


class Budgeted(TypedDict):
    """The part of every graph's state that the limits need."""

    warnings: Annotated[list[str], add_warnings]
    """What a reader of the answer should know of how it came about."""
    usage: Annotated[Usage, add_usage]
    """Model calls and tokens so far."""
    started: NotRequired[Annotated[float | None, UntrackedValue(float, guard=False)]]
    """When this process began the run, on the monotonic clock."""
    settings: dict[str, Any]
    """What the run was set to (`Context.for_state`): a resumed run goes on with it, and cached replies hold for it."""
    share: NotRequired[int]
    """How many calls this branch may make; only in what is sent to a parallel branch."""
    answered: NotRequired[bool]
    """Whether a model had answered this run before the branch began; only in what is sent to one."""
    elapsed: NotRequired[float]
    """How many seconds the run had taken when the branch was sent; only in what is sent to one."""
    step_started: NotRequired[Annotated[float, UntrackedValue(float, guard=False)]]
    """When this process began the branch, on the monotonic clock."""


def calls_left(state: Mapping[str, Any], context: Context) -> int | None:
    """How many model calls this step may still make; None without a limit."""
    if context.max_calls is None:
        return None
    allowed = int(state.get("share", context.max_calls))
    return max(0, allowed - (state.get("usage") or no_usage())["calls"])


def too_few_calls(context: Context) -> str:
    """The warning of a run that has no call left."""
    return (
        f"the run stopped early: max_calls={context.max_calls} model calls were not enough; "
        "this is the best answer so far"
    )


def branches(state: Mapping[str, Any], left: int | None, count: int) -> list[dict[str, Any]]:
    """What each parallel branch is sent of the limits: equal parts of the calls left, the rest to the first."""
    now = time.monotonic()
    elapsed = now - (state.get("started") or now)
    common = {"settings": state["settings"], "started": None, "elapsed": elapsed}
    common |= {"usage": no_usage(), "answered": has_answered(state)}
    if left is None:
        return [common] * count
    part, rest = divmod(left, count)
    return [{**common, "share": part + (number < rest)} for number in range(count)]


def has_answered(state: Mapping[str, Any]) -> bool:
    """Whether a model has answered this run."""
    return bool(state.get("answered") or (state.get("usage") or no_usage())["calls"])


@dataclass
class Budget:
    """The limits of one step while it runs, and what it uses."""

    node: str
    context: Context
    left: int | None
    started: float
    step_started: float | None
    told: bool
    """Whether the state knows when the run was begun; in a branch and after a resumption the first step tells it."""
    used: NodeUsage = field(default_factory=_nothing)
    notes: list[str] = field(default_factory=list[str])
    """Warnings on the settings of a resumed run."""

    @classmethod
    def of(cls, node: str, state: Mapping[str, Any], context: Context) -> "Budget":
        """The limits that hold for a step that is given this state."""
        now, started, elapsed = time.monotonic(), state.get("started"), state.get("elapsed")
        return cls(
            node,
            context,
            calls_left(state, context),
            started or now - (elapsed or 0.0),
            state.get("step_started") or (None if elapsed is None else now),
            started is not None,
            notes=context.resumption_warnings(state),
        )

    def seconds_left(self) -> float | None:
        """Until the nearest deadline, never below 0; None without one."""
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
        """Which limit is reached, as a warning, or None."""
        if self.left is not None and self.left <= 0:
            return too_few_calls(self.context)
        run_left = self._run_left()
        if run_left is not None and run_left <= 0:
            return (
                f"the run stopped early: the deadline of {self.context.deadline_s:g} s has passed; "
                "this is the best answer so far"
            )
        if self.seconds_left() == 0:
            return f"{self.node}: the step took longer than step_deadline_s allows"
        return None

    def _clocks(self) -> dict[str, float]:
        run = {"started": self.started}
        return run if self.step_started is None else {**run, "step_started": self.step_started}

    def keep(self, calls: int) -> None:
        """Leave so many calls to later steps."""
        if self.left is not None:
            self.left -= calls

    def call_made(self) -> None:
        """Count one model call, whatever becomes of it."""
        self.used["calls"] += 1
        if self.left is not None:
            self.left -= 1

    def tokens_used(self, reply: AIMessage) -> None:
        """Count the tokens that the model reports."""
        if reply.usage_metadata:
            self.used["input_tokens"] += reply.usage_metadata["input_tokens"]
            self.used["output_tokens"] += reply.usage_metadata["output_tokens"]

    def update(self, warnings: Iterable[str]) -> dict[str, Any]:
        """What the state is told of it."""
        return {
            "usage": {**self.used, "nodes": {self.node: self.used} if self.used["calls"] else {}},
            "warnings": [*self.notes, *warnings],
            **({} if self.told else self._clocks()),
        }
