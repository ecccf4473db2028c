"""The memories and sources registered when a graph is built, opened as retrievers."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langgraph.store.base import BaseStore

from stepcraft.contexts.base import SearchSettings, Settings
from stepcraft.errors import BadInput
from stepcraft.memory.open import BUNDLED, MEMORY_VARIABLE
from stepcraft.memory.protocol import ProcedureMemory, check_memory
from stepcraft.registered import MEMORIES, SOURCES, chosen, registered
from stepcraft.retrieval.contents import source_digest
from stepcraft.retrieval.opening import opened_memory, opened_source
from stepcraft.secrets import excerpt, without_secrets
from stepcraft.sources.langchain import RetrieverAdapter, ToolRetriever
from stepcraft.sources.open import check_source

SOURCE_VARIABLE = "STEPCRAFT_SOURCE"
"""The environment variable that names the source if the graph was built without one."""

LEAST_FIT = 0.37
"""The minimum score at which AAG uses a bundled procedure.

With wordllama, 57 of 60 goals that the bundled procedures cover, phrased as a newcomer would, match
one with at least this score; 17 of 30 goals from other fields match none.
"""

_GIVEN = "memory"
"""The name for the memory of a graph built with just one memory."""

Memory: TypeAlias = ProcedureMemory | str
Source: TypeAlias = BaseRetriever | BaseTool | str
Memories: TypeAlias = Memory | Mapping[str, Memory] | None
Sources: TypeAlias = Source | Sequence[Source] | Mapping[str, Source] | None


@dataclass(frozen=True)
class OpenedSource:
    """A memory or source that a run searches."""

    label: str
    """Its name in warnings, without secrets."""
    retriever: BaseRetriever
    """A retriever that accepts `k` per call."""
    memory: ProcedureMemory | None = None
    """The memory that the retriever searches, if any."""
    is_web: bool = False


@dataclass(frozen=True)
class RetrievalTarget:
    """The memories and sources of a graph, with the names by which its runs can choose them.

    A memory is searched in addition to the sources if a run names it, or if the graph was built
    with a single memory. A graph built without a memory or sources uses those named by
    `STEPCRAFT_SOURCE` and `STEPCRAFT_MEMORY`, or else the bundled procedures.
    """

    memories: Mapping[str, Memory]
    sources: Mapping[str, OpenedSource | str]
    """Retrievers, and specs of sources that are opened by the first run."""
    embeddings: Embeddings | str | None = None
    prefers_memory: bool = False
    """Whether the memory is always searched, along with any sources."""

    @classmethod
    def of(
        cls,
        memory: Memories,
        sources: Sources,
        embeddings: Embeddings | str | None,
        *,
        prefers_memory: bool,
    ) -> "RetrievalTarget":
        """Create the target from a builder's arguments, refusing objects of the wrong type.

        Raises:
            BadInput: A memory or a source is neither a suitable object nor a name, or a tool needs
                arguments besides the query.
        """
        memories = (
            memory if isinstance(memory, Mapping) else {} if memory is None else {_GIVEN: memory}
        )
        if not isinstance(sources, Mapping):
            listed: Sequence[Any] = sources if isinstance(sources, list | tuple) else [sources]
            wanted = [source for source in listed if source is not None]
            sources = {
                source if isinstance(source, str) else f"{type(source).__name__}-{place}": source
                for place, source in enumerate(wanted, 1)
            }
        for value in memories.values():
            check_memory(value)
        if not isinstance(embeddings, Embeddings | str | None):
            raise BadInput(
                "embeddings are an object of LangChain's Embeddings or their name, "
                f"not {type(embeddings).__name__}: {excerpt(embeddings)}"
            )
        for source in sources.values():
            if not isinstance(source, BaseRetriever | BaseTool | str):
                raise BadInput(
                    "a source is a retriever or a search tool of LangChain, or a spec such as "
                    f"corpus:docs/, not {type(source).__name__}: {excerpt(source)}"
                )
        searched = {
            name: source if isinstance(source, str) else _searched(name, source)
            for name, source in sources.items()
        }
        return cls(dict(memories), searched, embeddings, prefers_memory)

    def check(self) -> None:
        """Check the specs of sources without opening them.

        Raises:
            BadInput: A spec is not understood, or its file or folder does not exist.
        """
        for source in self.sources.values():
            if isinstance(source, str):
                check_source(source)

    def digests(self) -> dict[str, str]:
        """Return digests of the files and the code that runs search by default, by spec.

        Raises:
            BadInput: A file or folder does not exist, or a retriever cannot be imported.
        """
        searched = [*self.sources.values(), *self.memories.values()]
        if not searched and not self.prefers_memory:
            searched.append(os.environ.get(SOURCE_VARIABLE, ""))
        if not self.memories and (self.prefers_memory or not self.sources):
            searched.append(os.environ.get(MEMORY_VARIABLE, ""))
        specs = dict.fromkeys(each for each in searched if isinstance(each, str) and each)
        digests = {shown: source_digest(spec) for spec, shown in _shown(specs).items()}
        return {shown: digest for shown, digest in digests.items() if digest}

    def check_names(self, settings: Settings) -> None:
        """Check the names in the settings of a run without opening anything.

        Raises:
            BadInput: The run names a memory or a source that is not registered.
        """
        if isinstance(settings, SearchSettings):
            self._memory(settings)
            self._sources(settings)

    def memory(self, settings: SearchSettings, store: BaseStore | None = None) -> ProcedureMemory:
        """Return the memory of a run, opened once per process.

        Raises:
            BadInput: The run names a memory that is not registered.
            MemoryFailure: It cannot be opened.
        """
        memory = self._memory(settings)
        if isinstance(memory, str):
            memory = opened_memory(memory, embeddings=self.embeddings, store=store)
        return memory

    def open(self, settings: SearchSettings, store: BaseStore | None = None) -> list[OpenedSource]:
        """Return everything that a run searches, each opened once per process. This may block.

        Raises:
            BadInput: The run names something that is not registered.
            MemoryFailure, SourceFailure: A memory or a source cannot be opened.
        """
        searched = [
            _open_source(name, source) if isinstance(source, str) else source
            for name, source in self._sources(settings).items()
        ]
        is_named = settings.memory or _GIVEN in self.memories
        if self.prefers_memory or is_named or not searched:
            memory = self.memory(settings, store)
            where = getattr(settings, "where", None)
            alpha = getattr(settings, "alpha", None)
            retriever = memory.as_retriever(settings.k, alpha=alpha, where=where)
            if self.prefers_memory and memory.name == BUNDLED:
                retriever = retriever.model_copy(update={"least_score": LEAST_FIT})
            searched.insert(0, OpenedSource(memory.name, retriever, memory))
        return searched

    def is_open(self, settings: SearchSettings) -> bool:
        """Return whether `open` cannot block because a run searches only existing objects."""
        used = [*self.sources.values(), *self.memories.values()]
        is_whole = self.memories or (self.sources and not self.prefers_memory)
        is_named = (
            settings.sources or settings.memory or any(isinstance(each, str) for each in used)
        )
        return bool(is_whole) and not is_named

    def warnings(self, settings: SearchSettings, searched: Sequence[OpenedSource]) -> list[str]:
        """Return warnings about what was searched, for readers of the answer."""
        if searched[0].label != BUNDLED or self.memories or settings.memory:
            return []
        kind, how = ("memory", "memory=") if self.prefers_memory else ("source", "sources=")
        return [
            f"no {kind} is named, so this is based on the bundled procedures for LangChain, "
            f"LangGraph and LangSmith; name yours with {how}"
        ]

    def _memory(self, settings: SearchSettings) -> Memory:
        if name := settings.memory:
            how = f"memory={{name: URL}} of the builder, or {MEMORIES},"
            return chosen("memory", name, {**registered(MEMORIES), **self.memories}, how)
        return next(iter(self.memories.values()), os.environ.get(MEMORY_VARIABLE, ""))

    def _sources(self, settings: SearchSettings) -> Mapping[str, OpenedSource | str]:
        """Return the sources of a run by the names that are shown for them."""
        sources = self.sources
        if settings.sources:
            sources = {**registered(SOURCES), **sources}
        elif not sources and not self.prefers_memory:
            spec = os.environ.get(SOURCE_VARIABLE, "").strip()
            sources = {spec: spec} if spec else {}
        names = _shown(sources)
        shown = {names[name]: source for name, source in sources.items()}
        if not settings.sources:
            return shown
        how = f"sources={{name: source}} of the builder, or {SOURCES},"
        wanted = [names.get(name, name) for name in settings.sources]
        return {name: chosen("source", name, shown, how) for name in wanted}


def _shown(names: Iterable[str]) -> dict[str, str]:
    """Map names to the texts shown to anyone who can start runs.

    Secrets are masked; names that then look alike are numbered.
    """
    shown: dict[str, str] = {}
    for place, name in enumerate(names, 1):
        text = without_secrets(name)
        shown[name] = f"{text} ({place})" if text in shown.values() else text
    return shown


def _open_source(name: str, spec: str) -> OpenedSource:
    return _searched(name, opened_source(spec), is_web=spec.partition(":")[0] == "web")


def _searched(name: str, source: BaseRetriever | BaseTool, *, is_web: bool = False) -> OpenedSource:
    retriever = ToolRetriever.of(source) if isinstance(source, BaseTool) else source
    return OpenedSource(without_secrets(name), RetrieverAdapter.of(retriever, name), is_web=is_web)
