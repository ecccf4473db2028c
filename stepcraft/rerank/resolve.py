"""Rerankers by name, or from a LangChain object."""

import functools
from importlib import import_module
from importlib.util import find_spec

from langchain_core.embeddings import Embeddings

from stepcraft.errors import BadInput
from stepcraft.models.embeddings import default_embeddings, resolve_embeddings
from stepcraft.rerank import Reranker
from stepcraft.rerank.hybrid import HybridReranker
from stepcraft.rerank.langchain_adapters import (
    Compressor,
    CompressorReranker,
    CrossEncoder,
    CrossEncoderReranker,
)
from stepcraft.secrets import excerpt, without_secrets

KINDS = (
    'name "hybrid", "words", "vectors", embeddings such as "openai:text-embedding-3-small", '
    'or "cross-encoder:MODEL" such as "cross-encoder:BAAI/bge-reranker-base"'
)
_CROSS_ENCODER = "cross-encoder"
_PACKAGES = ("langchain_huggingface.cross_encoders", "langchain_community.cross_encoders")


def resolve_reranker(choice: object = None) -> Reranker:
    """Return the reranker for a name, or for a LangChain cross-encoder, document compressor or embedding model.

    Args:
        choice: "hybrid" (words and the default embeddings together; also None), "words", "vectors", the name of
            embeddings, "cross-encoder:MODEL", or an object.

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
        f"reranker={excerpt(choice)} cannot be used: give a LangChain cross-encoder or compressor, or {KINDS}"
    )


@functools.lru_cache(maxsize=16)  # a model takes long to load
def _named(name: str, default: str) -> Reranker:
    kind, _, model = name.partition(":")
    if name == "hybrid":
        return HybridReranker(name, resolve_embeddings(default))
    if name == "words":
        return HybridReranker(name, None)
    if kind == _CROSS_ENCODER:
        return CrossEncoderReranker(name, _cross_encoder(model))
    if name not in {"vectors", "wordllama"} and not model:
        raise BadInput(f"there is no reranker {excerpt(name)}; {KINDS}")
    embedder = resolve_embeddings(default if name == "vectors" else name)
    if embedder is None:
        raise BadInput(f"the reranker {name!r} needs embeddings, and there are none: {KINDS}")
    return HybridReranker(name, embedder, alpha=1)


def _cross_encoder(model: str) -> CrossEncoder:
    if not model:
        raise BadInput(f"the reranker {_CROSS_ENCODER!r} needs a model; {KINDS}")
    for package in _PACKAGES:
        if not _is_installed(package):
            continue
        try:
            encoder: CrossEncoder = import_module(package).HuggingFaceCrossEncoder(model_name=model)
        except Exception as error:
            reason = " ".join(without_secrets(str(error)).split())[:200]
            raise BadInput(
                f"the reranker cross-encoder:{model} cannot be loaded: {type(error).__name__}: {reason}"
            ) from error
        return encoder
    raise BadInput(
        f"the reranker cross-encoder:{model} needs packages that are not installed: "
        "pip install langchain-community sentence-transformers"
    )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
