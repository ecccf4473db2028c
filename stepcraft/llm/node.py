"""The graph node that asks a chat model.

A model node is two pure functions, tested without a model, and this adapter: `ask` makes the messages from the state,
`read` turns the reply into a state update. `ModelNode` does the rest: it keeps the limits of the run, shortens the
prompt, repeats calls, hands an unreadable reply back once, counts usage, and lets a failure cost the step instead of
the run.
"""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime

from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budget
from stepcraft.llm.call import CallFailed, acall_model, call_model, skip_reason
from stepcraft.llm.prompt import fit_prompt, input_limit
from stepcraft.llm.reply import Refused, is_cut_off, reply_text
from stepcraft.llm.resources import GraphResources
from stepcraft.models.resolve import aresolve_model, resolve_model

State = Any
"""The input of a node: a TypedDict of the node's own."""
Update = dict[str, Any]


class ModelNode(Runnable[Any, Update]):
    """A graph node that asks a chat model; declared at module level with the name `model_node`.

    Args:
        name: The node's name in graphs, traces, `usage` and `node_models`.
        ask: Makes the messages from the node's state and the run's context.
        read: Makes the state update from the reply's text, the state and the context. Raises UnreadableReply with
            a sentence that tells the model what was wrong, and with the update from the rest of the reply, if that
            is of use.
        fallback: Makes the update when the step fails, from the state and the reason. Raises NoAnswer where the
            run cannot go on.
        skip_model: Makes the update where no model is needed; None where one is.
        truncate_key: The state's list of scored items that are left out of a prompt that is too long.
        reserve_calls: How many of the remaining calls are left to later nodes.
        stream_event: Makes an event from the update, sent to `stream_mode="custom"` as soon as the reply is read.
    """

    def __init__(
        self,
        name: str,
        ask: Callable[[State, Any], Sequence[BaseMessage]],
        read: Callable[[str, State, Any], Update],
        *,
        fallback: Callable[[State, str], Update],
        skip_model: Callable[[State, Any], Update | None] | None = None,
        truncate_key: str = "evidence",
        reserve_calls: Callable[[State], int] | None = None,
        stream_event: Callable[[Update], object] | None = None,
    ) -> None:
        self.name = self.node = name
        self.ask = ask
        self.read = read
        self.fallback = fallback
        self.skip_model = skip_model
        self.truncate_key = truncate_key
        self.reserve_calls = reserve_calls
        self.stream_event = stream_event
        self.resources = GraphResources()

    def with_resources(self, resources: GraphResources) -> "ModelNode":
        """A copy of the node for a graph that is built with these resources."""
        node = copy.copy(self)
        node.resources = resources
        return node

    def cache_key(self, state: Mapping[str, Any]) -> str:
        """The key of a cached reply: the node and its state, of which `settings` identifies settings and models."""
        inputs = {name: value for name, value in state.items() if name not in _NOT_IN_KEY}
        return json.dumps([self.node, inputs], sort_keys=True, default=_message_key)

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002, ANN401 - the signature of Runnable
        """Ask the model and return the state update.

        Raises:
            ModelFailure: the provider refuses the first call of a run for good (a wrong key, an unknown model).
            NoAnswer: the step failed and the run cannot go on without it.
        """
        step = self._begin(input)
        if step.update is None:
            config = self._traced(step, config)
            try:
                model = resolve_model(step.choice, step.budget.seconds_left())
                self._write_prompt(step, model)
                while step.update is None:
                    reply = call_model(
                        model, step.budget, lambda options: model.invoke(step.messages, config, **options)
                    )
                    self._read_reply(step, reply)
            except (CallFailed, Refused, UnreadableReply, TimeoutError) as failure:
                self._fall_back(step, failure)
        return step.result()

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, on the running event loop."""
        step = self._begin(input)
        if step.update is None:
            config = self._traced(step, config)
            try:
                model = await aresolve_model(step.choice, step.budget.seconds_left())
                self._write_prompt(step, model)
                while step.update is None:
                    reply = await acall_model(
                        model, step.budget, lambda options: model.ainvoke(step.messages, config, **options)
                    )
                    self._read_reply(step, reply)
            except (CallFailed, Refused, UnreadableReply, TimeoutError) as failure:
                self._fall_back(step, failure)
        return step.result()

    def _begin(self, state: State) -> "_Step":
        """The step, with its update where no model is to be called."""
        context = self.resources.settings(state)
        step = _Step(
            state, Budget.of(self.node, state, context), self.resources.models.choice(self.node, context)
        )
        if self.reserve_calls:
            step.budget.reserve(self.reserve_calls(state))
        if self.skip_model and (update := self.skip_model(state, context)) is not None:
            step.update = update
        elif limit := step.budget.spent():
            step.warnings.append(limit)
            step.update = self.fallback(state, limit)
        return step

    def _traced(self, step: "_Step", config: RunnableConfig | None) -> RunnableConfig:
        """The config with the labels of the run in its metadata."""
        config, labels = config or {}, self.resources.labels(step.budget.context)
        return {**config, "metadata": {**config.get("metadata", {}), **labels}}

    def _write_prompt(self, step: "_Step", model: BaseChatModel) -> None:
        context = step.budget.context
        step.prompt, step.state, step.warnings = fit_prompt(
            self.node,
            self.ask,
            step.state,
            context,
            truncate_key=self.truncate_key,
            limit=input_limit(model, context),
        )
        step.messages = step.prompt

    def _read_reply(self, step: "_Step", reply: AIMessage) -> None:
        """Make the update from the reply, or the next messages from the first reply that cannot be read.

        Raises:
            Refused: the model declined.
            UnreadableReply: the reply is unreadable again, or no call is left.
        """
        if is_cut_off(reply):
            step.warnings.append(
                f"{self.node}: the reply was cut off by the token limit; raise the model's max_tokens"
            )
        try:
            step.update = self.read(reply_text(reply), step.state, step.budget.context)
        except UnreadableReply as problem:
            if problem.update is not None:
                step.readable = problem
            if step.messages is not step.prompt or step.budget.spent():
                raise
            said = [reply] if reply.text.strip() else []
            step.messages = [*step.prompt, *said, HumanMessage(_HAND_BACK.format(problem))]
        else:
            if self.stream_event:
                get_runtime().stream_writer(self.stream_event(step.update))

    def _fall_back(self, step: "_Step", failure: Exception) -> None:
        if step.readable is not None:
            step.warnings.append(f"{self.node}: a part of the reply was left out: {step.readable}")
            step.update = step.readable.update
            return
        reason = skip_reason(failure, step.state, step.choice, step.budget)
        step.warnings.append(reason)
        step.update = self.fallback(step.state, reason)


model_node = ModelNode
"""The name under which node modules declare their node: `draft = model_node("draft", ask, read, fallback=…)`."""


@dataclass
class _Step:
    """One execution of a node. `update` is None until it is known."""

    state: State
    budget: Budget
    choice: BaseChatModel | str
    prompt: list[BaseMessage] = field(default_factory=list[BaseMessage])
    messages: list[BaseMessage] = field(default_factory=list[BaseMessage])
    """The prompt, or the prompt with a reply that is handed back."""
    warnings: list[str] = field(default_factory=list[str])
    readable: UnreadableReply | None = None
    """What the readable part of a reply gives, if any."""
    update: Update | None = None

    def result(self) -> Update:
        return {**(self.update or {}), **self.budget.update(self.warnings)}


_NOT_IN_KEY = frozenset({"usage", "warnings", "started", "share", "answered", "elapsed", "step_started"})
"""Keys of the state that differ between runs and do not change a reply."""


def _message_key(value: object) -> object:
    """What identifies a message; its ids, and those of tool calls, differ from run to run.

    Raises:
        TypeError: the value is not a message, and the state may hold nothing else that is not JSON.
    """
    if not isinstance(value, BaseMessage):
        raise TypeError(f"a cached step reads {type(value).__name__}, which is neither JSON nor a message")
    calls = value.tool_calls if isinstance(value, AIMessage) else []
    return [value.type, value.content, [[call["name"], call["args"]] for call in calls]]


_HAND_BACK = (
    "Your reply could not be used: {} Reply again to the same task, in the format that reply_format asks for, "
    "with nothing before or after it."
)
