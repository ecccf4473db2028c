"""The page of results: the keys of the input and output of every graph, and of the objects in them."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from stepcraft.graphs.registry import CHAT, GRAPHS
from website.reference.schemas import Graph, Schema, graphs, type_in_words


def page() -> str:
    """The Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def parts() -> Mapping[str, Schema]:
    """The schemas of the objects in inputs and outputs, by name.

    Raises:
        ValueError: Two graphs have different objects of one name.
    """
    found: dict[str, Schema] = {}
    for graph in graphs().values():
        for schema in (inputs(graph), outputs(graph)):
            for name, part in schema.get("$defs", {}).items():
                if not part.get("properties") or is_message(name):
                    continue
                if found.setdefault(name, part) != part:
                    raise ValueError(f"two different objects are named {name}")
    return dict(sorted(found.items()))


def is_message(name: str) -> bool:
    """Whether an object belongs to the messages of LangChain."""
    return name.removesuffix("Chunk").endswith("Message") or name in {
        "InputTokenDetails",
        "OutputTokenDetails",
        "UsageMetadata",
        "ToolCall",
        "InvalidToolCall",
        "ToolCallChunk",
    }


@cache
def inputs(graph: Graph) -> Schema:
    """The JSON schema of a graph's input."""
    return graph.get_input_jsonschema()


@cache
def outputs(graph: Graph) -> Schema:
    """The JSON schema of a graph's output."""
    return graph.get_output_jsonschema()


def _lines() -> Iterator[str]:
    yield "# Inputs and results"
    yield ""
    yield "This page lists what each graph takes and returns, for those who call one: the keys of its input and of its"
    yield 'result, with their types. Every graph of this list but the last two accepts `{"question": "…"}` alone, and returns at'
    yield "least `answer`, `evidence`, `warnings` and `usage`. Inputs and results are plain JSON values."
    yield ""
    listed = {**GRAPHS, **CHAT}
    for name, graph in graphs().items():
        yield f"## {name} {{ #{name} }}"
        yield ""
        yield (
            f"{listed[name].sentence}."
            if name in listed
            else f"[`build_{name}`](python.md#stepcraft.build_{name}) makes it."
        )
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
    for name, one in properties.items():
        content = " ".join(one.get("description", "").split()).replace("|", "\\|")
        if not is_input and name not in required:
            content += " It may be absent."
        needed = f" {'yes' if name in required else 'no'} |" if is_input else ""
        yield f'| <span id="{owner}.{name}"></span>`{name}` | {type_in_words(one)} |{needed} {content.strip()} |'
    yield ""
