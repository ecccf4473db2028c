"""The graph node that asks a chat model.

A model node is two pure functions, tested without a model, and this adapter: `ask` makes the messages from the state,
`read` turns the reply into a state update. `ModelNode` does the rest: it keeps the limits of the run, shortens the
prompt, repeats calls, hands an unreadable reply back once, counts usage, and lets a failure cost the step instead of
the run.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.cache.base import FullKey

from stepcraft.errors import StepcraftError, UnreadableReply
from stepcraft.llm.budget import Budget
from stepcraft.llm.cache import ReplyCache, Update, reply_key
from stepcraft.llm.call import CallFailed, acall_model, call_model, skip_reason
from stepcraft.llm.prompt import fit_prompt, input_limit
from stepcraft.llm.reply import Refused, is_cut_off, reply_text
from stepcraft.llm.resources import GraphResources
from stepcraft.models.resolve import aresolve_model, resolve_model
from stepcraft.progress import ProgressData, Said, Status, tell

State = Any
"""The input of a node: a TypedDict of the node's own."""


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
        description: What the node does, in one line, for drawings and Studio.
        starts: What the step is about to do, from the state: told before the model is asked. Its data is told again
            with the outcome.
        describe: What the step did, from the state and the update.
        publish: Streams what else the update holds, such as the answer; it is given the name of the graph, the state
            and the update.
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
        description: str = "",
        starts: Callable[[State], Said] | None = None,
        describe: Callable[[State, Update], Said] | None = None,
        publish: Callable[[str, State, Update], None] | None = None,
    ) -> None:
        self.name = self.node = name
        self.ask = ask
        self.read = read
        self.fallback = fallback
        self.skip_model = skip_model
        self.truncate_key = truncate_key
        self.reserve_calls = reserve_calls
        self.description = description
        self.starts = starts
        self.describe = describe
        self.publish = publish
        self.resources = GraphResources()
        self.replies: ReplyCache | None = None

    def with_resources(self, resources: GraphResources, replies: ReplyCache | None) -> "ModelNode":
        """A copy of the node for a graph that is built with these resources and caches replies, if it does."""
        node = copy.copy(self)
        node.resources, node.replies = resources, replies
        return node

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002, ANN401 - the signature of Runnable
        """Ask the model and return the state update.

        Raises:
            ModelFailure: the provider refuses the first call of a run for good (a wrong key, an unknown model).
            NoAnswer: the step failed and the run cannot go on without it.
        """
        step = self._begin(input)
        if self.replies and step.key:
            step.update = self.replies.get(step.key)
            step.is_known = step.update is not None
        if step.update is None:
            config = self.resources.traced(config, step.budget.context)
            self._tell_start(step)
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
        result = step.result()
        if self.replies and step.key and step.update is not None and step.is_read and not result["warnings"]:
            self.replies.set(step.key, step.update)
        self._tell_outcome(step, result["warnings"])
        return result

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, on the running event loop."""
        step = self._begin(input)
        if self.replies and step.key:
            step.update = await self.replies.aget(step.key)
            step.is_known = step.update is not None
        if step.update is None:
            config = self.resources.traced(config, step.budget.context)
            self._tell_start(step)
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
        result = step.result()
        if self.replies and step.key and step.update is not None and step.is_read and not result["warnings"]:
            await self.replies.aset(step.key, step.update)
        self._tell_outcome(step, result["warnings"])
        return result

    def _begin(self, state: State) -> "_Step":
        """The step, with its update where no model is to be called."""
        context = self.resources.settings(state)
        step = _Step(
            state, Budget.of(self.node, state, context), self.resources.models.choice(self.node, context)
        )
        if self.reserve_calls:
            step.budget.reserve(self.reserve_calls(state))
        try:
            if self.skip_model and (update := self.skip_model(state, context)) is not None:
                step.update = update
            elif limit := step.budget.spent():
                step.status, step.reason = "skipped", limit
                step.warnings.append(limit)
                step.update = self.fallback(state, limit)
            elif self.replies:
                step.key = reply_key(self.node, step.choice, context, state)
        except StepcraftError as error:
            self._tell_failure(step, error)
            raise
        return step

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
            step.is_read = True

    def _tell_start(self, step: "_Step") -> None:
        tell(self.resources.method, self.node, "started", lambda: self._about(step))

    def _tell_outcome(self, step: "_Step", warnings: list[str]) -> None:
        """Tell what the step did; where it failed or a limit is reached, why."""

        def said() -> Said:
            about, data = self._about(step).data, ProgressData()
            if step.is_known:
                data["cached"] = True
            if warnings:
                data["warnings"] = warnings
            if step.reason:
                return Said(step.reason, {**about, **data, "reason": step.reason})
            if self.describe is None:
                return Said(f"The step {self.node} is done.", {**about, **data})
            made = self.describe(step.state, step.update or {})
            return made._replace(data={**about, **made.data, **data})

        tell(self.resources.method, self.node, step.status, said)
        if self.publish:
            self.publish(self.resources.method, step.state, step.update or {})

    def _tell_failure(self, step: "_Step", error: StepcraftError) -> None:
        tell(
            self.resources.method,
            self.node,
            "failed",
            lambda: Said(str(error), {**self._about(step).data, "reason": str(error)}),
        )

    def _about(self, step: "_Step") -> Said:
        if self.starts is None:
            return Said(f"The step {self.node} asks its model.")
        return self.starts(step.state)

    def _fall_back(self, step: "_Step", failure: Exception) -> None:
        if step.readable is not None:
            step.warnings.append(f"{self.node}: a part of the reply was left out: {step.readable}")
            step.update = step.readable.update
            return
        try:
            reason = skip_reason(failure, step.state, step.choice, step.budget)
            step.status, step.reason = "failed", reason
            step.warnings.append(reason)
            step.update = self.fallback(step.state, reason)
        except StepcraftError as error:
            self._tell_failure(step, error)
            raise


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
    key: FullKey | None = None
    """The key of its reply in the cache, where there is one."""
    is_known: bool = False
    """Whether the update comes from the cache."""
    is_read: bool = False
    """Whether the update comes from a reply."""
    status: Status = "finished"
    """What became of the step."""
    reason: str = ""
    """Why it failed or was skipped."""

    def result(self) -> Update:
        return {**(self.update or {}), **self.budget.update(self.warnings)}


_HAND_BACK = (
    "Your reply could not be used: {} Reply again to the same task, in the format that reply_format asks for, "
    "with nothing before or after it."
)
