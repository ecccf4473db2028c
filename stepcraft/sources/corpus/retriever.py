"""A corpus: files and folders as a source of evidence, with an index in which only changed files are read again."""

import glob
import hashlib
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from langchain_core.documents import Document
from platformdirs import user_cache_path
from pydantic import Field

from stepcraft.errors import BadInput, MemoryFailure, SourceFailure
from stepcraft.evidence import NOTES
from stepcraft.files import open_regular
from stepcraft.index import Complete, DamagedIndex, Embedder, Entry, GroupedIndex, Hit, in_group
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.sources.base import Source
from stepcraft.sources.corpus.content import UnreadableFile
from stepcraft.sources.corpus.files import File, Root, files_of, roots_of, shown
from stepcraft.sources.corpus.passages import VERSION, passages

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

ALPHA = 0.4
"""The default weight of the vectors in a search: 1 is vectors alone, 0 words alone."""

K = 5
"""The default number of passages."""

_log = logging.getLogger(__name__)
_rebuilding = threading.Lock()
_NAMED_PROBLEMS = 5
_UNUSED_NS = 90 * 24 * 3600 * 1_000_000_000
_BATCH = 4000
"""Passages that are embedded and written together, from however many files."""
_SETTLED_NS = 2_000_000_000
"""A file written less than this before it was read may be written again without a change of its time."""


@dataclass
class CorpusReport:
    """The result of bringing a corpus's index up to date."""

    files: int = 0
    """Files in the corpus."""
    read: int = 0
    """Files that were new or changed."""
    gone: int = 0
    """Files that were removed from the index, since they no longer exist."""
    problems: dict[str, str] = field(default_factory=dict[str, str])
    """Why a file, a record in it, or a folder could not be read, by path."""


class CorpusRetriever(Source):
    """A LangChain retriever over files and folders, opened by `open_corpus`.

    The metadata of a document are its `title` (of the file, then the headings above the passage), `source` (the path
    with the line, page or cell) and `score`. The first document also has `stepcraft_notes` if files could not be read. `k`
    may be given with a call: `retriever.invoke(query, k=10)`. `ainvoke` searches in a thread.
    """

    index: Any
    """The GroupedIndex that is searched."""
    roots: list[Root]
    """The files and folders, as they were named."""
    report: CorpusReport
    """What was read when it was opened."""
    alpha: float = Field(default=ALPHA, ge=0, le=1)
    """The weight of the vectors: 1 is vectors alone, 0 words alone."""
    rebuild: Any = Field(default=None, repr=False)
    """Makes a damaged index anew, and returns it with its report; None where the index is not in the cache."""

    @property
    def notes(self) -> list[str]:
        """A sentence on the files that could not be read, if there are any."""
        named = [f"{shown(path, self.roots)}: {why}" for path, why in self.report.problems.items()]
        more = (
            [f"and {len(named) - _NAMED_PROBLEMS:,} more"] if len(named) > _NAMED_PROBLEMS else []
        )
        listed = "; ".join(named[:_NAMED_PROBLEMS] + more)
        return [f"not all of the corpus could be read: {listed}"] if named else []

    def close(self) -> None:
        """Close the index. It may be called twice; an index that nobody uses any more closes by itself."""
        self.index.close()

    def _found(self, query: str, k: int) -> list[Document]:
        index = self.index
        try:
            try:
                documents = self._search(index, query, k)
            except DamagedIndex as error:
                if not self.rebuild:
                    raise
                with _rebuilding:
                    if self.index is index:  # no other search has rebuilt it
                        self.index, self.report = self.rebuild(error)
                documents = self._search(self.index, query, k)
        except MemoryFailure as error:
            raise SourceFailure(f"the corpus cannot be searched: {error}") from error
        if documents and (notes := self.notes):
            documents[0].metadata[NOTES] = notes
        return documents

    def _search(self, index: GroupedIndex, query: str, k: int) -> list[Document]:
        hits = index.search(query, k, alpha=self.alpha)
        try:
            return [self._document(hit) for hit in hits]
        except (LookupError, ValueError) as error:  # of paths outside of the corpus, too
            raise DamagedIndex(
                f"{index.path} holds passages that are not of this corpus; delete it"
            ) from error

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
    follow_symlinks: bool = False,
    progress: Callable[[int], None] | None = None,
) -> CorpusRetriever:
    """Open files and folders as a retriever.

    Read are Markdown, plain text, reStructuredText, HTML, PDF, notebooks, JSONL, CSV and source code. The passages
    are kept in an index, for which only new and changed files are read. Several processes may open the same corpus at
    once; one that is killed while it reads is continued by the next.

    A file that cannot be read, or takes too much time or memory to parse, is passed over and named in the report, as is
    what lies beyond a limit of pages or tags. HTML, PDF and notebooks are parsed in a process of their own.

    Args:
        paths: files, and folders with all folders in them.
        k: the number of passages to find.
        embeddings: "wordllama", "none", an `init_embeddings` string or an Embeddings object; None means
            STEPCRAFT_EMBEDDINGS, else the best that needs no key.
        index: the file of the index, or ":memory:". None means one in the user's cache folder, where indexes that
            were not opened for 90 days are deleted; so may you at any time. One there that is damaged is made anew,
            with a warning.
        follow_symlinks: whether links to files and folders outside of the paths are followed. Whoever can write into a
            folder could otherwise have any file of this machine read.
        progress: called with the number of files done so far.

    Raises:
        BadInput: there is no such file or folder, or nothing in it can be read.
        SourceFailure: the index cannot be made or used.
    """
    roots = roots_of(paths)
    embedder = resolve_embeddings(embeddings)
    where = (
        _cached(roots, embedder, follow_symlinks=follow_symlinks)
        if index is None
        else os.fspath(index)
    )

    def updated() -> tuple[GroupedIndex, CorpusReport]:
        made = GroupedIndex(where, embedder)
        try:
            return made, _update(made, roots, progress, follow_symlinks=follow_symlinks)
        except BaseException:
            made.close()
            raise

    def rebuild(error: DamagedIndex) -> tuple[GroupedIndex, CorpusReport]:
        _log.warning("the index of the corpus is made anew: %s", error)
        _delete(Path(where))
        _cached(roots, embedder, follow_symlinks=follow_symlinks)
        return updated()

    try:
        try:
            opened, report = updated()
        except DamagedIndex as error:
            if index is not None:
                raise
            opened, report = rebuild(error)
        corpus = CorpusRetriever(
            index=opened,
            roots=roots,
            report=report,
            k=k,
            rebuild=rebuild if index is None else None,
        )
        if not opened.count():
            named = ", ".join(root.given for root in roots)
            why = f": {corpus.notes[0]}" if corpus.notes else "; name other files"
            raise BadInput(f"{named} holds no text to search{why}")
    except MemoryFailure as error:
        raise SourceFailure(f"the index of the corpus cannot be used: {error}") from error
    return corpus


def _cached(roots: Sequence[Root], embedder: Embedder | None, *, follow_symlinks: bool) -> str:
    """The index in the cache folder for these options; indexes that are out of use are deleted.

    It holds the text of the files, so it is for its owner alone.
    """
    options = [
        embedder.name if embedder else "none",
        *(["follow_symlinks"] if follow_symlinks else []),
    ]
    key = "\n".join([*options, *(str(root.real) for root in roots)]).encode(errors="surrogatepass")
    folder = user_cache_path("stepcraft", appauthor=False) / "corpora"
    start = "".join(letter if letter.isalnum() else "-" for letter in roots[0].real.name)[:40]
    path = folder / f"{start}-{hashlib.blake2b(key, digest_size=8).hexdigest()}.db"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceFailure(
            f"the folder {folder} for the index of the corpus cannot be made ({error.strerror}); "
            "give open_corpus a file as index=, or set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    with suppress(OSError):  # a cache that cannot be written can still be searched
        for private in (folder.parent, folder):
            private.chmod(0o700)
        path.touch(mode=0o600)
        for other in list(folder.iterdir()):
            found = other.stat()
            if stat.S_IMODE(found.st_mode) != 0o600:
                other.chmod(0o600)
            if other.suffix == ".db" and time.time_ns() - found.st_mtime_ns > _UNUSED_NS:
                _delete(other)
    return str(path)


def _delete(index: Path) -> None:
    for file in (index, *index.parent.glob(f"{glob.escape(index.name)}-*")):
        file.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Mark:
    """The state in which a file was indexed, as it is kept in the index."""

    size: int
    mtime: int
    """In nanoseconds; -1 where the file is to be looked at again in any case."""
    digest: str
    problem: str = ""

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Parse a mark; None if the file was indexed by another version, or not to its end."""
        try:
            version, size, mtime, digest, problem = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            return None
        return cls(size, mtime, digest, str(problem)) if version == VERSION else None

    def __str__(self) -> str:
        return json.dumps([VERSION, self.size, self.mtime, self.digest, self.problem])


def _update(
    index: GroupedIndex,
    roots: Sequence[Root],
    progress: Callable[[int], None] | None,
    *,
    follow_symlinks: bool,
) -> CorpusReport:
    """Index what is new or changed and remove what is gone."""
    update = _Update(index)
    known = index.marks()
    for file in files_of(roots, update.report.problems, follow_symlinks=follow_symlinks):
        update.take(file, _Mark.of(known.pop(_group(file.path), "")))
        if progress:
            progress(update.report.files)
    update.write()
    update.report.gone = len(known)
    if known:
        index.forget(known)
    return update.report


class _Update:
    """Files on their way into the index, in batches."""

    def __init__(self, index: GroupedIndex) -> None:
        self.report = CorpusReport()
        self._index = index
        self._entries: list[Entry] = []
        self._complete: dict[str, Complete] = {}
        self._unchanged: dict[str, str] = {}
        """New marks of files with another time and the same content."""

    def take(self, file: File, before: _Mark | None) -> None:
        """Index a file unless it is as it was before."""
        self.report.files += 1
        mark = before
        if not mark or (mark.size, mark.mtime) != (file.size, file.mtime):
            mark = self._read_if_changed(file, before)
        if mark.problem:
            self.report.problems[file.path] = mark.problem

    def _read_if_changed(self, file: File, before: _Mark | None) -> _Mark:
        group = _group(file.path)
        settled = time.time_ns() - file.mtime > _SETTLED_NS
        mtime = file.mtime if settled else -1
        try:
            with open_regular(Path(file.path)) as opened:
                digest = hashlib.file_digest(opened, "blake2b").hexdigest()[:32]
        except OSError as error:
            # A permission may change and leave size and time as they are.
            mark = _Mark(file.size, -1, "", f"it cannot be read: {error.strerror}")
            self._complete[group] = Complete(str(mark), set())
            return mark
        if before and before.digest == digest:
            mark = _Mark(file.size, mtime, digest, before.problem)
            self._unchanged[group] = str(mark)
            return mark
        self.report.read += 1
        ids, problem = self._read(group, file.path)
        mark = _Mark(file.size, mtime, digest, problem)
        self._complete[group] = Complete(str(mark), ids)
        return mark

    def _read(self, group: str, path: str) -> tuple[set[str], str]:
        """Add the passages of a file; their ids, which depend on title and text alone, and what is wrong with it."""
        ids: set[str] = set()
        broken: list[str] = []
        try:
            for passage in passages(Path(path), broken):
                text = f"{passage.title}\n{passage.text}"
                name = in_group(group, hashlib.blake2b(text.encode(), digest_size=12).hexdigest())
                payload = {"title": passage.title, "path": path, "place": passage.place}
                self._entries.append(Entry(name, text, payload))
                ids.add(name)
                if len(self._entries) >= _BATCH:
                    self.write()
        except UnreadableFile as error:
            return ids, str(error)
        if broken:
            return ids, f"{len(broken):,} of its records cannot be read, the first in {broken[0]}"
        return ids, ""

    def write(self) -> None:
        """Write the batch."""
        if self._entries or self._complete:
            self._index.fill(self._entries, self._complete)
        if self._unchanged:
            self._index.mark(self._unchanged)
        self._entries, self._complete, self._unchanged = [], {}, {}


def _group(path: str) -> str:
    return hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=12).hexdigest()
