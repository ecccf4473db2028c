"""Sources of evidence, each a LangChain retriever; `open_source` opens one by its name."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepcraft.sources.corpus.retriever import CorpusRetriever, open_corpus
    from stepcraft.sources.open import open_source

__all__ = ["CorpusRetriever", "open_corpus", "open_source"]

_MODULES = {
    "CorpusRetriever": "corpus.retriever",
    "open_corpus": "corpus.retriever",
    "open_source": "open",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use, as its module takes long to import."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
