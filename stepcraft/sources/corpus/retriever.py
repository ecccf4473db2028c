"""A corpus: files and folders as a source of evidence, indexed where they changed when it is opened."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from platformdirs import user_cache_path
from pydantic import Field

from stepcraft.errors import BadInput, MemoryFailure, SourceFailure
from stepcraft.index import Embedder, GroupedIndex, Hit
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.sources.base import Source
from stepcraft.sources.corpus.files import Root, roots_of, shown
from stepcraft.sources.corpus.update import CorpusReport, update

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

ALPHA = 0.4
"""The weight of the vectors in a search: 1 only vectors, 0 only words."""

K = 5
"""How many passages a source finds unless told otherwise."""

_NAMED = 5
"""How many files a note names."""


class CorpusRetriever(Source):
    """Finds passages of files, best first: see `open_corpus`.

    A document has as metadata its `title` (of the file, then the headings above it), `source` (the path with line,
    page or cell) and `score`; the first one also `notes`, if files could not be read. `k` may also be given with
    a call: `retriever.invoke(query, k=10)`. `ainvoke` searches in a thread, off the event loop.
    """

    index: Any
    """The GroupedIndex that is searched."""
    roots: list[Root]
    """The files and folders, as they were named."""
    report: CorpusReport
    """What opening it found."""
    alpha: float = Field(default=ALPHA, ge=0, le=1)
    """The weight of the vectors: 1 only vectors, 0 only words."""

    @property
    def notes(self) -> list[str]:
        """What could not be read, as one sentence, if there is anything."""
        named = [f"{shown(path, self.roots)}: {why}" for path, why in self.report.problems.items()]
        more = [f"and {len(named) - _NAMED:,} more"] if len(named) > _NAMED else []
        return [f"not all of the corpus could be read: {'; '.join(named[:_NAMED] + more)}"] if named else []

    def close(self) -> None:
        """Close the index; it may be called twice."""
        self.index.close()

    def _found(self, query: str, k: int) -> list[Document]:
        try:
            hits = self.index.search(query, k, alpha=self.alpha)
        except MemoryFailure as error:
            raise SourceFailure(f"the corpus cannot be searched: {error}") from error
        documents = [self._document(hit) for hit in hits]
        if documents and (notes := self.notes):
            documents[0].metadata["notes"] = notes
        return documents

    def _document(self, hit: Hit) -> Document:
        title, path, place = (str(hit.entry.payload[name]) for name in ("title", "path", "place"))
        facts = {"title": title, "source": f"{shown(path, self.roots)}{place}", "score": hit.score}
        return Document(
            page_content=hit.entry.text.removeprefix(f"{title}\n"), metadata=facts, id=hit.entry.id
        )


def open_corpus(
    paths: Iterable[str | os.PathLike[str]],
    *,
    k: int = K,
    embeddings: "str | Embeddings | None" = None,
    index: str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> CorpusRetriever:
    """A retriever over files and folders: markdown, text, reStructuredText, HTML, PDF, notebooks, JSONL, CSV, code.

    The passages are kept in an index that only changed files are read into. Several processes may open the same
    corpus at once.

    Args:
        paths: files, and folders that are read with all folders in them.
        k: how many passages to find.
        embeddings: "wordllama", "none", an `init_embeddings` string or an Embeddings object; None means
            STEPCRAFT_EMBEDDINGS, else the best that needs no key.
        index: the file of the index, or ":memory:"; None means one in the user's cache folder, which may be
            deleted at any time.
        progress: called with the number of files done so far.

    Raises:
        BadInput: there is no such file or folder, or nothing in it can be read.
        SourceFailure: the index cannot be made or used.
    """
    roots = roots_of(paths)
    embedder = resolve_embeddings(embeddings)
    where = _cached(roots, embedder) if index is None else os.fspath(index)
    try:
        kept = GroupedIndex(where, embedder)
        report = update(kept, roots, progress)
        corpus = CorpusRetriever(index=kept, roots=roots, report=report, k=k)
        if not kept.count():
            raise BadInput(_nothing(corpus))
    except MemoryFailure as error:
        raise SourceFailure(f"the index of the corpus cannot be used: {error}") from error
    return corpus


def _cached(roots: Sequence[Root], embedder: Embedder | None) -> str:
    """A file of its own for each choice of paths and embeddings."""
    name = embedder.name if embedder else "none"
    key = "\n".join([name, *(str(root.real) for root in roots)]).encode(errors="surrogatepass")
    folder = user_cache_path("stepcraft", appauthor=False) / "corpora"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceFailure(
            f"the folder {folder} for the index of the corpus cannot be made ({error.strerror}); "
            "give open_corpus a file as index=, or set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    start = "".join(letter if letter.isalnum() else "-" for letter in roots[0].real.name)[:40]
    return str(folder / f"{start}-{hashlib.blake2b(key, digest_size=8).hexdigest()}.db")


def _nothing(corpus: CorpusRetriever) -> str:
    named = ", ".join(root.given for root in corpus.roots)
    return f"{named} holds no text to search" + (
        f": {corpus.notes[0]}" if corpus.notes else "; name other files"
    )
