"""The text of a message in a conversation, and the parts of it that graphs do not read."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from stepcraft.text.clean import clean


def last_human(messages: Sequence[BaseMessage]) -> HumanMessage | None:
    """Return the last message from a person, or None if there is none.

    The summary that `SummarizationMiddleware` puts in place of older messages counts only if it is
    the only human message.
    """
    humans = [each for each in reversed(messages) if isinstance(each, HumanMessage)]
    typed = [each for each in humans if each.additional_kwargs.get("lc_source") != "summarization"]
    return next(iter(typed or humans), None)


def ends_with(messages: Sequence[BaseMessage], question: str) -> bool:
    """Return whether the last message from a person is this question, and has no reply yet."""
    human = last_human(messages)
    is_last = human is not None and clean(message_text(human)).strip() == question
    return is_last and not replies(messages)


def replies(messages: Sequence[BaseMessage]) -> list[AIMessage]:
    """Return the AI messages without tool calls after the last message from a person."""
    human = last_human(messages)
    later = messages[messages.index(human) :] if human else []
    return [each for each in later if isinstance(each, AIMessage) and not each.tool_calls]


def message_text(message: BaseMessage) -> str:
    """Return the text of a message, with its text blocks joined by line breaks."""
    return "\n".join(text for block in blocks(message) if (text := text_of(block)) is not None)


def unread_parts(message: BaseMessage) -> list[str]:
    """Return a warning for each kind of non-text part, such as images and files."""
    kinds = [
        str(block.get("type", "part")).removeprefix("input_").removesuffix("_url")
        for block in blocks(message)
        if text_of(block) is None
    ]
    names = ["file" if kind == "text-plain" else kind for kind in kinds]
    return [f"the {name} in the question was not read" for name in dict.fromkeys(names)]


def blocks(message: BaseMessage) -> list[Any]:
    """Return the content of a message as a list of strings and blocks."""
    return [message.content] if isinstance(message.content, str) else message.content


def text_of(block: str | dict[str, Any]) -> str | None:
    """Return the text of a text block, or None for any other block."""
    if isinstance(block, str):
        return block
    is_text = block.get("type") in {"text", "input_text"} and "text" in block
    return str(block["text"]) if is_text else None
