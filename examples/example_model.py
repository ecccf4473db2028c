"""The chat model of the examples: the model you name, or a script that needs no key."""

import os
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel, FakeMessagesListChatModel
from langchain_core.messages import AIMessage


class ScriptedModel(FakeMessagesListChatModel):
    """A model that gives its responses in order, whatever it is asked."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Return the model itself: the script names the tools that it calls."""
        return self


def chat_model(*script: AIMessage | str) -> BaseChatModel:
    """Return the model in STEPCRAFT_MODEL, such as "openai:gpt-5-mini"; without it, the script."""
    if name := os.environ.get("STEPCRAFT_MODEL"):
        return init_chat_model(name)
    print("STEPCRAFT_MODEL names no model, so a scripted one replies.\n")
    messages = [AIMessage(reply) if isinstance(reply, str) else reply for reply in script]
    return ScriptedModel(responses=list(messages))


def calling(tool: str, **arguments: Any) -> AIMessage:
    """Return a reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": uuid4().hex}])
