"""The chat model of the examples: the one you name, else a script, so that every example runs without a key."""

import os
from collections.abc import Sequence
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    """Gives its replies in order, whatever it is asked."""

    replies: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """The model itself: the script calls the tools that it names."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.replies.pop(0))])


def chat_model(*script: AIMessage | str) -> BaseChatModel:
    """The model in STEPCRAFT_MODEL, such as "openai:gpt-5-mini"; without one, a model that replies with the script."""
    if name := os.environ.get("STEPCRAFT_MODEL"):
        return init_chat_model(name)
    print("STEPCRAFT_MODEL names no model, so a scripted one replies.\n")
    return ScriptedModel(replies=[AIMessage(one) if isinstance(one, str) else one for one in script])


def calling(tool: str, **arguments: Any) -> AIMessage:
    """A reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": f"{tool}-1"}])
