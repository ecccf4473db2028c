"""The methods in the papers that need more than a graph with settings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stepcraft.evals.methods import SEARCHED, Method, method_of
from stepcraft.memory.local import LocalMemory


def self_refinement(name: str, settings: Mapping[str, Any], fields: Mapping[str, Any]) -> Method:
    """Return AAG's draft, critic and edits with an empty memory, as a baseline for the memory."""
    shared = {key: value for key, value in fields.items() if key not in SEARCHED}
    method = method_of("aag_paper", name, {"questions": False, **settings}, shared)
    memory = LocalMemory(":memory:", embeddings="none")
    return replace(method, options={**method.options, "memory": memory})
