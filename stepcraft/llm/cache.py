"""The cache of model replies: only steps that succeeded are stored, and a cached step costs no calls."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.cache.base import BaseCache, FullKey

from stepcraft.contexts.base import Context
from stepcraft.models.resolve import model_identity

Update = dict[str, Any]

_NOT_IN_KEY = frozenset(
    {
        "settings",
        "usage",
        "warnings",
        "started",
        "share",
        "answered",
        "elapsed",
        "step_started",
        "number",
        "calls_allowed",
    }
)
"""Keys of the state that differ between runs and do not change a reply."""


class ReplyCache:
    """What model nodes made of their replies, kept in a LangGraph cache by node and state.

    The nodes read the cache themselves, because of a node that LangGraph has cached nothing runs: it would stream
    nothing, and its route would be cached with it.

    Args:
        cache: Where it is kept.
    """

    def __init__(self, cache: BaseCache[Any]) -> None:
        self.cache = cache

    def get(self, key: FullKey) -> Update | None:
        """The stored update, if there is one."""
        return self.cache.get([key]).get(key)

    async def aget(self, key: FullKey) -> Update | None:
        """As `get`."""
        return (await self.cache.aget([key])).get(key)

    def set(self, key: FullKey, update: Update) -> None:
        """Store an update."""
        self.cache.set({key: (update, None)})

    async def aset(self, key: FullKey, update: Update) -> None:
        """As `set`."""
        await self.cache.aset({key: (update, None)})


def reply_key(node: str, model: BaseChatModel | str, context: Context, state: Mapping[str, Any]) -> FullKey:
    """The key of a reply: the node, its model, all settings of the run, and the state."""
    settings = {one.name: getattr(context, one.name) for one in fields(context)}
    inputs = {name: value for name, value in state.items() if name not in _NOT_IN_KEY}
    text = json.dumps([model_identity(model), settings, inputs], sort_keys=True, default=_message_key)
    return ("stepcraft", node), hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _message_key(value: object) -> object:
    """What identifies a message; its ids, and those of tool calls, differ from run to run.

    Raises:
        TypeError: The value is not a message, and the state may hold nothing else that is not JSON.
    """
    if not isinstance(value, BaseMessage):
        raise TypeError(f"a cached step reads {type(value).__name__}, which is neither JSON nor a message")
    calls = value.tool_calls if isinstance(value, AIMessage) else []
    return [value.type, value.content, [[call["name"], call["args"]] for call in calls]]
