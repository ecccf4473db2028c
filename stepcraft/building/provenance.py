"""Provenance of a procedure: which documents teach it, how it was built, whether it is stale."""

import operator
from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from stepcraft.building.documents import key_of
from stepcraft.memory.history import content_of, same_text, with_text, with_versions
from stepcraft.memory.procedure import Content, Procedure


@dataclass(frozen=True)
class Teacher:
    """A document that teaches a procedure."""

    document: str
    """Its source, such as a path or a URL; for a procedure written by a person, the source of the
    procedure itself.
    """
    place: str
    """The document's source with the heading as its fragment."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The contents of a procedure's `metadata["provenance"]` and `metadata["stale"]`."""

    teachers: tuple[Teacher, ...] = ()
    """The documents that teach it, starting with the one whose wording it uses; never empty."""
    model: str = ""
    flagged: tuple[str, ...] = ()
    """Names, calls, options and numbers in its steps that are not in the document."""
    also: tuple[str, ...] = ()
    """The ids of procedures for the same task, whether merged into it or linked to it."""
    stale: str = ""
    """Why it may no longer be valid, or "" if it is still valid."""

    @classmethod
    def of(cls, procedure: Procedure) -> "Provenance":
        """Return the provenance of a procedure."""
        result = _stored(procedure) or cls(teachers=(Teacher(procedure.source, procedure.source),))
        return replace(result, stale=procedure.metadata.get("stale") or "")

    def others(self, document: str) -> tuple[Teacher, ...]:
        """Return the teachers other than this document."""
        key = key_of(document)
        return tuple(each for each in self.teachers if key_of(each.document) != key)

    def on(self, procedure: Procedure) -> Procedure:
        """Return a copy of the procedure with this provenance.

        What others stored under its name goes into `metadata["provenance (2)"]`.
        """
        values = _ADAPTER.dump_python(self, mode="json", exclude_defaults=True, exclude={"stale"})
        metadata = {**procedure.metadata, "provenance": values, "stale": self.stale}
        if (other := procedure.metadata.get("provenance")) and not _stored(procedure):
            metadata["provenance (2)"] = other
        if not self.stale:
            del metadata["stale"]  # searches check for its presence
        return replace(procedure, source=self.teachers[0].place, metadata=metadata)


_ADAPTER = TypeAdapter(Provenance)


def _stored(procedure: Procedure) -> Provenance | None:
    """Return the provenance in the metadata, or None if it is missing or is other data."""
    try:
        stored = _ADAPTER.validate_python(procedure.metadata.get("provenance", {}))
    except ValidationError:
        return None
    return stored if stored.teachers else None


def with_teacher(stored: Procedure, taught: Procedure) -> Procedure:
    """Return the stored procedure with a document added to its teachers, and no longer stale."""
    before, now = Provenance.of(stored), Provenance.of(taught)
    others = () if before.stale else before.others(now.teachers[0].document)
    if others[:1] == before.teachers[:1]:  # it keeps the wording of its first document
        return replace(before, teachers=others + now.teachers).on(stored)
    facts = now if same_text(stored, taught) else before
    return replace(facts, teachers=now.teachers + others, also=before.also, stale="").on(stored)


def without_document(procedure: Procedure, document: str) -> Procedure:
    """Return the procedure with this teacher removed, or marked stale if it has no other."""
    before = Provenance.of(procedure)
    if others := before.others(document):
        return replace(before, teachers=others).on(procedure)
    stale = before.stale or f"{document} no longer teaches it"
    return replace(before, stale=stale).on(procedure)


def with_moved(procedure: Procedure, before: str, now: str) -> Procedure:
    """Return the procedure with the new source of a document that teaches it."""
    provenance, key = Provenance.of(procedure), key_of(before)
    teachers = tuple(
        Teacher(now, now + each.place.removeprefix(each.document))
        if key_of(each.document) == key
        else each
        for each in provenance.teachers
    )
    return replace(provenance, teachers=teachers).on(procedure)


def linked(procedure: Procedure, other: Procedure) -> Procedure:
    """Return the procedure with a link to another procedure for the same task."""
    before = Provenance.of(procedure)
    return replace(before, also=(*before.also, other.id)).on(procedure)


def merged(kept: Procedure, other: Procedure, content: Content) -> Procedure:
    """Return the procedure that replaces both, under the id of the kept one.

    It has the documents, the metadata, the outcomes and the earlier versions of both, including
    the other's text.
    """
    first, second = Provenance.of(kept), Provenance.of(other)
    provenance = replace(
        first,
        teachers=first.teachers + second.teachers,
        flagged=first.flagged + second.flagged,
        also=(*first.also, *second.also, other.id),
    )
    both = replace(
        with_text(kept, content),
        tags={**other.tags, **kept.tags},
        metadata={**other.metadata, **kept.metadata},
        outcomes=kept.outcomes.together(other.outcomes, operator.add),
    )
    if content_of(other) == content:
        both = with_versions(both, replace(both, versions=other.versions))
    else:
        both = with_versions(other, both)
        if content_of(kept) == content:  # an undo must not put the other's text in its place
            merged_in = with_versions(kept, with_text(both, other))
            both = replace(both, versions=merged_in.versions)
    return provenance.on(both)
