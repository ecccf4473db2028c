"""Rerankers by name, or from a LangChain object."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from stepcraft.errors import BadInput
from stepcraft.models.embeddings import default_embeddings, resolve_embeddings
from stepcraft.rerank import Reranker, Sentence
from stepcraft.rerank.hybrid import HybridReranker
from stepcraft.secrets import excerpt, without_secrets

KINDS = (
    'name "hybrid", "words", "vectors", embeddings such as "openai:text-embedding-3-small", '
    'or "cross-encoder:MODEL" such as "cross-encoder:BAAI/bge-reranker-base"'
)
_CROSS_ENCODER = "cross-encoder"
_PACKAGES = ("langchain_huggingface.cross_encoders", "langchain_community.cross_encoders")


@dataclass(frozen=True)
class CrossEncoderReranker:
    """A reranker by a model that reads plan and sentence together: LangChain's BaseCrossEncoder."""

    name: str
    model: Any
    threshold: float = 0.0

    def scores(self, plan: str, sentences: Sequence[Sentence]) -> Sequence[float]:
        """Return the model's scores."""
        scores: Sequence[float] = self.model.score(
            [(plan, sentence.titled) for sentence in sentences]
        )
        return scores


@dataclass(frozen=True)
class CompressorReranker:
    """A reranker by LangChain's BaseDocumentCompressor; what it leaves out is not selected."""

    name: str
    compressor: Any
    threshold: float = 0.0

    def scores(self, plan: str, sentences: Sequence[Sentence]) -> list[float]:
        """Return the `relevance_score` of each document, or its rank; -inf if it was left out."""
        documents = [
            Document(page_content=sentence.titled, metadata={"stepcraft_place": place})
            for place, sentence in enumerate(sentences)
        ]
        scores = [float("-inf")] * len(documents)
        ranked = self.compressor.compress_documents(documents, plan)
        for rank, document in enumerate(ranked):
            score = document.metadata.get("relevance_score")
            place = document.metadata["stepcraft_place"]
            scores[place] = 1 - rank / len(ranked) if score is None else float(score)
        return scores


def resolve_reranker(choice: object = None) -> Reranker:
    """Return the reranker for a name, or for a LangChain cross-encoder, compressor or embeddings.

    Args:
        choice: "hybrid" (words and the default embeddings together; also None), "words", "vectors",
            the name of embeddings, "cross-encoder:MODEL", or an object.

    Raises:
        BadInput: There is no such reranker, or its package is not installed.
    """
    if choice is None or isinstance(choice, str):
        return _named(choice or "hybrid", default_embeddings())
    name = type(choice).__name__
    if not isinstance(choice, type):
        if callable(getattr(choice, "compress_documents", None)):
            return CompressorReranker(name, choice)
        if callable(getattr(choice, "score", None)):
            return CrossEncoderReranker(name, choice)
        if isinstance(choice, Embeddings):
            return HybridReranker(name, resolve_embeddings(choice), alpha=1)
    raise BadInput(
        f"reranker={excerpt(choice)} cannot be used: "
        f"give an object of a LangChain cross-encoder or compressor, or {KINDS}"
    )


@functools.lru_cache(maxsize=16)  # a model takes long to load
def _named(name: str, default: str) -> Reranker:
    kind, _, model = name.partition(":")
    if kind == _CROSS_ENCODER:
        return CrossEncoderReranker(name, _cross_encoder(model))
    if name in {"hybrid", "words"}:
        return HybridReranker(name, resolve_embeddings(default) if name == "hybrid" else None)
    if name not in {"vectors", "wordllama"} and not model:
        raise BadInput(f"there is no reranker {excerpt(name)}; {KINDS}")
    embedder = resolve_embeddings(default if name == "vectors" else name)
    if embedder is None:
        raise BadInput(f"the reranker {name!r} needs embeddings, and there are none: {KINDS}")
    return HybridReranker(name, embedder, alpha=1)


def _cross_encoder(model: str) -> object:
    if not model:
        raise BadInput(f"the reranker {_CROSS_ENCODER!r} needs a model; {KINDS}")
    for package in _PACKAGES:
        try:
            return import_module(package).HuggingFaceCrossEncoder(model_name=model)
        except ModuleNotFoundError:
            continue
        except Exception as error:
            reason = " ".join(without_secrets(str(error)).split())[:200]
            raise BadInput(
                f"the reranker cross-encoder:{model} cannot be loaded: {reason}"
            ) from error
    raise BadInput(
        f"the reranker cross-encoder:{model} needs packages that are not installed: "
        "pip install langchain-community sentence-transformers"
    )
