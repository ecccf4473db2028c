"""Shared code for adding procedures to memories."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from langchain_core.utils.iter import batch_iterate

from stepcraft.concurrency import shared_lock
from stepcraft.errors import AddReport, AddStopped, Failed, MemoryFailure
from stepcraft.memory.history import MARKS, same_text, with_versions
from stepcraft.memory.outcomes import has_expired
from stepcraft.memory.procedure import Procedure, standard_id
from stepcraft.memory.protocol import ProcedureMemory

_OF_TEXT = (*MARKS, "provenance")
"""Metadata about a procedure's text, which a procedure with the same key and text inherits."""


def replacement(stored: Procedure, added: Procedure) -> Procedure:
    """Return the procedure to store when `added` has the id of a stored one.

    This is the added procedure with the outcomes of both combined, and with the key and the earlier
    versions kept. If the text is unchanged, the metadata that builds and people recorded about it
    is kept as well. If `added` also has no key, the source, the tags, a future expiry and any other
    metadata that it leaves out are kept, too; with a key, it replaces them.
    """
    kept: dict[str, Any] = {
        # The higher count, so that importing an export again counts nothing twice.
        "outcomes": stored.outcomes.together(added.outcomes, max),
        "key": added.key or stored.key,  # an id derived from a key stands only for that key
    }
    if same_text(stored, added):
        names = stored.metadata.keys() & _OF_TEXT if added.key else stored.metadata
        kept["metadata"] = {name: stored.metadata[name] for name in names} | {**added.metadata}
        if not added.key:
            kept["source"] = added.source or stored.source
            kept["tags"] = added.tags or stored.tags
            kept["expires"] = added.expires or ("" if has_expired(stored) else stored.expires)
    if any(getattr(added, name) != value for name, value in kept.items()):
        added = replace(added, **kept)
    return with_versions(stored, added)


class BatchedMemory(ProcedureMemory):
    """A memory to which procedures are added in batches."""

    batch: int
    """The number of procedures stored at once."""

    @abstractmethod
    def _put(self, procedures: list[Procedure]) -> AddReport:
        """Add a batch, all or nothing."""

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Add procedures in batches; those reported to `progress` survive a crash.

        Raises:
            ReadOnlyMemory: The memory cannot be changed.
            AddStopped: A batch failed after others were stored. Adding the procedures again stores
                the rest, and also restores any that a killed server accepted but lost.
            MemoryFailure: The first batch failed.
        """
        report, done = AddReport(), 0
        try:
            for batch in batch_iterate(self.batch, procedures):
                report.include(self._put(batch))
                done += len(batch)
                if progress:
                    progress(done)
        except MemoryFailure as error:
            if not done:
                raise
            raise AddStopped(str(error), report, done) from error
        return report


class ServedMemory(BatchedMemory):
    """A memory on a server, in which only one thread at a time replaces stored procedures."""

    @abstractmethod
    def _stored(self, ids: Iterable[str]) -> Mapping[str, Procedure]:
        """Return the procedures with these ids, by id."""

    @abstractmethod
    def _write(
        self, procedures: Mapping[str, Procedure], stored: Mapping[str, Procedure]
    ) -> list[Failed]:
        """Write procedures, replacing those stored, and return those that were refused."""

    def _damaged(self, stored: Mapping[str, Procedure]) -> Collection[str]:  # noqa: ARG002
        """Return the ids of unchanged procedures that must nevertheless be written again."""
        return ()

    def _exclusively(self) -> AbstractContextManager[object]:
        """Prevent concurrent changes to stored procedures. Adding new ones needs no lock."""
        return shared_lock(("changing", self.name))

    def _update_stored(
        self, id: str, new_version: Callable[[Procedure | None], Procedure]
    ) -> Procedure:
        id_ = standard_id(id)
        with self._exclusively():
            stored = self._stored([id_])
            procedure = new_version(stored.get(id_))
            for failure in self._write({id_: procedure}, stored):
                raise MemoryFailure(f"{id} was not changed: {failure.reason}")
        return procedure

    def get(self, id: str) -> Procedure | None:
        """Return the procedure with this id, or None."""
        id_ = standard_id(id)
        return self._stored([id_]).get(id_)

    def get_many(self, ids: Iterable[str]) -> dict[str, Procedure]:
        """Return the procedures with these ids, by id, with one request for a batch."""
        found = map(self._stored, batch_iterate(self.batch, map(standard_id, ids)))
        return {id_: procedure for stored in found for id_, procedure in stored.items()}

    def _put(self, procedures: list[Procedure]) -> AddReport:
        new: dict[str, Procedure] = {}
        changed = 0
        for each in procedures:
            before = new.get(each.id)
            new[each.id] = replacement(before, each) if before else each
            changed += bool(before) and new[each.id] != before
        stored = self._stored(new)
        with self._exclusively() if stored else nullcontext():
            # A procedure that is replaced may have changed since it was read.
            stored = stored and self._stored(new)
            new |= {id_: replacement(before, new[id_]) for id_, before in stored.items()}
            damaged = self._damaged(stored)
            new = {
                id_: item for id_, item in new.items() if stored.get(id_) != item or id_ in damaged
            }
            refused = self._write(new, stored)
        updated = len((new.keys() & stored.keys()) - {failure.where for failure in refused})
        added = len(new) - len(refused) - updated
        present = len(procedures) - len(new) - changed
        return AddReport(added, present, updated + changed, refused)
