"""Where evidence comes from. Each source is a LangChain retriever; `open_source` finds one by its name."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepcraft.sources.corpus.retriever import CorpusRetriever, open_corpus
    from stepcraft.sources.open import open_source

__all__ = ["CorpusRetriever", "open_corpus", "open_source"]

_HOME = {"CorpusRetriever": "corpus.retriever", "open_corpus": "corpus.retriever", "open_source": "open"}


def __getattr__(name: str) -> object:
    """Loads a name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
