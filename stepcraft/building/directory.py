"""The directory of a build: a record of each document, so that a build that was killed goes on where it stopped.

The record of a document is written when its procedures are found, and again when they are in the memory; the last one
counts. So no document is asked twice, and what was found but not added is added by the next build. Records hold the
procedures as the memory does, with whatever a document says; secrets are masked nowhere in them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from typing_extensions import TypedDict

from stepcraft.building.drafted import Drafted, Rejected
from stepcraft.errors import BadInput
from stepcraft.files import named_path
from stepcraft.journal import LOCK, FolderLock, LineFile, read_lines
from stepcraft.llm.usage import NodeUsage, Usage, add_usage, no_usage

DOCUMENTS = "documents.jsonl"
REPORT = "report.html"
_MEMORY = "memory.json"

How = Literal["added", "present", "merged", "linked", "skipped", "failed", "gone"]


class Placed(TypedDict):
    """What became of a procedure."""

    id: str
    """Its id in the memory; that of the procedure it was merged with or left out for."""
    how: How
    reason: str
    """Why it was not added, or what it was merged with or linked to; "" where it was added."""


class Record(TypedDict):
    """What a document gave."""

    source: str
    title: str
    digest: str
    """Identifies its content; "" where it could not be read."""
    settings: str
    """Identifies the model and the settings that it was built with."""
    spec: str
    """The source that lists it, as it was named."""
    model: str
    began: str
    """When it was begun, as ISO 8601 in UTC."""
    trace: str
    """The id of its root run; "" where no model was asked."""
    error: str
    """Why it is to be built again; "" if it is done."""
    procedures: list[Drafted]
    rejected: list[Rejected]
    warnings: list[str]
    usage: Usage
    seconds: float
    usd: float | None
    """What it cost; None where a price is unknown."""
    placed: list[Placed] | None
    """What became of the procedures, in their order; None before they are in the memory."""
    stale: list[str]
    """The ids of procedures of an earlier version that were marked stale."""


@dataclass(kw_only=True)
class Counts:
    """What documents gave and cost, by their records."""

    procedures: int = 0
    """Procedures that were found."""
    placed: dict[str, int] = field(default_factory=dict[str, int])
    """What became of them: added, present, merged, linked, skipped, failed; gone, if they were removed since."""
    flagged: int = 0
    """Procedures with something that their document does not have."""
    rejected: int = 0
    stale: int = 0
    """Procedures of earlier versions of the documents that were marked stale."""
    usage: Usage = field(default_factory=no_usage)
    usd: float | None = 0.0
    """What it cost; None where a price is unknown."""
    seconds: float = 0.0
    """Of documents that were built side by side."""

    def count(self, record: Record) -> None:
        """Count what became of a document."""
        self.procedures += len(record["procedures"])
        self.rejected += len(record["rejected"])
        self.flagged += sum(bool(one["flagged"]) for one in record["procedures"])
        self.stale += len(record["stale"])
        self.usage = add_usage(self.usage, record["usage"])
        self.usd = None if self.usd is None or record["usd"] is None else self.usd + record["usd"]
        self.seconds += record["seconds"]
        for placed in record["placed"] or ():
            self.placed[placed["how"]] = self.placed.get(placed["how"], 0) + 1


@dataclass(frozen=True, slots=True)
class Known:
    """What a build remembers of a document while it runs."""

    digest: str
    settings: str
    failed: bool
    ids: tuple[str, ...]
    """The procedures that it gave, by their ids in the memory; not those that were left out."""
    usage: NodeUsage
    usd: float | None
    """What it cost; None where a price is unknown."""
    placed: bool
    """Whether its procedures are in the memory."""
    place: tuple[int, int] | None = None
    """Where its record stands in the file, offset and length; None if this process wrote it."""

    @property
    def asked(self) -> bool:
        """Whether a model has answered for it."""
        return self.usage["calls"] > 0 and not self.failed


class BuildDirectory:
    """The directory of the builds of a memory; held by one process at a time.

    Args:
        path: The directory; it is made if it is not there.
        memory: What the memory is called.

    Raises:
        BadInput: It belongs to another memory or to a build that is running, holds other files, or cannot be written.
    """

    def __init__(self, path: Path, memory: str) -> None:
        self.path = named_path(path)
        try:
            self._lock = FolderLock(self.path, "a build is running into")
        except OSError as error:
            raise BadInput(f"{path} cannot be used for a build: {error.strerror}") from error
        try:
            self._claim(memory)
            self._file = LineFile(self.path / DOCUMENTS)
            self.known = self._read()
        except OSError as error:
            self._lock.close()
            raise BadInput(f"{path} cannot be used for a build: {error.strerror}") from error
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        finally:
            self._lock.close()

    @property
    def page(self) -> Path:
        """Where the page that shows the records is written."""
        return self.path / REPORT

    def add(self, record: Record) -> None:
        """Append a record; when this returns, the end of the process loses nothing of it.

        Raises:
            RunStopped: It cannot be written, for example because the disk is full.
        """
        self._file.add(record)
        self.known[record["source"]] = _known(record, None)

    def has_finished(self, source: str) -> bool:
        """Whether a document did not fail, and what it teaches is in the memory."""
        known = self.known.get(source)
        return known is not None and known.placed and not known.failed

    def record(self, source: str) -> Record | None:
        """The record of a document that an earlier process wrote, or None."""
        known = self.known.get(source)
        if known is None or known.place is None:
            return None
        start, length = known.place
        with (self.path / DOCUMENTS).open("rb") as file:
            file.seek(start)
            found: Record = json.loads(file.read(length))
        return found

    def forget_placed(self) -> None:
        """Note of all records that their procedures are not in the memory, so that these are added again.

        Raises:
            BadInput: A record is damaged, or the directory cannot be written.
            RunStopped: It is full.
        """
        new = self.path / f"{DOCUMENTS}.new"
        try:
            new.unlink(missing_ok=True)
            with LineFile(new) as file:
                for record in read_records(self.path):
                    file.add({**record, "placed": None})
            self._file.close()
            try:
                new.replace(self._file.path)
            finally:
                self._file = LineFile(self._file.path)
            self.known = self._read()
        except OSError as error:
            raise BadInput(f"{self.path} cannot be used for a build: {error.strerror}") from error

    def _claim(self, memory: str) -> None:
        file = self.path / _MEMORY
        if file.exists():
            try:
                known = json.loads(file.read_text("utf-8"))["memory"]
            except (ValueError, LookupError, TypeError) as error:
                raise BadInput(f"{file} is damaged; name another directory") from error
            if known != memory:
                raise BadInput(
                    f"{self.path} belongs to builds of {known}, not of {memory}; name another directory"
                )
            return
        new = file.with_suffix(".new")
        others = sorted(one.name for one in self.path.iterdir() if one.name not in {LOCK, new.name})
        if others:
            raise BadInput(
                f"{self.path} holds other files, such as {others[0]!r}; name a directory of its own"
            )
        new.write_text(json.dumps({"memory": memory}) + "\n", encoding="utf-8")
        new.replace(file)

    def _read(self) -> dict[str, Known]:
        known: dict[str, Known] = {}
        start = 0
        with (self.path / DOCUMENTS).open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    record: Record = json.loads(line)
                    known[record["source"]] = _known(record, (start, len(line)))
                except (ValueError, LookupError, TypeError) as error:
                    raise BadInput(
                        f"{self.path / DOCUMENTS}:{number} is damaged: {error}"
                    ) from error
                start += len(line)
        return known


def _known(record: Record, place: tuple[int, int] | None) -> Known:
    placed = record["placed"]
    return Known(
        record["digest"],
        record["settings"],
        bool(record["error"]),
        tuple(one["id"] for one in placed or () if one["how"] not in {"skipped", "failed"}),
        NodeUsage(
            calls=record["usage"]["calls"],
            input_tokens=record["usage"]["input_tokens"],
            output_tokens=record["usage"]["output_tokens"],
        ),
        record["usd"],
        placed is not None,
        place,
    )


def is_build_directory(path: Path) -> bool:
    """Whether a folder holds the records of builds."""
    return (path / _MEMORY).is_file() and (path / DOCUMENTS).is_file()


def read_records(path: Path) -> Iterator[Record]:
    """Yield the last record of each document, in the order in which these were written.

    Raises:
        BadInput: There are none, or a line is damaged.
    """
    try:
        last = {
            record["source"]: number for number, record in enumerate(read_lines(path / DOCUMENTS))
        }
        for number, record in enumerate(read_lines(path / DOCUMENTS)):
            if last[record["source"]] == number:
                yield record
    except OSError as error:
        raise BadInput(f"{path} is no directory of a build: {error.strerror}") from error
