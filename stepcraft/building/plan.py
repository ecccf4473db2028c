"""What a build is going to do, decided from the ledger, the documents and the memory.

Nothing here asks, reads or writes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stepcraft.building.drafted import Content
from stepcraft.building.ledger import How, Record
from stepcraft.building.provenance import (
    Provenance,
    content_of,
    linked,
    merged,
    with_teacher,
)
from stepcraft.llm.usage import Usage, no_usage
from stepcraft.memory.procedure import Procedure


@dataclass(frozen=True)
class Verdict:
    """What a model said of two procedures."""

    same: bool | None
    """Whether they are for the same task; None where no model could say."""
    why: str = ""
    merged: Content | None = None
    """The procedure in place of both; None where they are to be linked."""
    left_out: Sequence[str] = ()
    """Names, options and numbers of the two that the merged one does not have."""
    warnings: Sequence[str] = ()
    usage: Usage = field(default_factory=no_usage)


@dataclass(frozen=True)
class Step:
    """What is to become of a procedure."""

    how: How
    procedure: Procedure
    stored: Procedure | None = None
    """The procedure in the memory that is the same, or for the same task."""
    verdict: Verdict = field(default_factory=lambda: Verdict(same=False))
    verdicts: Sequence[Verdict] = ()
    """All that the model said of the procedure and others."""

    def change(self, current: Procedure) -> Procedure:
        """Return what takes the place of the stored procedure.

        Where another process has changed that one since it was compared, nothing is merged.
        """
        if self.how == "present":
            return with_teacher(current, self.procedure)
        if self.how == "linked":
            return linked(current, self.procedure)
        if self.verdict.merged and self.stored and content_of(current) == content_of(self.stored):
            return merged(current, self.procedure, self.verdict.merged)
        return current


def plan_document(
    record: Record | None, digest: str, identity: str
) -> Literal["read", "place", "leave"]:
    """Return if a document is to be read by a model, its procedures are to be added, or neither.

    Args:
        record: What the ledger has of it.
        digest: Identifies the content of the document as it is now.
        identity: Identifies the models and the settings of this build.
    """
    if not record or record.error:
        return "read"
    if (record.digest, record.identity) != (digest, identity):
        return "read"
    return "leave" if record.done else "place"


def plan_procedure(
    procedure: Procedure,
    stored: Procedure | None,
    rivals: Iterable[Procedure],
    verdicts: Mapping[str, Verdict],
) -> Step | list[Procedure]:
    """Return what is to become of a procedure, or those that it has to be compared with first.

    Args:
        procedure: The procedure of a document.
        stored: The one with its id in the memory.
        rivals: Those like it in the memory, the most alike first.
        verdicts: What a model said of rivals, by `version_of`.
    """
    if stored:
        return Step("present", procedure, stored)
    # A stale one is of an earlier version, and is not merged with what replaces it.
    fresh = [rival for rival in rivals if not Provenance.of(rival).stale]
    for rival in fresh:
        if procedure.id in Provenance.of(rival).also:
            return Step("present", procedure, rival)
    for place, rival in enumerate(fresh):
        verdict = verdicts.get(version_of(rival))
        if verdict is None:
            return [each for each in fresh[place:] if version_of(each) not in verdicts]
        if verdict.same:
            how: How = "merged" if verdict.merged else "linked"
            return Step(how, procedure, rival, verdict, list(verdicts.values()))
    return Step("added", procedure, verdicts=list(verdicts.values()))


def plan_stale(before: Iterable[Procedure], absent: set[str]) -> list[str]:
    """Return the ids of the procedures that a document taught before and no longer does.

    Args:
        before: What it taught before and did not give now.
        absent: The ids of what it gave now that are not in the memory: they may be merged into it.
    """
    return [each.id for each in before if absent.isdisjoint(Provenance.of(each).also)]


def version_of(procedure: Procedure) -> str:
    """Return what identifies a procedure with its content."""
    return json.dumps([procedure.id, content_of(procedure)])
