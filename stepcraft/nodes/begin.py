"""The first node of every graph: checks the input, opens resources, and resets the state.

The input keys are removed after this node; anything that later nodes need is stored under other
keys.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from stepcraft.concurrency import within
from stepcraft.contexts.base import CheckSettings, LookSettings, PartQuerySettings, Settings
from stepcraft.errors import BadInput, NoAnswer, SourceFailure, UnreadableReply
from stepcraft.llm.limits import TOO_LATE, RunLimits
from stepcraft.llm.reply import Refused, reply_text
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import no_usage
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import resolve_model
from stepcraft.nodes.message import ends_with, last_human, message_text, replies, unread_parts
from stepcraft.retrieval.target import OpenedSource
from stepcraft.secrets import excerpt
from stepcraft.text.clean import clean, normalised

MAX_CHARACTERS = 50_000
"""The maximum length of a question, a list of resources, or a draft to be checked."""

KEYLESS = (
    "no language model was used: the keyless model only compares and copies words; "
    'name a model with model="openai:gpt-5-mini", --model or STEPCRAFT_MODEL'
)


def check_nodes(named: Iterable[str], model_nodes: Sequence[str]) -> None:
    """Check that every node given a model of its own does call a model.

    Raises:
        BadInput: A named node does not call a model.
    """
    if unknown := sorted(set(named) - set(model_nodes)):
        raise BadInput(
            f"node_models names {unknown[0]!r}; the nodes with a model are {', '.join(model_nodes)}"
        )


def checked_models(
    resources: Resources[Any], settings: Settings, model_nodes: Sequence[str]
) -> list[str]:
    """Resolve a run's models before any is called; return a warning if one is keyless.

    Raises:
        BadInput: A model name cannot be used.
    """
    check_nodes(settings.node_models, model_nodes)
    models = [resolve_model(resources.choice(node, settings)) for node in model_nodes]
    return [KEYLESS] if any(isinstance(model, ExtractiveModel) for model in models) else []


class Begin:
    """Checks a run's input and settings, and resets what an earlier run left on the thread.

    This happens before any work is done. Models and sources are opened here, so that a wrong name
    fails before the first model call.

    Args:
        resources: The resources that the graph is built with.
        model_nodes: The names of the nodes that call a model.
        initial: Builds the rest of the state from the input (including the run's `task`), the
            settings, and the opened sources (none if the deadline has passed). Raises BadInput if
            the input is invalid.
        searches: Whether the graph searches at all.

    Raises:
        BadInput: The builder names a model for a node that does not use one.
    """

    def __init__(
        self,
        resources: Resources[Any],
        model_nodes: Sequence[str],
        initial: Callable[[Mapping[str, Any], Any, Sequence[OpenedSource]], dict[str, Any]],
        *,
        searches: bool = True,
    ) -> None:
        self.resources = resources
        self.model_nodes = model_nodes
        self.initial = initial
        self.searches = searches
        check_nodes(resources.node_models or {}, model_nodes)

    def __call__(self, state: Any) -> dict[str, Any]:
        """Return the state that the run starts with.

        Raises:
            BadInput: The question, another part of the input, a setting or a name is invalid.
            MemoryFailure, SourceFailure: The memory or a source cannot be opened.
            NoAnswer: The deadline has passed, and there is no draft to check.
        """
        settings = self.resources.settings()
        limits = RunLimits.of(settings)
        state = {**state, "task": asked_question(state)}
        warnings = checked_models(self.resources, settings, self.model_nodes)
        warnings += _unread(state)
        try:
            update = within(limits.seconds_left(), partial(self._opened, state, settings))
        except TimeoutError as error:
            if not limits.has_ended(error):
                raise SourceFailure(f"what is searched cannot be opened: {error}") from error
            update = self.initial(state, settings, [])
            if not update.get("answer"):
                raise NoAnswer(f"nothing was written: {TOO_LATE}") from error
            warnings.append(TOO_LATE)
        return {
            "answer": "",
            "evidence": [],
            **_asked_message(state.get("messages") or [], state["task"], settings),
            **update,
            "task": state["task"],
            "settings": settings.model_dump(mode="json", exclude_unset=True),
            "limits": limits,
            "warnings": Overwrite([*warnings, *update.get("warnings", [])]),
            "usage": Overwrite(no_usage()),
        }

    def _opened(self, state: Mapping[str, Any], settings: Any) -> dict[str, Any]:
        """Open the sources that the run searches, and return the rest of the state."""
        if not self.searches:
            return self.initial(state, settings, [])
        searched = self.resources.target.open(settings, store_of_run())
        update = self.initial(state, settings, searched)
        warnings = self.resources.target.warnings(settings, searched)
        return {**update, "warnings": [*warnings, *update.get("warnings", [])]}


def _unread(state: Mapping[str, Any]) -> list[str]:
    """Return warnings about images and the like in the last messages, if they ask the question."""
    messages: Sequence[BaseMessage] = state.get("messages") or []
    human = last_human(messages)
    if not human or (state.get("question") and human is not messages[-1]):
        return []
    last = messages.index(human)
    asking = [*takewhile(lambda each: each.type == "human", messages[last::-1])]
    return [text for each in reversed(asking) for text in unread_parts(each)]


def _asked_message(
    messages: Sequence[BaseMessage], question: str, settings: Settings
) -> dict[str, Any]:
    """Return an update that adds a question to a conversation that lacks it."""
    is_of_draft = getattr(settings, "check_last", False)
    if not messages or is_of_draft or ends_with(messages, question):
        return {}
    return {"messages": [HumanMessage(question)]}


def empty_check(settings: CheckSettings, searched: Sequence[OpenedSource]) -> dict[str, Any]:
    """Return the initial values of the keys in `CheckState` or `LookState`."""
    looks = {"looks_left": settings.looks - 1} if isinstance(settings, LookSettings) else {}
    query, scope = "claims", None
    if isinstance(settings, PartQuerySettings):
        query, scope = settings.query, settings.scope
    for_web = query == "auto" and any(each.is_web for each in searched)
    return {
        "queries": [],
        "findings": [],
        "first_draft": "",
        "parts": [],
        "pending": [],
        "changes": [],
        "checks": [],
        "revisions": [],
        "passages_seen": 0,
        "rounds": 0,
        "model_queries": query == "model" or for_web,
        "scope": scope or "complete",
        "judges_statements": False,
        **looks,
    }


def asked_question(state: Mapping[str, Any]) -> str:
    """Return the question in the input, or else the text of its last human message.

    Raises:
        BadInput: There is no question, or it is not a string of at most `MAX_CHARACTERS`.
    """
    question: object = state.get("question")
    if not question and (human := last_human(state.get("messages") or [])):
        question = message_text(human)
    checked = checked_text("question", question or "")
    if not checked:
        raise BadInput(
            "the question is empty; say what is wanted in `question`, or in a human message"
        )
    return checked


def last_draft(state: Mapping[str, Any]) -> str:
    """Return the text of the last AI message without tool calls after the last human message.

    It is "" if there is none.

    Raises:
        BadInput: The message has no text, or the model or a content filter refused to answer.
    """
    drafts = replies(state.get("messages") or [])
    try:
        return reply_text(drafts[-1]) if drafts else ""
    except (Refused, UnreadableReply) as error:
        raise BadInput(f"the last AI message cannot be checked: {error}") from error


def checked_text(name: str, value: object) -> str:
    """Return one part of the input as cleaned text.

    Raises:
        BadInput: It is not a string, or it is too long.
    """
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a text, not {type(value).__name__}: {excerpt(value)}")
    if len(value) > MAX_CHARACTERS:
        raise BadInput(
            f"{name} has {len(value):,} characters; "
            f"at most {MAX_CHARACTERS:,} are taken, so shorten it"
        )
    return clean(value).strip() if normalised(value) else ""


def checked_resources(value: object) -> str:
    """Return the available resources as cleaned text, joining a list of strings with commas.

    Raises:
        BadInput: It is neither a string nor a list of strings, or it is too long.
    """
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    return checked_text("resources", value or "")


def draft_of(value: object) -> str:
    """Return a draft from the input unchanged, or "" if there is none.

    The only exception is lone surrogates, which UTF-8 cannot encode: they become U+FFFD.

    Raises:
        BadInput: It is not a string of at most `MAX_CHARACTERS`, or has no words.
    """
    if not checked_text("draft", value or ""):
        if value:
            raise BadInput("the draft has no words; write the answer to check, or leave it out")
        return ""
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def store_of_run() -> Any:
    """Return the store that the graph or its parent was compiled with."""
    runtime: Any = get_runtime()
    return runtime.store if runtime else None
