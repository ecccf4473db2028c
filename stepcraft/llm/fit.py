"""Prompts that keep within what a model takes: the evidence that fits least is left out first."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from langchain_core.messages import BaseMessage

from stepcraft.contexts.base import Context
from stepcraft.text.clean import tokens


class Asking(Protocol):
    """What makes a prompt, and the key of the list that may be shortened."""

    node: str
    truncate_key: str

    @property
    def ask(self) -> Callable[[Any, Any], Sequence[BaseMessage]]:
        """The messages, from what the node reads."""
        ...


def fitted(
    node: Asking, state: Mapping[str, Any], context: Context, limit: int | None
) -> tuple[list[BaseMessage], Mapping[str, Any], list[str]]:
    """The messages within `limit` tokens, the state without what was left out of them, and warnings about that.

    Only pieces of evidence are left out, first those with the least score; the question and the instructions never.
    """
    messages = list(node.ask(state, context))
    if limit is None or _tokens(messages) <= limit:
        return messages, state, []
    kept = list(state.get(node.truncate_key) or [])
    found = len(kept)
    while kept and _tokens(messages) > limit:
        del kept[_least(kept)]
        messages = list(node.ask({**state, node.truncate_key: kept}, context))
    warnings: list[str] = []
    if found > len(kept):
        pieces = "sentences" if node.truncate_key == "selected" else "passages"
        left_out = f"{found - len(kept)} of {found} {pieces}, the least similar, were left out"
        warnings.append(f"{node.node}: {left_out} to keep within {limit:,} input tokens")
    if _tokens(messages) > limit:
        warnings.append(
            f"{node.node}: the prompt is longer than {limit:,} input tokens even without evidence"
        )
    return messages, {**state, node.truncate_key: kept} if found else state, warnings


def _least(pieces: Sequence[Mapping[str, Any]]) -> int:
    """The place of the piece with the least score, the last of them."""
    return min(range(len(pieces)), key=lambda place: (pieces[place].get("score", 0.0), -place))


def _tokens(messages: Sequence[BaseMessage]) -> int:
    return sum(tokens(str(message.content)) + 4 for message in messages)
