"""The resources that a graph is built with, and the settings of a run in progress."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Generic, TypedDict, TypeVar, cast

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLLM
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.typing import ContextT, InputT, OutputT, StateT

from stepcraft import __version__
from stepcraft.contexts.base import Settings
from stepcraft.errors import BadInput
from stepcraft.llm.calls import Inline
from stepcraft.models.resolve import EXTRACTIVE, ChatModel
from stepcraft.registered import MODELS, chosen, did_you_mean, registered
from stepcraft.retrieval.target import Memories, RetrievalTarget, Sources
from stepcraft.secrets import excerpt
from stepcraft.sources.open import is_dotted, named_object

S = TypeVar("S", bound=Settings)
T = TypeVar("T")


_SYNONYMS = {
    "llm": "model",
    "chat_model": "model",
    "retriever": "sources",
    "retrievers": "sources",
    "tools": "sources",
    "vectorstore": "sources",
    "context": "settings",
    "config": "settings",
    "memory_store": "memory",
}
"""Option names from other libraries, mapped to their equivalents here."""


class BuilderOptions(TypedDict, total=False):
    """The arguments of every builder."""

    model: ChatModel | str
    """The model for all nodes, as an object or a name for `init_chat_model`."""
    node_models: Mapping[str, ChatModel | str]
    """Different models for some nodes, by node name."""
    memory: Memories
    """The procedural memory: an object, a URL for `open_memory`, or a mapping from names to such
    memories, of which a run may choose one.
    """
    sources: Sources
    """The sources of evidence: a LangChain retriever or search tool, a spec for `open_source`, a
    list of these, or a mapping from names to them.
    """
    embeddings: Embeddings | str | None
    """The embeddings for a memory given as a URL."""
    settings: Settings
    """The settings for runs without a context of their own."""


class GraphOptions(BuilderOptions, total=False):
    """The arguments of every `build_…` function: those of the builder and those of `compile`."""

    checkpointer: BaseCheckpointSaver[Any] | bool | None
    cache: BaseCache[Any] | None
    store: BaseStore | None
    interrupt_before: list[str] | None
    interrupt_after: list[str] | None
    name: str | None


@dataclass(frozen=True)
class Resources(Generic[S]):
    """The resources that a graph is built with."""

    graph: str
    """The name of the graph in traces and events, such as "aag"."""
    settings_type: type[S]
    defaults: S
    """The settings for runs without a context."""
    target: RetrievalTarget
    model: ChatModel | str | None
    node_models: Mapping[str, ChatModel | str]

    @classmethod
    def of(
        cls,
        graph: str,
        settings_type: type[S],
        options: BuilderOptions,
        *,
        prefers_memory: bool = False,
    ) -> "Resources[S]":
        """Return the resources described by a builder's arguments.

        Raises:
            BadInput: An argument has the wrong type.
            TypeError: There is no such argument.
        """
        _check_options(f"{graph}_builder", options, BuilderOptions.__annotations__)
        defaults = options.get("settings") or settings_type()
        if not isinstance(defaults, settings_type):
            raise BadInput(
                f"the settings of {graph} are a {settings_type.__name__}, not {excerpt(defaults)}"
            )
        defaults = settings_type(**_given(defaults, settings_type))
        node_models = options.get("node_models") or {}
        if not isinstance(node_models, Mapping):
            raise BadInput(f"node_models maps nodes to models; {excerpt(node_models)} does not")
        for model in filter(None, [options.get("model"), *node_models.values()]):
            if not is_model(model):
                raise BadInput(
                    f"a model is a chat model or its name, not {type(model).__name__}: "
                    f"{excerpt(model)}"
                )
        target = RetrievalTarget.of(
            options.get("memory"),
            options.get("sources"),
            options.get("embeddings"),
            prefers_memory=prefers_memory,
        )
        return cls(graph, settings_type, defaults, target, options.get("model"), node_models)

    def bind(self, function: Callable[..., T]) -> Callable[..., T]:
        """Bind these resources to a node or a router."""
        if isinstance(function, Inline):
            return Inline(partial(function.function, resources=self), reads_config=True)
        return partial(function, resources=self)

    def settings(self, state: Mapping[str, Any] | None = None) -> S:
        """Return the settings of the run in progress.

        Each field comes from the context, or else from the settings that the run began with, or
        else from the builder. The context of a parent graph is ignored unless it is an instance of
        `settings_type`.

        Args:
            state: The state of the run, or None when it begins.

        Raises:
            BadInput: The run has the context of another graph but is not part of a parent run.
        """
        runtime: Any = get_runtime()
        context = runtime.context if runtime else None
        fields: dict[str, Any] = (state or {}).get("settings") or {}
        if isinstance(context, self.settings_type):
            fields = {**fields, **_given(context, self.settings_type)}
        elif context is not None and not _is_subgraph():
            raise BadInput(
                f"the context of {self.graph} is a {self.settings_type.__name__} or a mapping, "
                f"not {excerpt(context)}"
            )
        if not fields:
            return self.defaults
        return self.settings_type(**{**self.defaults.model_dump(exclude_unset=True), **fields})

    def choice(self, node: str, settings: Settings) -> ChatModel | str:
        """Return a node's model, as an object or a name.

        What the run names comes first, then the objects and names that the builder was given, and
        then the names in the builder's settings.

        Raises:
            BadInput: The settings name a model that is in neither STEPCRAFT_MODELS nor the
                builder's settings, or one that cannot be created.
        """
        of_node, own = settings.node_models.get(node), self.defaults
        built_with = self.node_models.get(node) or (None if of_node else self.model)
        is_of_run = (of_node, settings.model) != (own.node_models.get(node), own.model)
        if (name := of_node or settings.model) and (is_of_run or not built_with):
            return self._named(name)
        return built_with or os.environ.get("STEPCRAFT_MODEL", "").strip() or EXTRACTIVE

    def _named(self, name: str) -> ChatModel | str:
        names = registered(MODELS)
        of_builder = {self.defaults.model, *self.defaults.node_models.values()}
        if not names or (name in of_builder and name not in names):
            return name
        spec = chosen("model", name, {**names, EXTRACTIVE: EXTRACTIVE}, MODELS)
        is_object = is_dotted(spec) and "." in spec.partition(":")[0]  # not `ollama:llama3`
        return _registered_model(spec) if is_object else spec


def _given(settings: Settings, settings_type: type[Settings]) -> dict[str, Any]:
    """Return the fields that were set, or whose default a settings subclass overrides."""
    return {
        name: value
        for name, field in settings_type.model_fields.items()
        if (value := getattr(settings, name)) != field.get_default(call_default_factory=True)
        or name in settings.model_fields_set
    }


def is_model(value: object) -> bool:
    """Return whether a value is a chat model: a name, or an object that replies to messages."""
    others = (BaseRetriever, BaseTool, BaseLLM)
    return isinstance(value, Runnable | str) and not isinstance(value, others)


def _is_subgraph() -> bool:
    """Return whether the current graph is running inside another."""
    return "|" in get_config().get("configurable", {}).get("checkpoint_ns", "")


@cache
def _registered_model(spec: str) -> ChatModel:
    model: Any = named_object(spec)
    if isinstance(model, str) or not is_model(model):
        raise BadInput(f"{MODELS} names {spec}, a {type(model).__name__}; name a chat model")
    return cast("ChatModel", model)


def _check_options(function: str, options: Iterable[str], allowed: Iterable[str]) -> None:
    for name in options:
        if name not in allowed:
            advice = did_you_mean(
                _SYNONYMS.get(name, name), allowed, f"it has {', '.join(allowed)}"
            )
            raise TypeError(f"{function}() has no option {name!r}; {advice}")


def compiled(
    make_builder: Callable[..., StateGraph[StateT, ContextT, InputT, OutputT]],
    graph: str,
    options: GraphOptions,
) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
    """Build a graph with the options of its builder, and compile it with the remaining options."""
    _check_options(f"build_{graph}", options, GraphOptions.__annotations__)
    compile_options: dict[str, Any] = {"name": graph, **options}
    for_builder = {
        key: compile_options.pop(key)
        for key in BuilderOptions.__annotations__
        if key in compile_options
    }
    result = make_builder(**for_builder).compile(**compile_options)
    # The limits are an in-process object and do not belong in a stream.
    result.stream_channels = [name for name in result.stream_channels_list if name != "limits"]
    metadata = {"stepcraft_graph": graph, "stepcraft_version": __version__}
    return result.with_config(RunnableConfig(metadata=metadata))
