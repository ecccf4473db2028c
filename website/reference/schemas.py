"""What JSON schemas say, in words."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from langgraph.graph.state import CompiledStateGraph

from stepcraft import build_duplicates, build_extract, get_graph
from stepcraft.contexts.base import Context
from stepcraft.graphs.registry import CHAT, GRAPHS

Graph = CompiledStateGraph[Any, Any, Any, Any]
Schema = Mapping[str, Any]

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
    """Every graph by its name: those that are registered, and those that fill memories."""
    named = {name: get_graph(name) for name in (*GRAPHS, *CHAT)}
    return {**named, "extract": build_extract(), "duplicates": build_duplicates()}


def context_class(graph: Graph) -> type[Context]:
    """The class of a graph's context."""
    return cast("type[Context]", graph.builder.context_schema)


def type_in_words(schema: Schema) -> str:
    """The type of a field, with links to the parts of this page that describe objects."""
    words = list(dict.fromkeys(_alternatives(schema)))
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def bounds_in_words(schema: Schema) -> str:
    """The bounds of a field; "" if it has none."""
    found: list[str] = []
    for one in schema.get("anyOf", [schema]):
        low, high = one.get("minimum"), one.get("maximum")
        if low is not None and high is not None:
            found.append(f"from {_number(low)} to {_number(high)}")
        elif low is not None and "exclusiveMaximum" in one:
            found.append(f"from {_number(low)} to below {_number(one['exclusiveMaximum'])}")
        elif low is not None:
            found.append(f"at least {_number(low)}")
        elif high is not None:
            found.append(f"at most {_number(high)}")
        if "exclusiveMinimum" in one:
            found.append(f"above {_number(one['exclusiveMinimum'])}")
        if "maxLength" in one:
            found.append(f"{one.get('minLength', 0)} to {one['maxLength']:,} characters")
        if "maxItems" in one:
            found.append(f"at most {one['maxItems']:,} of them")
    return "; ".join(dict.fromkeys(found))


def _number(value: float) -> str:
    power = abs(int(value)).bit_length() - 1
    if abs(value) >= 2**53 and abs(value) == 2**power:
        return f"{'-' if value < 0 else ''}2^{power}"
    return f"{value:,}"


def _alternatives(schema: Schema) -> Iterator[str]:
    if "$ref" in schema:
        yield _part(schema)
    elif "anyOf" in schema or "oneOf" in schema:
        for one in schema.get("anyOf", schema.get("oneOf", [])):
            yield from _alternatives(one)
    elif "enum" in schema or "const" in schema:
        yield from (f"`{value!r}`".replace("'", '"') for value in schema.get("enum", [schema.get("const")]))
    elif schema.get("type") == "array":
        yield f"list of {_plural(schema.get('items', {}))}"
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield f"object of {_plural(schema['additionalProperties'])} by name"
    else:
        yield _TYPES.get(schema.get("type", ""), "any JSON value")


def _plural(schema: Schema) -> str:
    ones = schema.get("anyOf", schema.get("oneOf", [schema]))
    kinds = [_part(one) if "$ref" in one else _PLURALS.get(one.get("type", ""), "values") for one in ones]
    return " or ".join(dict.fromkeys(kinds))


def _part(schema: Schema) -> str:
    name = schema["$ref"].rpartition("/")[2]
    return "messages" if name.removesuffix("Chunk").endswith("Message") else f"[`{name}`](#{name})"
