"""The page of settings: every field of the context of every graph, as Studio sees it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from stepcraft.contexts.base import Context
from stepcraft.graphs.registry import CHAT, GRAPHS
from website.reference.schemas import Graph, Schema, bounds_in_words, context_class, graphs, type_in_words

_OTHERS = {
    "extract": "reads one document and writes the procedures that it teaches; `stepcraft memory build` runs it",
    "duplicates": "compares two procedures; `stepcraft memory dedupe` runs it",
}


def page() -> str:
    """The Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def shared() -> list[str]:
    """The names of the settings of every graph."""
    return [one.name for one in fields(Context)]


def _lines() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "This page lists every setting of every graph for those who set one: its type, default, bounds, and the nodes"
    yield "that read it. The settings of a run are the fields of its context, a frozen dataclass for each graph. Name one"
    yield 'with `context={"k": 5}` in Python, with `--set k=5` on the command line, or in the form that LangGraph Studio'
    yield "shows. Defaults are written as in Python; in JSON, `None` is `null`, `True` is `true` and `False` is `false`."
    yield ""
    yield "A name that no graph has, a value of another type and a value out of bounds stop the run before its first"
    yield "model call: see [messages](messages.md#contexts)."
    yield ""
    yield "## All graphs { #Context }"
    yield ""
    common: dict[str, Any] = _properties(graphs()["direct"])
    for name in shared():
        description = "Another model for some nodes, by their names." if name == "node_models" else ""
        yield from _field("Context", name, common[name], nodes=False, description=description)
    for name, graph in graphs().items():
        yield from _section(name, graph, common)


def _section(name: str, graph: Graph, common: Mapping[str, Schema]) -> Iterator[str]:
    owner, properties = context_class(graph).__name__, _properties(graph)
    yield f"## {name} {{ #{owner} }}"
    yield ""
    listed = {**GRAPHS, **CHAT}.get(name)
    yield f"`{owner}`, the context of `{name}`: {listed.line if listed else _OTHERS[name]}."
    yield ""
    own = [field for field in properties if _is_own(field, properties[field], common)]
    links = [
        f'[`{field}`](#Context.{field})<span id="{owner}.{field}"></span>'
        for field in properties
        if field not in own
    ]
    yield f"Settings that it shares with all graphs: {', '.join(links)}."
    yield ""
    for field in own:
        yield from _field(owner, field, properties[field])


def _is_own(field: str, schema: Schema, common: Mapping[str, Schema]) -> bool:
    """Whether a setting is not shared, or has another default or other bounds than that of most graphs."""
    kept = ("default", "anyOf", "minimum", "maximum")
    return field not in shared() or any(schema.get(key) != common[field].get(key) for key in kept)


def _properties(graph: Graph) -> dict[str, Any]:
    schema = graph.get_context_jsonschema()
    assert schema, "every graph has a context"
    return dict(schema["properties"])


def _field(
    owner: str, name: str, schema: Schema, *, nodes: bool = True, description: str = ""
) -> Iterator[str]:
    yield f"### `{name}` {{ #{owner}.{name} }}"
    yield ""
    yield description or schema["description"]
    yield ""
    bounds = bounds_in_words(schema)
    yield f"- Type: {type_in_words(schema)}{f' ({bounds})' if bounds else ''}"
    is_prompt = schema.get("langgraph_type") == "prompt"
    if not is_prompt:
        yield f"- Default: `{_python(schema['default'])}`"
    if nodes and (named := schema.get("langgraph_nodes")):
        yield f"- Node{'s' if len(named) > 1 else ''}: {', '.join(f'`{node}`' for node in named)}"
    yield ""
    if is_prompt:
        yield '??? note "Default"'
        yield ""
        yield "    ````text"
        yield from (f"    {line}".rstrip() for line in schema["default"].splitlines())
        yield "    ````"
        yield ""


def _python(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | list | dict) else repr(value)
