"""The prompts of a method, as one digest: a run whose prompts were changed is another run."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from stepcraft.contexts.base import Settings
from stepcraft.graphs.registry import get_graph
from stepcraft.llm.node import BoundNode


def prompts_digest(graph: str, context: Settings) -> str:
    """Identify the instructions of a context and the texts of a graph's nodes.

    Args:
        graph: The name of the graph.
        context: Its settings.
    """
    fields = context.model_dump()
    instructions = {name: text for name, text in fields.items() if name.endswith("_instructions")}
    return hashlib.sha256(
        json.dumps([instructions, _texts(graph)], sort_keys=True).encode()
    ).hexdigest()[:16]


@cache
def _texts(graph: str) -> list[tuple[str, str]]:
    """Return the constants with text, also imported ones, of the modules with a graph's prompts."""
    return sorted(
        (f"{module}.{constant}", json.dumps(value, sort_keys=True))
        for module in {"stepcraft.llm.prompt", "stepcraft.llm.node", *_modules(graph)}
        for constant, value in vars(import_module(module)).items()
        if constant.isupper() and _is_text(value)
    )


def _modules(graph: str) -> Iterator[str]:
    for node in get_graph(graph).builder.nodes.values():
        runnable = node.runnable
        if isinstance(runnable, BoundNode):
            yield from (runnable.node.ask.__module__, runnable.node.read.__module__)
        elif type(runnable).__module__.startswith("stepcraft."):
            yield type(runnable).__module__


def _is_text(value: object) -> bool:
    """Tell whether this is a text, or holds nothing but texts."""
    if isinstance(value, Mapping):
        return all(_is_text(part) for pair in value.items() for part in pair)
    return isinstance(value, str) or (isinstance(value, tuple) and all(map(_is_text, value)))
