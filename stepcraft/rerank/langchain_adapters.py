"""LangChain's cross-encoders and document compressors as rerankers."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from langchain_core.documents import Document

from stepcraft.errors import SourceFailure
from stepcraft.rerank import Sentence

_PLACE = "stepcraft_place"


@runtime_checkable
class CrossEncoder(Protocol):
    """LangChain's BaseCrossEncoder, of whichever package."""

    def score(self, text_pairs: list[tuple[str, str]]) -> Sequence[float]:
        """One score a pair."""
        ...


@runtime_checkable
class Compressor(Protocol):
    """LangChain's BaseDocumentCompressor."""

    def compress_documents(self, documents: Sequence[Document], query: str) -> Sequence[Document]:
        """Those of the documents that fit the query, best first."""
        ...


class CrossEncoderReranker:
    """A model that reads plan and sentence together."""

    threshold = 0.0
    waits = True

    def __init__(self, name: str, model: CrossEncoder) -> None:
        self.name = name
        self.model = model

    def ready(self, sentences: Sequence[Sentence]) -> "CrossEncoderRanking":
        """Nothing can be done before the plan is known."""
        return CrossEncoderRanking(self.model, sentences)


class CrossEncoderRanking:
    """Sentences for a cross-encoder."""

    def __init__(self, model: CrossEncoder, sentences: Sequence[Sentence]) -> None:
        self._model = model
        self._texts = [one.titled for one in sentences]

    def scores(self, plan: str) -> Sequence[float]:
        """What the model gives."""
        return self._model.score([(plan, text) for text in self._texts])


class CompressorReranker:
    """What filters and orders documents; a sentence that it leaves out is not selected."""

    threshold = 0.0
    waits = True

    def __init__(self, name: str, compressor: Compressor) -> None:
        self.name = name
        self.compressor = compressor

    def ready(self, sentences: Sequence[Sentence]) -> "CompressorRanking":
        """The sentences as documents."""
        return CompressorRanking(self.compressor, sentences)


class CompressorRanking:
    """Sentences for a compressor."""

    def __init__(self, compressor: Compressor, sentences: Sequence[Sentence]) -> None:
        self._compressor = compressor
        self._sentences = sentences

    def scores(self, plan: str) -> list[float]:
        """The scores that it tells, else by rank from 1 down to above 0.

        Raises:
            SourceFailure: it gave back documents that it was not given.
        """
        kept = self._compressor.compress_documents(self._documents(), plan)
        scores = [float("-inf")] * len(self._sentences)
        for rank, document in enumerate(kept):
            place = document.metadata.get(_PLACE)
            if not isinstance(place, int) or not 0 <= place < len(scores):
                raise SourceFailure(
                    f"it gave back a document that it was not given: {document.page_content!r:.80}"
                )
            told = document.metadata.get("relevance_score")
            scores[place] = 1 - rank / len(kept) if told is None else float(told)
        return scores

    def _documents(self) -> list[Document]:
        """Made anew for each plan: compressors write into them."""
        return [
            Document(page_content=one.titled, metadata={"title": one.title, _PLACE: place})
            for place, one in enumerate(self._sentences)
        ]
