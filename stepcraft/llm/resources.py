"""The objects a graph was built with, which its nodes use where a run's context names no others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

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
        context = self.context.current(state)
        if refused := access.rules().refused_fields(context.chosen):
            raise BadInput(
                f"a run of this user may not set {', '.join(refused)} here (fields in STEPCRAFT_ACCESS)"
            )
        if self.policy.refuses("instructions"):
            changed = [name for name in context.changed if name.endswith("_instructions")]
            if changed:
                raise BadInput(
                    f"a run may not set {', '.join(changed)} here (STEPCRAFT_ALLOW has !instructions)"
                )
        return context

    def labels(self, context: Context) -> Mapping[str, Any]:
        """Trace metadata of a run: method, version, retrieval target and the settings that differ from the defaults."""
        settings = {f"stepcraft_{name}": value for name, value in context.changed.items()}
        own = {"stepcraft_method": self.method, "stepcraft_version": VERSION}
        return {**settings, **own, **self.searched.labels(context)}
