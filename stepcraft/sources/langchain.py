"""Any LangChain retriever as a source of evidence."""

import inspect
from collections.abc import Callable
from itertools import count
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.errors import GraphBubbleUp

from stepcraft.errors import SourceFailure, StepcraftError
from stepcraft.retriever import Source
from stepcraft.secrets import excerpt


class RetrieverAdapter(Source):
    """A LangChain retriever that takes `k` with each call, and gives titles and scores.

    Asking for more documents than the retriever gives by default works where it takes `k` with a
    call, has a field `k`, or has `search_kwargs`. Missing scores are filled in from the rank. The
    retriever runs in a thread rather than on an event loop, which a hung search would hold up.

    Raises:
        SourceFailure: The retriever raised something else than an interrupt or an error of ours.
    """

    retriever: BaseRetriever
    """The retriever that is asked."""
    spec: str
    """The name of the source in messages."""

    @classmethod
    def of(cls, retriever: BaseRetriever, name: str) -> BaseRetriever:
        """Return a retriever that takes `k` with a call: this one if it does, else an adapter."""
        kind = type(retriever)
        if _takes_k(kind._get_relevant_documents) and _takes_k(kind._aget_relevant_documents):
            return retriever
        return cls(retriever=retriever, spec=name)

    def _search(self, query: str, k: int) -> list[Document]:
        retriever = self.retriever
        options: dict[str, Any] = {}
        if _takes_k(type(retriever)._get_relevant_documents):
            options["k"] = k
        else:
            arguments = {**(getattr(retriever, "search_kwargs", None) or {}), "k": k}
            values = {"k": k, "search_kwargs": arguments}
            fields = values.keys() & type(retriever).model_fields
            retriever = retriever.model_copy(update={name: values[name] for name in fields})
        try:
            documents = retriever.invoke(query, **options)[:k]
        except (StepcraftError, GraphBubbleUp):
            raise
        except Exception as error:
            raise SourceFailure(f"the source {self.spec} failed: {excerpt(error, 300)}") from error
        return [*map(_complete, documents, count(1))]


def _takes_k(method: Callable[..., object]) -> bool:
    """Tell whether a retriever's method takes `k`; `invoke` takes any option and may ignore it."""
    return "k" in inspect.signature(method).parameters


def _complete(document: Document, rank: int) -> Document:
    """Return a document with title, source and score filled in where they are missing."""
    facts = document.metadata
    origins = map(facts.get, ("source", "url", "link", "path", "file_path"))
    source = str(next(filter(None, origins), ""))
    title = str(facts.get("title") or source or " ".join(document.page_content.split()[:8]))
    score = facts.get("score", facts.get("relevance_score", 1 / rank))
    complete = {**facts, "title": title, "source": source, "score": score}
    return document.model_copy(update={"metadata": complete})
