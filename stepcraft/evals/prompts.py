"""The prompts of a method, as one digest: a run whose prompts were changed is another run."""

import hashlib
import json
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from stepcraft.contexts.base import Context
from stepcraft.graphs.registry import GRAPHS


def prompts_digest(graph: str, context: Context) -> str:
    """Identify the instructions of a context and the texts of the nodes that a graph's prompts are made of.

    Args:
        graph: The name of the graph.
        context: Its settings.
    """
    instructions = {name: text for name, text in vars(context).items() if name.endswith("_instructions")}
    return hashlib.sha256(json.dumps([instructions, _texts(graph)], sort_keys=True).encode()).hexdigest()[:16]


@cache
def _texts(graph: str) -> list[tuple[str, str]]:
    """The constants with text of the modules that make a graph's prompts: reply formats and what stands beside them."""
    folder = "baselines" if GRAPHS[graph].module.startswith("baselines.") else graph
    package = f"stepcraft.nodes.{folder}"
    modules = [found.name for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}.")]
    return sorted(
        (f"{name}.{constant}", json.dumps(value, sort_keys=True))
        for name in ("stepcraft.llm.prompt", "stepcraft.llm.node", *modules)
        for constant, value in vars(import_module(name)).items()
        if constant.isupper() and _is_text(value)
    )


def _is_text(value: object) -> bool:
    """Whether this is a text, or holds nothing but texts."""
    if isinstance(value, Mapping):
        return all(_is_text(part) for pair in value.items() for part in pair)
    return isinstance(value, str) or (isinstance(value, tuple) and all(map(_is_text, value)))
