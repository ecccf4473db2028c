"""The graph node that asks a chat model.

A model node consists of three pure functions, tested without a model: `ask` builds the messages
from the state, `read` turns the reply into a state update, and `fallback` replaces a failed step.
The adapter here does the rest: it enforces the run's limits, returns an unreadable reply to the
model once, counts usage, and lets a failure end only the step rather than the run. Retries are left
to the provider's client, and caching to LangChain (`set_llm_cache`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core import exceptions
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.errors import GraphBubbleUp

from stepcraft.contexts.base import Settings
from stepcraft.errors import REFUSED, BadInput, ModelFailure, UnreadableReply, status_of
from stepcraft.llm.calls import Call, Calls, Inline, Node
from stepcraft.llm.limits import TOO_LATE, RunLimits, limits_of
from stepcraft.llm.prompt import prompt_tokens, without_system_role
from stepcraft.llm.reply import Refused, is_cut_off, odd_end, reply_text
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import add_warnings, usage_of
from stepcraft.models.resolve import ChatModel, model_name, models_in, with_options
from stepcraft.progress import counted, emit, emit_answer, emit_draft
from stepcraft.secrets import masked_line
from stepcraft.text.sections import restored

_TOO_LONG: type[Exception] | tuple[()] = getattr(exceptions, "ContextOverflowError", ())
"""The error that langchain-core 1.2 and later raise for a prompt that is too long."""
_TOO_LONG_WORDS = re.compile(
    r"context_length_exceeded|\bcontext[ -](?:length|window|size)"
    r"|(?:prompt|input|request) is too (?:long|large)|request too large|too many (?:input )?tokens"
    r"|(?:prompt|input|sequence)(?: token)? (?:length|count|limit)|model token limit"
    r"|exceeds? the (?:maximum|max)\b[^.\n]{0,40}\btokens|exceeds? (?:the model limit|n_ctx)"
    r"|input tokens? exceed|exceeds? (?:the )?max(?:imum)? length|max_(?:new|prompt)_tokens"
    r"|\u8d85\u8fc7[^.\n]{0,20}\u957f\u5ea6|\u8d85\u957f",
    re.IGNORECASE,
)
"""Phrases and codes in other servers' errors for a prompt that is too long."""

State = Any
"""The input of a node: the state of its graph, or the payload of a `Send`."""
Update = dict[str, Any]

_HAND_BACK = (
    "Your reply could not be used: {} Reply again to the same task, in the format that "
    "reply_format asks for, with nothing before or after it."
)
_HAND_BACK_IN_PART = (
    "A part of your reply could not be used: {} The rest is kept. Reply with what was not used, as "
    "it has to be, in the same format, with nothing before or after it."
)


@dataclass(frozen=True)
class ModelNode:
    """A node that asks a chat model, declared at module level and bound to a graph with `bound`."""

    name: str
    ask: Callable[[State, Any], list[BaseMessage]]
    """Builds the messages from the node's state and the run's settings. The state also holds the
    model's `input_limit` in tokens (or None) and, as `left_out`, the numbers of the passages to
    omit.
    """
    read: Callable[[str, State, Any], Update]
    """Builds the update from the reply's text and the same state. Raises UnreadableReply with a
    sentence that tells the model what was wrong, and with the update from the rest of the reply if
    that is useful. The state also says whether the reply was `cut_off`, and for a second reply it
    holds that update as `first_update`.
    """
    fallback: Callable[[State, str], Update]
    """Builds the update when the step fails, from the state and the reason. Raises NoAnswer if the
    run cannot go on.
    """
    skip: Callable[[State, Any], Update | None] = lambda _state, _settings: None
    """Builds the update if no model is needed; returns None if one is."""
    keep_back: Callable[[Any], int] = lambda _settings: 0
    """Returns the number of calls that later nodes need for the answer."""
    started: str = ""
    """A progress message about what the step is going to do; {passages} is replaced by the number
    of passages found.
    """
    finished: Callable[[State, Update], str] = lambda _state, _update: ""
    """Returns a progress message about what the step did."""
    is_last: bool = False
    """Whether the node ends the run, so that the answer in its update is published."""

    def bound(self, resources: Resources[Any]) -> "BoundNode":
        """Return the node bound to a graph's resources."""
        return BoundNode(self, resources)


class BoundNode(Node):
    """A model node in a graph.

    Args:
        node: The node.
        resources: The resources that the graph is built with.
    """

    def __init__(self, node: ModelNode, resources: Resources[Any]) -> None:
        self.node = node
        self.name = node.name
        self.resources = resources

    async def run(self, state: State, calls: Calls) -> Update:
        """Ask the model and return the state update.

        Raises:
            ModelFailure: The provider permanently refuses the first call of a run (wrong key,
                unknown model).
            NoAnswer: The step failed and the run cannot go on without it.
        """
        node, graph = self.node, self.resources.graph
        settings = self.resources.settings(state)
        limits = limits_of(state, settings)
        step = _Step(node, graph, state, settings, limits)
        update = node.skip(state, settings)
        if update is None:
            update = await step.update(self.resources.choice(node.name, settings), calls)
        if step.replies and (text := node.finished(state, update)):
            emit(graph, node.name, text)
        if "first_draft" in update:
            emit_draft(graph, update["first_draft"])
        if warnings := [*update.get("warnings", []), *step.warnings]:
            update = {**update, "warnings": warnings}
        if node.is_last:
            update = published(graph, state, update)
        return {
            **update,
            **({} if state.get("limits") is limits else {"limits": limits}),
            **({"usage": usage_of(node.name, step.calls, step.replies)} if step.calls else {}),
        }


@dataclass
class _Step:
    """A single execution of a node that asks its model."""

    node: ModelNode
    graph: str
    state: State
    settings: Settings
    limits: RunLimits
    calls: int = 0
    replies: list[AIMessage] = field(default_factory=list[AIMessage])
    warnings: list[str] = field(default_factory=list[str])
    unread: UnreadableReply | None = None
    """Why the first reply could not be read, if it was returned to the model."""

    async def update(self, choice: ChatModel | str, calls: Calls) -> Update:
        """Ask the model and return the update; if that fails, return what replaces the step."""
        try:
            model = await calls.model(choice)
            self.state = {**self.state, "input_limit": input_limit(model, self.settings)}
            return await self._asked(_Prompt(self.node, self.state, self.settings, model), calls)
        except (GraphBubbleUp, BadInput):
            raise
        except UnreadableReply as error:
            update, reason = error.update, str(error)
            if update is None and self.unread and self.unread.update is not None:
                update, reason = self.unread.update, f"{self.unread} The second reply: {error}"
            elif update is None:
                reason = self._reason(error, choice)
        except Exception as error:
            update, reason = None, self._reason(error, choice)
            if self.unread:
                update = self.unread.update
                reason += f", after a reply that could not be read: {self.unread}"
        if update is not None:
            self.warnings.append(f"{self.node.name}: its reply was used only in part: {reason}")
            return update
        self.warnings.append(reason)
        emit(self.graph, self.node.name, reason)
        return self.node.fallback(self.state, reason)

    async def _asked(self, prompt: "_Prompt", calls: Calls) -> Update:
        """Return the update from the model's reply, or from a second one if it cannot be read.

        Raises:
            UnreadableReply: The second reply cannot be read either, or the first was cut off after
                a part that can be used.
        """
        reply = await self._reply(prompt, [], calls)
        try:
            return self._read(reply, prompt)
        except UnreadableReply as error:
            if error.update is not None and is_cut_off(reply):
                raise
            self.unread = error
        request = _HAND_BACK
        if self.unread.update is not None:
            request = _HAND_BACK_IN_PART
            self.state = {**self.state, "first_update": self.unread.update}
        problem: list[BaseMessage] = [
            HumanMessage(request.format(f"{self.unread}".rstrip(".") + "."))
        ]
        if words := str(reply.text).strip():  # without tool calls, which have no results
            most = self.state["input_limit"] or len(words)  # about a quarter of the tokens
            problem.insert(0, AIMessage(words[:most]))
        prompt.fit(problem)
        return self._read(await self._reply(prompt, problem, calls), prompt)

    def _read(self, reply: AIMessage, prompt: "_Prompt") -> Update:
        text = restored(reply_text(reply))
        facts = {"left_out": prompt.left_out, "cut_off": is_cut_off(reply)}
        return self.node.read(text, {**self.state, **facts}, self.settings)

    async def _reply(
        self, prompt: "_Prompt", problem: Sequence[BaseMessage], calls: Calls
    ) -> AIMessage:
        """Ask for a reply, showing fewer passages if the model refuses the prompt as too long.

        Raises:
            _LimitReached: The run must not make any more calls.
        """
        while True:
            if reason := self.limits.take_call(self.node.keep_back(self.settings)):
                raise _LimitReached(reason)
            if not self.calls:
                started = self.node.started or f"{self.node.name} asks its model."
                passages = counted(len(self.state.get("evidence") or ()), "passage")
                emit(self.graph, self.node.name, started.replace("{passages}", passages))
            self.calls += 1
            call = Call(prompt.model, [*prompt.messages, *problem], {})
            try:
                reply = await calls.result(call, self.limits.seconds_left())
            except Exception as error:
                if not (_is_too_long(error) and prompt.halve()):
                    raise
                continue
            if not isinstance(reply, AIMessage):
                kind = type(reply).__name__
                raise BadInput(
                    f"the model of {self.node.name} replies with {kind}, not with a message; pass "
                    "it without an output parser behind it"
                )
            if self.unread and self.unread.update is None:  # the first reply is discarded
                for warning in ending_warnings(self.node.name, self.replies[0]):
                    self.warnings.remove(warning)
            self.replies.append(reply)
            self.limits.has_reply = True
            self.warnings += prompt.warnings()
            self.warnings += ending_warnings(self.node.name, reply)
            return reply

    def _reason(self, error: Exception, choice: ChatModel | str) -> str:
        name = self.node.name
        if isinstance(error, _LimitReached):
            return str(error)
        if isinstance(error, Refused):
            return f"{name} was skipped: the model declined: {masked_line(error, 200)}"
        if isinstance(error, UnreadableReply):
            reason = "the model was asked twice, and its reply could not be read"
            return f"{name} was skipped: {reason}: {error}"
        if self.limits.has_ended(error):
            return TOO_LATE
        text = masked_line(f"{type(error).__name__}: {error}")
        if status_of(error) in REFUSED and not self.limits.has_reply:
            raise ModelFailure(
                f"the model {model_name(choice)!r} refuses every call: {text}. "
                "Check its name and its key."
            ) from error
        return f"{name} was skipped: the model could not be asked: {text}"


class _Prompt:
    """The messages of a step. If they are too long, the least similar passages are left out."""

    def __init__(self, node: ModelNode, state: State, settings: Settings, model: ChatModel) -> None:
        self.model = with_options(model, partial(sampling_options, settings=settings))
        self._node, self._state, self._settings = node, state, settings
        evidence: Sequence[Mapping[str, Any]] = state.get("evidence") or []
        numbers = range(1, len(evidence) + 1)
        self._order = sorted(numbers, key=lambda number: evidence[number - 1]["score"])
        self._left_out = 0
        self._why = ""
        self._excess: list[str] = []
        self.messages = self._asked()
        self.fit()

    def fit(self, more: Sequence[BaseMessage] = ()) -> None:
        """Leave out passages until the prompt, with more messages behind it, is short enough."""
        limit = self._state["input_limit"]
        while limit and (size := prompt_tokens([*self.messages, *more])) > limit:
            if self._left_out == len(self._order):
                self._excess.append(
                    f"{self._node.name}: its prompt of about {size:,} tokens is longer than the "
                    f"limit of {limit:,} input tokens"
                )
                return
            why = f"to keep within {limit:,} input tokens"
            self._leave_out(max(1, 2 * self._left_out), why)

    def halve(self) -> bool:
        """Leave out at least half of the remaining passages; return False if that saves nothing."""
        size = prompt_tokens(self.messages)
        while (shown := len(self._order) - self._left_out) > 0:
            why = "because the model refused a longer prompt"
            self._leave_out(self._left_out + (shown + 1) // 2, why)
            if prompt_tokens(self.messages) < size:
                return True
        return False

    def warnings(self) -> list[str]:
        """Return the warnings about excessive length or newly omitted passages, each once."""
        warnings, self._excess = self._excess, []
        if self._why:
            warnings.append(
                f"{self._node.name}: {self._left_out} of {len(self._order)} passages, the least "
                f"similar, were left out {self._why}"
            )
            self._why = ""
        return warnings

    @property
    def left_out(self) -> list[int]:
        """The numbers of the passages that are left out."""
        return self._order[: self._left_out]

    def _leave_out(self, number: int, why: str) -> None:
        self._left_out, self._why = min(number, len(self._order)), why
        self.messages = self._asked()

    def _asked(self) -> list[BaseMessage]:
        messages = self._node.ask({**self._state, "left_out": self.left_out}, self._settings)
        return messages if self._settings.system_role else without_system_role(messages)


def published(graph: str, state: State, update: Update) -> Update:
    """Stream the answer in a run's last update, and return the update.

    If the run started from messages, the answer is also added as a message, with the
    run's warnings in its metadata.
    """
    emit_answer(graph, update["answer"])
    if not state.get("messages"):
        return update
    warnings = add_warnings(state.get("warnings") or [], update.get("warnings") or [])
    metadata = {"stepcraft": {"warnings": warnings}} if warnings else {}
    return {**update, "messages": [AIMessage(update["answer"], response_metadata=metadata)]}


def _is_too_long(error: Exception) -> bool:
    """Return whether a model has refused a prompt because it is too long."""
    if isinstance(error, _TOO_LONG):
        return True
    status = status_of(error)
    if status == 429:  # a rate limit, which a single prompt may exceed
        return "request too large" in str(error).lower()
    said = f"{getattr(error, 'code', '')} {error}"
    return status in {400, 413, 422} and _TOO_LONG_WORDS.search(said) is not None


@Inline
def publish(state: State, resources: Resources[Any]) -> Update:
    """Publish the answer in the state, as the last node of graphs that end without a model call."""
    return published(resources.graph, state, {"answer": state["answer"]})


def ending_warnings(node: str, reply: AIMessage) -> list[str]:
    """Return a warning if a node's reply was cut off or may be incomplete."""
    if is_cut_off(reply):
        return [f"{node}: the reply was cut off by the token limit; raise the model's max_tokens"]
    reason = odd_end(reply)
    return [f"{node}: the reply may be incomplete: it ended with {reason!r}"] if reason else []


def sampling_options(model: ChatModel, settings: Settings) -> dict[str, Any]:
    """Return the sampling options in a run's settings that a model and its fallbacks take."""
    models = [*models_in(model)]
    takes_seed = bool(models) and all(hasattr(each, "seed") for each in models)
    seed = settings.seed if takes_seed else None
    sampling = {"temperature": settings.temperature, "seed": seed}
    return {name: value for name, value in sampling.items() if value is not None}


def input_limit(model: ChatModel, settings: Settings) -> int | None:
    """Return the maximum number of tokens in a prompt, or None if no limit is known."""
    limits: list[int] = [
        limit
        for each in models_in(model)
        if (limit := (getattr(each, "profile", None) or {}).get("max_input_tokens"))
    ]
    return settings.max_input_tokens or min(limits, default=None)


class _LimitReached(Exception):
    """The run must not make any more calls."""
