"""The objects a graph was built with, which its nodes use where a run's context names no others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

from stepcraft import access
from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput
from stepcraft.models.resolve import GivenModels
from stepcraft.policy import Policy
from stepcraft.retrieval.target import RetrievalTarget

VERSION = version("stepcraft")
"""The installed version of Stepcraft."""


@dataclass(frozen=True)
class GraphResources:
    """The models, retrieval target, reranker and context class of a compiled graph."""

    method: str = ""
    """The graph's name in traces, such as "aag"."""
    context: type[Context] = Context
    """The class of the run settings that the graph takes."""
    models: GivenModels = field(default_factory=GivenModels)
    searched: RetrievalTarget = field(default_factory=RetrievalTarget)
    reranker: object = None
    """The sentence scorer: a name, a LangChain cross-encoder, compressor or embeddings, or None."""
    allow: Policy | None = None
    """What a run's context may name; None for the rules in STEPCRAFT_ALLOW."""

    @property
    def policy(self) -> Policy:
        """What the context of the run in progress may name.

        Raises:
            BadInput: STEPCRAFT_ALLOW has an entry that is not understood, or the caller may do nothing.
        """
        return access.policy(self.allow)

    def settings(self, state: Mapping[str, Any] | None = None) -> Context:
        """The settings of the run in progress, as `Context.current` returns them.

        Raises:
            BadInput: The context has a value that cannot be used, or sets what the caller may not set.
        """
        return self.allowed(self.context.current(state))

    def allowed(self, context: Context) -> Context:
        """The settings, unless the caller may not set them.

        Raises:
            BadInput: They hold what the caller may not set, or instructions where runs may set none.
        """
        access.check_fields(context.chosen)
        changed = [name for name in context.changed if name.endswith("_instructions")]
        if changed and self.policy.refuses("instructions"):
            raise BadInput(f"a run may not set {', '.join(changed)} here (STEPCRAFT_ALLOW has !instructions)")
        return context

    def labels(self, context: Context) -> Mapping[str, Any]:
        """Trace metadata of a run: method, version, retrieval target and the settings that differ from the defaults."""
        settings = {f"stepcraft_{name}": value for name, value in context.changed.items()}
        own = {"stepcraft_method": self.method, "stepcraft_version": VERSION}
        return {**settings, **own, **self.searched.labels(context)}

    def traced(self, config: RunnableConfig | None, context: Context) -> RunnableConfig:
        """The config of a node with the run's labels in its metadata.

        The settings are known in the nodes alone, so the runs that were traced before, the node's and the graph's, are
        labelled here: every tracer of LangChain keeps a run in `run_map` until it ends, and sends its metadata then. The
        runs of a parent graph are left as they are.

        Args:
            config: The config that the node was called with.
            context: The settings of the run.
        """
        config, labels = config or {}, self.labels(context)
        callbacks = config.get("callbacks")
        if isinstance(callbacks, BaseCallbackManager):
            for tracer in callbacks.handlers:
                if isinstance(tracer, BaseTracer | AsyncBaseTracer):
                    self._label(tracer, str(callbacks.parent_run_id), labels)
        return {**config, "metadata": {**config.get("metadata", {}), **labels}}

    def _label(self, tracer: BaseTracer | AsyncBaseTracer, run_id: str, labels: Mapping[str, Any]) -> None:
        """Label a run in progress and those above it, up to the graph's, which marks all below it with its method."""
        while run := tracer.run_map.get(run_id):
            metadata = (run.extra or {}).get("metadata", {})
            if metadata.get("stepcraft_method") != self.method:
                return
            # A new dict: what is being sent, and what is inherited by other runs, does not change.
            run.extra = {**(run.extra or {}), "metadata": {**metadata, **labels}}
            run_id = str(run.parent_run_id)
