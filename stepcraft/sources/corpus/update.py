"""The index of a corpus brought up to date with its files: only what was changed is read."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from stepcraft.index import Complete, Entry, GroupedIndex, in_group
from stepcraft.sources.corpus.content import UnreadableFile
from stepcraft.sources.corpus.files import File, Root, files_of
from stepcraft.sources.corpus.passages import VERSION, Passage, passages

_BATCH = 4000
"""How many passages are embedded and written at a time, whatever the number of files that they are of."""

_SETTLED_NS = 2_000_000_000
"""A file that was written later than this before it was read may be written again without a new time."""


@dataclass
class CorpusReport:
    """What opening a corpus found."""

    files: int = 0
    """How many files there are."""
    read: int = 0
    """How many of them were new or changed."""
    gone: int = 0
    """How many are there no longer."""
    problems: dict[str, str] = field(default_factory=dict[str, str])
    """Why a file, a record in it, or a folder could not be read, by its path."""


@dataclass(frozen=True)
class _Mark:
    """The state in which a file was read."""

    size: int
    mtime: int
    digest: str
    problem: str = ""

    @classmethod
    def of(cls, text: str) -> Self | None:
        """From the index; None if there is none of this version, or the file was not read to its end."""
        values: list[Any] = json.loads(text or "[null]")
        return cls(*values[1:]) if values[0] == VERSION else None

    def __str__(self) -> str:
        return json.dumps([VERSION, self.size, self.mtime, self.digest, self.problem])


def update(
    index: GroupedIndex, roots: Sequence[Root], progress: Callable[[int], None] | None
) -> CorpusReport:
    """Read what is new or changed, and forget what is gone. Killed on the way, the next call goes on.

    `progress` is called with the number of files done so far.

    Raises:
        MemoryFailure: the index cannot be written, or the embedding model failed.
    """
    report, batch = CorpusReport(), _Batch(index)
    known = index.marks()
    for file in files_of(roots, report.problems):
        group = _group(file.path)
        mark = _Mark.of(known.pop(group, ""))
        if not mark or (mark.size, mark.mtime) != (file.size, file.mtime):
            mark = _taken_in(batch, group, file, mark, report)
        if mark.problem:
            report.problems[file.path] = mark.problem
        report.files += 1
        if progress:
            progress(report.files)
    batch.write()
    report.gone = len(known)
    if known:
        index.forget(known)
    return report


def _taken_in(batch: "_Batch", group: str, file: File, before: _Mark | None, report: CorpusReport) -> _Mark:
    """The mark of a file that seems to be new or changed, once its passages are in the batch if it is."""
    settled = time.time_ns() - file.mtime > _SETTLED_NS
    mtime = file.mtime if settled else -1
    try:
        with Path(file.path).open("rb") as opened:
            digest = hashlib.file_digest(opened, "blake2b").hexdigest()[:32]
    except OSError as error:
        # A permission may change and leave size and time as they are: it is tried again each time.
        mark = _Mark(file.size, -1, "", f"it cannot be read: {error.strerror}")
        batch.complete(group, mark, [])
        return mark
    if before and before.digest == digest:
        mark = _Mark(file.size, mtime, digest, before.problem)
        batch.same[group] = str(mark)
        return mark
    report.read += 1
    ids, problem = _read(batch, group, file.path)
    mark = _Mark(file.size, mtime, digest, problem)
    batch.complete(group, mark, ids)
    return mark


def _read(batch: "_Batch", group: str, path: str) -> tuple[set[str], str]:
    """Adds the passages of a file to the batch; their ids, and what is wrong with the file."""
    ids: set[str] = set()
    broken: list[str] = []
    try:
        for passage in passages(Path(path), broken):
            ids.add(batch.add(group, path, passage))
    except UnreadableFile as error:
        return ids, str(error)
    first = f"{len(broken):,} of its records cannot be read, the first in {broken[0]}" if broken else ""
    return ids, first


class _Batch:
    """Passages on their way into the index."""

    def __init__(self, index: GroupedIndex) -> None:
        self.same: dict[str, str] = {}
        """New marks of groups whose passages are as they were."""
        self._index = index
        self._entries: list[Entry] = []
        self._complete: dict[str, Complete] = {}

    def add(self, group: str, path: str, passage: Passage) -> str:
        """Add a passage and give its id, which is the same as long as title and text are."""
        text = f"{passage.title}\n{passage.text}"
        name = in_group(group, hashlib.blake2b(text.encode(), digest_size=12).hexdigest())
        self._entries.append(
            Entry(name, text, {"title": passage.title, "path": path, "place": passage.place})
        )
        if len(self._entries) >= _BATCH:
            self.write()
        return name

    def complete(self, group: str, mark: _Mark, ids: Iterable[str]) -> None:
        """All passages of a group were added."""
        self._complete[group] = Complete(str(mark), set(ids))

    def write(self) -> None:
        """Write what there is."""
        if self._entries or self._complete:
            self._index.fill(self._entries, self._complete)
        if self.same:
            self._index.mark(self.same)
        self._entries, self._complete, self.same = [], {}, {}


def _group(path: str) -> str:
    return hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=12).hexdigest()
