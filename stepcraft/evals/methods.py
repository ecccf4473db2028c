"""The methods in an evaluation: named graphs with settings, and users' own graphs.

A method that is more than a graph with settings is registered by its distribution as an entry point
in the group `stepcraft.methods`. The entry point is a function with the same parameters as
`method_of`, except for `graph`.
"""

import json
import os
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.resources import files
from inspect import signature
from types import FunctionType
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import (
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.pregel.remote import RemoteException, RemoteGraph
from pydantic import PydanticUserError

from stepcraft.contexts.base import Settings
from stepcraft.errors import BadInput, NoAnswer
from stepcraft.evals.samples import Sample
from stepcraft.graphs.registry import context_of, get_graph, graph_info, graph_names
from stepcraft.llm.resources import BuilderOptions, Resources, is_model
from stepcraft.memory.open import BUNDLED, MEMORY_VARIABLE
from stepcraft.models.resolve import model_name
from stepcraft.registered import installed, installed_names
from stepcraft.retrieval.contents import code_digest
from stepcraft.retrieval.target import SOURCE_VARIABLE
from stepcraft.secrets import excerpt, without_secrets
from stepcraft.sources.open import is_dotted, named_object

_GROUP = "stepcraft.methods"
SEARCHED = ("memory", "sources", "embeddings")
"""The settings that determine what a method searches and with which embeddings."""
_OPTIONS = ("model", "node_models", *SEARCHED)
"""The settings passed to a graph's builder, since an evaluation can use values that are not allowed
in the context of a run.
"""
_PACKAGE = str(files("stepcraft"))
_LIMITS = {"max_searches", "max_calls", "deadline_s"}
_NOT_REPLIES = (HumanMessage, ToolMessage, FunctionMessage, SystemMessage)
_NOT_SCORED = ("messages", "usage", "warnings", "__interrupt__")


@dataclass(frozen=True)
class Result:
    """The result of a method on a sample."""

    output: dict[str, Any]
    """The output as JSON: `answer`, `evidence` and `steps` are scored, and the rest is kept."""
    warnings: list[str]
    usage: Mapping[str, Any]
    """The usage counted by the graph itself, since callbacks do not see the model calls of a graph
    on a server.
    """
    unanswered: str = ""
    """Why there is no answer, or "" if there is one."""


@dataclass(frozen=True)
class Method:
    """A graph with its settings."""

    name: str
    """The name as written, such as `rat:rounds=1`."""
    graph: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The settings passed to every run as its context."""
    options: BuilderOptions = field(default_factory=BuilderOptions)
    """The options with which the graph is built, such as its model, memory and sources."""

    def check(self) -> None:
        """Check the sources that were named, before anything is run.

        Raises:
            BadInput: A source is not recognised, or its file or folder does not exist.
        """
        self._resources.target.check()

    def context(self, seed: int | None = None) -> Settings:
        """Return the settings as the graph's context.

        Args:
            seed: The seed of a sample, used for the model and for random draws.

        Raises:
            ValidationError: A setting is unknown, or its value is invalid.
        """
        names = {"sample_seed", "seed"} & type(self._context).model_fields.keys()
        update = {} if seed is None else dict.fromkeys(names, seed)
        return self._context.model_copy(update=update)

    @cached_property
    def _context(self) -> Settings:
        return context_of(self.graph)(**self.settings)

    @cached_property
    def _compiled(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        return get_graph(self.graph, **self.options)

    @property
    def model(self) -> str:
        """The name of the model that writes the answer."""
        return model_name(self._resources.choice("answer", self._context))

    @cached_property
    def _resources(self) -> Resources[Any]:
        context_type, info = context_of(self.graph), graph_info(self.graph)
        return Resources.of(
            self.graph, context_type, self.options, prefers_memory=info.prefers_memory
        )

    def input(self, sample: Sample) -> dict[str, Any]:
        """Return the input for a sample.

        If the graph has no `resources` input, they are added to the question.
        """
        question, resources = sample["question"], sample.get("resources")
        if not resources:
            return {"question": question}
        if "resources" in graph_info(self.graph).inputs:
            return {"question": question, "resources": resources}
        return {"question": f"{question} (with {resources})"}

    async def run(self, sample: Sample, config: RunnableConfig) -> Result:
        """Run the graph on a sample."""
        context = self.context(sample.get("seed"))
        result = await self._compiled.ainvoke(self.input(sample), config, context=context)
        return _result(result, result)

    def described(self) -> dict[str, Any]:
        """Return a JSON description that identifies the method."""
        searched = self._searched()
        return {
            "graph": self.graph,
            "settings": _plain({**self.settings, **self.options}),
            "searched": searched,
            "contents": self._resources.target.digests() if searched else {},
            "limits": self._context.model_dump(include=_LIMITS),
        }

    def _searched(self) -> list[str]:
        """Return the sources and memories that the answers are based on."""
        if "sources" not in context_of(self.graph).model_fields:
            return []
        target = self._resources.target
        searched = _plain([*target.sources, *target.memories.values()])
        memory = os.environ.get(MEMORY_VARIABLE) or BUNDLED
        if target.prefers_memory and not target.memories:
            searched.append(memory)
        elif not searched:
            searched = [os.environ.get(SOURCE_VARIABLE) or memory]
        return [without_secrets(each) for each in searched]


def plain_output(result: Any) -> Mapping[str, Any]:  # noqa: ANN401 - whatever a graph returns
    """Return a result's text or last message as the answer, and any other mapping unchanged.

    With a last message, lists of evidence and steps are kept. A message of the user, a tool or the
    system is no answer.

    Raises:
        TypeError: The result is a list that does not consist of messages.
    """
    if isinstance(result, list):
        if not all(isinstance(each, BaseMessage) for each in result):
            raise TypeError("a method returns a string, messages or a mapping, not another list")
        result = {"messages": result}
    if not isinstance(result, Mapping):
        text = result.text if isinstance(result, BaseMessage) else str(result)
        return {"answer": "" if result is None else text}
    if result.get("answer") is None and result.get("messages"):
        [last] = convert_to_messages(result["messages"][-1:])
        # An agent of a team may speak as a named user, and a tool may answer directly.
        is_reply = not isinstance(last, _NOT_REPLIES) or bool(last.name and last.text)
        kept = {name: result.get(name) for name in ("evidence", "steps")}
        lists = {name: value for name, value in kept.items() if isinstance(value, list)}
        if not all(map(_is_passage, lists.get("evidence", ()))):
            del lists["evidence"]
        return {"answer": last.text if is_reply else "", **lists}
    return result


def _is_passage(value: object) -> bool:
    return isinstance(value, Document) or (isinstance(value, Mapping) and "text" in value)


@dataclass(frozen=True)
class OwnMethod:
    """The user's own LangGraph graph, a `RemoteGraph`, or a function of the input."""

    name: str
    graph: Runnable[Any, Any] | Callable[[Any], Any]
    input: Callable[[Sample], Any] = lambda sample: {"question": sample["question"]}
    """Returns the input for a sample."""
    output: Callable[[Any], Mapping[str, Any]] = plain_output
    """Converts the graph's result to the JSON output to score and keep: `answer`, `evidence`,
    `steps`.
    """
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values that distinguish this method from others with the same name, as JSON."""
    model: str = ""
    """The model whose price applies to calls that do not report a model."""

    async def run(self, sample: Sample, config: RunnableConfig) -> Result:
        """Run the graph on a sample."""
        runnable = self.graph if isinstance(self.graph, Runnable) else RunnableLambda(self.graph)
        try:
            state = await runnable.ainvoke(self.input(sample), config)
        except RemoteException as error:
            sent = error.args[0] if error.args else None
            if isinstance(sent, Mapping) and sent.get("error") == NoAnswer.__name__:
                raise NoAnswer(sent.get("message", "")) from error
            raise
        result = _result(state, self.output(state))
        result.output.update(json.loads(json.dumps(result.output, default=_as_json)))
        if passages := result.output.get("evidence"):
            if not all(isinstance(each, Mapping) and "text" in each for each in passages):
                raise ValueError("the evidence of an output is a list of objects with a text")
            empty = {"id": "", "title": "", "source": "", "score": 0.0}
            result.output["evidence"] = [{**empty, **each} for each in passages]
        return result

    def described(self) -> dict[str, Any]:
        """Return a JSON description that identifies the method."""
        spec = str(self.settings.get("method", ""))
        contents = {spec or f"the function {self.name}": code_digest(self.graph, spec)}
        return {"graph": "own", "settings": _plain(self.settings), "contents": contents}


AnyMethod = Method | OwnMethod


def _result(result: object, output: Mapping[str, Any]) -> Result:
    state: Mapping[str, Any] = result if isinstance(result, Mapping) else {}
    answer = output.get("answer")
    answer = answer.text if isinstance(answer, BaseMessage) else answer
    has_answer = answer not in (None, [], {}) and str(answer).strip()
    unanswered = ""
    if state.get("__interrupt__"):
        unanswered = "the run waits for a person; evaluate the method without its review"
    elif not (output.get("steps") or has_answer):
        unanswered = "the result has neither `answer` nor `steps`, or they are empty"
    warnings, usage = state.get("warnings") or (), state.get("usage")
    kept = {name: value for name, value in output.items() if name not in _NOT_SCORED}
    if answer is not None:
        kept["answer"] = str(answer)
    return Result(
        {} if unanswered else kept,
        [*map(str, [warnings] if isinstance(warnings, str) else warnings)],
        _counted(usage) if isinstance(usage, Mapping) else {},
        unanswered,
    )


def _counted(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return usage without counts that are unknown."""
    counts = {name: value for name, value in usage.items() if isinstance(value, int | float)}
    models = usage.get("models")
    return counts | ({"models": models} if isinstance(models, Mapping) else {})


def _as_json(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return a value that is not JSON: a document as a passage, and anything else as text."""
    if isinstance(value, Document):
        return {**value.metadata, "text": value.page_content}
    return value.text if isinstance(value, BaseMessage) else str(value)


def read_methods(text: str, fields: Mapping[str, Any]) -> list[Method]:
    """Read methods such as `rag:k=10,rat:rounds=1:model=openai:gpt-5`.

    Args:
        text: The methods, separated by commas, each followed by its settings, separated by colons.
            A value can contain colons.
        fields: Settings for every method that has them, and options for the graph builders, such as
            the model, the sources and the memory. Settings under the name of a graph apply only to
            that graph.

    Raises:
        BadInput: A method is unknown.
        ValidationError: A setting is unknown, or its value is invalid.
    """
    return [_read_method(name, name, fields) for name in map(str.strip, text.split(","))]


def read_named_method(text: str, fields: Mapping[str, Any]) -> AnyMethod:
    """Read a named method in the form NAME=METHOD.

    Args:
        text: The name and the method. The method is one accepted by `read_methods`, except that its
            values can contain commas; `package.module:attribute`, which is a Runnable, a function
            of the question, or a function without arguments that returns either; or the URL of a
            LangGraph deployment, ending with the name of the assistant.
        fields: As for `read_methods`.

    Raises:
        BadInput: It has no name, or cannot be used.
    """
    name, _, spec = text.partition("=")
    if not spec or not re.fullmatch(r"[\w.-]+", name):
        raise BadInput(f"--method {text!r:.80} has no name; write --method name=method")
    if spec.startswith(("http://", "https://")) or is_dotted(spec):
        return _own(name, spec)
    return _read_method(name, spec, fields)


def _read_method(name: str, spec: str, fields: Mapping[str, Any]) -> Method:
    graph, *settings = re.split(r":(?=\w+=)", spec)
    pairs = (setting.split("=", 1) for setting in settings)
    chosen = {key: value.strip() for key, value in pairs}
    make: Any = installed(_GROUP, graph, FunctionType) or partial(method_of, graph)
    method: Method = make(name, chosen, fields)
    method.context()
    return method


def _own(name: str, spec: str) -> OwnMethod:
    """Return the user's own graph or function, or a graph on a server, as a method."""
    settings = {"method": without_secrets(spec)}
    if spec.startswith("http"):
        url, _, assistant = spec.rstrip("/").rpartition("/")
        graph: Any = RemoteGraph(assistant, url=url)
        try:
            schemas = graph.sync_client.assistants.get_schemas(assistant)
        except Exception as error:
            raise BadInput(
                f"{spec} is no assistant of a LangGraph deployment ({excerpt(error, 200)}); write "
                "its address, a slash and the name of the graph"
            ) from error
        fields: Any = (schemas.get("input_schema") or {}).get("properties", {})
    else:
        graph = named_object(spec, is_called=_takes_nothing)
        fields = _fields(graph) if isinstance(graph, Pregel) else None
    if not callable(graph) and not isinstance(graph, Runnable):
        raise BadInput(
            f"{spec} is a {type(graph).__name__}; name a Runnable, or a function of the question"
        )
    return OwnMethod(name, graph, partial(_input, fields), settings=settings)


def _fields(graph: Any) -> Any:  # noqa: ANN401 - of any graph
    """Return the fields of a graph's input."""
    try:
        return graph.get_input_jsonschema().get("properties", {})
    except PydanticUserError:  # `typing.TypedDict` before Python 3.12
        return graph.channels


def _input(fields: Container[str] | None, sample: Sample) -> Any:  # noqa: ANN401 - of any graph
    """Return the input for a graph, with the question under `question` or as a message."""
    question = sample["question"]
    if fields is None:
        return question
    is_chat = "question" not in fields and "messages" in fields
    return {"messages": [("user", question)]} if is_chat else {"question": question}


def _takes_nothing(target: object) -> bool:
    """Return whether a function takes no arguments, in which case calling it creates the method."""
    if isinstance(target, Runnable) or not callable(target):
        return False
    try:
        signature(target).bind()
    except TypeError:
        return False
    return True


def method_names() -> list[str]:
    """Return the names of the graphs and of the installed methods."""
    return [*graph_names(), *installed_names(_GROUP)]


def method_of(
    graph: str, name: str, settings: Mapping[str, Any], fields: Mapping[str, Any]
) -> Method:
    """Return a graph as a method.

    Args:
        graph: The name of the graph.
        name: The name of the method in the evaluation.
        settings: The method's own settings.
        fields: Settings for all methods, as for `read_methods`.

    Raises:
        BadInput: There is no graph with this name.
    """
    names = set(context_of(graph).model_fields)
    names |= {"embeddings"} if "memory" in names else set()
    shared = {**fields, **(fields.get(graph) or {})}
    merged = {key: value for key, value in shared.items() if key in names and value is not None}
    merged |= settings
    options: Any = {key: merged.pop(key) for key in _OPTIONS if key in merged}
    return Method(name, graph, merged, options)


def _plain(settings: object) -> Any:  # noqa: ANN401 - JSON
    """Return settings as JSON data, with package paths made relative and objects replaced by names.

    This way, another installation can resume a run.
    """
    return json.loads(json.dumps(settings, default=_name).replace(_PACKAGE, "stepcraft"))


def _name(value: object) -> str:
    if isinstance(value, Runnable) and is_model(value):
        return model_name(value)
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else type(value).__name__
