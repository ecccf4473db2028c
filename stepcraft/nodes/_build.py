"""What a graph was built with: the objects that its nodes use where the context names none."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.runtime import get_runtime

from stepcraft.context import Context
from stepcraft.errors import without_secrets
from stepcraft.memory.store import BUNDLED, VARIABLE, ProcedureMemory, shared_memory
from stepcraft.models.resolve import GivenModels

VERSION = version("stepcraft")


@dataclass(frozen=True)
class Build:
    """What a graph was built with."""

    method: str = ""
    """The graph's name in traces."""
    context: type[Context] = Context
    """The settings that a run of it takes."""
    models: GivenModels = field(default_factory=GivenModels)
    memory: ProcedureMemory | str | None = None
    embeddings: Embeddings | str | None = None

    def labels(self, context: Context) -> Mapping[str, Any]:
        """What makes a trace readable: the method, the version, the memory and the settings that differ."""
        options = {f"stepcraft_{name}": _shown(value) for name, value in context.changed().items()}
        own = {"stepcraft_method": self.method, "stepcraft_version": VERSION}
        return {**options, **own, "stepcraft_memory": self._memory_name(context)}

    def open_memory(self, context: Context) -> ProcedureMemory:
        """The memory of a run: the context's, then the given one, then the environment's, then the bundled one.

        Raises:
            BadInput: nothing can be opened under this name.
            MemoryFailure: it is there and cannot be read.
        """
        choice = self._choice(context)
        if choice is not None and not isinstance(choice, str):
            return choice
        embeddings = getattr(context, "embeddings", None) or self.embeddings
        return shared_memory(choice, embeddings=embeddings, store=get_runtime().store)

    def _choice(self, context: Context) -> ProcedureMemory | str | None:
        named: str | None = getattr(context, "memory", None)
        return self.memory if named is None else named

    def _memory_name(self, context: Context) -> str:
        choice = self._choice(context)
        if choice is None:
            choice = os.environ.get(VARIABLE) or BUNDLED
        return without_secrets(choice) if isinstance(choice, str) else choice.name


def _shown(value: Any) -> Any:  # noqa: ANN401 - JSON
    return without_secrets(value) if isinstance(value, str) else value
