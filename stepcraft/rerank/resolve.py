"""Rerankers by name, or from a LangChain object."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document

from stepcraft.errors import BadInput
from stepcraft.models.embeddings import default_embeddings, resolve_embeddings
from stepcraft.rerank import Reranker, Sentence
from stepcraft.rerank.hybrid import HybridReranker
from stepcraft.secrets import excerpt

KINDS = (
    '"hybrid", "words", "cross-encoder:MODEL" such as "cross-encoder:BAAI/bge-reranker-base", or a '
    "cross-encoder or document compressor of LangChain"
)


@dataclass(frozen=True)
class CrossEncoderReranker:
    """A reranker by a model that reads plan and sentence together."""

    name: str
    model: BaseCrossEncoder
    threshold: float = 0.0

    def scores(self, plan: str, sentences: Sequence[Sentence]) -> Sequence[float]:
        """Return the model's scores."""
        return self.model.score([(plan, sentence.titled) for sentence in sentences])


@dataclass(frozen=True)
class CompressorReranker:
    """A reranker by a document compressor; what it leaves out is not selected."""

    name: str
    compressor: BaseDocumentCompressor
    threshold: float = 0.0

    def scores(self, plan: str, sentences: Sequence[Sentence]) -> list[float]:
        """Return the `relevance_score` of each document, or its rank; -inf if it was left out."""
        documents = [
            Document(sentence.titled, metadata={"stepcraft_place": place})
            for place, sentence in enumerate(sentences)
        ]
        scores = [float("-inf")] * len(documents)
        ranked = self.compressor.compress_documents(documents, plan)
        for rank, document in enumerate(ranked):
            score = document.metadata.get("relevance_score", 1 - rank / len(ranked))
            scores[document.metadata["stepcraft_place"]] = float(score)
        return scores


def resolve_reranker(choice: object = None) -> Reranker:
    """Return the reranker for a name, or for a LangChain object.

    Args:
        choice: "hybrid" (words and the default embeddings together; also None), "words",
            "cross-encoder:MODEL", or a LangChain cross-encoder or document compressor.

    Raises:
        BadInput: There is no such reranker, or its package is not installed.
    """
    if choice is None or isinstance(choice, str):
        return _named(choice or "hybrid", default_embeddings())
    if isinstance(choice, BaseDocumentCompressor):
        return CompressorReranker(type(choice).__name__, choice)
    if isinstance(choice, BaseCrossEncoder):
        return CrossEncoderReranker(type(choice).__name__, choice)
    raise BadInput(f"{excerpt(choice)} is no reranker; choose {KINDS}")


@functools.lru_cache(maxsize=16)  # a model takes long to load
def _named(name: str, embeddings: str) -> Reranker:
    kind, _, model = name.partition(":")
    if kind == "cross-encoder" and model:
        return CrossEncoderReranker(name, _cross_encoder(model))
    if name in {"hybrid", "words"}:
        return HybridReranker(name, resolve_embeddings(embeddings) if name == "hybrid" else None)
    raise BadInput(f"there is no reranker {excerpt(name)}; choose {KINDS}")


def _cross_encoder(model: str) -> BaseCrossEncoder:
    try:
        encoders = import_module("langchain_community.cross_encoders")
        encoder: BaseCrossEncoder = encoders.HuggingFaceCrossEncoder(model_name=model)
    except Exception as error:
        raise BadInput(
            f"the reranker cross-encoder:{model} cannot be loaded: {excerpt(error, 200)}; it needs "
            "pip install langchain-community sentence-transformers"
        ) from error
    return encoder
