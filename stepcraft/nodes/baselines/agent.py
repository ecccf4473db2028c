"""Each turn of an agent that may search: its model is asked as a model node asks, within the limits of the run."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Annotated, Any

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs, set_config_context
from langgraph.types import Command

from stepcraft.contexts.baselines import ReactContext
from stepcraft.evidence import Evidence
from stepcraft.llm.attempts import Failed, replied, why_skipped
from stepcraft.llm.budget import Budget, Budgeted
from stepcraft.llm.prompt import MATERIAL
from stepcraft.llm.requests import Request, Resolve, acarry_out, carry_out
from stepcraft.nodes.baselines.answer import LENGTHS
from stepcraft.nodes.baselines.search_tool import searches_made
from stepcraft.nodes.retrieve import ranked
from stepcraft.retrieval.build import GraphResources
from stepcraft.text.clean import tokens

NODE = "agent"

_LEFT_OUT = "(left out, to keep the prompt short)"


def merged(left: list[Evidence], right: list[Evidence]) -> list[Evidence]:
    """What several searches found, each passage once. A reducer."""
    return ranked(left or [], right)


class Turn(AgentState[Any], Budgeted):
    """What the turns of an agent and its searches hand to each other."""

    answer_style: str
    evidence: Annotated[list[Evidence], merged]


Reply = ExtendedModelResponse[Any]
Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class Turns(AgentMiddleware[Turn, Any, Any]):
    """Chooses the model, makes failing calls again, counts them, and offers no search when it is time to answer."""

    state_schema = Turn

    def __init__(self, build: GraphResources) -> None:
        super().__init__()
        self.build = build

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Reply:
        """One turn."""
        turn, outcome = self._turn(_Asked(request, handler)), None
        while True:
            try:
                wanted = turn.send(outcome)
            except StopIteration as end:
                reply: Reply = end.value
                return reply
            outcome = carry_out(wanted, self._labels())

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> Reply:
        """As `wrap_model_call`, without blocking the event loop."""
        turn, outcome = self._turn(_Asked(request, handler)), None
        while True:
            try:
                wanted = turn.send(outcome)
            except StopIteration as end:
                reply: Reply = end.value
                return reply
            outcome = await acarry_out(wanted, self._labels())

    def _labels(self) -> RunnableConfig:
        return {"metadata": dict(self.build.labels(self.build.context.current()))}

    def _turn(self, asked: "_Asked") -> Generator[Request, Any, Reply]:
        state: Any = asked.request.state
        context = ReactContext.current(state)
        budget = Budget.of(NODE, state, context)
        if limit := budget.spent():
            return _ended(AIMessage(""), budget, [limit])
        model = yield Resolve(self.build.models.choice(NODE, context))
        asked.offer(model, _system(state, context), searches=_may_search(state, budget))
        messages, warnings = _fitted(asked.request, model, context)
        try:
            reply = yield from replied(model, messages, budget, asked)
        except Failed as failure:
            return _ended(AIMessage(""), budget, [*warnings, why_skipped(failure, state, model, budget)])
        if reply.tool_calls and not asked.request.tools:
            reply = AIMessage(reply.text)
        return _ended(reply, budget, warnings)


class _Asked:
    """Takes a prompt to the model the way of `create_agent`, which knows how to offer tools."""

    def __init__(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> None:
        self.request = request
        self.handler = handler

    def offer(self, model: BaseChatModel, system: SystemMessage, *, searches: bool) -> None:
        tools = self.request.tools if searches else []
        self.request = self.request.override(model=model, system_message=system, tools=tools)

    def invoke(self, input: list[BaseMessage], config: RunnableConfig, /, **options: Any) -> object:  # noqa: A002, ANN401 - the signature of Runnable
        with set_config_context(merge_configs(ensure_config(), config)) as labelled:
            return labelled.run(self.handler, self._with(input, options)).result[0]

    async def ainvoke(self, input: list[BaseMessage], config: RunnableConfig, /, **options: Any) -> object:  # noqa: A002, ANN401 - the signature of Runnable
        async def call() -> ModelResponse[Any]:
            reply: ModelResponse[Any] = await self.handler(self._with(input, options))
            return reply

        with set_config_context(merge_configs(ensure_config(), config)) as labelled:
            return (await asyncio.create_task(call(), context=labelled)).result[0]

    def _with(self, messages: list[Any], options: dict[str, Any]) -> ModelRequest[Any]:
        return self.request.override(messages=messages, model_settings=options)


def _ended(reply: AIMessage, budget: Budget, warnings: list[str]) -> Reply:
    return ExtendedModelResponse(ModelResponse([reply]), Command(update=budget.update(warnings)))


def _system(state: Any, context: ReactContext) -> SystemMessage:  # noqa: ANN401 - the state of the agent
    instructions = context.agent_instructions.strip()
    return SystemMessage(f"{instructions}\n\n{MATERIAL}\n\nThe answer: {LENGTHS[state['answer_style']]}")


def _may_search(state: Any, budget: Budget) -> bool:  # noqa: ANN401 - the state of the agent
    """Whether a search and a call to answer from it are left."""
    enough = searches_made(state["messages"]) >= ReactContext.current(state).max_searches
    return not enough and (budget.left is None or budget.left > 1)


def _fitted(
    request: ModelRequest[Any], model: BaseChatModel, context: ReactContext
) -> tuple[list[AnyMessage], list[str]]:
    """The messages within what the model takes: what the oldest searches found is left out."""
    limit = context.max_input_tokens or (model.profile or {}).get("max_input_tokens")
    kept, left_out = list(request.messages), 0
    for place, message in enumerate(request.messages):
        if limit is None or _tokens([request.system_message, *kept]) <= limit:
            break
        if isinstance(message, ToolMessage):
            kept[place] = message.model_copy(update={"content": _LEFT_OUT})
            left_out += 1
    what = f"what the first of its searches ({left_out}) had found was left out"
    return kept, [f"{NODE}: {what} to keep within {limit:,} input tokens"] if limit and left_out else []


def _tokens(messages: Sequence[BaseMessage | None]) -> int:
    return sum(tokens(str(message.content)) + 4 for message in messages if message)
