"""The page of settings: every field of the context of every graph, as Studio sees it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stepcraft.contexts.base import Settings
from website.reference.schemas import (
    Graph,
    Schema,
    bounds_in_words,
    graphs,
    sentence,
    settings_type,
    type_in_words,
)

SHARED = tuple(Settings.model_fields)
"""The names of the settings of every graph."""


def page() -> str:
    """Return the Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "The settings of a run are the fields of its context, a pydantic model for each graph. Name one"
    yield 'with `context={"k": 5}` in Python, with `--set k=5` on the command line, or in the form that'
    yield "LangGraph Studio shows. Defaults are written as in Python. A name that a graph does not have and"
    yield "a value out of bounds stop the run before its first model call."
    yield ""
    yield "## All graphs { #Settings }"
    yield ""
    common: dict[str, Any] = _properties(graphs()["direct"])
    for name in SHARED:
        yield from _field("Settings", name, common[name])
    for name, graph in graphs().items():
        yield from _section(name, graph, common)


def _section(name: str, graph: Graph, common: Mapping[str, Schema]) -> Iterator[str]:
    owner, properties = settings_type(graph).__name__, _properties(graph)
    yield f"## {name} {{ #{owner} }}"
    yield ""
    yield f"`{owner}`. {sentence(name)}"
    yield ""
    own = [field for field in properties if _is_own(field, properties[field], common)]
    links = [
        f'[`{field}`](#Settings.{field})<span id="{owner}.{field}"></span>'
        for field in properties
        if field not in own
    ]
    yield f"Settings that it shares with all graphs: {', '.join(links)}."
    yield ""
    for field in own:
        yield from _field(owner, field, properties[field])


def _is_own(field: str, schema: Schema, common: Mapping[str, Schema]) -> bool:
    """Tell whether a setting is not shared, or has another default or other bounds."""
    kept = ("default", "anyOf", "minimum", "maximum")
    return field not in SHARED or any(schema.get(key) != common[field].get(key) for key in kept)


def _properties(graph: Graph) -> dict[str, Any]:
    return dict((graph.get_context_jsonschema() or {})["properties"])


def _field(owner: str, name: str, schema: Schema) -> Iterator[str]:
    yield f"### `{name}` {{ #{owner}.{name} }}"
    yield ""
    yield " ".join(schema["description"].split())
    yield ""
    bounds = bounds_in_words(schema)
    yield f"- Type: {type_in_words(schema)}{f' ({bounds})' if bounds else ''}"
    is_prompt = schema.get("langgraph_type") == "prompt"
    if not is_prompt:
        yield f"- Default: `{_python(schema.get('default', {}))}`"
    if nodes := schema.get("langgraph_nodes"):
        yield f"- Node{'s' if len(nodes) > 1 else ''}: {', '.join(f'`{node}`' for node in nodes)}"
    yield ""
    if is_prompt:
        yield '??? note "Default"'
        yield ""
        yield "    ````text"
        yield from (f"    {line}".rstrip() for line in schema["default"].splitlines())
        yield "    ````"
        yield ""


def _python(value: object) -> str:
    is_json = isinstance(value, str | list | dict)
    return json.dumps(value, ensure_ascii=False) if is_json else repr(value)
