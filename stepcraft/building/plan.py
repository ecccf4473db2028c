"""What a build is going to do, decided from the ledger, the documents and the memory.

Nothing here asks, reads or writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from stepcraft.building.ledger import How, Record
from stepcraft.building.provenance import (
    Provenance,
    linked,
    merged,
    with_teacher,
)
from stepcraft.llm.usage import Usage, no_usage
from stepcraft.memory.history import same_text
from stepcraft.memory.procedure import Content, Procedure


@dataclass(frozen=True)
class Verdict:
    """What a model said of two procedures."""

    same: bool | None
    """Whether they are for the same task; None where no model could say."""
    why: str = ""
    merged: Content | None = None
    """The procedure in place of both; None where they are to be linked."""
    warnings: Sequence[str] = ()
    usage: Usage = field(default_factory=no_usage)


Verdicts: TypeAlias = dict[tuple[object, ...], Verdict]
"""What a model said of procedures, by `version_of`."""


@dataclass(frozen=True)
class Step:
    """What is to become of a procedure."""

    how: How
    procedure: Procedure
    """With the link, if it is linked."""
    stored: Procedure | None = None
    """The procedure in the memory that is the same, or for the same task."""
    verdict: Verdict = Verdict(same=False)
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
        if self.verdict.merged and self.stored and same_text(current, self.stored):
            return merged(current, self.procedure, self.verdict.merged)
        return current


def is_read(record: Record, digest: str, identity: str) -> bool:
    """Tell whether a model has read a document, so that it need not be asked again.

    Args:
        record: What the ledger has of the document.
        digest: Identifies the content of the document as it is now.
        identity: Identifies the models and the settings of this build.
    """
    return not record.error and (record.digest, record.identity) == (digest, identity)


def plan_procedure(
    procedure: Procedure,
    stored: Procedure | None,
    rivals: Sequence[Procedure],
    verdicts: Verdicts,
) -> Step | list[Procedure]:
    """Return what is to become of a procedure, or those that it has to be compared with first.

    Args:
        procedure: The procedure of a document.
        stored: The one with its id in the memory.
        rivals: Those like it in the memory, the most alike first.
        verdicts: What a model said of it and rivals.
    """
    if stored:
        return Step("present", procedure, stored)
    for rival in rivals:
        if procedure.id in Provenance.of(rival).also:
            return Step("present", procedure, rival)
    for place, rival in enumerate(rivals):
        verdict = verdicts.get(version_of(rival))
        if verdict is None:
            return [each for each in rivals[place:] if version_of(each) not in verdicts]
        if verdict.same:
            how: How = "merged" if verdict.merged else "linked"
            result = procedure if verdict.merged else linked(procedure, rival)
            return Step(how, result, rival, verdict, [*verdicts.values()])
    return Step("added", procedure, verdicts=[*verdicts.values()])


def version_of(procedure: Procedure) -> tuple[object, ...]:
    """Return what identifies a procedure with its content."""
    return procedure.id, procedure.output, procedure.input, procedure.steps
