"""Built procedures as a memory holds them: what they were built from, and whether they are stale."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from stepcraft.memory.procedure import Procedure, is_uuid
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.extract.drafted import Drafted


def procedure_of(drafted: Drafted, built: Mapping[str, Any]) -> Procedure:
    """The procedure that a document teaches.

    Args:
        drafted: What was found.
        built: How it was built: `from`, `digest`, `spec`, `model`, `at`.

    Raises:
        BadInput: It has no output, input or steps, or is too long.
    """
    facts = {
        **built,
        "heading": drafted["heading"],
        "flagged": drafted["flagged"],
        "verified": drafted["verified"],
        "missing": drafted["missing"],
    }
    return Procedure(
        input=drafted["input"],
        output=drafted["output"],
        steps=tuple(drafted["steps"]),
        source=drafted["source"],
        metadata={"built": {name: value for name, value in facts.items() if value not in (None, "", [])}},
    )


def built_of(procedure: Procedure) -> Mapping[str, Any]:
    """How a procedure was built; empty for one that was not built from a document."""
    built = procedure.metadata.get("built")
    return cast("Mapping[str, Any]", built) if isinstance(built, Mapping) else {}


@dataclass
class Before:
    """What a memory held when a build began."""

    by_document: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The ids of the procedures that were built from each document."""
    stale: set[str] = field(default_factory=set[str])
    """The ids of those that are marked as stale."""

    @classmethod
    def of(cls, memory: ProcedureMemory) -> "Before":
        """Read a memory.

        Raises:
            MemoryFailure: It cannot be read.
        """
        found = cls()
        for procedure in memory:
            if source := built_of(procedure).get("from"):
                found.by_document.setdefault(str(source), set()).add(procedure.id)
            if procedure.metadata.get("stale"):
                found.stale.add(procedure.id)
        return found


def as_current(procedure: Procedure) -> Procedure:
    """The procedure without a mark that it is stale."""
    return replace(
        procedure, metadata={name: value for name, value in procedure.metadata.items() if name != "stale"}
    )


def other_documents(procedure: Procedure) -> list[str]:
    """The documents that teach a procedure beside the one that it was built from: the sources of what was merged into it."""
    own, also = str(built_of(procedure).get("from")), procedure.metadata.get("also")
    names = [str(name) for name in cast("list[object]", also)] if isinstance(also, list) else []
    sources = [name for name in names if not is_uuid(name)]
    return [name for name in sources if name != own and not name.startswith(f"{own}#")]


def as_stale(procedure: Procedure, reason: str) -> Procedure | None:
    """The procedure, marked as stale; None if it is marked already."""
    if procedure.metadata.get("stale"):
        return None
    return replace(procedure, metadata={**procedure.metadata, "stale": reason})


def as_untaught(procedure: Procedure, reason: str) -> Procedure | None:
    """As `as_stale`, unless another document teaches it, too."""
    return None if other_documents(procedure) else as_stale(procedure, reason)
