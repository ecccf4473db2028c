"""Middleware of `create_agent` and deepagents: procedures for a task, and a check of its answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, NotRequired, TypeVar

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
)
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    SystemMessage,
)
from langgraph.config import get_config

from stepcraft.building.extract import build_extract
from stepcraft.building.settings import ExtractContext
from stepcraft.building.threads import transcript
from stepcraft.concurrency import in_thread
from stepcraft.contexts.rat import RatContext
from stepcraft.errors import StepcraftError
from stepcraft.graphs.memory_tools import WEIGHT, opened, save_procedure, shown_procedures
from stepcraft.graphs.rat import build_rat
from stepcraft.llm.resources import GraphOptions
from stepcraft.memory.feedback import fetched, reranked
from stepcraft.memory.protocol import ProcedureMemory, check_memory
from stepcraft.nodes.begin import asked_question
from stepcraft.retrieval.target import Sources

T = TypeVar("T")

_log = logging.getLogger(__name__)

LEAST_SCORE = 0.25
"""The least cosine of a procedure that is shown.

With wordllama's vectors 19 of 20 goals that the bundled procedures reach find one of this score or
more, and 18 of 30 goals of other trades none.
"""

Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class MemoryState(AgentState[Any]):
    """What the memory contributes to a run."""

    procedures: NotRequired[Annotated[str, PrivateStateAttr]]
    """Those that fit the task, as the model sees them; "" if none does."""
    learned: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """The goal, the needs and the steps of a procedure that the run shows; {} if it shows none."""


class ProceduralMemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Shows an agent the procedures for its task, and offers what it learned for approval.

    A run begins with one search of the memory for the last human message. What fits stands below
    the system prompt of every model call of the run, and never among the messages. Where nothing
    fits, the agent works as without it.

    With `learn`, a run that called tools ends with a call of that model, which writes the procedure
    that the run shows. A person is asked by `interrupt`, with LangChain's HITLRequest for the
    action `save_procedure`, before it is stored; so the agent needs a checkpointer.

    Args:
        memory: The memory, or a URL for `open_memory`, opened when a run begins; `store:` is the
            store of the agent, and its namespace may hold {user}.
        k: The most procedures that are shown.
        least_score: The least cosine of their goal and the message, from 0 to 1.
        learn: The model that writes what was learned, or its name; None offers nothing.
        max_calls: The most calls of that model in a run.
        embeddings: The embeddings of a memory that is named by a URL.

    Raises:
        BadInput: The memory is neither a memory nor a URL.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: ProcedureMemory | str,
        *,
        k: int = 3,
        least_score: float = LEAST_SCORE,
        learn: BaseChatModel | str | None = None,
        max_calls: int = 2,
        embeddings: Embeddings | str | None = None,
    ) -> None:
        super().__init__()
        check_memory(memory)
        self.memory = memory
        self.k = k
        self.least_score = least_score
        self.embeddings = embeddings
        self._extract = (
            build_extract(model=learn, settings=ExtractContext(max_calls=max_calls))
            if learn
            else None
        )

    def before_agent(self, state: MemoryState, runtime: object) -> dict[str, Any]:
        """Find the procedures for the task."""
        del runtime
        fresh: dict[str, Any] = {"procedures": "", "learned": {}}
        try:
            memory = opened(self.memory, self.embeddings)
            near = memory.search(asked_question(state), fetched(self.k, WEIGHT), alpha=1)
        except StepcraftError as error:
            _log.warning("the agent works without procedures: %s", error)
            return fresh
        fits = [hit for hit in near if hit.score >= self.least_score]
        best = reranked(fits, self.k, WEIGHT)
        return fresh | {"procedures": shown_procedures(best)}

    async def abefore_agent(self, state: MemoryState, runtime: object) -> dict[str, Any]:
        """As `before_agent`."""
        return await _awaited(self.before_agent, state, runtime)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Put the procedures below the system prompt."""
        return handler(_with_procedures(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any]:
        """Put the procedures below the system prompt."""
        return await handler(_with_procedures(request))

    def after_model(self, state: MemoryState, runtime: object) -> dict[str, Any] | None:
        """Write what a run that called tools shows, as soon as its answer is there.

        The person is asked by another node, which a resumed run repeats without asking the model.
        """
        del runtime
        turn = _turn(state)
        if not (self._extract and _is_answered(turn) and any(each.type == "tool" for each in turn)):
            return None
        document: Any = vars(transcript(turn, "an agent"))
        try:
            result = self._extract.invoke(document)
        except StepcraftError as error:
            _log.warning("nothing is learned from the run: %s", error)
            return None
        drafts = [
            {"goal": each["output"], "needs": each["input"], "steps": each["steps"]}
            for each in result["procedures"]
        ]
        return {"learned": drafts[0] if drafts else {}}

    async def aafter_model(self, state: MemoryState, runtime: object) -> dict[str, Any] | None:
        """As `after_model`."""
        return await _awaited(self.after_model, state, runtime)

    def after_agent(self, state: MemoryState, runtime: object) -> None:
        """Ask a person whether what was learned is to be stored."""
        del runtime
        if learned := state.get("learned"):
            place = opened(self.memory, self.embeddings)
            save_procedure(place, learned, get_config(), approve=True)

    async def aafter_agent(self, state: MemoryState, runtime: object) -> None:
        """As `after_agent`."""
        await _awaited(self.after_agent, state, runtime)


class CheckAnswerMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Has RAT look up every part of an agent's answer, and change what is wrong, once.

    The user sees the corrected answer in place of the agent's. One in which nothing is to be
    changed, and one that cannot be checked, stays as it is.

    Args:
        sources: The sources that answers are checked with, as `build_rat` takes them.
        model: The model that checks, or its name; None for that of STEPCRAFT_MODEL.
        settings: Further settings of the check; it is one round of one call by default.
        embeddings: The embeddings of sources that are named.

    Raises:
        BadInput: A source, the model or the settings are of another kind.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        model: BaseChatModel | str | None = None,
        settings: RatContext | None = None,
        embeddings: Embeddings | str | None = None,
    ) -> None:
        super().__init__()
        settings = settings or RatContext(rounds=1, max_calls=2)
        options: GraphOptions = {"sources": sources, "settings": settings}
        if model:
            options["model"] = model
        if embeddings:
            options["embeddings"] = embeddings
        self._rat = build_rat(**options)

    def after_model(self, state: AgentState[Any], runtime: object) -> dict[str, Any] | None:
        """Check the answer, and put the corrected one in its place."""
        del runtime
        turn = _turn(state)
        if not _is_answered(turn):
            return None
        answer, question = turn[-1], asked_question(state)
        try:
            result = self._rat.invoke({"question": question, "draft": answer.text})
        except StepcraftError as error:
            _log.warning("the answer was not checked: %s", error)
            return None
        if not result["revisions"]:
            return None
        return {"messages": [answer.model_copy(update={"content": result["answer"]})]}

    async def aafter_model(self, state: AgentState[Any], runtime: object) -> dict[str, Any] | None:
        """As `after_model`."""
        return await _awaited(self.after_model, state, runtime)


async def _awaited(hook: Callable[..., T], *args: object) -> T:
    """Run a hook in a thread of its own: LangChain runs one that is not async on the event loop."""
    return await asyncio.wrap_future(in_thread(partial(hook, *args)))


def _turn(state: AgentState[Any]) -> list[AnyMessage]:
    """Return the messages from the last human one on."""
    messages = state["messages"]
    requests = [place for place, each in enumerate(messages) if each.type == "human"]
    return messages[max(requests, default=0) :]


def _is_answered(turn: Sequence[AnyMessage]) -> bool:
    """Tell whether a turn ends with a text of the model that calls no tool."""
    return isinstance(turn[-1], AIMessage) and not turn[-1].tool_calls and bool(turn[-1].text)


def _with_procedures(request: ModelRequest[Any]) -> ModelRequest[Any]:
    procedures = request.state.get("procedures")
    if not procedures:
        return request
    prompt: list[Any] = request.system_message.content_blocks if request.system_message else []
    text = {"type": "text", "text": procedures}
    return request.override(system_message=SystemMessage([*prompt, text]))
