"""The only place where a model is called.

A model node is two pure functions, `ask` (state to messages) and `read` (reply to state update), and this
adapter. What the adapter does next is decided by one generator, `ModelNode._talk`, which yields requests and is
sent their outcomes; `invoke` and `ainvoke` only carry the requests out.
"""

import json
from collections.abc import Callable, Generator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime

from stepcraft.errors import UnreadableReply
from stepcraft.llm.attempts import Failed, replied, why_skipped
from stepcraft.llm.budget import Budget
from stepcraft.llm.fit import fitted
from stepcraft.llm.reply import Refused, is_cut_off, reply_text
from stepcraft.llm.requests import Request, Resolve, acarry_out, carry_out
from stepcraft.retrieval.build import GraphResources

State = Any
"""What a node reads: a TypedDict of the node's own."""
Update = dict[str, Any]
Ask = Callable[[State, Any], Sequence[BaseMessage]]
Read = Callable[[str, State, Any], Update]
Fallback = Callable[[State, str], Update]
Without = Callable[[State, Any], Update | None]
Keeps = Callable[[State], int]
Tells = Callable[[Update], object]


class ModelNode(Runnable[Any, Update]):
    """A step of a graph that asks a model; `within` gives it the graph it belongs to."""

    def __init__(
        self,
        name: str,
        ask: Ask,
        read: Read,
        *,
        fallback: Fallback,
        skip_model: Without | None,
        truncate_key: str,
        reserve_calls: Keeps | None,
        stream_event: Tells | None,
        build: GraphResources,
    ) -> None:
        self.name = self.node = name
        self.ask = ask
        self.read = read
        self.fallback = fallback
        self.skip_model = skip_model
        self.truncate_key = truncate_key
        self.reserve_calls = reserve_calls
        self.stream_event = stream_event
        self.build = build

    def with_resources(self, build: GraphResources) -> "ModelNode":
        """The same node in a graph that was built with `build`."""
        return ModelNode(
            self.node,
            self.ask,
            self.read,
            fallback=self.fallback,
            skip_model=self.skip_model,
            truncate_key=self.truncate_key,
            reserve_calls=self.reserve_calls,
            stream_event=self.stream_event,
            build=build,
        )

    def cache_key(self, state: State) -> str:
        """What a reply depends on: the settings of the run and what the node reads of its state."""
        read = {name: value for name, value in state.items() if name not in _BESIDE_THE_POINT}
        return json.dumps([self.node, read], sort_keys=True)

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002, ANN401 - the signature of Runnable
        """Ask the model and return the state update.

        Raises:
            ModelFailure: the first call of a run is refused for good (a wrong key, an unknown model).
            NoAnswer: the step failed and there is nothing to go on with.
        """
        talk, outcome = self._talk(input), None
        config = self._labelled(config, input)
        while True:
            try:
                request = talk.send(outcome)
            except StopIteration as end:
                update: Update = end.value
                return update
            outcome = carry_out(request, config)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        talk, outcome = self._talk(input), None
        config = self._labelled(config, input)
        while True:
            try:
                request = talk.send(outcome)
            except StopIteration as end:
                update: Update = end.value
                return update
            outcome = await acarry_out(request, config)

    def _labelled(self, config: RunnableConfig | None, state: State) -> RunnableConfig:
        config = config or {}
        labels = self.build.labels(self.build.context.current(state))
        return {**config, "metadata": {**config.get("metadata", {}), **labels}}

    def _talk(self, state: State) -> Generator[Request, Any, Update]:
        context = self.build.context.current(state)
        budget = Budget.of(self.node, state, context)
        budget.keep(self.reserve_calls(state) if self.reserve_calls else 0)
        if self.skip_model and (update := self.skip_model(state, context)) is not None:
            return {**update, **budget.update([])}
        if limit := budget.spent():
            return {**self.fallback(state, limit), **budget.update([limit])}
        model = yield Resolve(self.build.models.choice(self.node, context))
        limit_tokens = context.max_input_tokens or (model.profile or {}).get("max_input_tokens")
        messages, shown, warnings = fitted(self, state, context, limit_tokens)
        try:
            update = yield from self._readable(model, messages, shown, budget, warnings)
            self._tell(update)
        except (Failed, Refused, UnreadableReply) as failure:
            why = why_skipped(failure, state, model, budget)
            warnings.append(why)
            update = self.fallback(state, why)
        return {**update, **budget.update(warnings)}

    def _tell(self, update: Update) -> None:
        """To those who listen to `stream_mode="custom"`."""
        if self.stream_event:
            get_runtime().stream_writer(self.stream_event(update))

    def _readable(
        self,
        model: BaseChatModel,
        messages: list[BaseMessage],
        state: State,
        budget: Budget,
        warnings: list[str],
    ) -> Generator[Request, Any, Update]:
        """The update that the model's reply makes; an unreadable reply is handed back once."""
        asked = messages
        while True:
            reply = yield from replied(model, asked, budget)
            if is_cut_off(reply):
                warnings.append(
                    f"{self.node}: the reply was cut off by the token limit; raise the model's max_tokens"
                )
            try:
                return self.read(reply_text(reply), state, budget.context)
            except UnreadableReply as problem:
                if asked is not messages or budget.spent():
                    raise
                asked = [
                    *messages,
                    *([reply] if reply.text.strip() else []),
                    HumanMessage(_HAND_BACK.format(problem)),
                ]


def model_node(
    name: str,
    ask: Ask,
    read: Read,
    *,
    fallback: Fallback,
    skip_model: Without | None = None,
    truncate_key: str = "evidence",
    reserve_calls: Keeps | None = None,
    stream_event: Tells | None = None,
) -> ModelNode:
    """A step that asks a model.

    Args:
        name: The node's name in graphs, traces, `usage` and `node_models`.
        ask: Makes the messages from what the node reads.
        read: Makes the state update from the reply; raises UnreadableReply with a sentence that tells the model
            what was wrong.
        fallback: Makes the update when the step fails, from the state and the reason; raises NoAnswer where
            there is nothing to go on with.
        skip_model: Makes the update where no model is needed; None where one is.
        truncate_key: The key of the list from whose end pieces are left out of a prompt that is too long.
        reserve_calls: How many of the calls that are left are kept for later nodes.
        stream_event: What of the update is streamed as soon as it is made, to `stream_mode="custom"`.
    """
    return ModelNode(
        name,
        ask,
        read,
        fallback=fallback,
        skip_model=skip_model,
        truncate_key=truncate_key,
        reserve_calls=reserve_calls,
        stream_event=stream_event,
        build=GraphResources(),
    )


_BESIDE_THE_POINT = frozenset(
    {"usage", "warnings", "started", "share", "answered", "elapsed", "step_started"}
)

_HAND_BACK = (
    "Your reply could not be used: {} Reply again to the same task, in the format that reply_format asks for, "
    "with nothing before or after it."
)
