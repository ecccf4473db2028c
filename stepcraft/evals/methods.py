"""The methods of an evaluation: graphs by name with their settings, as `rat:window=1` names them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput
from stepcraft.evals.samples import Sample
from stepcraft.graphs.aag import build_aag
from stepcraft.graphs.compile import Graph
from stepcraft.graphs.registry import GRAPHS, context_of, get_graph, inputs_of, kinds_of
from stepcraft.memory.local import LocalMemory
from stepcraft.nodes.begin import checked_option
from stepcraft.policy import Policy

SELF_REFINEMENT = "self_refinement"
"""AAG's draft, critic and edits with an empty memory: what the memory has to beat."""


@dataclass(frozen=True)
class Method:
    """A graph with its settings."""

    name: str
    """As it was written, such as `rat:window=1`."""
    graph: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kind: str = ""
    """The kind of answer that its input asks for; "" for the graph's own default."""

    def context(self, seed: int | None = None) -> Context:
        """The settings as the context of the graph.

        Args:
            seed: The seed of the model, in place of that of the settings.

        Raises:
            BadInput: A setting is unknown, or its value has the wrong type or is out of bounds.
        """
        if seed is None:
            return self._context
        settings: dict[str, Any] = {**self.settings, "seed": seed}
        return context_of(self.graph)(**settings)

    @cached_property
    def _context(self) -> Context:
        return context_of(self.graph)(**self.settings)

    def compiled(self) -> Graph:
        """The graph; its contexts may name what the caller of an evaluation may name."""
        policy = Policy.of(None).trusting_runs()
        if self.refines:
            return build_aag(memory=LocalMemory(":memory:", embeddings="none"), allow=policy)
        return get_graph(self.graph, allow=policy)

    @property
    def refines(self) -> bool:
        """Whether this is self-refinement, whose memory is empty."""
        return self.name.partition(":")[0] == SELF_REFINEMENT

    def given(self, question: str, resources: str) -> dict[str, Any]:
        """The input of the graph for a question; resources are part of the question where the graph takes none."""
        kind = {"kind": self.kind} if self.kind else {}
        if not resources:
            return {"question": question, **kind}
        if "resources" in inputs_of(self.graph):
            return {"question": question, "resources": resources, **kind}
        return {"question": f"{question} (with {resources})", **kind}


@dataclass(frozen=True)
class OwnMethod:
    """A compiled LangGraph graph of one's own, whatever keys its input and its output have."""

    name: str
    graph: Graph
    given: Callable[[Sample], Any] = lambda sample: {"question": sample["question"]}
    """The input of the graph for a sample."""
    output: Callable[[Any], Mapping[str, Any]] = dict
    """What is scored and kept of the graph's output, as JSON: `answer`, and `evidence` or `steps` if it has them."""
    context: object = None
    """What every run gets as its context."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What tells this method from others of its name, as JSON; another is another evaluation."""


AnyMethod = Method | OwnMethod


def read_methods(text: str, fields: Mapping[str, Any]) -> list[Method]:
    """Read methods from a text such as `rag:k=10,rat:window=1:finish=thoughts,self_refinement`.

    Args:
        text: The methods, separated by commas, each with its settings behind colons; `kind`, the kind of answer, is one of
            those graphs whose input has it.
        fields: Settings of all methods that have them, such as the model, the sources, the memory and the kind; under the
            name of a graph those of that graph alone.

    Raises:
        BadInput: A method or a setting is unknown, a value cannot be used, or a method is named twice.
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
        shared = {key: value for key, value in fields.items() if key not in {"memory", "retriever"}}
        known = context_of("aag").__dataclass_fields__
        refining = {"questions": False, "names": False, "critic_evidence": False}
        return Method(name, "aag", {**_known(shared, known), **refining, **own})
    known = context_of(graph).__dataclass_fields__
    kinds = kinds_of(graph)
    kind = (own.pop("kind", "") or fields.get("kind")) if kinds else ""
    settings = {**_known(fields, known), **_known(fields.get(graph) or {}, known), **own}
    if fields.get("retriever") and "answer_from" in known:
        settings.setdefault("answer_from", "memory+source")
    return Method(name, graph, settings, checked_option("kind", kind, kinds) if kind else "")


def _known(fields: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key in known and value is not None}
