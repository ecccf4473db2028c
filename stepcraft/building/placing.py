"""Built procedures as a memory holds them: which documents teach them, and whether they are stale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from stepcraft.building.drafted import Drafted
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory

_DOCUMENT = ("from", "digest", "spec")
"""What `built` says of a document."""


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
        metadata={
            "built": {name: value for name, value in facts.items() if value not in (None, "", [])}
        },
    )


def built_of(procedure: Procedure) -> Mapping[str, Any]:
    """How a procedure was built; empty for one that was not built from a document."""
    built = procedure.metadata.get("built")
    return cast("Mapping[str, Any]", built) if isinstance(built, Mapping) else {}


def teachers_of(procedure: Procedure) -> list[Mapping[str, str]]:
    """The documents that teach a procedure: `from`, `digest`, `spec` and, for the place in the document, `source`.

    The first one is that which it was built from, the others are those of what was merged into it. Of a procedure that a person
    wrote no more than its source is known.
    """
    built = built_of(procedure)
    known = {name: str(built[name]) for name in _DOCUMENT if built.get(name)}
    own = {"from": procedure.source, **known, "source": procedure.source}
    others = built.get("others")
    listed = cast("list[object]", others) if isinstance(others, list) else []
    return [
        own,
        *(
            cast("Mapping[str, str]", one)
            for one in listed
            if isinstance(one, dict) and "from" in one
        ),
    ]


def taught_by(procedure: Procedure, documents: Sequence[Mapping[str, str]]) -> Procedure:
    """The built procedure with the documents that teach it, as `teachers_of` gives them."""
    known: dict[str, Mapping[str, str]] = {}
    for document in documents:
        known.setdefault(document["from"], document)
    first, *others = known.values()
    facts = {
        name: value
        for name, value in built_of(procedure).items()
        if name not in {*_DOCUMENT, "others"}
    }
    built = {name: first[name] for name in _DOCUMENT if first.get(name)} | facts
    if others:
        built["others"] = others
    metadata = {**procedure.metadata, "built": built}
    return replace(procedure, source=first.get("source", ""), metadata=metadata)


def taught_too(procedure: Procedure, document: Mapping[str, str]) -> Procedure:
    """The procedure with another document that teaches it; unchanged if it was not built."""
    if not built_of(procedure):
        return procedure
    first, *others = teachers_of(procedure)
    if first["from"] == document["from"]:
        return taught_by(procedure, [{**document, "source": first["source"]}, *others])
    return taught_by(procedure, [first, document, *others])


def links_of(procedure: Procedure) -> list[str]:
    """The ids and sources of the duplicates of a procedure: those that were merged into it, and those that it is linked to."""
    also = procedure.metadata.get("also")
    return [str(name) for name in cast("list[object]", also)] if isinstance(also, list) else []


@dataclass
class Before:
    """What a memory held when a build began."""

    by_document: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The ids of the procedures that each document taught."""
    ids: set[str] = field(default_factory=set[str])
    """The ids of all procedures."""
    linked: set[str] = field(default_factory=set[str])
    """The ids of those that were merged into them, or that they are linked to, among other names."""
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
            found.ids.add(procedure.id)
            found.linked.update(links_of(procedure))
            for document in teachers_of(procedure) if built_of(procedure) else ():
                found.by_document.setdefault(document["from"], set()).add(procedure.id)
            if procedure.metadata.get("stale"):
                found.stale.add(procedure.id)
        return found

    def has(self, name: str) -> bool:
        """Whether a procedure is there by its id, or was merged into one that is there."""
        return name in self.ids or name in self.linked


def as_stale(procedure: Procedure, reason: str) -> Procedure | None:
    """The procedure, marked as stale; None if it is marked already."""
    if procedure.metadata.get("stale"):
        return None
    return replace(procedure, metadata={**procedure.metadata, "stale": reason})


def as_untaught(procedure: Procedure, document: str, reason: str) -> Procedure | None:
    """The procedure as the documents teach it that are left without one; as `as_stale` if none is left."""
    left = [one for one in teachers_of(procedure) if one["from"] != document]
    return taught_by(procedure, left) if left else as_stale(procedure, reason)
