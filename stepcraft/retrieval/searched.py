"""What a graph searches where that is not a memory or a source alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stepcraft.contexts.base import Context
from stepcraft.retrieval.build import MemoryTarget, RetrievalTarget, Searcher, SourceTarget


@dataclass(frozen=True)
class NoRetrieval:
    """A graph without a search."""

    def searcher(self, context: Context) -> Searcher:
        """There is none.

        Raises:
            LookupError: always.
        """
        raise LookupError(f"{type(context).__name__} names nothing that could be searched")

    def is_open(self, context: Context) -> bool:  # noqa: ARG002 - as for all that is searched
        """Nothing is to be opened."""
        return True

    def warnings(self, context: Context) -> list[str]:  # noqa: ARG002 - as above
        """Nothing can be wrong with it."""
        return []

    def labels(self, context: Context) -> Mapping[str, str]:  # noqa: ARG002 - as above
        """Nothing is named."""
        return {}


@dataclass(frozen=True)
class SourceOrMemory:
    """Sources where some are named, else the memory: the context's word goes before what the graph was built with."""

    source: SourceTarget = field(default_factory=SourceTarget)
    memory: MemoryTarget = field(default_factory=MemoryTarget)

    def searcher(self, context: Context) -> Searcher:
        """The retriever of the one that is searched."""
        return self.chosen(context).searcher(context)

    def is_open(self, context: Context) -> bool:
        """Whether the one that is searched is open."""
        return self.chosen(context).is_open(context)

    def warnings(self, context: Context) -> list[str]:
        """What is to be known of the one that is searched."""
        return self.chosen(context).warnings(context)

    def labels(self, context: Context) -> Mapping[str, str]:
        """What the one that is searched is called."""
        return self.chosen(context).labels(context)

    def chosen(self, context: Context) -> RetrievalTarget:
        """The one that is searched."""
        settings = context.search_settings()
        if settings.retriever or settings.memory:
            return self.source if settings.retriever else self.memory
        if self.source.retriever is None and self.memory.memory is not None:
            return self.memory
        return self.source if self.source.is_named(context) else self.memory


@dataclass(frozen=True)
class Composing(MemoryTarget):
    """A memory that offers two procedures of which one yields what the other needs as one, where a run asks for it."""

    def searcher(self, context: Context) -> Searcher:
        """The memory as a retriever."""
        settings = context.search_settings()
        retriever = self.opened(context).as_retriever(settings.k, alpha=settings.alpha)
        return retriever.model_copy(update={"compose": settings.compose})


@dataclass(frozen=True)
class MemoryAndSource:
    """A memory and, in a run that asks for it, sources beside it."""

    memory: MemoryTarget = field(default_factory=MemoryTarget)
    source: SourceTarget = field(default_factory=SourceTarget)

    def searcher(self, context: Context) -> Searcher:
        """The memory as a retriever."""
        return self.memory.searcher(context)

    def is_open(self, context: Context) -> bool:
        """Whether all that the run searches is open."""
        return all(one.is_open(context) for one in self.all_of(context))

    def warnings(self, context: Context) -> list[str]:
        """What is to be known of all that the run searches."""
        return [warning for one in self.all_of(context) for warning in one.warnings(context)]

    def labels(self, context: Context) -> Mapping[str, str]:
        """What all that the run searches is called."""
        return {name: label for one in self.all_of(context) for name, label in one.labels(context).items()}

    def all_of(self, context: Context) -> list[RetrievalTarget]:
        """The memory, and the sources where the run asks for them."""
        return [self.memory, self.source] if context.search_settings().both else [self.memory]
