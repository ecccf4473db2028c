"""Build a corpus in Weaviate or Postgres from files, and search it."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from pydantic import Field

from stepcraft.errors import BadInput
from stepcraft.files import open_regular
from stepcraft.memory.procedure import checked_tags
from stepcraft.memory.urls import scheme_of
from stepcraft.retriever import Source
from stepcraft.secrets import excerpt
from stepcraft.sources.corpus.files import (
    File,
    Roots,
    above,
    empty_folders,
    files_of,
    roots_of,
    shown_path,
)
from stepcraft.sources.corpus.passages import Fields, fields_of
from stepcraft.sources.corpus.remote import start_of
from stepcraft.sources.corpus.update import Page, Updated, digest, state_of, update
from stepcraft.sources.passage import passage_of
from stepcraft.sources.shared.passages import PATH, SharedPassages
from stepcraft.sources.shared.urls import is_shared, parted
from stepcraft.text import words

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


class SharedCorpus(Source):
    """A LangChain retriever over a corpus in Weaviate or Postgres, opened by `open_shared`.

    Each document's metadata contains a `title` (the title of the file followed by the headings
    above the passage), a `source` (the path with the line, page or cell) and a `score`. A search
    sees each file in a single state, even while the corpus is being rebuilt.
    """

    index: Any
    """The SharedPassages that are searched."""
    alpha: float | None = None
    """The weight of the vectors, from 0 to 1; None for the server's default."""
    where: dict[str, str] = Field(default_factory=dict)
    """The tag values that passages must have; the value of `path` is a prefix of their paths."""

    def close(self) -> None:
        """Close the connection, which is also closed when it is garbage-collected."""
        self.index.close()

    def beside(self, id: str) -> list[Document]:  # noqa: A002 - as a document's field
        """Return the passages directly before and after the one with this id, in the same file."""
        return [*map(passage_of, self.index.beside(id))]

    def _search(self, query: str, k: int) -> list[Document]:
        hits = self.index.search(query, k, alpha=self.alpha, where=self.where)
        return [*map(passage_of, hits)]


def open_shared(
    url: str,
    *,
    k: int = 5,
    embeddings: "str | Embeddings | None" = None,
) -> SharedCorpus:
    """Open a corpus filled by `build_corpus` as a retriever.

    Args:
        url: `weaviate://host:8080/Collection` or `weaviate+cloud://cluster/Collection` (see
            WeaviatePassages), or `postgresql://host/database/name` (see PostgresPassages). The
            option `where=NAME=VALUE`, once for each name, limits searches to passages with these
            tags; `where=path=docs/` limits them to paths with this prefix.
        k: The number of passages to find.
        embeddings: As for `open_memory`.

    Raises:
        BadInput: The URL is malformed, or there is no such corpus.
        MemoryFailure: The server cannot be used, or the corpus was made with other embeddings.
    """
    base, where = parted(url)
    where = checked_tags(where)
    return SharedCorpus(index=_opened(base, embeddings=embeddings), k=k, where=where)


def build_corpus(
    paths: Iterable[str | os.PathLike[str]],
    url: str,
    *,
    title: str = "",
    text: str = "",
    embeddings: "str | Embeddings | None" = None,
    tags: Mapping[str, str] | None = None,
    on_progress: Callable[[Updated, int], object] = lambda _report, _total: None,
) -> Updated:
    """Bring a corpus in Weaviate or Postgres up to date with files and folders.

    Only files whose content has changed are read, and only texts that are not stored yet are
    embedded. Files that are gone are deleted from the corpus at the end; those that cannot be
    listed, fetched or opened this time stay, and are named. If a builder is killed, the next one
    continues. Two builders that read the same files at once end up with the same result.

    Args:
        paths: As for `open_corpus`. Files are identified by their paths as given here.
        url: As for `open_shared`, without `where`.
        title: As for `open_corpus`. Files are read again if this or `text` changes.
        text: As for `open_corpus`.
        embeddings: As for `open_memory`; for a new corpus, the default is that of `open_corpus`.
        tags: The tags of these files. Pages with other tags are left alone, so that several
            machines can build the same corpus.
        on_progress: Called with the progress so far and the number of files.

    Raises:
        BadInput: There is no such file or folder, nothing in it can be read, or the URL is
            malformed.
        MemoryFailure: The server or the embedding model failed. Anything already stored is kept.
    """
    roots = roots_of(paths)
    tags = checked_tags(tags or {})
    if PATH in tags:
        raise BadInput(f"the tag {PATH} cannot be used: it is what paths are filtered by")
    fields = fields_of(title, text)
    files, problems, left_out, notes = files_of(roots)
    if not files:
        names = "; ".join([", ".join(roots.values()), *problems.values()])
        raise BadInput(f"there is no file to read in {names}; nothing was changed")
    index = _opened(url, embeddings=embeddings, tags=tags, create=True)
    unread = _unread(files, problems, roots)

    def is_gone(name: str) -> bool:
        reasons = [unread[each] for each in above(name) if each in unread]
        problems.update(reasons[:1])
        return not reasons

    with closing(index), index.building():

        def refresh() -> Updated:
            pages = _pages(files, roots, index.tags, fields, left_out)
            done = update(
                index, pages, set(), lambda report: on_progress(report, len(files)), is_gone
            )
            index.finish()
            return done

        report = refresh()
        if index.tidy():  # a killed server has lost passages
            again = refresh()
            report.passages += again.passages
            report.problems |= again.problems
    report.problems |= notes | problems
    report.left_out = left_out
    return report


def _opened(url: str, **options: Any) -> SharedPassages:  # noqa: ANN401 - those of the classes
    if not is_shared(url):
        raise BadInput(
            f"{excerpt(url)} is no corpus in a server; write weaviate://host:8080/Collection or "
            "postgresql://host:5432/database/name"
        )
    if scheme_of(url) != "postgresql":
        from stepcraft.sources.shared.weaviate import WeaviatePassages  # imports grpc

        return WeaviatePassages(url, **options)
    try:
        from stepcraft.sources.shared.postgres import PostgresPassages  # optional
    except ImportError as error:
        raise BadInput(
            f"{url} needs the packages of Postgres ({error}): pip install 'stepcraft[postgres]'"
        ) from error
    return PostgresPassages(url, **options)


def _unread(
    files: Iterable[File], problems: Mapping[str, str], roots: Roots
) -> dict[Path, tuple[str, str]]:
    """Map the start of the names of pages that may still exist to a path and the reason."""
    unread: dict[Path, tuple[str, str]] = {}
    listed = {file.path for file in files}
    for path, reason in (empty_folders(files, roots) | {**problems}).items():
        # What a link led to is gone, or no longer in the corpus. A listed page is not gone, and
        # tells nothing about the pages below it.
        if path in listed or Path(path).is_symlink():
            continue
        name = shown_path(path, roots, escape=True)
        unread[Path(start_of(name) if Path(path) in roots else name)] = path, reason
    return unread


def _pages(
    files: Iterable[File],
    roots: Roots,
    tags: Iterable[str],
    fields: Fields,
    left_out: dict[str, str],
) -> Iterator[Page]:
    names = set[str]()
    for path, *_ in files:
        name = shown_path(path, roots, escape=True)
        if name in names:
            left_out[path] = f"another file is also called {name}"
            continue
        names.add(name)
        state = state_of(fields, words.VERSION, _digest_of(path))
        yield Page(path, name, name, state, digest(name, state, *tags), fields)


def _digest_of(path: str) -> str:
    """Return a digest of a file's content, or "" if it cannot be read."""
    try:
        with open_regular(Path(path)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
