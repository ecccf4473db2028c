"""Adding built procedures to a memory, and marking those as stale that their documents no longer teach."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from stepcraft.building.directory import Placed
from stepcraft.concurrency import in_thread
from stepcraft.errors import AddReport, MemoryFailure
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.extract.drafted import Drafted

T = TypeVar("T")


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


class Placing:
    """Adds built procedures to a memory; many may be added at the same time, on one event loop.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: ProcedureMemory) -> None:
        self.memory = memory
        self._turn = asyncio.Lock()

    async def place(self, procedure: Procedure) -> Placed:
        """Add a procedure; adding it again is adding it once.

        Where the memory has it, votes, approvals and changes by hand stay, and it is no longer stale.

        Raises:
            MemoryFailure: The memory cannot be read or written, or refuses it.
        """
        async with self._turn:
            existing = await _threaded(lambda: self.memory.get(procedure.id))
            if existing is not None:
                refreshed = _refreshed(existing, procedure.metadata["built"])
                if refreshed != existing:
                    await self._add(refreshed)
                return Placed(id=procedure.id, how="present", reason="")
            report = await self._add(procedure)
        if report.failed:
            return Placed(id=procedure.id, how="failed", reason=report.failed[0].reason)
        return Placed(id=procedure.id, how="added", reason="")

    async def _add(self, procedure: Procedure) -> AddReport:
        return await _threaded(lambda: self.memory.add([procedure]))

    async def mark_stale(self, ids: Iterable[str], source: str, reason: str) -> list[str]:
        """Mark procedures that a document no longer teaches, unless another document teaches them, too.

        Returns:
            The ids of those that were marked.
        """
        marked: list[str] = []
        async with self._turn:
            for name in ids:
                existing = await _threaded(lambda name=name: self.memory.get(name))
                if existing is not None and is_of(existing, source) and not stale_reason(existing):
                    await self._add(as_stale(existing, reason))
                    marked.append(name)
        return marked


def is_of(procedure: Procedure, source: str) -> bool:
    """Whether a procedure was built from a document, and from no other."""
    built = procedure.metadata.get("built") or {}
    return built.get("from") == source and not procedure.metadata.get("also")


def stale_reason(procedure: Procedure) -> str:
    """Why a procedure is stale; "" if it is not."""
    return str(procedure.metadata.get("stale") or "")


def as_stale(procedure: Procedure, reason: str) -> Procedure:
    """The procedure, marked as stale."""
    return replace(procedure, metadata={**procedure.metadata, "stale": reason})


def built_from(memory: ProcedureMemory) -> dict[str, set[str]]:
    """The ids of the procedures that were built from each document."""
    found: dict[str, set[str]] = {}
    for procedure in memory:
        if source := (procedure.metadata.get("built") or {}).get("from"):
            found.setdefault(str(source), set()).add(procedure.id)
    return found


def _refreshed(existing: Procedure, built: Mapping[str, Any]) -> Procedure:
    """A procedure of the memory that a document teaches, too, or again."""
    before = existing.metadata.get("built")
    if not before:  # somebody wrote it by hand
        return existing
    metadata = {name: value for name, value in existing.metadata.items() if name != "stale"}
    if before.get("from") != built["from"]:
        metadata["also"] = list(dict.fromkeys([*metadata.get("also", ()), built["from"]]))
    elif before.get("digest") != built["digest"]:
        metadata["built"] = dict(built)
    return replace(existing, metadata=metadata)


async def _threaded(call: Callable[[], T]) -> T:
    return await asyncio.wrap_future(in_thread(call))
