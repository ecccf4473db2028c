"""LangChain's cross-encoders and document compressors as rerankers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from langchain_core.documents import Document

from stepcraft.errors import SourceFailure
from stepcraft.rerank import Sentence
from stepcraft.secrets import excerpt

_PLACE = "stepcraft_place"


@runtime_checkable
class CrossEncoder(Protocol):
    """The interface of LangChain's BaseCrossEncoder, whatever package it comes from."""

    def score(self, text_pairs: list[tuple[str, str]]) -> Sequence[float]:
        """Return one score a pair."""
        ...


@runtime_checkable
class Compressor(Protocol):
    """The interface of LangChain's BaseDocumentCompressor."""

    def compress_documents(self, documents: Sequence[Document], query: str) -> Sequence[Document]:
        """Return those of the documents that fit the query, best first."""
        ...


@dataclass(frozen=True)
class CrossEncoderReranker:
    """A reranker by a model that reads plan and sentence together."""

    name: str
    model: CrossEncoder
    threshold: float = 0.0
    waits: bool = True

    def ready(self, sentences: Sequence[Sentence]) -> "CrossEncoderRanking":
        """Return the sentences for the model; nothing can be done before the plan is known."""
        return CrossEncoderRanking(self.model, [one.titled for one in sentences])


@dataclass(frozen=True)
class CrossEncoderRanking:
    """Sentences for a cross-encoder."""

    model: CrossEncoder
    texts: list[str]

    def scores(self, plan: str) -> Sequence[float]:
        """Return the model's scores."""
        return self.model.score([(plan, text) for text in self.texts])


@dataclass(frozen=True)
class CompressorReranker:
    """A reranker that filters and orders documents; a sentence that it leaves out is not selected."""

    name: str
    compressor: Compressor
    threshold: float = 0.0
    waits: bool = True

    def ready(self, sentences: Sequence[Sentence]) -> "CompressorRanking":
        """Return the sentences for the compressor; nothing can be done before the plan is known."""
        return CompressorRanking(self.compressor, sentences)


@dataclass(frozen=True)
class CompressorRanking:
    """Sentences for a document compressor."""

    compressor: Compressor
    sentences: Sequence[Sentence]

    def scores(self, plan: str) -> list[float]:
        """Return the `relevance_score` of each document, or by rank from 1 down to above 0; -inf if left out.

        Raises:
            SourceFailure: the compressor returned documents that it was not given.
        """
        # Compressors write into documents, so each plan gets its own.
        documents = [
            Document(page_content=one.titled, metadata={"title": one.title, _PLACE: place})
            for place, one in enumerate(self.sentences)
        ]
        scores = [float("-inf")] * len(documents)
        kept = self.compressor.compress_documents(documents, plan)
        for rank, document in enumerate(kept):
            place = document.metadata.get(_PLACE)
            if not isinstance(place, int) or not 0 <= place < len(scores):
                raise SourceFailure(
                    f"it returned a document that it was not given: {excerpt(document.page_content)}"
                )
            score = document.metadata.get("relevance_score")
            scores[place] = 1 - rank / len(kept) if score is None else float(score)
        return scores
