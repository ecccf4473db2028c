"""Handle changes since the last build: moved or deleted files, and tasks no longer taught."""

from dataclasses import replace
from functools import partial
from itertools import filterfalse
from pathlib import Path

from stepcraft.building.documents import Listing
from stepcraft.building.drafted import Drafted
from stepcraft.building.duplicates import changed_in, nearest_alike
from stepcraft.building.ledger import Ledger, Record
from stepcraft.building.provenance import Provenance, Teacher, with_moved, without_document
from stepcraft.memory.history import content_of
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory


def catch_up(listing: Listing, ledger: Ledger, memory: ProcedureMemory) -> tuple[int, list[str]]:
    """Update the ledger and memory to match a listing.

    Procedures taught only by deleted files become stale; if such a file comes back, they are
    placed again. Other documents that are not listed are left alone, because their state is
    unknown.

    Returns:
        The number of procedures that become stale, and warnings.
    """
    warnings: list[str] = []
    ids = ledger.latest_placed(20)
    # A memory that has none of the latest procedures, although they were not deleted from it, is a
    # different one with the same name. Procedures that somebody removed are still not added again.
    if not (any(map(memory.get, ids)) or all(map(memory.has_deleted, ids))):
        ledger.place_again()
        warnings.append(
            f"{memory.name} has none of the procedures that were added last, so all are added "
            "again, even if they were removed since"
        )
    moved = _follow_listed(listing, ledger, memory)
    stale, listed = 0, {each.key for each in listing.documents}
    for key in ledger.keys() - listed:
        record = ledger.get(key)
        if not (record and record.root):
            continue
        root = moved.get(record.root, record.root)
        path = Path(root, key)
        if root != record.root:
            record = _followed(record, str(path), root, memory)
            ledger.put(key, record)
        is_below = any(map(path.is_relative_to, listing.roots))
        is_unread = any(map(path.is_relative_to, listing.unread))
        is_gone = is_below and not (is_unread or path.exists())
        if is_gone and (record.done or record.taught):
            record.removed |= removed_by_people(record, memory)
            record.taught = record.taught_so_far()
            stale += mark_stale(record, set(), memory)
            record.done, record.taught = False, []
            ledger.put(key, record)
    return stale, warnings


def _follow_listed(listing: Listing, ledger: Ledger, memory: ProcedureMemory) -> dict[str, str]:
    """Update the records of listed files that were moved, or that the sources now name differently.

    If two files have the same path relative to their folders, the key of the later one is its full
    path.

    Returns:
        The folder that each earlier folder was moved to.
    """
    moved: dict[str, str] = {}
    keys = ledger.keys()
    for place, listed in enumerate(listing.documents):
        if not listed.root:
            record = ledger.get(listed.key)
            if record and not record.root and record.source != listed.source:
                ledger.put(listed.key, _followed(record, listed.source, "", memory))
            continue
        path = Path(listed.root, listed.key)
        key = str(path) if str(path) in keys else listed.key
        record = ledger.get(key)
        before = Path(record.root, key) if record else path
        if before != path and before.exists():  # it is the record of the other file
            key, record = str(path), None
        listing.documents[place] = replace(listed, key=key)
        if record and (before, record.source) != (path, listed.source):
            moved[record.root] = listed.root
            ledger.put(key, _followed(record, listed.source, listed.root, memory))
    return moved


def _followed(record: Record, source: str, root: str, memory: ProcedureMemory) -> Record:
    """Return a moved document's record, and give its procedures in the memory its new name."""
    change = partial(with_moved, before=record.source, now=source)
    for id_ in {*record.taught_so_far()} if record.source != source else ():
        changed_in(memory, id_, change)
    return record.moved(source, root)


def mark_stale(record: Record, ids: set[str], memory: ProcedureMemory) -> int:
    """Update procedures that a document no longer teaches; return how many become stale.

    The record gets a warning for each of them that a person has approved.

    Args:
        record: The record of the document.
        ids: The ids of the procedures that it teaches now.
        memory: The memory.
    """
    stale = 0
    absent = {*filterfalse(memory.get, ids)}  # possibly merged into earlier ones
    change = partial(without_document, document=record.source)
    for id_ in {*record.taught} - ids:
        stored = memory.get(id_)
        before = Provenance.of(stored) if stored else None
        if before and not before.stale and absent.isdisjoint(before.also):
            now = changed_in(memory, id_, change)
            if now and Provenance.of(now).stale:
                stale += 1
                if now.metadata.get("approved"):
                    record.warnings.append(
                        f"{record.source} no longer teaches {now.output!r} ({id_}), which a "
                        "person approved; compare it with what the document teaches now"
                    )
    return stale


def removed_by_people(record: Record, memory: ProcedureMemory) -> dict[str, str]:
    """Return the procedures that someone removed from the memory, for the record's `removed`."""
    removed: dict[str, str] = {}
    is_placed = record.done or record.error  # what could be read of it
    for draft, placed in zip(record.procedures, record.placed, strict=False):
        if is_placed and placed.how != "removed" and not memory.get(placed.id):
            rivals = map(Provenance.of, nearest_alike(memory, drafted_procedure(record, draft)))
            # If it was merged into one of these, that names the document; if linked, it does not.
            if not any(
                placed.id in rival.also and rival.others(record.source) != rival.teachers
                for rival in rivals
            ):
                removed[placed.id] = f"{draft['source']}\n{draft['output']}"
    return removed


def removed_as(record: Record, draft: Drafted, id_: str) -> list[str]:
    """Return the removed ids that match a draft: its own, and those of earlier text.

    Earlier text is recognised by its place in the document and, if the place is shared, its output.
    """
    place = draft["source"]
    is_alone = [each["source"] for each in record.procedures].count(place) == 1
    return [
        removed
        for removed, before in record.removed.items()
        if removed == id_
        or before == f"{place}\n{draft['output']}"
        or (is_alone and before.partition("\n")[0] == place)
    ]


def drafted_procedure(record: Record, draft: Drafted) -> Procedure:
    """Return the procedure that a document teaches."""
    provenance = Provenance(
        teachers=(Teacher(record.source, draft["source"]),),
        model=record.model,
        flagged=tuple(name for flagged in draft["flagged"] for name in flagged["names"]),
    )
    return provenance.on(Procedure.from_dict(content_of(draft)))
