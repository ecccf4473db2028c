"""Resolve embedding models by name: wordllama's keyless static vectors, or any from LangChain."""

import functools
import logging
import os
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Embedder, Matrix
from stepcraft.secrets import excerpt

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

VARIABLE = "STEPCRAFT_EMBEDDINGS"
"""The environment variable that names the default embedding model."""

_WORDLLAMA_DIMENSIONS = 256

_MODEL_NAMES = (
    "model",
    "model_name",
    "model_id",
    "azure_deployment",
    "deployment",
    "repo_id",
    "endpoint_name",
)
"""Attributes in which LangChain's embedding models store the name of their model. Those that the
caller has set are tried first: Azure's models have defaults that they do not use.
"""

_BATCH = 256
"""The number of texts that are tokenized in parallel."""


def default_embeddings() -> str:
    """Return the value of STEPCRAFT_EMBEDDINGS, or "wordllama" if it is installed, or "none"."""
    return os.environ.get(VARIABLE) or ("wordllama" if find_spec("wordllama") else "none")


def resolve_embeddings(embeddings: "str | Embeddings | None" = None) -> Embedder | None:
    """Return an embedder for a name or a LangChain embedding model, or None for "none".

    Args:
        embeddings: "wordllama", "none" (keyword search only), a string for LangChain's
            `init_embeddings` such as "openai:text-embedding-3-small", or an Embeddings object. None
            means `default_embeddings()`.

    Raises:
        BadInput: There is no such model, its package is not installed, or its key is missing.
    """
    wanted = embeddings if embeddings is not None else default_embeddings()
    if not isinstance(wanted, str):
        return _from_object(wanted)
    if wanted == "none":
        return None
    if wanted == "wordllama":
        if not find_spec("wordllama"):
            raise BadInput(
                "embeddings 'wordllama' need the package wordllama: pip install wordllama, "
                "or name 'none' to search by words alone"
            )
        return WordLlamaEmbedder()
    return LangChainEmbedder(_from_name(wanted), wanted)


class WordLlamaEmbedder:
    """The static embeddings bundled with wordllama: 256 dimensions, no API key, no network access.

    The vectors are those of `WordLlama.embed`, which takes twice as long because it pads a batch to
    its longest text.
    """

    name = "wordllama"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return an array of shape (texts, 256), with zeros for any text without known words."""
        vectors = np.zeros((len(texts), _WORDLLAMA_DIMENSIONS), np.float32)
        model = _wordllama_model()
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            encoded = model.tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            for place, encoding in enumerate(encoded, start):
                ids = np.fromiter(encoding.ids, np.intp, len(encoding))
                vectors[place] = model.embedding.take(ids, axis=0, mode="clip").sum(axis=0)
                vectors[place] /= max(len(ids), 1)
        return vectors

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query, of shape (256,)."""
        vector: Matrix = self.embed_documents([text])[0]
        return vector


class LangChainEmbedder:
    """A LangChain embedding model.

    Args:
        model: The model.
        name: The name recorded for its vectors in files and collections.
    """

    def __init__(self, model: "Embeddings", name: str) -> None:
        self._model = model
        self.name = name

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one vector per text, of shape (texts, dimensions).

        Raises:
            MemoryFailure: The model failed.
        """
        return self._embedded(self._model.embed_documents, list(texts))

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query, of shape (dimensions,).

        Raises:
            MemoryFailure: The model failed.
        """
        return self._embedded(self._model.embed_query, text)

    def _embedded(self, embed: Callable[[Any], object], text: object) -> Matrix:
        try:
            return np.asarray(embed(text), np.float32)
        except Exception as error:
            reason = excerpt(error, 200)
            raise MemoryFailure(f"the embedding model {self.name} failed: {reason}") from error


@functools.cache
def _wordllama_model() -> Any:  # noqa: ANN401 - the class of an optional package
    """Load the model from its package's files, since its own loader downloads the tokenizer."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)  # without one, importing wordllama configures the root logger
    wordllama = import_module("wordllama")
    root.removeHandler(handler)
    folder = Path(str(wordllama.__file__)).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    return model


def _from_name(name: str) -> "Embeddings":
    from langchain.embeddings import init_embeddings  # noqa: PLC0415 - slow to import

    try:
        return init_embeddings(name)
    except Exception as error:
        # For an unknown name, LangChain raises an error with a page about all providers.
        reason = "" if isinstance(error, ValueError) else f": {excerpt(error, 200)}"
        raise BadInput(
            f"embeddings {name!r} cannot be used{reason}; name 'wordllama', 'none' or "
            "provider:model, such as 'openai:text-embedding-3-small'"
        ) from error


def _from_object(model: "Embeddings") -> Embedder:
    """Return an embedder for a model object, named as it would be for `init_embeddings`."""
    kind, package = type(model).__name__, type(model).__module__.partition(".")[0]
    if not hasattr(model, "embed_documents"):
        raise BadInput(f"embeddings must be a name or a LangChain Embeddings object, not {kind}")
    given: Collection[str] = getattr(model, "model_fields_set", ())
    names = sorted(_MODEL_NAMES, key=lambda name: name not in given)
    versions = (getattr(model, name, None) for name in names)
    version = next((each for each in versions if each and isinstance(each, str)), "")
    return LangChainEmbedder(
        model, f"{package.removeprefix('langchain_')}:{version}" if version else kind
    )
