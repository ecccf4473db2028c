"""Built procedures as a memory holds them: what they were built from, and whether they are stale."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from stepcraft.memory.procedure import Procedure
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


def ids_by_document(memory: ProcedureMemory) -> dict[str, set[str]]:
    """The ids of the procedures that were built from each document.

    Raises:
        MemoryFailure: The memory cannot be read.
    """
    found: dict[str, set[str]] = {}
    for procedure in memory:
        if source := built_of(procedure).get("from"):
            found.setdefault(str(source), set()).add(procedure.id)
    return found


def as_stale(procedure: Procedure, reason: str) -> Procedure | None:
    """The procedure, marked as stale; None if it is marked already, or other documents teach it, too."""
    if procedure.metadata.get("stale") or procedure.metadata.get("also"):
        return None
    return replace(procedure, metadata={**procedure.metadata, "stale": reason})
