"""Compare a memory with the documents that it was built from: what is gone, what has changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from stepcraft.building.documents import Listing, key_of, read_all
from stepcraft.building.duplicates import changed_in
from stepcraft.building.provenance import Provenance, Teacher, marked
from stepcraft.building.sources import Source, list_documents
from stepcraft.errors import Failed
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory

_ENDS = (" is gone", " has changed since it was built")
"""How the marks of a check end, by which they are told from those of a build."""


@dataclass
class Staleness:
    """How the procedures of a memory stand to documents."""

    current: int = 0
    """Procedures whose document is as it was when they were built."""
    others: int = 0
    """Procedures that were not built from these sources."""
    stale: list[tuple[Procedure, str]] = field(default_factory=list)
    """Procedures whose document is gone or has changed, or no longer teaches them, and why."""
    failed: list[Failed] = field(default_factory=list)
    """Documents that cannot be read, about whose procedures nothing is known."""
    marked: int = 0
    """Procedures that were marked now, or lost a mark that no longer holds."""


def check_documents(
    memory: ProcedureMemory, sources: Sequence[Source], *, mark: bool = False
) -> Staleness:
    """Find the procedures whose documents are gone or have changed.

    A document of a page that cannot be fetched is not gone.

    Args:
        memory: The memory.
        sources: The sources that it was built from, as in `build_memory`.
        mark: Whether these procedures are marked as stale in the memory, and the marks of earlier
            checks are taken away where the document is as it was.

    Raises:
        BadInput: A source cannot be used.
        SourceFailure: A source cannot be opened.
        MemoryFailure: The memory cannot be read, or with `mark` not be written.
    """
    listing = list_documents(sources)
    result = Staleness(failed=listing.failed)
    digests = {listed.key: document.digest for listed, document in read_all(listing)}
    unread = tuple(key_of(failed.where) for failed in result.failed)

    def reason(teacher: Teacher) -> str:
        """Return what became of a document; "" if it is as it was, or nothing is known of it."""
        key = key_of(teacher.document)
        if not _covers(listing, teacher) or key.startswith(unread):
            return ""
        end = _ENDS[key in digests]
        return "" if digests.get(key) == teacher.digest else teacher.document + end

    for procedure in [*memory]:
        provenance = Provenance.of(procedure)
        if not any(_covers(listing, teacher) for teacher in provenance.teachers):
            result.others += 1
            continue
        stale = "" if provenance.stale.endswith(_ENDS) else provenance.stale
        reasons = [*map(reason, provenance.teachers)]
        stale = stale or (reasons[0] if all(reasons) else "")
        result.stale += [(procedure, stale)] if stale else []
        result.current += not stale
        if mark and stale != provenance.stale:
            changed_in(memory, procedure.id, partial(marked, stale=stale))
            result.marked += 1
    return result


def _covers(listing: Listing, teacher: Teacher) -> bool:
    """Return whether a document is one that these sources have or had."""
    path = Path(key_of(teacher.document))
    is_below = any(path.is_relative_to(root) for root in listing.roots)
    return bool(teacher.digest) and (is_below or teacher.spec in listing.specs)
