"""Three LangGraph state graphs that make long, knowledge-heavy answers correct by working on them step by step."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepcraft.errors import (
        AddStopped,
        BadInput,
        MemoryFailure,
        ModelFailure,
        ModelUnknown,
        NoAnswer,
        ReadOnlyMemory,
        StepcraftError,
        UnreadableReply,
    )
    from stepcraft.graphs.aag import AagContext, build_aag
    from stepcraft.memory.procedure import Procedure, compose
    from stepcraft.memory.store import AddReport, Found, ProcedureMemory, open_memory

_HOME = {
    "AagContext": "graphs.aag",
    "AddReport": "memory.store",
    "AddStopped": "errors",
    "BadInput": "errors",
    "Found": "memory.store",
    "MemoryFailure": "errors",
    "ModelFailure": "errors",
    "ModelUnknown": "errors",
    "NoAnswer": "errors",
    "Procedure": "memory.procedure",
    "ProcedureMemory": "memory.store",
    "ReadOnlyMemory": "errors",
    "StepcraftError": "errors",
    "UnreadableReply": "errors",
    "build_aag": "graphs.aag",
    "compose": "memory.procedure",
    "open_memory": "memory.store",
}

__all__ = [
    "AagContext",
    "AddReport",
    "AddStopped",
    "BadInput",
    "Found",
    "MemoryFailure",
    "ModelFailure",
    "ModelUnknown",
    "NoAnswer",
    "Procedure",
    "ProcedureMemory",
    "ReadOnlyMemory",
    "StepcraftError",
    "UnreadableReply",
    "build_aag",
    "compose",
    "open_memory",
]


def __getattr__(name: str) -> object:
    """Loads a public name when it is first used: importing the package alone loads no LangGraph."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
