"""A run's model usage, and the reducers for the state keys that all graphs share."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AIMessage
from langgraph.channels import UntrackedValue
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.llm.limits import RunLimits
from stepcraft.schema import described


@described
class NodeUsage(TypedDict):
    """Model calls, and the input and output tokens that the provider counted."""

    calls: Annotated[
        int, Field(description="Model calls; replies that were handed back count again.")
    ]
    input_tokens: Annotated[int, Field(description="Tokens read.")]
    cached_input_tokens: Annotated[
        int, Field(description="Those of them that the provider's prompt cache served.")
    ]
    output_tokens: Annotated[int, Field(description="Tokens written.")]


@described
class Usage(NodeUsage):
    """The usage of a run, in total and by node."""

    nodes: dict[str, NodeUsage]
    """The usage of each node that called a model."""


def no_usage() -> Usage:
    """Return the usage of a run without any calls."""
    return usage_of("", 0, [])


def usage_of(node: str, calls: int, replies: Sequence[AIMessage]) -> Usage:
    """Return the usage of one node: its calls, and the tokens of its replies."""
    counts = [*map(token_counts, replies)]
    used = NodeUsage(
        calls=calls,
        input_tokens=sum(each["input_tokens"] for each in counts),
        cached_input_tokens=sum(each.get("cached_input_tokens", 0) for each in counts),
        output_tokens=sum(each["output_tokens"] for each in counts),
    )
    return {**used, "nodes": {node: used} if calls else {}}


def token_counts(reply: AIMessage) -> dict[str, int]:
    """Return the token counts of a reply as reported by its provider."""
    reported: Mapping[str, Any] = reply.usage_metadata or {}
    counts = {name: reported.get(name) or 0 for name in ("input_tokens", "output_tokens")}
    cached = (reported.get("input_token_details") or {}).get("cache_read")
    return {**counts, "cached_input_tokens": cached} if cached else counts


def add_usage(left: Usage | None, right: Usage) -> Usage:
    """Add two usages, in total and by node (a reducer)."""
    left = left or no_usage()
    nodes = dict(left["nodes"])
    for name, used in right["nodes"].items():
        nodes[name] = _sum(nodes[name], used) if name in nodes else used
    return {**_sum(left, right), "nodes": nodes}


def _sum(left: NodeUsage | Usage, right: NodeUsage | Usage) -> NodeUsage:
    return {
        "calls": left["calls"] + right["calls"],
        "input_tokens": left["input_tokens"] + right["input_tokens"],
        "cached_input_tokens": left["cached_input_tokens"] + right["cached_input_tokens"],
        "output_tokens": left["output_tokens"] + right["output_tokens"],
    }


def add_warnings(left: list[str], right: list[str]) -> list[str]:
    """Join two lists of warnings without duplicates (a reducer)."""
    return list(dict.fromkeys([*left, *right]))


class RunState(TypedDict):
    """The state keys for warnings, usage, settings and limits, which every graph has."""

    warnings: Annotated[list[str], add_warnings]
    """Failed steps, reached limits, and anything else that a reader of the answer should know."""
    usage: Annotated[Usage, add_usage]
    """Model calls and tokens, in total and by node."""
    settings: NotRequired[dict[str, Any]]
    """The settings that the run began with, which apply if it is resumed without a context."""
    limits: NotRequired[Annotated[RunLimits, UntrackedValue(RunLimits, guard=False)]]
    """The limits of the run; absent when it is resumed."""
