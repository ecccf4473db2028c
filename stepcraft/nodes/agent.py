"""An agent that decides how often to search, built on LangChain's `create_agent`."""

from collections.abc import Sequence
from threading import Lock
from typing import Annotated, Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware, hook_config
from langchain.tools import InjectedState
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.fallbacks import RunnableWithFallbacks
from langchain_core.runnables.retry import RunnableRetry
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp
from typing_extensions import override

from stepcraft.contexts.baselines import ReactContext
from stepcraft.errors import BadInput
from stepcraft.llm.calls import Call, Calls, Node
from stepcraft.llm.limits import TOO_LATE, RunLimits, limits_of
from stepcraft.llm.node import ending_warnings, input_limit, sampling_options
from stepcraft.llm.prompt import passages, prompt_tokens, without_system_role
from stepcraft.llm.reply import answer_text, reply_text
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import usage_of
from stepcraft.models.resolve import model_name, unbound
from stepcraft.nodes.retrieve import Passages, Retrieve
from stepcraft.progress import quoted
from stepcraft.secrets import masked_line
from stepcraft.text.sections import written

_Messages = Annotated[Any, InjectedState("messages")]
"""The agent's messages, injected by LangGraph rather than supplied by the model."""
_Found = tuple[str, dict[str, Any]]
"""The text that a search returns to the model, and the record of its results."""

NAME = "agent"
ANSWER_NOW = "You have made all your searches. Answer now, from what you found."


class Agent(Node):
    """Runs the agent.

    After its last search, the agent is told to answer, and it stops before any model call that
    would exceed a limit. If it has not answered by then, a call without tools writes the answer.

    Args:
        resources: The resources that the graph is built with.
    """

    def __init__(self, resources: Resources[ReactContext]) -> None:
        self.name = NAME
        self.resources = resources
        self.retrieve = Retrieve(resources)

    async def run(self, state: Any, calls: Calls) -> dict[str, Any]:
        """Run the agent and return its answer, or "" if there is none."""
        settings = self.resources.settings(state)
        limits = limits_of(state, settings)
        counter = _Counter(limits)
        searches = _Searches(self.retrieve, {**state, "limits": limits})
        searching = settings.agent_instructions.replace("{most}", str(settings.max_searches))
        answer = ""
        try:
            bound = await calls.model(self.resources.choice(NAME, settings))
            model, options, retries = _unwrapped(bound)
            _check_tools(model, self.resources.graph)
            ends = _Limits(searches, settings.max_searches, counter, input_limit(bound, settings))
            messages: list[BaseMessage] = [
                SystemMessage(f"{searching}\n\n{settings.answer_instructions}"),
                HumanMessage(state["task"]),
            ]
            agent = create_agent(
                model,
                [searches.tool()],
                middleware=[
                    ends,
                    _Options({**options, **sampling_options(bound, settings)}),
                    *retries,
                ],
                name=NAME,
            ).with_config(callbacks=[counter], recursion_limit=10 * settings.max_searches + 20)
            prompt = messages if settings.system_role else without_system_role(messages)
            call = Call(agent, {"messages": prompt}, {})
            result = await calls.result(call, limits.seconds_left())
            answer = _answer(result["messages"])
            counter.resume(result["messages"])
            searches.resume(result["messages"])
            searches.warnings += ends.warnings
            for reply in counter.replies[-1:]:
                searches.warnings += ending_warnings(NAME, reply)
        except GraphBubbleUp:
            raise
        except Exception as error:
            kind = "" if isinstance(error, BadInput) else f"{type(error).__name__}: "
            reason = masked_line(f"{kind}{error}")
            failed = TOO_LATE if limits.has_ended(error) else f"the agent failed: {reason}"
            searches.warnings.append(failed)
        if searches.made and not searches.has_worked:
            searches.warnings.append("every search failed, so the answer is based on no source")
        return {
            "answer": answer,
            "evidence": searches.passages.evidence,
            "limits": limits,
            "usage": usage_of(NAME, counter.calls, counter.replies),
            "warnings": searches.warnings,
        }


def _check_tools(model: Any, graph: str) -> None:
    """Check that a model can call tools.

    Raises:
        BadInput: It cannot.
    """
    if getattr(type(model), "bind_tools", None) is BaseChatModel.bind_tools:
        raise BadInput(
            f"{graph} needs a model that can call tools, and {model_name(model)} cannot; name "
            "another with model=, --model or STEPCRAFT_MODEL"
        )


def _unwrapped(model: Any) -> tuple[Any, dict[str, Any], list[AgentMiddleware[Any, Any, Any]]]:
    """Return a model without its bindings, plus its options and retries.

    LangChain's agents bind tools to the model itself, and take retries as middleware.
    """
    options: dict[str, Any] = {}
    retries: list[AgentMiddleware[Any, Any, Any]] = []
    while isinstance(model, RunnableBindingBase):
        options = {**model.kwargs, **options}
        if isinstance(model, RunnableRetry):
            kinds: Any = model.retry_exception_types
            most = model.max_attempt_number - 1
            retries.append(
                ModelRetryMiddleware(max_retries=most, retry_on=kinds, on_failure="error")
            )
        model = model.bound
    if isinstance(model, RunnableWithFallbacks):
        first, *others = map(_Inner.of, [model.runnable, *model.fallbacks])
        model = model.model_copy(update={"runnable": first, "fallbacks": others})
    return model, options, retries


class _Inner(RunnableBindingBase[Any, Any]):
    """One of a model and its fallbacks; it keeps its options when tools are bound to it."""

    @classmethod
    def of(cls, model: Any) -> "_Inner":
        inner, options, _ = _unwrapped(model)
        return cls(bound=unbound(inner), kwargs=options)

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, Any]:
        model: Any = self.bound
        bound: Runnable[Any, Any] = model.bind_tools(tools, **{**self.kwargs, **options})
        return bound


def _answer(messages: Sequence[Any]) -> str:
    """Return the text of the last reply, or "" if it calls tools."""
    replies = [message for message in messages if isinstance(message, AIMessage)]
    is_answer = replies and not replies[-1].tool_calls
    return answer_text(reply_text(replies[-1])) if is_answer else ""


class _Counter(BaseCallbackHandler):
    """Counts model calls as they begin, and keeps the replies."""

    run_inline = True

    def __init__(self, limits: RunLimits) -> None:
        self.limits = limits
        self.calls = 0
        self.replies: list[AIMessage] = []

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self.calls += 1
        self.limits.calls += 1

    def resume(self, messages: Sequence[Any]) -> None:
        """Count the calls that were answered in an earlier process, if the run was resumed."""
        counted = {reply.id for reply in self.replies}
        replies = [each for each in messages if isinstance(each, AIMessage)]
        earlier = [reply for reply in replies if reply.id not in counted]
        self.replies += earlier
        self.calls += len(earlier)
        self.limits.calls += len(earlier)

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        self.limits.has_reply = True
        for generation in (each for several in response.generations for each in several):
            if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
                self.replies.append(generation.message)


class _Options(AgentMiddleware[Any, Any, Any]):
    """Passes options such as the temperature with each call to the model."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.options = options

    @override
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(model_settings=self.options))

    @override
    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(model_settings=self.options))


class _Limits(AgentMiddleware[Any, Any, Any]):
    """Makes the agent answer after its last search, and ends it before a call beyond its limits.

    It never rejects a search or a call. If it ends the agent, the call that writes the answer shows
    as many passages as fit.
    """

    def __init__(
        self,
        searches: "_Searches",
        most_searches: int,
        counter: _Counter,
        most_tokens: int | None,
    ) -> None:
        super().__init__()
        self.searches, self.most_searches = searches, most_searches
        self.counter, self.most_tokens = counter, most_tokens
        self.warnings: list[str] = []

    @hook_config(can_jump_to=["end"])
    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        self.counter.resume(state["messages"])
        limits = self.counter.limits
        # One call is reserved for an answer without tools.
        if limits.max_calls is not None and limits.calls + 1 >= limits.max_calls:
            self.warnings.append(limits.too_few_calls())
            return {"jump_to": "end"}
        is_over = limits.seconds_left() == 0  # the run has ended, but not its thread
        if is_over or (self.most_tokens and prompt_tokens(state["messages"]) > self.most_tokens):
            return {"jump_to": "end"}
        return {"messages": [HumanMessage(ANSWER_NOW)]} if self._are_made(state) else None

    @hook_config(can_jump_to=["end"])
    @override
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"jump_to": "end"} if self._are_made(state) else None

    def _are_made(self, state: Any) -> bool:
        self.searches.resume(state["messages"])
        return len(self.searches.made) >= self.most_searches


class _Searches:
    """Collects the results of all searches in one agent run. Searches can run concurrently."""

    def __init__(self, retrieve: Retrieve, state: dict[str, Any]) -> None:
        self.retrieve = retrieve
        self.state = {**state, "parts": [], "findings": [], "evidence": []}
        self.passages = Passages(self.state)
        self.warnings: list[str] = []
        self.made: set[str] = set()
        """The ids of the searches whose results have been added."""
        self.has_worked = False
        """Whether any search found something, or at least did not fail."""
        self._lock = Lock()

    def tool(self) -> BaseTool:
        """Return the search as a tool."""

        def search(query: str, messages: _Messages, config: RunnableConfig) -> _Found:
            self.resume(messages)
            state = {**self.state, "queries": [query]}
            return self._found(query, self.retrieve.invoke(state, config))

        async def asearch(query: str, messages: _Messages, config: RunnableConfig) -> _Found:
            self.resume(messages)
            state = {**self.state, "queries": [query]}
            return self._found(query, await self.retrieve.ainvoke(state, config))

        return StructuredTool.from_function(
            search,
            asearch,
            name="search",
            description="Find passages for a short, specific query.",
            response_format="content_and_artifact",
        )

    def resume(self, messages: Sequence[Any]) -> None:
        """Add the searches that were made in an earlier process, if the run was resumed."""
        with self._lock:
            for message in messages:
                if isinstance(message, ToolMessage) and message.artifact:
                    self._add(message.artifact)

    def _add(self, record: dict[str, Any]) -> list[int]:
        """Add the results of a search, if they are new, and return the numbers of its passages."""
        search: str = record["id"]
        if search not in self.made:
            self.made.add(search)
            self.warnings += record["warnings"]
            self.has_worked |= bool(record["evidence"] or not record["warnings"])
        return [self.passages.number(each) for each in record["evidence"]]

    def _found(self, query: str, update: dict[str, Any]) -> _Found:
        """Add a search's results to the evidence; return a text for the model and a record.

        Passages that an earlier search has already shown are listed by id only.
        """
        record = {key: update.get(key, []) for key in ("evidence", "warnings")}
        record["id"] = uuid4().hex
        with self._lock:
            before = len(self.passages.evidence)
            numbers = self._add(record)
            new = [number for number in numbers if number > before]
            again = [f"p{number}" for number in numbers if number <= before]
            shown = written(passages(self.passages.evidence, new))
        head = f"Nothing was found for {quoted(query)}."
        if numbers:
            head = f"Found for {quoted(query)}:"
        elif update.get("warnings"):
            head = f"The search for {quoted(query)} failed, so what it would find is unknown."
        tail = f"Also {', '.join(again)}, shown with another search." if again else ""
        return "\n\n".join(filter(None, [head, shown, tail])), record
