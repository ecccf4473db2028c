"""What a graph is built with, and the settings of a run in progress."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, Generic, TypedDict, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.typing import ContextT, InputT, OutputT, StateT

from stepcraft import __version__
from stepcraft.concurrency import OncePerKey
from stepcraft.contexts.base import Settings
from stepcraft.errors import BadInput
from stepcraft.models.resolve import EXTRACTIVE
from stepcraft.registered import MODELS, chosen, registered
from stepcraft.retrieval.target import Memories, RetrievalTarget, Sources
from stepcraft.secrets import excerpt
from stepcraft.sources.open import named_object

_OBJECTS: OncePerKey[str, BaseChatModel] = OncePerKey()
"""The models that a deployment registered as objects of its own."""

NESTED = "|"
"""Stands in the checkpoint namespace of a node whose graph runs within another."""

S = TypeVar("S", bound=Settings)
T = TypeVar("T")


class BuilderOptions(TypedDict, total=False):
    """The arguments of every builder."""

    model: BaseChatModel | str
    """The model of all nodes, as an object or a name for `init_chat_model`."""
    node_models: Mapping[str, BaseChatModel | str]
    """Another model for some nodes, by the name of the node."""
    memory: Memories
    """The procedural memory: an object, a URL for `open_memory`, or several by the names that runs
    may choose."""
    sources: Sources
    """The sources of evidence: a retriever or a search tool of LangChain, a spec for
    `open_source`, several, or several by name."""
    embeddings: Embeddings | str | None
    """The embeddings of a memory that is named by a URL."""
    settings: Settings
    """The settings of runs without a context of their own."""


class GraphOptions(BuilderOptions, total=False):
    """The arguments of every `build_…`: the builder's, and those of LangGraph's `compile`."""

    checkpointer: BaseCheckpointSaver[Any] | bool | None
    cache: BaseCache[Any] | None
    store: BaseStore | None
    interrupt_before: list[str] | None
    interrupt_after: list[str] | None
    name: str | None


@dataclass(frozen=True)
class Resources(Generic[S]):
    """What a graph is built with."""

    graph: str
    """The name of the graph in traces and events, such as "aag"."""
    settings_type: type[S]
    defaults: S
    """The settings of runs without a context."""
    target: RetrievalTarget
    model: BaseChatModel | str | None = None
    node_models: Mapping[str, BaseChatModel | str] | None = None

    @classmethod
    def of(
        cls,
        graph: str,
        settings_type: type[S],
        options: BuilderOptions,
        *,
        prefers_memory: bool = False,
    ) -> "Resources[S]":
        """Return the resources of a builder's arguments.

        Raises:
            BadInput: An argument is of another kind than it has to be.
        """
        defaults = options.get("settings") or settings_type()
        if not isinstance(defaults, settings_type):
            raise BadInput(
                f"the settings of {graph} are a {settings_type.__name__}, not {excerpt(defaults)}"
            )
        node_models = options.get("node_models") or {}
        for model in filter(None, [options.get("model"), *node_models.values()]):
            if not isinstance(model, BaseChatModel | str):
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
        """Return a node or a router with these resources, under the function's name in traces."""
        bound = partial(function, resources=self)
        update_wrapper(bound, function, assigned=("__name__", "__doc__"))
        # LangGraph is to read the signature of the partial, not that of the function.
        del bound.__wrapped__  # type: ignore[attr-defined]
        return bound

    def settings(self, state: Mapping[str, Any] | None = None) -> S:
        """Return the settings of the run in progress.

        A context of this graph's own holds. Without one, as where a run is resumed, those hold that
        the run began with, and else the builder's. A parent's own context object is not ours.

        Raises:
            BadInput: The run, which is no parent's, has the context of another graph.
        """
        runtime: Any = get_runtime()
        context = runtime.context if runtime else None
        if isinstance(context, self.settings_type) and context.model_fields_set:
            return context
        if (
            isinstance(context, Settings)
            and not isinstance(context, self.settings_type)
            and NESTED not in get_config().get("configurable", {}).get("checkpoint_ns", "")
        ):
            raise BadInput(
                f"the context of {self.graph} is a {self.settings_type.__name__}, "
                f"not {excerpt(context)}"
            )
        if state and (values := state.get("settings")):
            return self.settings_type(**values)
        return self.defaults

    def choice(self, node: str, settings: Settings) -> BaseChatModel | str:
        """Return the model of a node, as an object or a name: the context's before the builder's.

        Raises:
            BadInput: The context names a model that STEPCRAFT_MODELS does not have, or one that
                cannot be made.
        """
        named = settings.node_models.get(node) or settings.model
        if named:
            allowed = registered(MODELS)
            if allowed and settings is not self.defaults:
                named = chosen("model", named, {**allowed, EXTRACTIVE: EXTRACTIVE}, MODELS)
                if "." in named.partition(":")[0]:  # of package.module:attribute
                    return _OBJECTS.get(named, partial(_registered_model, named))
            return named
        built_with = (self.node_models or {}).get(node) or self.model
        return built_with or os.environ.get("STEPCRAFT_MODEL") or EXTRACTIVE


def _registered_model(spec: str) -> BaseChatModel:
    model = named_object(spec)
    if not isinstance(model, BaseChatModel):
        raise BadInput(f"{MODELS} names {spec}, a {type(model).__name__}; name a chat model")
    return model


def compiled(
    make_builder: Callable[..., StateGraph[StateT, ContextT, InputT, OutputT]],
    graph: str,
    options: GraphOptions,
) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
    """Build a graph with the builder's options, and compile it under its name with the rest."""
    compile_options: dict[str, Any] = {"name": graph, **options}
    for_builder = {
        key: compile_options.pop(key)
        for key in BuilderOptions.__annotations__
        if key in compile_options
    }
    metadata = {"stepcraft_graph": graph, "stepcraft_version": __version__}
    return (
        make_builder(**for_builder)
        .compile(**compile_options)
        .with_config(RunnableConfig(metadata=metadata))
    )
