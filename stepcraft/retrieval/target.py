"""What a graph searches: which memory and which sources a run's settings name, opened and as retrievers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langgraph.runtime import get_runtime

from stepcraft import access
from stepcraft.contexts.base import Context, SearchSettings
from stepcraft.errors import BadInput
from stepcraft.memory.base_store import NAMESPACE
from stepcraft.memory.open import BUNDLED
from stepcraft.memory.open import VARIABLE as MEMORY_VARIABLE
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.urls import references as memory_references
from stepcraft.memory.urls import scheme_of
from stepcraft.models.embeddings import VARIABLE as EMBEDDINGS_VARIABLE
from stepcraft.policy import TRUSTING, Policy, Reference
from stepcraft.retrieval.opening import Opening, memory_opening, source_opening
from stepcraft.secrets import without_secrets
from stepcraft.sources.langchain import with_k
from stepcraft.sources.open import KINDS
from stepcraft.sources.open import references as source_references

SOURCE_VARIABLE = "STEPCRAFT_SOURCE"
"""The environment variable that names the source where neither the run nor the graph names one."""

Sources = BaseRetriever | str | Sequence[BaseRetriever | str] | None
Origin = Literal["run", "deployment", "default"]
"""Who named something: the run's context; the graph's builder, the environment or the rules; or nobody."""


@dataclass(frozen=True)
class Named:
    """A memory or source that a run searches, as it was named or given. Nothing is opened yet."""

    role: Literal["memory", "source"]
    value: ProcedureMemory | BaseRetriever | str
    """An object, a URL for `open_memory` ("" is the bundled procedures), or a spec for `open_source`."""
    origin: Origin
    name: str = ""
    """The name under which the deployment registered it; "" for none."""

    @property
    def label(self) -> str:
        """Its name in traces and warnings, without secrets."""
        if self.name:
            return self.name
        if isinstance(self.value, str):
            return without_secrets(self.value) or BUNDLED
        return type(self.value).__name__ if isinstance(self.value, BaseRetriever) else self.value.name


@dataclass(frozen=True)
class Searched:
    """A memory or source that a run searches, and how."""

    named: Named
    settings: SearchSettings
    opening: Opening[ProcedureMemory] | Opening[BaseRetriever] | None
    """How it is opened; None where it was given as an object."""

    def open(self, *, refresh: bool = False) -> ProcedureMemory | BaseRetriever:
        """Return it, opened once in the process; with `refresh` opened again where it is out of date.

        Raises:
            BadInput, MemoryFailure, SourceFailure: it cannot be opened.
        """
        if self.opening:
            return self.opening.open(refresh=refresh)
        return cast("ProcedureMemory | BaseRetriever", self.named.value)

    async def aopen(self, *, refresh: bool = False) -> ProcedureMemory | BaseRetriever:
        """As `open`, without blocking the event loop."""
        return await self.opening.aopen(refresh=refresh) if self.opening else self.open()

    def retriever(self, opened: ProcedureMemory | BaseRetriever) -> Runnable[str, list[Document]]:
        """Return what was opened as the retriever of this run."""
        if isinstance(opened, BaseRetriever):
            return with_k(opened, self.named.label).bind(k=self.settings.k)
        if self.named.role == "source":
            return opened.as_retriever(self.settings.k)
        retriever = opened.as_retriever(self.settings.k, alpha=self.settings.alpha)
        update: dict[str, object] = {"compose": self.settings.compose}
        if self.settings.feedback_weight is not None:
            update["feedback_weight"] = self.settings.feedback_weight
        return retriever.model_copy(update=update)

    def warnings(self, opened: ProcedureMemory | BaseRetriever) -> list[str]:
        """Return what the user should know of it before any work is done; may read from the memory."""
        if self.named.role == "source" and self.named.origin == "default":
            name = self.named.label if isinstance(opened, BaseRetriever) else opened.name
            return [f"no source is named, so the evidence comes from {name}; name {KINDS}"]
        if self.named.role == "source" or isinstance(opened, BaseRetriever) or not opened.is_empty():
            return []
        return [f"the memory {opened.name} is empty; the procedure is written without examples"]


@dataclass(frozen=True)
class RetrievalTarget:
    """What a graph searches, with what it was built with.

    A name in the run's context has precedence over what the graph was built with, that over the environment
    (`STEPCRAFT_MEMORY`, `STEPCRAFT_SOURCE`), and that over the default: the bundled procedures as memory,
    `fallback` as source.
    """

    searches: Literal["nothing", "memory", "sources", "sources or memory"] = "memory"
    """`memory` includes the sources in runs whose settings ask for both; `sources or memory` is the sources where
    any are named, else the memory."""
    memory: ProcedureMemory | str | None = None
    embeddings: Embeddings | str | None = None
    retriever: Sources = None
    fallback: str | None = None
    """The source that is searched, with a warning, where none is named; None refuses such a run."""
    allow: Policy | None = None
    """What a run's context may name; None for the rules in STEPCRAFT_ALLOW."""

    def named(self, settings: SearchSettings) -> list[Named]:
        """Return what a run searches, by name. Nothing is imported, opened or connected to.

        Raises:
            BadInput: the run names something that is not allowed, or no source is named and there is no fallback.
        """
        memory, sources = self._memory(settings), self._sources(settings)
        if self.searches == "nothing":
            return []
        if self.searches == "sources or memory":
            given_memory = self.memory is not None and self.retriever is None
            prefers_memory = not settings.retriever and (settings.memory is not None or given_memory)
            return [memory] if prefers_memory or not sources else sources
        if self.searches == "memory" and not settings.both:
            return [memory]
        if not sources:
            raise BadInput(f"no source is named for the evidence; name {KINDS}")
        return sources if self.searches == "sources" else [memory, *sources]

    def resolve(self, settings: SearchSettings) -> list[Searched]:
        """Return what a run searches, ready to be opened.

        Raises:
            BadInput: no source is named and there is no fallback.
        """
        return [Searched(named, settings, self._opening(named, settings)) for named in self.named(settings)]

    def warnings(self, context: Context) -> list[str]:
        """Open what a run searches, again where it is out of date, and return what the user should know of it.

        Raises:
            BadInput, MemoryFailure, SourceFailure: something cannot be opened.
        """
        searched = self.resolve(context.search_settings())
        return [warning for one in searched for warning in one.warnings(one.open(refresh=True))]

    def labels(self, context: Context) -> Mapping[str, str]:
        """Return what a run searches as trace metadata: `stepcraft_memory`, `stepcraft_source`."""
        try:
            named = self.named(context.search_settings())
        except BadInput:
            return {"stepcraft_source": ""}
        labels: dict[str, str] = {}
        for one in named:
            key = f"stepcraft_{one.role}"
            labels[key] = f"{labels[key]}, {one.label}" if key in labels else one.label
        return labels

    def open_memory(self, context: Context) -> ProcedureMemory:
        """Return the memory itself, for a graph that reads it without a search. It may block.

        Raises:
            BadInput, MemoryFailure: it cannot be opened.
        """
        settings = context.search_settings()
        named = self._memory(settings)
        searched = Searched(named, settings, self._opening(named, settings))
        return cast("ProcedureMemory", searched.open())

    def _memory(self, settings: SearchSettings) -> Named:
        if settings.memory is not None:
            return self._named_by_run("memory", settings.memory)
        if self.memory is not None:
            return Named("memory", self.memory, "deployment")
        url = os.environ.get(MEMORY_VARIABLE, "")
        return Named("memory", url, "deployment" if url else "default")

    def _sources(self, settings: SearchSettings) -> list[Named]:
        if settings.retriever:
            return [self._named_by_run("source", str(one)) for one in _listed(settings.retriever)]
        if sources := self.retriever or os.environ.get(SOURCE_VARIABLE):
            return [Named("source", one, "deployment") for one in _listed(sources)]
        return [Named("source", self.fallback, "default")] if self.fallback else []

    @property
    def _policy(self) -> Policy:
        return access.policy(self.allow)

    def _named_by_run(self, role: Literal["memory", "source"], value: str) -> Named:
        """What a run's context names, unless it may not name it.

        Raises:
            BadInput: it is not allowed, or malformed.
        """
        policy, value = self._policy, value.strip()
        prefix = "memory:" if role == "source" and value.startswith("memory:") else ""
        url = value.removeprefix(prefix)
        if url in policy.names:
            return Named(role, prefix + policy.names[url], "deployment", url)
        if value in self._trusted(role) or url in self._trusted("memory" if prefix else role):
            return Named(role, value, "deployment")
        if (role == "memory" or prefix) and scheme_of(url) == "store" and (who := access.caller()):
            parts = [part for part in url[len("store:") :].strip().split("/") if part] or [NAMESPACE]
            return Named(role, f"{prefix}store:{'/'.join(who.namespace(parts))}", "deployment", value)
        policy.check(role, value, memory_references(value) if role == "memory" else source_references(value))
        return Named(role, value, "run")

    def _trusted(self, role: Literal["memory", "source"]) -> set[object]:
        """The names that the graph's builder and the environment use."""
        if role == "memory":
            return {self.memory if isinstance(self.memory, str) else None, os.environ.get(MEMORY_VARIABLE)}
        built = [self.retriever] if isinstance(self.retriever, str) else self.retriever
        names = (
            [one for one in built or [] if isinstance(one, str)]
            if not isinstance(built, BaseRetriever)
            else []
        )
        return {*names, os.environ.get(SOURCE_VARIABLE), self.fallback}

    def _embeddings(self, settings: SearchSettings) -> Embeddings | str | None:
        """The embeddings of a run's memory.

        Raises:
            BadInput: the run names some that are not allowed.
        """
        named = settings.embeddings
        if named and named not in (self.embeddings, os.environ.get(EMBEDDINGS_VARIABLE)):
            self._policy.check("embeddings", named, [Reference("embeddings", named)])
        return named or self.embeddings

    def _opening(
        self, named: Named, settings: SearchSettings
    ) -> Opening[ProcedureMemory] | Opening[BaseRetriever] | None:
        if not isinstance(named.value, str):
            return None
        policy = self._policy if named.origin == "run" else TRUSTING
        url, embeddings = named.value, None
        if named.role == "source":
            kind, _, url = named.value.strip().partition(":")
            if kind != "memory":
                return source_opening(named.value, policy)
            # Opened as a memory it follows its file, and `memory:store:` is the run's store.
            if not url:
                url, policy = os.environ.get(MEMORY_VARIABLE, ""), TRUSTING
        else:
            embeddings = self._embeddings(settings)
        store = get_runtime().store if scheme_of(url) == "store" else None
        return memory_opening(url, embeddings=embeddings, store=store, policy=policy)


def _listed(sources: BaseRetriever | str | Sequence[BaseRetriever | str]) -> Sequence[BaseRetriever | str]:
    return [sources] if isinstance(sources, str | BaseRetriever) else sources
