"""Three LangGraph state graphs that make long, knowledge-heavy answers correct by working on them step by step."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepcraft.errors import (
        AddReport,
        AddStopped,
        BadInput,
        FetchFailed,
        FetchRefused,
        MemoryFailure,
        ModelFailure,
        ModelUnknown,
        NoAnswer,
        ReadOnlyMemory,
        SourceFailure,
        StepcraftError,
        UnreadableReply,
    )
    from stepcraft.graphs.aag import AagContext, build_aag
    from stepcraft.graphs.rat import RatContext, build_rat
    from stepcraft.graphs.registry import get_graph
    from stepcraft.graphs.rpg import RpgContext, build_rpg
    from stepcraft.memory.open import open_memory
    from stepcraft.memory.procedure import Procedure, compose
    from stepcraft.memory.protocol import Found, ProcedureMemory
    from stepcraft.sources.open import open_source

_HOME = {
    "AagContext": "graphs.aag",
    "AddReport": "errors",
    "AddStopped": "errors",
    "BadInput": "errors",
    "FetchFailed": "errors",
    "FetchRefused": "errors",
    "Found": "memory.protocol",
    "MemoryFailure": "errors",
    "ModelFailure": "errors",
    "ModelUnknown": "errors",
    "NoAnswer": "errors",
    "Procedure": "memory.procedure",
    "ProcedureMemory": "memory.protocol",
    "RatContext": "graphs.rat",
    "ReadOnlyMemory": "errors",
    "RpgContext": "graphs.rpg",
    "SourceFailure": "errors",
    "StepcraftError": "errors",
    "UnreadableReply": "errors",
    "build_aag": "graphs.aag",
    "build_rat": "graphs.rat",
    "build_rpg": "graphs.rpg",
    "compose": "memory.procedure",
    "get_graph": "graphs.registry",
    "open_memory": "memory.open",
    "open_source": "sources.open",
}

__all__ = [
    "AagContext",
    "AddReport",
    "AddStopped",
    "BadInput",
    "FetchFailed",
    "FetchRefused",
    "Found",
    "MemoryFailure",
    "ModelFailure",
    "ModelUnknown",
    "NoAnswer",
    "Procedure",
    "ProcedureMemory",
    "RatContext",
    "ReadOnlyMemory",
    "RpgContext",
    "SourceFailure",
    "StepcraftError",
    "UnreadableReply",
    "build_aag",
    "build_rat",
    "build_rpg",
    "compose",
    "get_graph",
    "open_memory",
    "open_source",
]


def __getattr__(name: str) -> object:
    """Loads a public name when it is first used: importing the package alone loads no LangGraph."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
