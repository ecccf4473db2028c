"""Prompts that keep within what a model takes: the least similar evidence is left out first."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from langchain_core.messages import BaseMessage

from stepcraft.context import Context


class Asking(Protocol):
    """What makes a prompt, and the key of the list that may be shortened, best first."""

    node: str
    shortens: str

    @property
    def ask(self) -> Callable[[Any, Context], Sequence[BaseMessage]]:
        """The messages, from what the node reads."""
        ...


def fitted(
    node: Asking, state: Mapping[str, Any], context: Context, limit: int | None
) -> tuple[list[BaseMessage], list[str]]:
    """The messages within `limit` tokens, and warnings about what was left out.

    Only pieces of evidence are left out, from the end; the question and the instructions never.
    """
    messages = list(node.ask(state, context))
    if limit is None or _tokens(messages) <= limit:
        return messages, []
    kept = list(state.get(node.shortens) or [])
    found = len(kept)
    while kept and _tokens(messages) > limit:
        kept.pop()
        messages = list(node.ask({**state, node.shortens: kept}, context))
    warnings: list[str] = []
    if found > len(kept):
        left_out = f"{found - len(kept)} of {found} passages, the least similar, were left out"
        warnings.append(f"{node.node}: {left_out} to keep within {limit:,} input tokens")
    if _tokens(messages) > limit:
        warnings.append(
            f"{node.node}: the prompt is longer than {limit:,} input tokens even without evidence"
        )
    return messages, warnings


def _tokens(messages: Sequence[BaseMessage]) -> int:
    return sum(tokens(str(message.content)) + 4 for message in messages)


def tokens(text: str) -> int:
    """About how many tokens: four bytes each, which holds for English and for Chinese."""
    return len(text.encode("utf-8", "replace")) // 4
