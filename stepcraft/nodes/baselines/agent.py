"""What the ReAct agent is made of: its state, the middleware that asks its model, and its search tool.

`create_agent` of LangChain runs the loop of turns and searches. Its model calls go through `stepcraft.llm.call`, as
those of every model node do, so the limits of the run, repeated attempts and usage hold for the agent as well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, cast

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs, set_config_context
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from stepcraft.contexts.baselines import ReactContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budget, Budgeted
from stepcraft.llm.call import CallFailed, acall_model, call_model, skip_reason
from stepcraft.llm.prompt import MATERIAL, evidence_sections, input_limit, prompt_tokens
from stepcraft.llm.resources import GraphResources
from stepcraft.models.resolve import aresolve_model, resolve_model
from stepcraft.nodes.baselines.answer import LENGTHS
from stepcraft.nodes.retrieve import RetrieveNode, ranked
from stepcraft.progress import ProgressData, Said, counted, quoted, tell

NODE = "agent"
SEARCH_TOOL = "search"

_LEFT_OUT = "(left out, to keep the prompt short)"
_DESCRIPTION = "Search for passages. The query is short and specific, and names what it is about in full."
_NOTHING_FOUND = "Nothing was found. Search in other words, or answer."
_SEARCH_FAILED = "The search failed: {}. Search in other words, or answer."
_NO_MORE_SEARCHES = "No more searches are made. Answer now from what was found."


def merge_evidence(left: list[Evidence], right: list[Evidence]) -> list[Evidence]:
    """A reducer: the passages of several searches, each once, best first."""
    return ranked(left or [], right)


class ReactState(AgentState[Any], Budgeted):
    """The state of the agent: LangChain's messages, the limits of the run and the evidence found."""

    answer_style: str
    """How long the answer is to be, a key of `LENGTHS`."""
    evidence: Annotated[list[Evidence], merge_evidence]
    """The passages that all searches of the run found."""


class BudgetedModelMiddleware(AgentMiddleware[ReactState, Any, Any]):
    """Asks the model of each turn, within the limits of the run.

    It puts the run's model in place of the agent's, writes the system message, repeats failing calls, counts usage,
    shortens a prompt that is too long, and offers no search tool when the next reply has to be the answer. A turn
    whose model cannot be asked ends the agent with an empty message and a warning.
    """

    state_schema = ReactState

    def __init__(self, resources: GraphResources) -> None:
        super().__init__()
        self.resources = resources

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Ask the model for one turn.

        Raises:
            ModelFailure: the provider refuses the first call of a run for good (a wrong key, an unknown model).
        """
        state: Any = request.state
        context = cast("ReactContext", self.resources.settings(state))
        budget = Budget.of(NODE, state, context)
        if limit := budget.spent():
            return self._response(AIMessage(""), budget, [limit], limit)
        choice = self.resources.models.choice(NODE, context)
        try:
            model = resolve_model(choice, budget.seconds_left())
        except TimeoutError as late:
            why = skip_reason(late, state, choice, budget)
            return self._response(AIMessage(""), budget, [why], why)
        prepared, warnings = _prepare(request, model, budget, context)
        tell(self.resources.method, NODE, "started", lambda: Said("The agent decides what to do next."))

        def send(options: Any) -> AIMessage:  # noqa: ANN401 - a mapping of options
            with set_config_context(self._traced(context)) as variables:
                reply = variables.run(handler, prepared.override(model_settings=dict(options)))
            return cast("AIMessage", reply.result[0])

        try:
            reply = call_model(model, budget, send)
        except CallFailed as failure:
            why = skip_reason(failure, state, choice, budget)
            return self._response(AIMessage(""), budget, [*warnings, why], why)
        return self._response(_final(reply, prepared), budget, warnings)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """As `wrap_model_call`, on the running event loop."""
        state: Any = request.state
        context = cast("ReactContext", self.resources.settings(state))
        budget = Budget.of(NODE, state, context)
        if limit := budget.spent():
            return self._response(AIMessage(""), budget, [limit], limit)
        choice = self.resources.models.choice(NODE, context)
        try:
            model = await aresolve_model(choice, budget.seconds_left())
        except TimeoutError as late:
            why = skip_reason(late, state, choice, budget)
            return self._response(AIMessage(""), budget, [why], why)
        prepared, warnings = _prepare(request, model, budget, context)
        tell(self.resources.method, NODE, "started", lambda: Said("The agent decides what to do next."))

        async def send(options: Any) -> AIMessage:  # noqa: ANN401 - a mapping of options
            async def handle() -> ModelResponse[Any]:
                return await handler(prepared.override(model_settings=dict(options)))

            with set_config_context(self._traced(context)) as variables:
                reply = await asyncio.create_task(handle(), context=variables)
            return cast("AIMessage", reply.result[0])

        try:
            reply = await acall_model(model, budget, send)
        except CallFailed as failure:
            why = skip_reason(failure, state, choice, budget)
            return self._response(AIMessage(""), budget, [*warnings, why], why)
        return self._response(_final(reply, prepared), budget, warnings)

    def _response(
        self, reply: AIMessage, budget: Budget, warnings: list[str], failed: str = ""
    ) -> ExtendedModelResponse[Any]:
        """The reply with the update of the step, which is told; `failed` says why the model could not be asked."""

        def said() -> Said:
            queries = [str(call["args"].get("query", "")) for call in reply.tool_calls]
            if failed:
                return Said(failed, {"reason": failed})
            if queries:
                asked = ", ".join(map(quoted, queries))
                return Said(f"The agent searches for {asked}.", {"queries": queries})
            return Said("The agent has finished.")

        tell(self.resources.method, NODE, "failed" if failed else "finished", said)
        return ExtendedModelResponse(ModelResponse([reply]), Command(update=budget.update(warnings)))

    def _traced(self, context: ReactContext) -> RunnableConfig:
        """The config of the turn with the labels of the run in its metadata."""
        return merge_configs(ensure_config(), {"metadata": dict(self.resources.labels(context))})


def _prepare(
    request: ModelRequest[Any], model: BaseChatModel, budget: Budget, context: ReactContext
) -> tuple[ModelRequest[Any], list[str]]:
    """The request as the model is sent it, and warnings about what was left out of it."""
    state: Any = request.state
    instructions = context.agent_instructions.strip()
    system = SystemMessage(f"{instructions}\n\n{MATERIAL}\n\nThe answer: {LENGTHS[state['answer_style']]}")
    # A search takes two calls: the one that asks for it, and the one that answers from what it finds.
    may_search = searches_made(state["messages"]) < context.max_searches and (
        budget.left is None or budget.left > 1
    )
    messages, left_out, limit = list(request.messages), 0, input_limit(model, context)
    for place, message in enumerate(request.messages):
        if limit is None or prompt_tokens([system, *messages]) <= limit:
            break
        if isinstance(message, ToolMessage):
            messages[place] = message.model_copy(update={"content": _LEFT_OUT})
            left_out += 1
    warnings: list[str] = []
    if left_out:
        what = f"what the first of its searches ({left_out}) had found was left out"
        warnings.append(f"{NODE}: {what} to keep within {limit:,} input tokens")
    tools = request.tools if may_search else []
    return request.override(model=model, system_message=system, tools=tools, messages=messages), warnings


def _final(reply: AIMessage, request: ModelRequest[Any]) -> AIMessage:
    """The reply; without tool calls where no tool was offered."""
    return AIMessage(reply.text) if reply.tool_calls and not request.tools else reply


def search_tool(resources: GraphResources) -> BaseTool:
    """The search of the graph's source or memory as a tool with one argument, `query`.

    A search that fails is answered with the reason, so that the model can go on, and adds a warning. Calls beyond
    `max_searches` are answered without a search.
    """
    node = RetrieveNode(
        lambda state: [state["query"]],
        lambda _state, found, failed: {"evidence": found[0], "failed": failed},
        resources,
    )

    def search(query: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        if _is_beyond_limit(runtime):
            return _tool_reply(runtime, _NO_MORE_SEARCHES)
        return _found(runtime, node.invoke({**runtime.state, "query": query}, runtime.config))

    async def asearch(query: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        if _is_beyond_limit(runtime):
            return _tool_reply(runtime, _NO_MORE_SEARCHES)
        return _found(runtime, await node.ainvoke({**runtime.state, "query": query}, runtime.config))

    return StructuredTool.from_function(search, asearch, name=SEARCH_TOOL, description=_DESCRIPTION)


def describe(update: Mapping[str, Any]) -> Said:
    """How often the agent searched, and what it found."""
    searches, found = searches_made(update["messages"]), len(update.get("evidence") or [])
    data: ProgressData = {"searches": searches, "found": found}
    if warnings := update.get("warnings"):
        data["warnings"] = warnings
    if not searches:
        return Said("The agent did not search.", data)
    return Said(
        f"The agent searched {counted(searches, 'time')} and found {counted(found, 'passage')}.", data
    )


def searches_made(messages: list[AnyMessage]) -> int:
    """The number of searches that were answered."""
    return sum(isinstance(message, ToolMessage) for message in messages)


def _is_beyond_limit(runtime: ToolRuntime[Any, Any]) -> bool:
    """Whether this call comes after the last search allowed; one turn may ask for several."""
    messages: list[AnyMessage] = runtime.state["messages"]
    last = next(message for message in reversed(messages) if isinstance(message, AIMessage))
    place = [call["id"] for call in last.tool_calls].index(runtime.tool_call_id)
    return searches_made(messages) + place >= ReactContext.current(runtime.state).max_searches


def _found(runtime: ToolRuntime[Any, Any], update: dict[str, Any]) -> Command[Any]:
    failed = update.pop("failed")
    if failed:
        reason = failed[0].rpartition("a search failed: ")[2]
        return _tool_reply(runtime, _SEARCH_FAILED.format(reason), failed=True, **update)
    text = "\n\n".join(evidence_sections(update["evidence"])) or _NOTHING_FOUND
    return _tool_reply(runtime, text, **update)


def _tool_reply(
    runtime: ToolRuntime[Any, Any],
    text: str,
    *,
    failed: bool = False,
    **update: Any,  # noqa: ANN401 - keys of the state
) -> Command[Any]:
    status = "error" if failed else "success"
    message = ToolMessage(text, tool_call_id=runtime.tool_call_id or "", name=SEARCH_TOOL, status=status)
    return Command(update={**update, "messages": [message]})
