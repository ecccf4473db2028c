"""Sources of evidence, each a LangChain retriever; `open_source` opens one by name."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from stepcraft.sources.corpus.retriever import CorpusRetriever, open_corpus
    from stepcraft.sources.open import open_source
    from stepcraft.sources.shared.retriever import SharedCorpus, build_corpus

__all__ = ["CorpusRetriever", "SharedCorpus", "build_corpus", "open_corpus", "open_source"]

# The modules take long to import.
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "corpus.retriever": ["CorpusRetriever", "open_corpus"],
        "open": ["open_source"],
        "shared.retriever": ["SharedCorpus", "build_corpus"],
    },
)
