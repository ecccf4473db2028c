"""Rerankers, found by name or made of a LangChain object."""

import functools
from importlib import import_module
from importlib.util import find_spec

from langchain_core.embeddings import Embeddings

from stepcraft.errors import BadInput, without_secrets
from stepcraft.models.embeddings import default_embeddings, resolve_embeddings
from stepcraft.rerank import Reranker
from stepcraft.rerank.hybrid import HybridReranker
from stepcraft.rerank.langchain_adapters import (
    Compressor,
    CompressorReranker,
    CrossEncoder,
    CrossEncoderReranker,
)

KINDS = (
    'name "hybrid", "words", "vectors", embeddings such as "openai:text-embedding-3-small", '
    'or "cross-encoder:MODEL" such as "cross-encoder:BAAI/bge-reranker-base"'
)
_CROSS_ENCODER = "cross-encoder"
_PACKAGES = ("langchain_huggingface.cross_encoders", "langchain_community.cross_encoders")


def resolve_reranker(choice: object = None) -> Reranker:
    """The reranker for a name, or for a LangChain cross-encoder, document compressor or embeddings.

    None means "hybrid": vectors of the default embeddings and words together.

    Raises:
        BadInput: there is no such reranker, or its package is not installed.
    """
    if choice is None or isinstance(choice, str):
        return _named(choice or "hybrid", default_embeddings())
    name = choice.__name__ if isinstance(choice, type) else type(choice).__name__
    if isinstance(choice, type):
        raise BadInput(f"reranker={name} cannot be used: it is a class; give an object of it")
    if isinstance(choice, Compressor):
        return CompressorReranker(name, choice)
    if isinstance(choice, CrossEncoder):
        return CrossEncoderReranker(name, choice)
    if isinstance(choice, Embeddings):
        return HybridReranker(name, resolve_embeddings(choice), alpha=1)
    raise BadInput(
        f"reranker={choice!r:.80} cannot be used: give a LangChain cross-encoder or compressor, or {KINDS}"
    )


@functools.lru_cache(maxsize=16)
def _named(name: str, embeddings: str) -> Reranker:
    """Kept, since a model takes long to load."""
    kind, _, model = name.partition(":")
    if name == "hybrid":
        return HybridReranker(name, resolve_embeddings(embeddings))
    if name == "words":
        return HybridReranker(name, None)
    if kind == _CROSS_ENCODER:
        return CrossEncoderReranker(name, _cross_encoder(model))
    if name == "vectors":
        return _by_vectors(name, embeddings)
    if name == "wordllama" or model:
        return _by_vectors(name, name)
    raise BadInput(f"no reranker goes by {name!r:.80}; {KINDS}")


def _by_vectors(name: str, embeddings: str) -> Reranker:
    embedder = resolve_embeddings(embeddings)
    if embedder is None:
        raise BadInput(f"the reranker {name!r} needs embeddings, and there are none: {KINDS}")
    return HybridReranker(name, embedder, alpha=1)


def _cross_encoder(model: str) -> CrossEncoder:
    if not model:
        raise BadInput(f"the reranker {_CROSS_ENCODER!r} needs a model; {KINDS}")
    for package in _PACKAGES:
        if not _is_there(package):
            continue
        try:
            made: CrossEncoder = import_module(package).HuggingFaceCrossEncoder(model_name=model)
        except Exception as error:
            told = " ".join(without_secrets(str(error)).split())[:200]
            raise BadInput(
                f"the reranker cross-encoder:{model} cannot be loaded: {type(error).__name__}: {told}"
            ) from error
        return made
    raise BadInput(
        f"the reranker cross-encoder:{model} needs packages that are not installed: "
        "pip install langchain-community sentence-transformers"
    )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
