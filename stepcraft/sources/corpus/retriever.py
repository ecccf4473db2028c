"""A corpus: files and folders as a source, with an index so that only changed files are read."""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from pydantic import Field, PrivateAttr

from stepcraft.errors import BadInput, MemoryFailure, SourceFailure
from stepcraft.evidence import NOTES
from stepcraft.files import cache_folder, named_path
from stepcraft.index import DamagedIndex, GroupedIndex, Hit
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.retriever import Source
from stepcraft.sources.corpus.files import (
    File,
    Roots,
    above,
    empty_folders,
    files_of,
    roots_of,
    shown_path,
)
from stepcraft.sources.corpus.passages import FIELDS, Fields, fields_of
from stepcraft.sources.corpus.update import Page, digest, state_of, update
from stepcraft.sources.passage import ALPHA, passage_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


_COPIED_S = 300
"""The number of seconds after which a refresh examines remote files again."""


class CorpusRetriever(Source):
    """A LangChain retriever over files and folders, opened by `open_corpus`.

    Each document's metadata contains a `title` (the title of the file followed by the headings
    above the passage), a `source` (the path with the line, page or cell) and a `score`. The first
    document also has `stepcraft_notes` if some files could not be read.
    """

    index: Any
    """The GroupedIndex that is searched."""
    roots: Roots
    """The files and folders, each with its path as given."""
    fields: Fields = FIELDS
    """The fields that hold the title and the text of records."""
    problems: dict[str, str] = Field(default_factory=dict)
    """By path, the reason why a file, some of its records or a folder could not be read."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """The reasons why files or folders were left out, by path."""
    paths: list[str] = Field(default_factory=list)
    """The files that were examined."""
    read: int = 0
    """The number of files found to be new or changed at the last refresh."""
    alpha: float = ALPHA
    """The weight of the vectors: 1 uses only vectors, 0 only words."""
    _lock: Any = PrivateAttr(default_factory=Lock)
    _looked: float = PrivateAttr(default=float("-inf"))
    _tried: set[str] = PrivateAttr(default_factory=set)
    """The states of files whose parser failed; this process does not parse them again."""

    @property
    def notes(self) -> list[str]:
        """A sentence about files that could not be read, if there are any."""
        if not self.problems:
            return []
        problems = [f"{shown_path(path, self.roots)}: {why}" for path, why in self.problems.items()]
        listed = "; ".join(problems[:5])
        return [
            f"not all of the corpus could be read as it is ({len(problems):,} problems): {listed}"
        ]

    def refresh(self, *, after_s: float = 0) -> None:
        """Read new and changed files, and drop deleted ones.

        A folder beside others keeps its files if it is empty, since it may not be mounted.

        Args:
            after_s: Do nothing if the files were examined in the last `after_s` seconds, even if
                that failed. Unless it is 0, remote files are examined at most every five minutes.

        Raises:
            BadInput: A path of the corpus no longer exists, or nothing can be read.
            SourceFailure: The index is unusable.
        """
        with self._lock:
            if time.monotonic() - self._looked < after_s:
                return
            roots_of(self.roots)
            try:
                # A search does not wait for another process that is reading the same files.
                with self.index.filling(wait=not after_s) as is_ours:
                    if is_ours:
                        self._update(copied_s=_COPIED_S if after_s else 0)
            finally:
                is_empty = not self.index.count()
                if not is_empty:  # so that not every search retries after a failure
                    self._looked = time.monotonic()
            if is_empty:
                names = ", ".join(self.roots.values())
                left_out = [
                    f"{shown_path(path, self.roots)} was left out: {why}"
                    for path, why in islice(self.left_out.items(), 5)
                ]
                parts = [f"{names} holds no text to search", *self.notes, *left_out]
                raise BadInput("; ".join(parts))

    def close(self) -> None:
        """Close the index, which is also closed when it is garbage-collected."""
        self.index.close()

    def beside(self, id: str) -> list[Document]:  # noqa: A002 - as a document's field
        """Return the passages directly before and after the one with this id, in the same file."""
        entry = self.index.get(id)
        if entry is None:
            return []
        number = entry.payload["number"]
        entries = self.index.numbered(id.partition(":")[0], (number - 1, number + 1))
        return [self._document(Hit(entry, 0.0)) for entry in entries]

    def _document(self, hit: Hit) -> Document:
        return passage_of(hit, shown_path(str(hit.entry.payload["path"]), self.roots))

    def _search(self, query: str, k: int) -> list[Document]:
        documents = [*map(self._document, self.index.search(query, k, alpha=self.alpha))]
        if documents and self.problems:
            documents[0].metadata[NOTES] = self.notes
        return documents

    def _update(self, *, copied_s: float) -> None:
        """Bring the index up to date."""
        files, problems, left_out, notes = files_of(self.roots, copied_s=copied_s)
        empty = empty_folders(files, self.roots) if files else {}
        reasons = {Path(path): why for path, why in (empty | problems).items()}
        unread = {path: why for path, why in reasons.items() if not path.is_symlink()}

        def is_gone(group: str) -> bool:
            entries = self.index.numbered(group, range(100)) if unread else []
            paths = {path for entry in entries for path in above(entry.payload["path"])}
            kept = {str(path): unread[path] for path in paths if path in unread}
            problems.update(kept)
            return not kept

        report = update(self.index, map(self._page, files), self._tried, is_gone=is_gone)
        self.problems, self.left_out = notes | problems | report.problems, left_out
        self.paths, self.read = [file.path for file in files], report.read

    def _page(self, file: File) -> Page:
        group = digest(file.path)
        state = state_of(self.fields, file.size, file.changed)
        return Page(file.path, file.path, group, state, group, self.fields)


def open_corpus(
    paths: Iterable[str | os.PathLike[str]],
    *,
    k: int = 5,
    title: str = "",
    text: str = "",
    embeddings: "str | Embeddings | None" = None,
    index: str | os.PathLike[str] | None = None,
) -> CorpusRetriever:
    """Open files and folders as a retriever.

    Supported formats are Markdown, plain text, reStructuredText, AsciiDoc, Org, LaTeX, manual
    pages, HTML, XML, PDF, EPUB, RTF, ODT, e-mail, notebooks, subtitles, OpenAPI, JSON, CSV, source
    code, and with MarkItDown (`pip install "stepcraft[office]"`) Word, PowerPoint and Excel files.
    The passages are kept in an index, so that only new and changed files are read. Several
    processes may open the same corpus at once; if one is killed while reading, the next one
    continues.

    A file that cannot be read, or takes too much time or memory to parse, is skipped and named in a
    note, as is any content beyond the limits on pages or tags. Links that lead outside the given
    paths are skipped in the same way, since otherwise anyone able to write to a folder could have
    any file on this machine read.

    Args:
        paths: Files, and folders including all their subfolders; also URLs that fsspec reads, such
            as `s3://bucket/docs`, and URLs of sitemaps, whose files and pages are copied to the
            user's cache folder.
        k: The number of passages to find.
        title: The title field of records in JSONL or CSV; by default `title`, `name`, `subject`,
            `question` or `headline`.
        text: The text field of records; by default `text`, or else all fields.
        embeddings: "wordllama", "none", an `init_embeddings` string or an Embeddings object; None
            means STEPCRAFT_EMBEDDINGS, or else the best model that needs no key.
        index: The index file, or ":memory:". None means a file in the user's cache folder, which is
            recreated if it is damaged.

    Raises:
        BadInput: There is no such file or folder, or nothing in it can be read.
        SourceFailure: The index cannot be created or used.
    """
    roots = roots_of(paths)
    embedder = resolve_embeddings(embeddings)
    fields = fields_of(title, text)

    def opened(path: Path) -> CorpusRetriever:
        groups = GroupedIndex(path, embedder)
        corpus = CorpusRetriever(index=groups, roots=roots, fields=fields, k=k)
        try:
            corpus.refresh()
        except BaseException:
            corpus.close()
            raise
        return corpus

    try:
        if index is not None:
            return opened(named_path(index))
        folder = cache_folder("corpora")
        choices = repr((embedder and embedder.name, [*map(str, roots)], title, text))
        path = folder / f"{digest(choices)}.db"
        with suppress(DamagedIndex):
            return opened(path)
        for file in folder.glob(f"{path.name}*"):  # with -wal and -shm
            if file.suffix != ".lock":  # which another process may hold
                file.unlink(missing_ok=True)
        return opened(path)
    except (MemoryFailure, OSError) as error:
        raise SourceFailure(f"the index of the corpus cannot be used: {error}") from error
