"""What a graph searches: a memory or sources, as LangChain retrievers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langgraph.runtime import get_runtime

from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, without_secrets
from stepcraft.memory.open import BUNDLED, VARIABLE, shared_memory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.retrieval.shared import is_open, shared_source
from stepcraft.sources.open import KINDS

SOURCE_VARIABLE = "STEPCRAFT_SOURCE"
"""The environment variable that is read where no source is named."""

Searcher = Runnable[str, list[Document]]


class RetrievalTarget(Protocol):
    """What a graph's searches go to."""

    def searcher(self, context: Context) -> Searcher:
        """The retriever of a run. Raises BadInput, MemoryFailure or SourceFailure."""
        ...

    def is_open(self, context: Context) -> bool:
        """Whether `searcher` has nothing to open, which would block an event loop."""
        ...

    def warnings(self, context: Context) -> list[str]:
        """What a user should know of it before any work is done; raises as `searcher`."""
        ...

    def labels(self, context: Context) -> Mapping[str, str]:
        """What it is called in traces."""
        ...


@dataclass(frozen=True)
class MemoryTarget:
    """A procedural memory: the context's, then the given one, then the environment's, then the bundled one."""

    memory: ProcedureMemory | str | None = None
    embeddings: Embeddings | str | None = None

    def searcher(self, context: Context) -> Searcher:
        """The memory as a retriever."""
        memory, settings = self.opened(context), context.search_settings()
        return memory.as_retriever(settings.k, alpha=settings.alpha)

    def is_open(self, context: Context) -> bool:
        """Whether it was given as an object: a file that is named is looked at again."""
        choice = self._choice(context)
        return choice is not None and not isinstance(choice, str)

    def warnings(self, context: Context) -> list[str]:
        """Whether it is empty."""
        memory = self.opened(context)
        if memory.count():
            return []
        return [f"the memory {memory.name} is empty; the procedure is written without examples"]

    def labels(self, context: Context) -> Mapping[str, str]:
        """The URL or the name of the memory."""
        choice = self._choice(context)
        if choice is None:
            choice = os.environ.get(VARIABLE) or BUNDLED
        return {"stepcraft_memory": without_secrets(choice) if isinstance(choice, str) else choice.name}

    def opened(self, context: Context) -> ProcedureMemory:
        """The memory itself."""
        choice = self._choice(context)
        if choice is not None and not isinstance(choice, str):
            return choice
        embeddings = context.search_settings().embeddings or self.embeddings
        return shared_memory(choice, embeddings=embeddings, store=get_runtime().store)

    def _choice(self, context: Context) -> ProcedureMemory | str | None:
        named = context.search_settings().memory
        return self.memory if named is None else named


@dataclass(frozen=True)
class SourceTarget:
    """Sources of passages: the context's, then the given ones, then the environment's."""

    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None

    def searcher(self, context: Context) -> Searcher:
        """The sources as one retriever that takes k."""
        return shared_source(self._choice(context)).bind(k=context.search_settings().k)

    def is_open(self, context: Context) -> bool:
        """Whether all of them were opened."""
        return is_open(self._choice(context))

    def warnings(self, context: Context) -> list[str]:
        """Nothing; it is opened to see that it can be."""
        shared_source(self._choice(context), begins=True)
        return []

    def labels(self, context: Context) -> Mapping[str, str]:
        """The specs, or the classes of retrievers that were given as objects."""
        try:
            choice = self._choice(context)
        except BadInput:
            choice = []
        names = [without_secrets(one) if isinstance(one, str) else type(one).__name__ for one in choice]
        return {"stepcraft_source": ", ".join(names)}

    def is_named(self, context: Context) -> bool:
        """Whether there is any source, by whoever named it."""
        return bool(self._named(context))

    def _named(self, context: Context) -> BaseRetriever | str | Sequence[BaseRetriever | str] | None:
        named = context.search_settings().retriever
        return named or self.retriever or os.environ.get(SOURCE_VARIABLE)

    def _choice(self, context: Context) -> list[BaseRetriever | str]:
        choice = self._named(context)
        if not choice:
            raise BadInput(f"no source is named for the evidence; name {KINDS}")
        return [choice] if isinstance(choice, str | BaseRetriever) else list(choice)
