"""Compare a memory with the documents that it was built from: what they no longer have, and what has changed since."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from stepcraft.building.documents import Listed, Listing, Unreadable
from stepcraft.building.placing import as_stale, built_of, teachers_of
from stepcraft.building.sources import Source, list_documents
from stepcraft.errors import BadInput, Failed, SourceFailure
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory


@dataclass
class Staleness:
    """How the procedures of a memory stand to documents."""

    current: int = 0
    """Procedures whose document is as it was when they were built."""
    others: int = 0
    """Procedures that were not built from these sources."""
    stale: list[tuple[Procedure, str]] = field(default_factory=list[tuple[Procedure, str]])
    """Procedures whose document is gone or has changed, or that are marked already, and why."""
    failed: list[Failed] = field(default_factory=list[Failed])
    """Documents that cannot be read, about whose procedures nothing is known."""
    marked: int = 0
    """Procedures that were marked now."""


def check_documents(
    memory: ProcedureMemory, sources: Sequence[Source], *, mark: bool = False
) -> Staleness:
    """Find the procedures whose documents are gone or have changed. A document of a page that cannot be fetched is not gone.

    Args:
        memory: The memory.
        sources: The sources that it was built from, as in `build_memory`.
        mark: Whether these procedures are marked as stale in the memory. A build of the changed document takes the mark
            away from those that it still teaches.

    Raises:
        BadInput: A source cannot be used.
        SourceFailure: A source cannot be opened.
        MemoryFailure: The memory cannot be read, or with `mark` not be written.
    """
    listing = list_documents(sources)
    documents = _Documents(listing)
    found = Staleness(failed=documents.failed)
    for procedure in memory:
        if not documents.cover(built_of(procedure)):
            found.others += 1
        elif reason := documents.reason(procedure):
            found.stale.append((procedure, reason))
        else:
            found.current += 1
    for procedure, reason in found.stale if mark else ():
        if not as_stale(procedure, reason):
            continue
        with suppress(BadInput):  # somebody removed it meanwhile
            memory.update(procedure.id, partial(_marked, reason=reason))
            found.marked += 1
    return found


class _Documents:
    """The documents of some sources, each read once procedures are there that were built from it."""

    def __init__(self, listing: Listing) -> None:
        self.failed = list(listing.failed)
        self._specs = listing.specs
        self._roots = listing.roots
        self._listed = {_key(listed.source): listed for listed in listing.documents}
        self._unlisted = tuple(_key(failed.where) for failed in listing.failed)
        self._digests: dict[str, str | None] = {}

    def cover(self, built: Mapping[str, Any]) -> bool:
        """Whether a procedure was built from one of the sources."""
        return bool(built.get("from")) and (
            built.get("spec") in self._specs or self._is_below(_key(str(built["from"])))
        )

    def _is_below(self, key: str) -> bool:
        place = Path(key)
        return any(place == root.real or place.is_relative_to(root.real) for root in self._roots)

    def reason(self, procedure: Procedure) -> str:
        """Why a procedure that they cover is stale; "" if it is not, or nothing is known of its document."""
        if known := procedure.metadata.get("stale"):
            return str(known)
        first, *others = teachers_of(procedure)
        reason = self._missing(first)
        return reason if reason and all(map(self._missing, others)) else ""

    def _missing(self, document: Mapping[str, str]) -> str:
        """What has become of a document that taught a procedure; "" if it is as it was, or nothing is known of it."""
        name = document["from"]
        key = _key(name)
        if not self.cover(document):
            return ""
        if key not in self._listed:
            return "" if key.startswith(self._unlisted) else f"{name} is gone"
        if key not in self._digests:
            self._digests[key] = self._digest(self._listed[key])
        changed = self._digests[key] not in {None, document.get("digest")}
        return f"{name} has changed since it was built" if changed else ""

    def _digest(self, listed: Listed) -> str | None:
        try:
            return listed.read().digest
        except (Unreadable, SourceFailure) as error:
            self.failed.append(Failed(listed.source, str(error)))
            return None


def _marked(procedure: Procedure, reason: str) -> Procedure:
    return as_stale(procedure, reason) or procedure


def _key(source: str) -> str:
    """What identifies a document: for a file its real path, however it was named."""
    if "://" in source:
        return source
    try:
        return str(Path(source).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):
        return source
