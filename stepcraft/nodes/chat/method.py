"""A method of the chat: its graph, the settings of its runs, and the node that runs it."""

import difflib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NotRequired
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph.state import CompiledStateGraph

from stepcraft.access import check_fields, fields_checked
from stepcraft.contexts.base import Context
from stepcraft.contexts.chat import AUTO, ChatContext
from stepcraft.errors import BadInput, NoAnswer
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, too_few_calls, too_late
from stepcraft.llm.resources import GraphResources
from stepcraft.progress import Said, counted, publish_answer, tell
from stepcraft.secrets import excerpt
from stepcraft.text.citations import marks
from stepcraft.text.clean import normalised

_OWN = ("method", "settings", "route_instructions")
_PASSAGE_CHARACTERS = 500
"""How much of each passage a message holds; the state has all of it until the next message."""
_LEAST_S = 0.001
"""What is left of a deadline that has passed: a deadline is more than 0."""


class Reading(Budgeted):
    """The input of the node that runs a method."""

    asked: str
    reason: str
    took_s: NotRequired[float]


@dataclass(frozen=True)
class Method:
    """A graph that answers messages."""

    name: str
    description: str
    """What it does, in one line."""
    graph: CompiledStateGraph[Any, Any, Any, Any]
    resources: GraphResources
    """What it was built with."""
    model_nodes: Sequence[str]
    """The names of its nodes that ask a model."""

    def context(self, chat: ChatContext, *, calls: int = 0, seconds: float = 0.0) -> Context:
        """The settings of its run: those of the chat that it has, within what is left of the chat's limits.

        Args:
            chat: The settings of the chat.
            calls: Model calls that the chat has made.
            seconds: Seconds that the chat has taken.

        Raises:
            BadInput: A value among `settings` has the wrong type or is out of bounds.
        """
        fields = self.resources.context.__dataclass_fields__
        changed = [name for name in chat.differences(type(chat)()) if name not in _OWN]
        values = {name: getattr(chat, name) for name in changed}
        if chat.retriever:
            values["answer_from"] = "memory+source"
        if chat.k is not None:
            values["passages_per_step"] = chat.k
        # One that has another meaning in another method is for those that can use it.
        shared = chat.method == "auto"
        takes = self.resources.context.takes
        values |= {name: value for name, value in chat.settings.items() if not shared or takes(name, value)}
        values["node_models"] = {
            node: model for node, model in chat.node_models.items() if node in self.model_nodes
        }
        if chat.max_calls is not None:
            values["max_calls"] = max(1, chat.max_calls - calls)
        if chat.deadline_s is not None:
            values["deadline_s"] = max(_LEAST_S, chat.deadline_s - seconds)
        return self.resources.context(**{name: value for name, value in values.items() if name in fields})

    def check(self, chat: ChatContext) -> None:
        """Refuse a run whose settings cannot be used or name what is not allowed. Opens nothing.

        Raises:
            BadInput: As the graph itself raises it for such a context.
        """
        context = self.resources.allowed(self.context(chat))
        for node in self.model_nodes:
            self.resources.models.choice(node, context)
        self.resources.searched.resolve(context.search_settings())


class MethodNode(RunnableLambda[Any, dict[str, Any]]):
    """The node of the chat's graph that runs a method and answers with a message.

    A RunnableLambda, because LangGraph looks for a node's subgraph in the `deps` of one.

    Args:
        method: The method.
        chat: What the chat was built with.
    """

    def __init__(self, method: Method, chat: GraphResources) -> None:
        super().__init__(self.invoke, self.ainvoke, name=method.name)
        self.method = method
        self.chat = chat
        self.description = method.description

    @cached_property
    def deps(self) -> list[Runnable[Any, Any]]:
        """The graph of the method."""
        return [self.method.graph]

    def invoke(self, input: Reading, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """Run the method on the question; return its result, and the message.

        Raises:
            StepcraftError: As the method raises it.
        """
        settings, context, config = self._prepared(input, config)
        with fields_checked(), _limits(settings, context) as limits:
            result = self.method.graph.invoke({"question": input["asked"]}, config, context=context)
        return self._update(input, result, limits)

    async def ainvoke(self, input: Reading, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`."""
        settings, context, config = self._prepared(input, config)
        with fields_checked(), _limits(settings, context) as limits:
            result = await self.method.graph.ainvoke({"question": input["asked"]}, config, context=context)
        return self._update(input, result, limits)

    def _prepared(
        self, state: Reading, config: RunnableConfig | None
    ) -> tuple[ChatContext, Context, RunnableConfig]:
        """The settings of the chat and of the method's run, and its config with the method's name."""
        settings = self.chat.settings(state)
        if not isinstance(settings, ChatContext):
            raise TypeError(f"the chat's context is a ChatContext, not {type(settings).__name__}")
        calls, seconds = state["usage"]["calls"], state.get("took_s", 0.0)
        context = self.method.context(settings, calls=calls, seconds=seconds)
        about = Said(f"{self.method.name.upper()} works on it.", {"method": self.method.name})
        tell(self.chat.method, self.method.name, "started", lambda: about)
        config = config or {}
        metadata = {**config.get("metadata", {}), "stepcraft_method": self.method.name}
        return settings, context, {**config, "metadata": metadata}

    def _update(self, state: Reading, result: Mapping[str, Any], limits: Mapping[str, str]) -> dict[str, Any]:
        """The result, with its limits as the run of the chat has them, and the answer as a message."""
        warnings = [limits.get(warning, warning) for warning in result["warnings"]]
        facts = {
            "method": self.method.name,
            "reason": state["reason"],
            "question": state["asked"],
            "evidence": [{**passage, "text": _shown(passage["text"])} for passage in result["evidence"]],
            "warnings": [*state["warnings"], *(one for one in warnings if one not in state["warnings"])],
        }
        title = "Examples" if self.method.name == "few_shot" else "Sources"
        content = f"{result['answer']}{_sources(title, result['answer'], result['evidence'])}"
        message = AIMessage(content, id=str(uuid4()), additional_kwargs={"stepcraft": facts})
        update = {
            "messages": [message],
            "answer": result["answer"],
            "evidence": result["evidence"],
            "warnings": warnings,
            "usage": result["usage"],
        }
        tell(self.chat.method, self.method.name, "finished", lambda: _told(self.method.name, result))
        publish_answer(self.chat.method, update)
        return update


def candidates(methods: Mapping[str, Method], chat: ChatContext) -> list[Method]:
    """The methods that may answer a message with these settings, each of which can use them.

    Raises:
        BadInput: A setting or a node is known to none of them or may not be set by the caller, a value cannot be used, or a
            name is not allowed.
    """
    names = AUTO.values() if chat.method == "auto" else [chat.method]
    found = [methods[name] for name in names]
    own = type(chat).__dataclass_fields__
    known = {name for method in found for name in method.resources.context.__dataclass_fields__}
    whose = ", ".join(method.name for method in found)
    for name, value in chat.settings.items():
        if name in own:
            raise BadInput(
                f"settings names {excerpt(name)}, which is a setting of the chat itself; set it beside settings"
            )
        if name not in known:
            near = difflib.get_close_matches(str(name), known - own.keys(), 1)
            hint = (
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known - own.keys()))}"
            )
            raise BadInput(f"there is no setting {excerpt(name)} of {whose}; {hint}")
        contexts = [
            method.resources.context
            for method in found
            if name in method.resources.context.__dataclass_fields__
        ]
        if not any(context.takes(name, value) for context in contexts):
            contexts[0](**{name: value})
    nodes = ["route", *dict.fromkeys(node for method in found for node in method.model_nodes)]
    if unknown := sorted(set(chat.node_models) - set(nodes)):
        raise BadInput(f"node_models names {unknown[0]!r}; the nodes with a model are {', '.join(nodes)}")
    check_fields(chat.settings)
    with fields_checked():
        for method in found:
            method.check(chat)
    return found


@contextmanager
def _limits(chat: Context, method: Context) -> Generator[Mapping[str, str]]:
    """What the method says of limits that are reached, and the same with the limits of the chat.

    Raises:
        NoAnswer: The method raised it; where it names such a limit, it names that of the chat.
    """
    limits = {too_few_calls({}, method): too_few_calls({}, chat), too_late(method): too_late(chat)}
    try:
        yield limits
    except NoAnswer as failure:
        for own, whole in limits.items():
            if own != whole and own in str(failure):
                raise NoAnswer(str(failure).replace(own, whole)) from failure
        raise


def _shown(text: str) -> str:
    """The beginning of a passage: a thread keeps all its messages, and servers send them again with every step."""
    return text if len(text) <= _PASSAGE_CHARACTERS else f"{text[:_PASSAGE_CHARACTERS]} …"


def _told(method: str, result: Mapping[str, Any]) -> Said:
    found = len(result["evidence"])
    passages = counted(found, "passage") if found else "no passage"
    return Said(f"{method.upper()} answered from {passages}.", {"method": method, "found": found})


_ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]()<>#!|~"})


def _sources(title: str, answer: str, evidence: Sequence[Evidence]) -> str:
    """The passages as a numbered list in markdown, with a blank line before it; "" without any.

    Where the answer cites numbers, each passage has its own; else passages of one place are listed once. Titles and
    places come from outside: what markdown would read in them is escaped, and only web addresses become links.
    """
    lines = [_source(passage) for passage in evidence]
    lines = lines if marks(answer) else list(dict.fromkeys(lines))
    if not lines:
        return ""
    listed = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
    return f"\n\n**{title}**\n\n{listed}"


def _source(passage: Evidence) -> str:
    title = normalised(passage["title"] or passage["text"])[:120].translate(_ESCAPED)
    place = normalised(passage["source"])
    if place.startswith(("http://", "https://")) and not set(place) & set(" \"'<>`\\"):
        return f"[{title}]({place.replace('(', '%28').replace(')', '%29')})"
    return f"{title} (`{place.replace('`', '')}`)" if place else title
