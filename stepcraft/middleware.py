"""Middleware for `create_agent` and deepagents: procedures for a task, and answer checking."""

import logging
import re
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, NotRequired, TypeAlias, TypeVar

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
)
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import Overwrite

from stepcraft.building.learn import LearnState, build_learn, proposed
from stepcraft.building.threads import transcript
from stepcraft.concurrency import to_thread
from stepcraft.contexts.rat import RatContext
from stepcraft.errors import BadInput, ReadOnlyMemory, StepcraftError
from stepcraft.graphs.embed import MAX_STEPS
from stepcraft.graphs.memory_tools import opened, save_procedure, shown_procedures
from stepcraft.graphs.rat import build_rat
from stepcraft.llm.reply import reply_text, text_pieces
from stepcraft.llm.resources import GraphOptions
from stepcraft.memory.credit import record_outcome
from stepcraft.memory.outcomes import OUTCOME_WEIGHT, ranked
from stepcraft.memory.procedure import Found
from stepcraft.memory.protocol import ProcedureMemory, check_memory
from stepcraft.memory.urls import is_text, path_of, scheme_of
from stepcraft.models.resolve import resolve_model
from stepcraft.nodes.begin import MAX_CHARACTERS
from stepcraft.nodes.checks import final_checks
from stepcraft.nodes.message import blocks, last_human, message_text, text_of
from stepcraft.nodes.verdicts import unjudged
from stepcraft.retrieval.target import RetrievalTarget, Sources
from stepcraft.secrets import excerpt
from stepcraft.text.clean import normalised
from stepcraft.text.diff import word_diff
from stepcraft.text.names import codes
from stepcraft.text.thoughts import split_thoughts

M = TypeVar("M", bound=BaseMessage)

_log = logging.getLogger(__name__)

LEAST_SCORE = 0.25
"""The minimum cosine similarity for a procedure to be shown.

With wordllama's vectors, 19 of 20 goals covered by the bundled procedures match one with at least
this score; 18 of 30 goals from other fields match none.
"""

_QUERY = 250
"""The number of characters that the query takes from each end of a tool result."""
_NO_WORDS = "(The request has no text.)"
_NAME = re.compile(r"[^\W\d]\w*")

_PLACES = ("start_index", "end_index", "index")
"""Keys under which an annotation gives positions in its block."""

_NO_PROCEDURES = "the agent works without procedures"
_NOT_LEARNED = "nothing is learned from the run"
_NOT_CHECKED = "the answer was not checked"

Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
_Block: TypeAlias = str | dict[str, Any]
_Change: TypeAlias = tuple[int, int, str]
"""The start and end of a changed span, and the words that replace it."""
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def _joined(left: list[str], right: list[str]) -> list[str]:
    return list(dict.fromkeys([*left, *right]))


class MemoryState(AgentState[Any]):
    """The state that `ProceduralMemoryMiddleware` adds to a run.

    The prefix keeps private keys apart from those of the agent, which would share a channel.
    """

    stepcraft_procedures: NotRequired[Annotated[str, PrivateStateAttr]]
    """The procedures that fit the task, as the model sees them, or "" if there are none."""
    stepcraft_found: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    """The procedures that fit tool results, by call id, as the model sees them after each result.
    """
    stepcraft_shown: NotRequired[Annotated[list[str], PrivateStateAttr]]
    """The ids of the procedures shown to this agent."""
    shown_procedures: NotRequired[Annotated[list[str], OmitFromInput, _joined]]
    """The ids of the procedures shown to this agent and its subagents. `record_outcome` credits all
    of them with the outcome of the run.
    """
    stepcraft_learned: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """The `save_procedure` arguments for a procedure that was learned or repaired, or {} if there
    is none. They are kept until a person decides, even if the run is never resumed.
    """


class ProceduralMemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Shows an agent the procedures for its task, and asks for approval to store what it learned.

    A run begins by searching the memory once, with the last human message as the query. Procedures
    that fit are shown below the system prompt in every model call of the run. After each step, the
    memory is also searched with the step's tool results, so that a failure brings up a remedy for
    its cause; new procedures are shown after the results. The messages in the state are not
    changed. If nothing fits, the agent works as it would without the middleware. The ids of the
    procedures are in the result's `shown_procedures`.

    After a run that called tools, the `learn` model writes down the procedure that the run
    demonstrates, merged with any procedure in memory for the same task. With `repair`, it also
    rewrites a procedure that made a run fail. Before anything is stored, a person is asked through
    `interrupt`, with LangChain's HITLRequest for the action `save_procedure`, so the agent needs a
    checkpointer. If another message comes first, the person is asked again once it is answered;
    nothing more is learned until then.

    Args:
        memory: The memory, or a URL for `open_memory`, opened when a run begins. `store:` means the
            agent's store, and its namespace may contain {user}.
        k: The maximum number of procedures shown for the task; 0 shows none.
        k_results: The maximum number shown for the results of a step; 0 disables that search.
        least_score: The minimum cosine similarity between a procedure's goal and the message or the
            results, from 0 to 1. With 0, the search uses words as well as vectors.
        outcome: A function that takes the state of an answered run and returns whether the run
            reached its goal, or None if it cannot tell. It may be called several times for a run.
            The outcome is credited to each shown procedure that the agent followed: at least half
            of the names in the code of its steps occur in the tool calls. A procedure without code
            counts as followed if any tool was called. If the outcome is None, nothing is credited,
            and the `learn` model judges by the messages.
        learn: The model that writes what was learned, or its name; None disables learning.
        repair: Whether that model rewrites a procedure that made a run fail.
        approve: Whether a person must approve what is stored. If not, repaired procedures and
            replacements of approved ones are stored alongside the originals.
        max_calls: The maximum number of calls to that model in a run. One judges the run unless
            `outcome` does, one writes the procedure, one compares it with any stored one like it,
            and an unreadable reply costs another.
        embeddings: The embeddings for a memory given as a URL.

    Raises:
        BadInput: `memory` is neither a memory nor a URL, its file does not exist, or cannot be
            changed although `learn` is set; the `learn` model cannot be used; or `repair` is set
            without it.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: ProcedureMemory | str,
        *,
        k: int = 3,
        k_results: int = 1,
        least_score: float = LEAST_SCORE,
        outcome: Callable[[Mapping[str, Any]], bool | None] = lambda _state: None,
        learn: BaseChatModel | str | None = None,
        repair: bool = False,
        approve: bool = True,
        max_calls: int = 4,
        embeddings: Embeddings | str | None = None,
    ) -> None:
        super().__init__()
        check_memory(memory)
        if isinstance(memory, str):
            _check_file(memory.strip(), learns=bool(learn))
        if repair and not learn:
            raise BadInput("repair=True needs the model that repairs: name it as learn=")
        if learn:
            resolve_model(learn)
        self.memory = memory
        self.k = k
        self.k_results = k_results
        self.least_score = least_score
        self.outcome = outcome
        self.approve = approve
        self.embeddings = embeddings
        self._learn: Any = (
            build_learn(self._opened, learn, repairs=repair, max_calls=max_calls) if learn else None
        )

    def before_agent(self, state: MemoryState, runtime: object) -> dict[str, Any]:
        """Find the procedures for the task."""
        del runtime
        best = self._best(_request(state), self.k)
        ids = [hit.procedure.id for hit in best]
        return {
            "stepcraft_procedures": shown_procedures(best),
            "stepcraft_found": {},
            "stepcraft_shown": ids,
            "shown_procedures": Overwrite(ids),
        }

    async def abefore_agent(self, state: MemoryState, runtime: object) -> dict[str, Any]:
        """Do the same as `before_agent`, searching the memory in a thread.

        LangChain would run the blocking hook on the event loop.
        """
        return await to_thread(self.before_agent, state, runtime)

    def before_model(self, state: MemoryState, runtime: object) -> dict[str, Any] | None:
        """Find procedures for the tool results of the last step."""
        del runtime
        results, shown = _last_results(state), state.get("stepcraft_shown", [])
        query = "\n".join(_ends(each.text, _QUERY) for each in results)
        best = self._best(query, self.k_results, shown)
        if not best:
            return None
        shown_now = {results[-1].tool_call_id: shown_procedures(best)}
        ids = [hit.procedure.id for hit in best]
        return {
            "stepcraft_found": {**state.get("stepcraft_found", {}), **shown_now},
            "stepcraft_shown": [*shown, *ids],
            "shown_procedures": ids,
        }

    async def abefore_model(self, state: MemoryState, runtime: object) -> dict[str, Any] | None:
        """Do the same as `before_model`, searching the memory in a thread."""
        return await to_thread(self.before_model, state, runtime)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Put the procedures below the system prompt."""
        return handler(_with_procedures(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any]:
        """Put the procedures below the system prompt."""
        return await handler(_with_procedures(request))

    def after_model(self, state: MemoryState, runtime: object) -> dict[str, Any] | None:
        """Write the procedure that a run with tool calls demonstrates, once the agent has answered.

        Another node asks a person to approve it, so that a resumed run repeats only that node and
        does not ask the model again.
        """
        del runtime
        with _logged(_NOT_LEARNED):
            if self._learn and (run := self._finished(state)):
                return _learned(self._learn.invoke(run))
        return None

    async def aafter_model(self, state: MemoryState, runtime: object) -> dict[str, Any] | None:
        """Do the same as `after_model`, on the running event loop."""
        del runtime
        with _logged(_NOT_LEARNED):
            if self._learn and (run := await to_thread(self._finished, state)):
                return _learned(await self._learn.ainvoke(run))
        return None

    def after_agent(self, state: MemoryState, runtime: object) -> dict[str, Any]:
        """Credit the outcome, and ask a person whether to store what was learned."""
        del runtime
        with _logged("the outcome is not recorded"):
            succeeded = self.outcome(state)
            if succeeded is not None and (followed := self._followed(state)):
                run = str(state["messages"][-1].id)
                record_outcome(self._opened(), followed, succeeded=succeeded, run=run)
        is_kept = False
        with _logged("what was learned is not saved"):
            try:
                if learned := state.get("stepcraft_learned"):
                    save_procedure(self._opened(), learned, get_config(), approve=self.approve)
            except OSError as error:  # such as a MemoryFailure: a person is asked again
                is_kept = not isinstance(error, ReadOnlyMemory)
                raise
            except ToolException:  # not added, maybe for a moment: a person may reject it
                is_kept = self.approve
                raise
        return {} if is_kept else {"stepcraft_learned": {}}

    async def aafter_agent(self, state: MemoryState, runtime: object) -> dict[str, Any]:
        """Do the same as `after_agent`, in a thread."""
        return await to_thread(self.after_agent, state, runtime)

    def _opened(self) -> ProcedureMemory:
        return opened(self.memory, self.embeddings)

    def _best(self, query: str, k: int, known: Collection[str] = ()) -> list[Found]:
        """Return the best-matching procedures for a query, except the known ones.

        The list is empty if there is no query, or if the memory cannot be searched.
        """
        with _logged(_NO_PROCEDURES):
            if query and k:
                alpha = 1 if self.least_score else None
                search = partial(self._opened().search, query, alpha=alpha)
                return ranked(search, k, OUTCOME_WEIGHT, least_score=self.least_score, known=known)
        return []

    def _followed(self, state: MemoryState) -> list[str]:
        """Return the ids of the shown procedures that the agent followed, judging by tool calls."""
        memory, turn = self._opened(), _turn(state)
        calls = [call for each in turn if isinstance(each, AIMessage) for call in each.tool_calls]
        called = _names_in([[call["name"], call["args"]] for call in calls])
        return [
            id_
            for id_ in state.get("stepcraft_shown", [])
            if (procedure := memory.get(id_)) and _is_in(procedure.steps, called)
        ]

    def _finished(self, state: MemoryState) -> dict[str, Any] | None:
        """Return the transcript and outcome of an answered turn with tool calls, or else None."""
        turn = _turn(state)
        if not (any(each.type == "tool" for each in turn) and _answer(state)):
            return None
        if turn[0].additional_kwargs.get("lc_source") == "summarization":
            _log.warning("%s: the start of the run was replaced by a summary", _NOT_LEARNED)
            return None
        if learned := state.get("stepcraft_learned"):
            _log.warning("%s: nobody has decided on %r yet", _NOT_LEARNED, learned["goal"])
            return None
        run = {**vars(transcript(turn, "an agent")), "shown": state.get("stepcraft_shown", [])}
        succeeded = self.outcome(state)
        return run if succeeded is None else {**run, "succeeded": succeeded}


class AnswerState(AgentState[Any]):
    """The state of an agent with `CheckAnswerMiddleware`."""

    stepcraft_asked: NotRequired[Annotated[str, PrivateStateAttr]]
    """The question of the turn, kept because a summary may replace its message."""


class CheckAnswerMiddleware(AgentMiddleware[AnswerState, Any, Any]):
    """Has RAT check every part of an agent's answer once, and correct the answer.

    The user sees the corrected text in place of the agent's; images, reasoning and everything else
    in the message stay. An answer that needs no change, or that cannot be checked, stays as it is.
    The message's `response_metadata["stepcraft"]` holds `checks` (the last verdict on each
    statement), `evidence` (the deciding passages), `unjudged` (the statements without a verdict)
    and any `warnings`. Statements that have changed since are omitted from `checks`, unless the
    evidence contradicted them. If the answer was not checked (structured ones never are), it
    holds the reason as `unchecked`.

    The check uses only the sources. Results of the agent's tools do not count as evidence, so an
    answer based on live data may be overruled unless the tool is also passed as a source.

    Tokens streamed while the agent writes are not checked yet, so take the answer from
    `stream_mode="updates"` or `"values"`.

    Args:
        sources: The sources to check answers against, as for `build_rat`.
        model: The model that checks, or its name; None for the one in STEPCRAFT_MODEL.
        settings: The settings of the check; by default, one round and at most two calls.
        embeddings: The embeddings for sources given by name.

    Raises:
        BadInput: A source, the model or the settings have the wrong type, a source does not exist,
            or the model cannot be used.
    """

    state_schema = AnswerState

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
            resolve_model(model)
        if embeddings:
            options["embeddings"] = embeddings
        self._rat: Any = build_rat(**options).with_config(recursion_limit=MAX_STEPS)
        RetrievalTarget.of(None, sources, embeddings, prefers_memory=False).check()

    def before_agent(self, state: AnswerState, runtime: object) -> dict[str, Any] | None:
        """Keep the question, since a summary may replace its message before it is answered."""
        del runtime
        human = last_human(state["messages"])
        return {"stepcraft_asked": _request(state)} if human else None

    def after_model(self, state: AnswerState, runtime: object) -> dict[str, Any] | None:
        """Check the answer and replace it with the corrected one."""
        del runtime
        if not (answer := _answer(state)):
            return None
        try:
            return _checked(answer, self._rat.invoke(_task(state, answer)))
        except GraphBubbleUp:
            raise
        except Exception as error:
            return _unchecked(answer, error)

    async def aafter_model(self, state: AnswerState, runtime: object) -> dict[str, Any] | None:
        """Do the same as `after_model`, on the running event loop."""
        del runtime
        if not (answer := _answer(state)):
            return None
        try:
            return _checked(answer, await self._rat.ainvoke(_task(state, answer)))
        except GraphBubbleUp:
            raise
        except Exception as error:
            return _unchecked(answer, error)


def _check_file(url: str, *, learns: bool) -> None:
    """Check the URL of a memory in a file without opening it.

    Raises:
        BadInput: The file or its folder does not exist, or the file cannot be changed.
    """
    if not url or scheme_of(url).startswith(("store", "weaviate")):
        return
    path = path_of(url)
    needed = path if is_text(path) else path.parent
    if not needed.exists():
        raise BadInput(f"the memory {url} cannot be opened: there is no {needed}")
    if learns and is_text(path):
        raise BadInput(
            f"learn= cannot save in {url}, which can be searched, not changed; copy it into a .db "
            "file with `stepcraft memory copy` first"
        )


@contextmanager
def _logged(what: str) -> Generator[None]:
    """Log an error as a warning so that the agent continues; interrupts pass through."""
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:
        _log.warning("%s: %s", what, _reason(error))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, StepcraftError) else excerpt(error, 300)


def _turn(state: AgentState[Any]) -> list[AnyMessage]:
    """Return the messages starting with the last request."""
    messages = state["messages"]
    requests = [place for place, each in enumerate(messages) if each.type == "human"]
    return messages[max(requests, default=0) :]


def _last_results(state: AgentState[Any]) -> list[ToolMessage]:
    """Return the results of the tools called by the model's last message."""
    results: list[ToolMessage] = []
    for message in reversed(state["messages"]):
        if not isinstance(message, ToolMessage):
            break
        results.insert(0, message)
    return results


def _names_in(value: object) -> set[str]:
    """Return the names in the strings of a tool call, including those of objects and lists."""
    if isinstance(value, str):
        return {*_NAME.findall(value)}
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    parts = value if isinstance(value, list) else []
    return {name for part in parts for name in _names_in(part)}


def _request(state: AgentState[Any]) -> str:
    """Return the text of the last request, without its middle if it is very long."""
    human = last_human(state["messages"])
    text = message_text(human) if human else ""
    return _ends(text.strip(), MAX_CHARACTERS // 2 - 1) if normalised(text) else ""


def _ends(text: str, length: int) -> str:
    """Return a text, without its middle if it is longer than two ends of the given length."""
    return text if len(text) <= 2 * length else f"{text[:length]}\n{text[-length:]}"


def _is_in(steps: Sequence[str], called: set[str]) -> bool:
    """Return whether the calls contain at least half of the names in the code of the steps.

    Steps without code count as followed by any call.
    """
    names = {name for step in steps for code in codes(step) for name in _NAME.findall(code)}
    return bool(called) and 2 * len(names & called) >= len(names)


def _answer(state: AgentState[Any]) -> AIMessage | None:
    """Return the model's last message if it is its answer, as text or as a structured response."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage) and state.get("structured_response") is not None:
        return next(each for each in reversed(state["messages"]) if isinstance(each, AIMessage))
    return last if isinstance(last, AIMessage) and last.text and not last.tool_calls else None


def _learned(result: LearnState) -> dict[str, Any]:
    _log_warnings("what the run showed", result)
    proposal = proposed(result)
    if not proposal:
        return {"stepcraft_learned": {}}
    names = {"output": "goal", "input": "needs"}
    return {"stepcraft_learned": {names.get(name, name): value for name, value in proposal.items()}}


def _task(state: AnswerState, answer: AIMessage) -> dict[str, Any]:
    if state.get("structured_response") is not None:
        raise BadInput("it is structured, and its fields could not be changed to match")
    question = state.get("stepcraft_asked") or _request(state) or _NO_WORDS
    return {"question": question, "draft": reply_text(answer)}


def _checked(answer: AIMessage, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with the text and the checks from a RAT result."""
    _log_warnings("the check of the answer", result)
    update: dict[str, Any] = {}
    if result["answer"] not in {"", result["first_draft"]}:
        update["content"] = _with_text(answer, result["answer"])
    final = final_checks(result)
    checks = [each for each, changed in final if each["verdict"] == "contradicted" or not changed]
    deciding = {id_ for each in checks for id_ in each["evidence"]}
    evidence = [each for each in result["evidence"] if each["id"] in deciding]
    parts = [{"text": text} for text in split_thoughts(result["first_draft"])]
    state, numbers = {"parts": parts, "judges_statements": True}, range(1, len(parts) + 1)
    missing = unjudged(result["checks"], state, numbers)
    note: dict[str, Any] = {"checks": checks, "evidence": evidence, "unjudged": missing}
    if warnings := result["warnings"]:
        note["warnings"] = warnings
        if not checks and "content" not in update:
            note = {"unchecked": "; ".join(warnings)}
    update |= _noted(answer, note)
    return {"messages": [answer.model_copy(update=update)]}


def _unchecked(answer: AIMessage, error: Exception) -> dict[str, Any]:
    """Return an answer that could not be checked, with the reason."""
    reason = _reason(error)
    _log.warning("%s: %s", _NOT_CHECKED, reason)
    return {"messages": [answer.model_copy(update=_noted(answer, {"unchecked": reason}))]}


def _noted(answer: AIMessage, note: Mapping[str, Any]) -> dict[str, Any]:
    return {"response_metadata": {**answer.response_metadata, "stepcraft": note}}


def _log_warnings(what: str, result: Mapping[str, Any]) -> None:
    for warning in result["warnings"]:
        _log.warning("%s: %s", what, warning)


def _with_text(answer: AIMessage, new: str) -> str | list[Any]:
    """Return the content of a message with a new text.

    Each change is made in the block where it begins. A block that has no words left is removed; any
    punctuation in it goes to the block before it.
    """
    pieces, end = text_pieces(answer), 0
    old = "".join(pieces)
    before, found, after = old.rpartition(reply_text(answer))
    changes = deque(_changes(old, f"{before}{new}{after}" if found else new))
    content: list[Any] = []
    for block, piece in zip(blocks(answer), pieces, strict=True):
        end += len(piece)
        start, own = end - len(text_of(block) or ""), list[_Change]()
        while piece and changes and (changes[0][0] < end or changes[0][1] == end):
            first, last, words = changes.popleft()
            own.append((max(first - start, 0), min(last, end) - start, words))
            if last > end:  # the rest is removed from the blocks that follow
                changes.appendleft((end, last, ""))
        changed = _changed(block, own) if own else block
        rest, prior = text_of(changed) or "", text_of(content[-1]) if content else None
        if own and prior and not any(map(str.isalnum, rest)):
            content[-1] = _changed(content[-1], [(len(prior), len(prior), rest)])
        elif rest or not own:
            content.append(changed)
    return content[0] if isinstance(answer.content, str) else content


def _changes(old: str, new: str) -> list[_Change]:
    """Return the changes that turn one text into another."""
    changes, place = list[_Change](), 0
    for kind, text in word_diff(old, new):
        if kind == "same":
            place += len(text)
        elif kind == "removed":
            changes.append((place, place + len(text), ""))
            place += len(text)
        elif changes and changes[-1][1] == place:
            changes[-1] = (*changes[-1][:2], text)
        else:
            changes.append((place, place, text))
    return changes


def _changed(block: _Block, changes: Sequence[_Change]) -> _Block:
    """Return a text block with changes.

    Annotations move with the words that they mark, or are removed if those have changed.
    """
    text = text_of(block) or ""
    for first, last, words in reversed(changes):
        text = f"{text[:first]}{words}{text[last:]}"
    if isinstance(block, str):
        return text
    if not block.get("annotations"):
        return {**block, "text": text}
    annotations: list[Any] = []
    for each in block["annotations"]:
        at = {key: each[key] for key in _PLACES if isinstance(each.get(key), int)}
        start, end = min(at.values(), default=0), max(at.values(), default=0)
        if not any(first < end and last > start for first, last, _ in changes):
            moved = sum(
                len(words) - last + first for first, last, words in changes if last <= start
            )
            annotations.append({**each, **{key: value + moved for key, value in at.items()}})
    return {**block, "text": text, "annotations": annotations}


def _with_procedures(request: ModelRequest[Any]) -> ModelRequest[Any]:
    state: Any = request.state
    if by_call := state.get("stepcraft_found"):
        messages = [_with_found(each, by_call) for each in request.messages]
        request = request.override(messages=messages)
    if not (procedures := state.get("stepcraft_procedures")):
        return request
    system = request.system_message or SystemMessage("")
    return request.override(system_message=_with_more(system, procedures))


def _with_found(message: AnyMessage, found: Mapping[str, str]) -> AnyMessage:
    """Return a tool result with the procedures that were found for it."""
    if not isinstance(message, ToolMessage) or message.tool_call_id not in found:
        return message
    return _with_more(message, found[message.tool_call_id])


def _with_more(message: M, text: str) -> M:
    """Return a message with text appended to its content."""
    content = message.content
    more: str | list[Any] = (
        "\n\n".join(filter(None, [content, text]))
        if isinstance(content, str)
        else [*content, {"type": "text", "text": text}]
    )
    return message.model_copy(update={"content": more})
