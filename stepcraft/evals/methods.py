"""The methods of an evaluation: graphs by name with settings, as `rat:rounds=1` names them."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph.state import CompiledStateGraph
from pydantic import ValidationError

from stepcraft.contexts.base import Settings
from stepcraft.errors import BadInput
from stepcraft.evals.samples import Sample
from stepcraft.graphs.registry import GRAPHS, context_of, get_graph
from stepcraft.llm.resources import BuilderOptions, Resources
from stepcraft.memory.local import LocalMemory
from stepcraft.models.resolve import model_name, resolve_model
from stepcraft.secrets import excerpt

Graph = CompiledStateGraph[Any, Any, Any, Any]

SELF_REFINEMENT = "self_refinement"
"""The paper's draft, critic and edits with an empty memory: what the memory has to beat."""
_REFINED = "aag_paper"
_SEARCHED = ("memory", "sources", "embeddings")
OPTIONS = ("model", "node_models", *_SEARCHED)
"""What goes to the builder of a graph: whoever evaluates may name what no run's context may."""


@dataclass(frozen=True)
class Method:
    """A graph with its settings."""

    name: str
    """As it was written, such as `rat:rounds=1`."""
    graph: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The settings that every run gets as its context."""
    options: BuilderOptions = field(default_factory=BuilderOptions)
    """What the graph is built with: its model, its memory, its sources."""

    def context(self, seed: int | None = None) -> Settings:
        """Return the settings as the context of the graph.

        Args:
            seed: The seed of a sample, for models that take one and for what draws at random.

        Raises:
            BadInput: A setting is unknown, or its value has the wrong type or is out of bounds.
        """
        if seed is None:
            return self._context
        names = {"sample_seed", "seed"} if self._model_takes_seed else {"sample_seed"}
        known = type(self._context).model_fields.keys()
        return self._context.model_copy(update=dict.fromkeys(names & known, seed))

    @cached_property
    def _context(self) -> Settings:
        context = context_of(self.graph)
        for name in self.settings:
            if name not in context.model_fields:
                near = difflib.get_close_matches(name, context.model_fields, 1)
                names = f"did you mean {near[0]!r}?" if near else ", ".join(context.model_fields)
                raise BadInput(f"{self.graph} has no setting {name!r:.80}; {names}")
        try:
            return context(**self.settings)
        except ValidationError as error:
            problem = error.errors()[0]
            name = ".".join(map(str, problem["loc"]))
            raise BadInput(
                f"{name}={excerpt(problem['input'])} cannot be used: {problem['msg']}"
            ) from error

    def compiled(self) -> Graph:
        """Return the graph."""
        return get_graph(self.graph, **self.options)

    def model(self, node: str) -> str:
        """Return the name of the model that a node asks."""
        choice = self._choice(node)
        return choice if isinstance(choice, str) else model_name(choice)

    def _choice(self, node: str) -> BaseChatModel | str:
        resources = Resources.of(self.graph, context_of(self.graph), self.options)
        return resources.choice(node, self._context)

    @cached_property
    def _model_takes_seed(self) -> bool:
        nodes = ["", *self._context.node_models, *self.options.get("node_models", {})]
        models = [resolve_model(self._choice(node)) for node in nodes]
        return all("seed" in type(model).model_fields for model in models)

    def given(self, question: str, resources: str) -> dict[str, Any]:
        """Return the input for a question; resources are part of it where the graph takes none."""
        if not resources:
            return {"question": question}
        if "resources" in GRAPHS[self.graph].inputs:
            return {"question": question, "resources": resources}
        return {"question": f"{question} (with {resources})"}

    def described(self) -> dict[str, Any]:
        """Return the settings and what the graph is built with, as JSON."""
        return {
            **self.settings,
            **{name: _described(value) for name, value in self.options.items()},
        }


@dataclass(frozen=True)
class OwnMethod:
    """A compiled LangGraph graph of one's own, whatever keys its input and its output have."""

    name: str
    graph: Graph
    given: Callable[[Sample], Any] = lambda sample: {"question": sample["question"]}
    """The input of the graph for a sample."""
    output: Callable[[Any], Mapping[str, Any]] = dict
    """What is scored and kept of the graph's output, as JSON: `answer`, `evidence`, `steps`."""
    context: object = None
    """What every run gets as its context."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What tells this method from others of its name, as JSON; another is another evaluation."""

    def described(self) -> dict[str, Any]:
        """Return the settings."""
        return dict(self.settings)


AnyMethod = Method | OwnMethod


def read_methods(text: str, fields: Mapping[str, Any]) -> list[Method]:
    """Read methods from a text such as `rag:k=10,rat:rounds=1:finish=code,self_refinement`.

    Args:
        text: The methods, separated by commas, each with its settings behind colons.
        fields: Settings of all methods that have them, and what their graphs are built with, such as
            the model, the sources and the memory; under the name of a graph those of that graph
            alone.

    Raises:
        BadInput: A method or a setting is unknown, a value cannot be used, or a method is named
            twice.
    """
    methods: list[Method] = []
    for name in filter(None, map(str.strip, text.split(","))):
        graph, *settings = name.split(":")
        own: dict[str, Any] = {}
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                raise BadInput(
                    f"the setting {setting!r:.80} of {graph} has no value; write {graph}:field=value"
                )
            own[key.strip()] = value.strip()
        method = _method(name, graph, own, fields)
        method.context()
        if name in {known.name for known in methods}:
            raise BadInput(f"the method {name!r:.80} is named twice; name each once")
        methods.append(method)
    if not methods:
        raise BadInput(f"no method is named; name some of {', '.join([*GRAPHS, SELF_REFINEMENT])}")
    return methods


def _method(name: str, graph: str, own: dict[str, Any], fields: Mapping[str, Any]) -> Method:
    if graph == SELF_REFINEMENT:
        shared = {key: value for key, value in fields.items() if key not in _SEARCHED}
        method = _method(name, _REFINED, {"questions": False, **own}, shared)
        memory = LocalMemory(":memory:", embeddings="none")
        return replace(method, options={**method.options, "memory": memory})
    known = context_of(graph).model_fields
    settings = {**_known(fields, known), **_known(fields.get(graph) or {}, known), **own}
    options: Any = {key: settings.pop(key) for key in OPTIONS if key in settings}
    return Method(name, graph, settings, options)


def _known(fields: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    names = {*known, *(["embeddings"] if "memory" in known else [])}
    return {key: value for key, value in fields.items() if key in names and value is not None}


def _described(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return an option as JSON: an object by its name."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _described(each) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [_described(each) for each in value]
    if isinstance(value, BaseChatModel):
        return model_name(value)
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else type(value).__name__
