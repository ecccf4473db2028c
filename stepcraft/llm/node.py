"""The graph node that asks a chat model.

A model node is three pure functions, tested without a model: `ask` makes the messages from the
state, `read` turns the reply into a state update, and a fallback replaces a failed step. The
adapter here does the rest: it keeps the limits of the run, hands an unreadable reply back once,
counts usage, and lets a failure cost the step instead of the run. Sync and async differ by the call
of the model alone. Retries are those of the provider's client, caching is LangChain's
(`set_llm_cache`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp

from stepcraft.concurrency import within
from stepcraft.contexts.base import Settings
from stepcraft.errors import ModelFailure, UnreadableReply
from stepcraft.llm.limits import RunLimits, forget, limits_of, too_late
from stepcraft.llm.prompt import prompt_tokens, without_system_role
from stepcraft.llm.reply import Refused, is_cut_off, reply_text
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import OPTIONAL_INPUTS, usage_of
from stepcraft.models.resolve import aresolve_model, model_name, resolve_model
from stepcraft.progress import emit, emit_answer
from stepcraft.secrets import without_secrets
from stepcraft.text.sections import restored

State = Any
"""The input of a node: the state of its graph, or what a `Send` holds."""
Update = dict[str, Any]

_HAND_BACK = (
    "Your reply could not be used: {} Reply again to the same task, in the format that "
    "reply_format asks for, with nothing before or after it."
)
_REFUSED_STATUS = frozenset({401, 403, 404})
_EARLY_S = 0.05
"""The timer of an event loop fires up to so many seconds before its time."""


@dataclass(frozen=True)
class ModelNode:
    """A node that asks a chat model, declared at module level and bound to a graph by `bound`."""

    name: str
    ask: Callable[[State, Any], list[BaseMessage]]
    """Makes the messages from the node's state and the run's settings."""
    read: Callable[[str, State, Any], Update]
    """Makes the update from the reply's text. Raises UnreadableReply with a sentence that tells the
    model what was wrong, and with the update from the rest of the reply, if that is of use."""
    fallback: Callable[[State, str], Update]
    """Makes the update when the step fails, from the state and the reason. Raises NoAnswer where
    the run cannot go on."""
    skip: Callable[[State, Any], Update | None] = lambda _state, _settings: None
    """Makes the update where no model is needed; None where one is."""
    keep_back: Callable[[Any], int] = lambda _settings: 0
    """Says how many calls are left to later nodes, which the answer needs."""
    started: str = ""
    """What the step is about to do, for progress."""
    finished: Callable[[State, Update], str] = lambda _state, _update: ""
    """Says what the step did, for progress."""
    is_last: bool = False
    """Whether the node ends the run, so that the answer in its update is published."""

    def bound(self, resources: Resources[Any], name: str = "") -> "BoundNode":
        """Return the node with the resources of a graph, under another name where one is passed."""
        return BoundNode(replace(self, name=name or self.name), resources)


class BoundNode(Runnable[State, Update]):
    """A model node in a graph.

    Args:
        node: The node.
        resources: What the graph is built with.
    """

    def __init__(self, node: ModelNode, resources: Resources[Any]) -> None:
        self.node = node
        self.name = node.name
        self.resources = resources

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Ask the model and return the state update.

        Raises:
            ModelFailure: The provider refuses the first call of a run for good (a wrong key, an
                unknown model).
            NoAnswer: The step failed and the run cannot go on without it.
        """
        step = self._begin(input)
        while step.update is None:
            try:
                model = resolve_model(step.choice)
                messages, options = step.next_call(model)
                call = partial(model.invoke, messages, config, **options)
                step.take(within(step.seconds_left, call))
            except Exception as error:
                step.fail(error)
        return step.result()

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:
        """As `invoke`, on the running event loop."""
        step = self._begin(input)
        while step.update is None:
            try:
                model = await aresolve_model(step.choice)
                messages, options = step.next_call(model)
                async with asyncio.timeout(step.seconds_left):
                    reply = await model.ainvoke(messages, config, **options)
                step.take(reply)
            except Exception as error:
                step.fail(error)
        return step.result()

    def _begin(self, state: State) -> "_Step":
        settings = self.resources.settings(state)
        step = _Step(
            self.node,
            self.resources.graph,
            state,
            settings,
            self.resources.choice(self.node.name, settings),
            limits_of(state),
        )
        step.update = self.node.skip(state, settings)
        return step


@dataclass
class _Step:
    """One execution of a node. `update` is None until the step is done."""

    node: ModelNode
    graph: str
    state: State
    settings: Settings
    choice: BaseChatModel | str
    limits: RunLimits
    update: Update | None = None
    messages: list[BaseMessage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    calls: int = 0
    replies: list[AIMessage] = field(default_factory=list)
    partial_update: UnreadableReply | None = None
    """The reply that could be read in part."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline of the run."""
        return self.limits.seconds_left(self.settings)

    def next_call(self, model: BaseChatModel) -> tuple[list[BaseMessage], dict[str, Any]]:
        """Count a call, and return its messages and options.

        Raises:
            _LimitReached: The run may make no more calls.
        """
        if not self.messages:
            self.messages = self._prompt(model)
        if reason := self.limits.take_call(self.settings, self.node.keep_back(self.settings)):
            raise _LimitReached(reason)
        if not self.calls:
            emit(
                self.graph, self.node.name, self.node.started or f"{self.node.name} asks its model."
            )
        self.calls += 1
        takes_seed = "seed" in type(model).model_fields
        seed = self.settings.seed if takes_seed else None
        options = {"temperature": self.settings.temperature, "seed": seed}
        return self.messages, {name: value for name, value in options.items() if value is not None}

    def take(self, reply: AIMessage) -> None:
        """Read a reply; the first that cannot be read is handed back.

        Raises:
            Refused, UnreadableReply: The step failed.
        """
        self.replies.append(reply)
        self.limits.answered = True
        if is_cut_off(reply):
            self.warnings.append(
                f"{self.node.name}: the reply was cut off by the token limit; "
                "raise the model's max_tokens"
            )
        try:
            text = restored(reply_text(reply))
            self.update = self.node.read(text, self.state, self.settings)
        except UnreadableReply as problem:
            if problem.update is not None:
                self.partial_update = problem
            if len(self.replies) > 1:
                raise
            shown = [reply] if reply.text.strip() else []
            self.messages = [*self.messages, *shown, HumanMessage(_HAND_BACK.format(problem))]

    def fail(self, error: Exception) -> None:
        """End the step with what could be read, or with its fallback.

        Raises:
            GraphBubbleUp: It was an interrupt or a cancellation of LangGraph's.
            ModelFailure: The provider refuses every call.
            NoAnswer: The run cannot go on without the step.
        """
        if isinstance(error, GraphBubbleUp):
            raise error
        if self.partial_update:
            self.warnings.append(
                f"{self.node.name}: a part of the reply was left out: {self.partial_update}"
            )
            self.update = self.partial_update.update
            return
        reason = self._reason(error)
        self.warnings.append(reason)
        self.update = self.node.fallback(self.state, reason)
        emit(self.graph, self.node.name, reason)

    def result(self) -> Update:
        """Return the state update, with usage and warnings."""
        update = self.update or {}
        if self.replies and (text := self.node.finished(self.state, update)):
            emit(self.graph, self.node.name, text)
        counted = [reply.usage_metadata for reply in self.replies if reply.usage_metadata]
        used = usage_of(
            self.node.name,
            self.calls,
            sum(tokens["input_tokens"] for tokens in counted),
            sum(tokens["output_tokens"] for tokens in counted),
        )
        if self.node.is_last:
            update = published(self.graph, self.state, update)
        return {**update, "usage": used, "warnings": [*update.get("warnings", []), *self.warnings]}

    def _prompt(self, model: BaseChatModel) -> list[BaseMessage]:
        """Build the prompt within the model's limit.

        Where it is too long, the passages with the lowest scores are left out first.
        """
        messages = self.node.ask(self.state, self.settings)
        limit = self.settings.max_input_tokens or (model.profile or {}).get("max_input_tokens")
        evidence: Sequence[Mapping[str, Any]] = self.state.get("evidence") or []
        order = sorted(
            range(1, len(evidence) + 1), key=lambda number: evidence[number - 1]["score"]
        )
        left_out: list[int] = []
        while limit and prompt_tokens(messages) > limit and len(left_out) < len(order):
            left_out = order[: max(1, 2 * len(left_out))]
            messages = self.node.ask({**self.state, "left_out": left_out}, self.settings)
        if left_out:
            self.warnings.append(
                f"{self.node.name}: {len(left_out)} of {len(order)} passages, the least similar, "
                f"were left out to keep within {limit:,} input tokens"
            )
        return messages if self.settings.system_role else without_system_role(messages)

    def _reason(self, error: Exception) -> str:
        name = self.node.name
        if isinstance(error, _LimitReached):
            return str(error)
        if isinstance(error, Refused):
            return f"{name} was skipped: the model declined: {without_secrets(str(error)):.200}"
        if isinstance(error, UnreadableReply):
            return f"{name} was skipped: the model's reply could not be read, asked twice: {error}"
        left = self.seconds_left
        if isinstance(error, TimeoutError) and left is not None and left < _EARLY_S:
            return too_late(self.settings)
        text = without_secrets(f"{type(error).__name__}: {' '.join(str(error).split())}")[:300]
        if getattr(error, "status_code", None) in _REFUSED_STATUS and not self.limits.answered:
            raise ModelFailure(
                f"the model {model_name(self.choice)!r} refuses every call: {text}. "
                "Check its name and its key."
            ) from error
        return f"{name} was skipped: the model could not be asked: {text}"


def published(graph: str, state: State, update: Update) -> Update:
    """Stream the answer of a run's last update, and return the update.

    The answer is a message too where messages came in.
    """
    emit_answer(graph, update["answer"])
    forget(state)
    left = {key: state[key] for key in OPTIONAL_INPUTS if state.get(key)}
    messages = {"messages": [AIMessage(update["answer"])]} if state.get("messages") else {}
    return {**update, **messages, "left": left}


class _LimitReached(Exception):
    """The run may make no more calls."""
