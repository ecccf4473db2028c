"""Bring an index of passages up to date with the files in a corpus."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from stepcraft.encoding import NotOpened, Unreadable
from stepcraft.errors import Failed
from stepcraft.index import Complete, Entry, in_group
from stepcraft.sources.corpus.passages import VERSION, Fields, passages
from stepcraft.sources.isolated import NotParsed

_AGAIN = "again "


class Index(Protocol):
    """An index whose entries belong to groups, one per file; see `GroupedIndex`."""

    batch: int
    """The number of passages that are embedded and written together."""

    def marks(self) -> dict[str, str]:
        """Return the mark of each group."""
        ...

    def fill(self, entries: Iterable[Entry], complete: Mapping[str, Complete]) -> Sequence[Failed]:
        """Store entries, mark groups as complete, and return the entries that were refused."""
        ...

    def forget(self, groups: Collection[str]) -> None:
        """Delete groups with all their entries."""
        ...


class Page(NamedTuple):
    """A file in a corpus."""

    path: str
    shown: str
    """The path that is stored with its passages."""
    group: str
    state: str
    """A value that changes whenever the file does. The page's mark is this value plus any problem
    that occurred while reading the file.
    """
    ids: str
    """The prefix of its entries' ids."""
    fields: Fields
    """The fields that hold a record's title and text."""


@dataclass
class Updated:
    """The progress of an update so far."""

    files: int = 0
    read: int = 0
    """The number of files that were new or changed."""
    passages: int = 0
    """The number of passages that were stored."""
    removed: int = 0
    """The number of missing files whose passages were removed."""
    problems: dict[str, str] = field(default_factory=dict[str, str])
    """The reasons why files, or parts of them, could not be read, by path."""
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    """The reasons why files or folders were left out, by path."""


def update(
    index: Index,
    pages: Iterable[Page],
    tried: set[str],
    on_progress: Callable[[Updated], object] = lambda _: None,
    is_gone: Callable[[str], bool] = lambda _: True,
) -> Updated:
    """Read new and changed pages into an index, and drop deleted ones.

    Args:
        index: The index.
        pages: All files in the corpus.
        tried: The states of files whose parser failed, which are not parsed again. New ones are
            added.
        on_progress: Called with the progress so far after each file.
        is_gone: Takes the group of a page that is not among `pages`, and returns whether to drop
            it.
    """
    marks, reader = index.marks(), _Reader(index)
    report = reader.report
    for page in pages:
        mark = marks.pop(page.group, "")
        report.files += 1
        if not (mark.startswith(page.state) or page.group + page.state in tried):
            mark = reader.read(page)
            if mark.startswith(_AGAIN):
                tried.add(page.group + page.state)
        if problem := mark.removeprefix(_AGAIN).removeprefix(page.state):
            report.problems[page.path] = problem
        on_progress(report)
    reader.fill()
    if gone := [*filter(is_gone, marks)]:
        index.forget(gone)
        report.removed = len(gone)
    return report


class _Reader:
    """Reads pages into an index, one batch of passages at a time."""

    def __init__(self, index: Index) -> None:
        self.report = Updated()
        self._index = index
        self._entries: list[Entry] = []
        self._complete: dict[str, Complete] = {}
        self._paths: dict[str, str] = {}

    def read(self, page: Page) -> str:
        """Read a page, and return its mark."""
        self.report.read += 1
        self._paths[page.ids] = page.path
        mark, ids = page.state, set[str]()
        try:
            for entry in _entries(page):
                self._entries.append(entry)
                ids.add(entry.id)
                self.report.passages += 1
                if len(self._entries) >= self._index.batch:
                    refused = self.fill()
                    mark += "".join(f"{each.reason} " for each in refused if each.where in ids)
                    ids.difference_update(each.where for each in refused)
        except NotOpened as error:
            # The next update tries again. Until then, the index keeps what it has of the page.
            return f"{mark}{error}; any earlier version of it is still searched"
        except NotParsed as error:
            # Another process tries again, perhaps with more memory or another parser.
            mark = f"{_AGAIN}{mark}{error}"
        except Unreadable as error:
            mark += str(error)
        self._complete[page.group] = Complete(mark, ids)
        return mark

    def fill(self) -> Sequence[Failed]:
        """Write everything read so far, and return the entries that were refused."""
        if not (self._entries or self._complete):
            return ()
        refused = self._index.fill(self._entries, self._complete)
        self._entries, self._complete = [], {}
        for each in refused:
            path = self._paths[each.where.partition(":")[0]]
            before = self.report.problems.get(path, "")
            self.report.problems[path] = f"{before}{each.reason} "
        return refused


def state_of(fields: Fields, *facts: object) -> str:
    """Return a page's state: settings for reading it, and values that change with its content."""
    return f"{VERSION} {digest(repr(fields))} {' '.join(map(str, facts))} "


def digest(*texts: str) -> str:
    """Return a digest of the given texts for use in ids."""
    whole = "\0".join(texts)
    return hashlib.blake2b(whole.encode(errors="surrogatepass"), digest_size=12).hexdigest()


def _entries(page: Page) -> Iterable[Entry]:
    """Yield the passages in a file as entries."""
    for number, (title, text, place) in enumerate(passages(Path(page.path), page.fields)):
        whole = f"{title}\n{text}"
        payload = {"title": title, "path": page.shown, "place": place, "number": number}
        yield Entry(in_group(page.ids, digest(whole)), whole, payload)
