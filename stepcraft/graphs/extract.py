"""Extraction: the procedures that one document teaches, in the form of a memory."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from stepcraft.contexts.extract import ExtractContext
from stepcraft.llm.budget import Usage
from stepcraft.nodes.extract.drafted import Drafted, Flagged, Rejected
from stepcraft.schema import described

__all__ = ["Drafted", "ExtractContext", "Flagged", "HeadingAt", "Input", "Output", "Rejected", "build_extract"]


@described
class HeadingAt(TypedDict):
    """A heading of the document."""

    start: int
    """The offset of its first character in the text."""
    stop: int
    """The offset after it."""
    level: int
    """1 is the outermost."""
    text: str
    """The heading without its markup."""


@described
class Input(TypedDict):
    """A document."""

    title: str
    """Its title; "" if it has none."""
    text: str
    """Its text, with headings as in Markdown."""
    source: str
    """Where it comes from, such as a path or a URL."""
    kind: NotRequired[Literal["document", "transcript"]]
    """Whether it is written for readers, or the record of what an agent did; "document" by default."""
    headings: NotRequired[list[HeadingAt]]
    """Its headings in order, where the text does not mark them as Markdown does."""


@described
class Output(TypedDict):
    """The procedures of the document."""

    procedures: list[Drafted]
    """The procedures, in the order of the document."""
    rejected: list[Rejected]
    """What is no procedure, or was not kept, and why."""
    unread: int
    """Parts of the document that no model has read, because a call failed or a limit was reached; the warnings say why."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the procedures should know."""
    usage: Usage
    """Model calls and tokens, in total and by node."""


def build_extract(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[Any, ExtractContext, Input, Output]:
    """Build and compile the extraction graph.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes ("extract", "verify").
        cache: Keeps the replies of model nodes, so that the same prompt is sent to the same model once.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """
    raise NotImplementedError
