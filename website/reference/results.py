"""The page of results: the keys of the input and output of every graph, and of their objects."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from website.reference.schemas import Graph, Schema, graphs, sentence, type_in_words

_OF_MESSAGES = {
    "InputTokenDetails",
    "InvalidToolCall",
    "OutputTokenDetails",
    "ToolCall",
    "ToolCallChunk",
    "UsageMetadata",
}
"""Objects in the messages of LangChain."""


def page() -> str:
    """Return the Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def parts() -> Mapping[str, Schema]:
    """Return the schemas of the objects in inputs and outputs, by name.

    Raises:
        ValueError: Two graphs have different objects of one name.
    """
    schemas: dict[str, Schema] = {}
    for graph in graphs().values():
        for schema in (inputs(graph), outputs(graph)):
            for name, part in schema.get("$defs", {}).items():
                is_message = name.removesuffix("Chunk").endswith("Message") or name in _OF_MESSAGES
                if is_message or not part.get("properties"):
                    continue
                if schemas.setdefault(name, part) != part:
                    raise ValueError(f"two different objects are named {name}")
    return dict(sorted(schemas.items()))


@cache
def inputs(graph: Graph) -> Schema:
    """Return the JSON schema of a graph's input."""
    return graph.get_input_jsonschema()


@cache
def outputs(graph: Graph) -> Schema:
    """Return the JSON schema of a graph's output."""
    return graph.get_output_jsonschema()


def _lines() -> Iterator[str]:
    yield "# Inputs and results"
    yield ""
    yield 'Every graph but the last two takes `{"question": "…"}` or `{"messages": […]}`, and returns at'
    yield "least `answer`, `evidence`, `warnings` and `usage`, as plain JSON values."
    yield ""
    for name, graph in graphs().items():
        yield f"## {name} {{ #{name} }}"
        yield ""
        yield sentence(name)
        yield ""
        yield f"### Input of {name} {{ #{name}-input }}"
        yield ""
        yield from _table(inputs(graph), f"{name}-input", is_input=True)
        yield f"### Result of {name} {{ #{name}-result }}"
        yield ""
        yield from _table(outputs(graph), name)
    yield "## Objects"
    yield ""
    yield "The objects that inputs and results hold, each a `TypedDict`."
    yield ""
    for name, part in parts().items():
        yield f"### `{name}` {{ #{name} }}"
        yield ""
        yield " ".join(part.get("description", "").split())
        yield ""
        yield from _table(part, name)


def _table(schema: Schema, owner: str, *, is_input: bool = False) -> Iterator[str]:
    yield f"| key | type | {'required | ' if is_input else ''}content |"
    yield f"|---|---|{'---|' if is_input else ''}---|"
    properties: dict[str, Any] = schema["properties"]
    required = schema.get("required", [])
    for name, field in properties.items():
        content = " ".join(field.get("description", "").split()).replace("|", "\\|")
        if not is_input and name not in required:
            content += " It may be absent."
        needed = f" {'yes' if name in required else 'no'} |" if is_input else ""
        anchor = f'<span id="{owner}.{name}"></span>'
        yield f"| {anchor}`{name}` | {type_in_words(field)} |{needed} {content.strip()} |"
    yield ""
