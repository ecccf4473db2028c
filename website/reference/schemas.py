"""What JSON schemas say, in words."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from langgraph.graph.state import CompiledStateGraph

from stepcraft import build_extract, get_graph
from stepcraft.contexts.base import Settings
from stepcraft.graphs.registry import GRAPHS

Graph = CompiledStateGraph[Any, Any, Any, Any]
Schema = Mapping[str, Any]

BUILDING = {
    "extract": "Reads one document and writes the procedures that it teaches, as "
    "`stepcraft memory build` does",
}
"""The graphs that fill memories, which the registry does not list."""

_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`True` or `False`",
    "null": "`None`",
    "object": "object",
    "array": "list",
}
_PLURALS = {
    "string": "texts",
    "integer": "whole numbers",
    "number": "numbers",
    "boolean": "truth values",
    "object": "objects",
}


@cache
def graphs() -> Mapping[str, Graph]:
    """Return every graph by its name: those of the registry, and those that fill memories."""
    named = {name: get_graph(name) for name in GRAPHS}
    return {**named, "extract": build_extract()}


def sentence(name: str) -> str:
    """Return what a graph is for."""
    return f"{GRAPHS[name].sentence if name in GRAPHS else BUILDING[name]}."


def settings_type(graph: Graph) -> type[Settings]:
    """Return the class of a graph's settings."""
    return cast("type[Settings]", graph.context_schema)


def type_in_words(schema: Schema) -> str:
    """Return the type of a field, with links to the objects that the page describes."""
    words = list(dict.fromkeys(_alternatives(schema)))
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def bounds_in_words(schema: Schema) -> str:
    """Return the bounds of a field; "" if it has none."""
    bounds: list[str] = []
    for each in schema.get("anyOf", [schema]):
        low, high = each.get("minimum"), each.get("maximum")
        if low is not None and high is not None:
            bounds.append(f"from {_number(low)} to {_number(high)}")
        elif low is not None and "exclusiveMaximum" in each:
            bounds.append(f"from {_number(low)} to below {_number(each['exclusiveMaximum'])}")
        elif low is not None:
            bounds.append(f"at least {_number(low)}")
        elif high is not None:
            bounds.append(f"at most {_number(high)}")
        if "exclusiveMinimum" in each:
            bounds.append(f"above {_number(each['exclusiveMinimum'])}")
        if "maxLength" in each:
            bounds.append(f"{each.get('minLength', 0)} to {each['maxLength']:,} characters")
        if "maxItems" in each:
            bounds.append(f"at most {each['maxItems']:,} of them")
    return "; ".join(dict.fromkeys(bounds))


def _number(value: float) -> str:
    power = abs(int(value)).bit_length() - 1
    if abs(value) >= 2**53 and abs(value) == 2**power:
        return f"{'-' if value < 0 else ''}2^{power}"
    return f"{value:,}"


def _alternatives(schema: Schema) -> Iterator[str]:
    if "$ref" in schema:
        yield _part(schema)
    elif alternatives := schema.get("anyOf", schema.get("oneOf")):
        for each in alternatives:
            yield from _alternatives(each)
    elif "enum" in schema or "const" in schema:
        for value in schema.get("enum", [schema.get("const")]):
            yield f"`{value!r}`".replace("'", '"')
    elif schema.get("type") == "array":
        yield f"list of {_plural(schema.get('items', {}))}"
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield f"object of {_plural(schema['additionalProperties'])} by name"
    else:
        yield _TYPES.get(schema.get("type", ""), "any JSON value")


def _plural(schema: Schema) -> str:
    alternatives = schema.get("anyOf", schema.get("oneOf", [schema]))
    kinds = [
        _part(each) if "$ref" in each else _PLURALS.get(each.get("type", ""), "values")
        for each in alternatives
    ]
    return " or ".join(dict.fromkeys(kinds))


def _part(schema: Schema) -> str:
    name = schema["$ref"].rpartition("/")[2]
    is_message = name.removesuffix("Chunk").endswith("Message")
    return "messages" if is_message else f"[`{name}`](#{name})"
