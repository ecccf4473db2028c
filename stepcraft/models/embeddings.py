"""Embedding models, found by name: the keyless default, none at all, or any that LangChain knows."""

import asyncio
import functools
import logging
import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepcraft.errors import BadInput, MemoryFailure, without_secrets
from stepcraft.index import Embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

VARIABLE = "STEPCRAFT_EMBEDDINGS"
"""The environment variable that is read where no embedding model is named."""


_WORDLLAMA_DIMENSIONS = 256

_LONG = 4000
"""Texts of more characters are tokenized one at a time, so that memory use does not grow with their number."""

_TOGETHER = 256
"""So many shorter ones are tokenized side by side."""

_PIECE = 4096
"""So many tokens of a text are looked up at once."""


def default_embeddings() -> str:
    """The name that counts where none is given: STEPCRAFT_EMBEDDINGS, else wordllama, else none."""
    return os.environ.get(VARIABLE) or ("wordllama" if find_spec("wordllama") else "none")


def resolve_embeddings(embeddings: "str | Embeddings | None" = None) -> Embedder | None:
    """The embedder for "wordllama", "none", an `init_embeddings` string or an Embeddings object.

    None means `default_embeddings()`. The result is None for "none": search by words alone.

    Raises:
        BadInput: there is no such model, its package is not installed, or its key is missing.
    """
    wanted = embeddings if embeddings is not None else default_embeddings()
    if not isinstance(wanted, str):
        return _of_object(wanted)
    if wanted == "none":
        return None
    if wanted == "wordllama":
        return _wordllama()
    return LangChainEmbedder(_initialised(wanted), wanted)


class WordLlamaEmbedder:
    """The static embeddings that ship with wordllama: no key, no network, 256 dimensions.

    The vectors are those of its `embed`, in half the time: it pads the texts of a batch to the longest.
    """

    name = "wordllama"

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text, of shape (texts, 256); zeros for a text without known words."""
        vectors = np.zeros((len(texts), _WORDLLAMA_DIMENSIONS), np.float32)
        short = [place for place, text in enumerate(texts) if len(text) <= _LONG]
        groups = [short[start : start + _TOGETHER] for start in range(0, len(short), _TOGETHER)]
        groups += [[place] for place, text in enumerate(texts) if len(text) > _LONG]
        model = _wordllama_model()
        for group in groups:
            encoded = model.tokenizer.encode_batch_fast(
                [texts[place] for place in group], add_special_tokens=False
            )
            for place, tokens in zip(group, encoded, strict=True):
                _add_mean(vectors[place], np.fromiter(tokens.ids, np.intp, len(tokens)), model.embedding)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, of shape (256,)."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector

    async def aembed_query(self, text: str) -> NDArray[np.float32]:
        """As `embed_query`; what takes long (loading the model, a long text) goes to a thread."""
        if len(text) > _LONG or not _wordllama_model.cache_info().currsize:
            return await asyncio.to_thread(self.embed_query, text)
        return self.embed_query(text)


def _add_mean(vector: NDArray[np.float32], tokens: NDArray[np.intp], table: NDArray[np.float32]) -> None:
    for start in range(0, len(tokens), _PIECE):
        vector += table.take(tokens[start : start + _PIECE], axis=0, mode="clip").sum(axis=0)
    vector /= max(len(tokens), 1)


class LangChainEmbedder:
    """Any LangChain embedding model."""

    def __init__(self, model: "Embeddings", name: str) -> None:
        self._model = model
        self.name = name

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text, of shape (texts, dimensions).

        Raises:
            MemoryFailure: the model failed.
        """
        with self._plain_failures():
            return np.asarray(self._model.embed_documents(list(texts)), np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, of shape (dimensions,).

        Raises:
            MemoryFailure: the model failed.
        """
        with self._plain_failures():
            return np.asarray(self._model.embed_query(text), np.float32)

    async def aembed_query(self, text: str) -> NDArray[np.float32]:
        """As `embed_query`, by the model's own async call if it has one, else in a thread."""
        if not hasattr(self._model, "aembed_query"):
            return await asyncio.to_thread(self.embed_query, text)
        with self._plain_failures():
            return np.asarray(await self._model.aembed_query(text), np.float32)

    @contextmanager
    def _plain_failures(self) -> Generator[None]:
        try:
            yield
        except Exception as error:
            raise MemoryFailure(f"the embedding model {self.name} failed: {_first_line(error)}") from error


@functools.cache
def _wordllama() -> Embedder:
    if not find_spec("wordllama"):
        raise BadInput(
            "embeddings 'wordllama' need the package wordllama: pip install wordllama, "
            "or name 'none' to search by words alone"
        )
    return WordLlamaEmbedder()


@functools.cache
def _wordllama_model() -> Any:  # noqa: ANN401 - the class of an optional package
    """The model from the files in its package: its own loader looks for the tokenizer elsewhere, then downloads it."""
    try:
        with _own_logging():
            wordllama = import_module("wordllama")
    except ImportError as error:
        raise BadInput(
            f"wordllama cannot be loaded ({error}); name embeddings 'none' to search by words alone"
        ) from error
    folder = Path(str(wordllama.__file__)).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    return model


@contextmanager
def _own_logging() -> Generator[None]:
    """Importing wordllama configures the root logger, unless it has a handler."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _initialised(name: str) -> "Embeddings":
    from langchain.embeddings import init_embeddings  # noqa: PLC0415 - heavy, and only needed here

    known = "name 'wordllama', 'none' or provider:model, such as 'openai:text-embedding-3-small'"
    try:
        return init_embeddings(name)
    except ImportError as error:
        provider = name.partition(":")[0].replace("_", "-")
        raise BadInput(
            f"embeddings {name!r} need another package: pip install langchain-{provider}"
        ) from error
    except ValueError as error:
        told = f" ({_first_line(error)})" if ":" in name else ""
        raise BadInput(f"no embedding model goes by {name!r}{told}; {known}") from error
    except Exception as error:
        variable = re.search(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b", str(error))
        needed = f"set {variable[0]} to its key" if variable else _first_line(error)
        raise BadInput(f"embeddings {name!r} cannot be used: {needed}, or {known}") from error


def _of_object(model: "Embeddings") -> Embedder:
    """An embedder named like the `init_embeddings` string of the same model, where there is one."""
    if not callable(getattr(model, "embed_documents", None)) or not callable(
        getattr(model, "embed_query", None)
    ):
        raise BadInput(
            f"embeddings must be a name or a LangChain Embeddings object, not {type(model).__name__}"
        )
    package = type(model).__module__.partition(".")[0]
    provider = (
        package.removeprefix("langchain_") if package.startswith("langchain_") else type(model).__name__
    )
    named = (getattr(model, attribute, None) for attribute in ("model", "model_name", "model_id"))
    version = next((value for value in named if isinstance(value, str) and value), "")
    return LangChainEmbedder(model, f"{provider}:{version}" if version else type(model).__name__)


def _first_line(error: Exception) -> str:
    lines = without_secrets(str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
