"""An agent that searches as often as it needs: LangChain's `create_agent` with its own limits."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp

from stepcraft.concurrency import within
from stepcraft.contexts.baselines import ReactContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.limits import limits_of
from stepcraft.llm.prompt import passages
from stepcraft.llm.reply import Refused, reply_text
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import usage_of
from stepcraft.models.resolve import aresolve_model, resolve_model
from stepcraft.nodes.retrieve import Retrieve
from stepcraft.nodes.state import passages_of
from stepcraft.secrets import without_secrets
from stepcraft.text.sections import written

NAME = "agent"


class Agent(Runnable[Any, dict[str, Any]]):
    """Runs the agent.

    What it did not answer, a call without tools answers: a notice of a limit is no answer.

    Args:
        resources: What the graph is built with.
    """

    def __init__(self, resources: Resources[ReactContext]) -> None:
        self.name = NAME
        self.resources = resources
        self.retrieve = Retrieve(resources, alone=1)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:
        """Run the agent and return its answer, "" where it gave none."""
        run = _Run(self, input)
        try:
            agent, messages = run.agent(resolve_model(run.choice))
            reply = within(run.seconds_left, partial(agent.invoke, messages, config))
        except Exception as error:
            return run.failed(error)
        return run.update(reply["messages"])

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **_: Any
    ) -> dict[str, Any]:
        """As `invoke`, on the running event loop."""
        run = _Run(self, input)
        try:
            agent, messages = run.agent(await aresolve_model(run.choice))
            async with asyncio.timeout(run.seconds_left):
                reply = await agent.ainvoke(messages, config)
        except Exception as error:
            return run.failed(error)
        return run.update(reply["messages"])


class _Run:
    """One run of the agent: its limits, and what its searches find."""

    def __init__(self, node: Agent, state: Mapping[str, Any]) -> None:
        self.resources = node.resources
        self.settings = node.resources.settings(state)
        self.choice = node.resources.choice(NAME, self.settings)
        self.retrieve = node.retrieve
        self.state = {**state, "parts": [], "queries": [], "findings": [], "evidence": []}
        self.limits = limits_of(state)
        self.seconds_left = self.limits.seconds_left(self.settings)
        self.warnings: list[str] = []
        self.most = self.settings.max_searches + 2
        if self.settings.max_calls is not None:  # one call is left for an answer without tools
            self.most = max(1, min(self.most, self.settings.max_calls - 1))

    def agent(self, model: BaseChatModel) -> tuple[Any, dict[str, Any]]:
        """Return the agent and its input."""
        middleware: list[Any] = [
            ToolCallLimitMiddleware(run_limit=self.settings.max_searches),
            ModelCallLimitMiddleware(run_limit=self.most),
        ]
        agent: Any = create_agent(
            model,
            [self._tool()],
            system_prompt=self.settings.agent_instructions,
            middleware=middleware,
            name=NAME,
        )
        return agent, {"messages": [HumanMessage(self.state["question"])]}

    def _tool(self) -> BaseTool:
        def search(query: str, config: RunnableConfig) -> str:
            return self._keep(
                query, self.retrieve.invoke({**self.state, "queries": [query]}, config)
            )

        async def asearch(query: str, config: RunnableConfig) -> str:
            return self._keep(
                query, await self.retrieve.ainvoke({**self.state, "queries": [query]}, config)
            )

        return StructuredTool.from_function(
            search, asearch, name="search", description="Find passages for a short, specific query."
        )

    def _keep(self, query: str, update: Mapping[str, Any]) -> str:
        """Add what a search found to the evidence, and return it for the model."""
        self.warnings += update.get("warnings", [])
        evidence: Sequence[Evidence] = update.get("evidence", self.state["evidence"])
        findings = update.get("findings", self.state["findings"])
        self.state |= {"evidence": evidence, "findings": findings}
        shown = passages_of(self.state, query)
        return written([each for each in passages(evidence, shown) if each]) or "Nothing was found."

    def failed(self, error: Exception) -> dict[str, Any]:
        """Leave the answer to a call without tools; interrupts pass through."""
        if isinstance(error, GraphBubbleUp):
            raise error
        reason = without_secrets(f"{type(error).__name__}: {' '.join(str(error).split())}")[:300]
        self.warnings.append(f"the agent failed: {reason}")
        return self.update([])

    def update(self, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        """Return the answer of a conversation, with what was found and used."""
        replies = [message for message in messages if isinstance(message, AIMessage)]
        calls = min(len(replies), self.most)  # one more is the notice of the limit
        last = replies[-1] if replies and len(replies) == calls else None
        answer = self._answer(last) if last and not last.tool_calls else ""
        self.limits.calls += calls
        counted = [reply.usage_metadata for reply in replies if reply.usage_metadata]
        used = usage_of(
            NAME,
            calls,
            sum(tokens["input_tokens"] for tokens in counted),
            sum(tokens["output_tokens"] for tokens in counted),
        )
        evidence = self.state["evidence"]
        return {"answer": answer, "evidence": evidence, "usage": used, "warnings": self.warnings}

    def _answer(self, reply: AIMessage) -> str:
        """Return the text of a reply, "" with a warning where there is none."""
        try:
            return reply_text(reply)
        except (Refused, UnreadableReply) as problem:
            self.warnings.append(f"the agent gave no answer: {without_secrets(str(problem)):.200}")
            return ""
