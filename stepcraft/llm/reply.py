"""Read a model's message: its text without reasoning, refusals, and replies that were cut off."""

import re

from langchain_core.messages import AIMessage

from stepcraft.errors import UnreadableReply
from stepcraft.text.clean import clean, unfenced

_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
_TAGGED = re.compile(r"<(\w+)>(.*)</\1>", re.DOTALL)


class Refused(Exception):
    """The model declined to do what the step asks.

    Asking again would not help, so the step is skipped.
    """


def reply_text(message: AIMessage) -> str:
    """Return the text of a message, without a leading `<think>` block.

    Raises:
        Refused: The provider signals a refusal.
        UnreadableReply: There is no text.
    """
    text = _THINKING.sub("", str(message.text)).strip()
    if refusal := message.additional_kwargs.get("refusal"):
        raise Refused(str(refusal))
    if not text:
        raise UnreadableReply(
            "it was cut off before any text" if is_cut_off(message) else "it was empty"
        )
    return text


def is_cut_off(message: AIMessage) -> bool:
    """Tell whether the reply ended at the model's token limit."""
    metadata = message.response_metadata
    reason = (
        metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    )
    return str(reason or "").lower() in _CUT_OFF


def answer_text(reply: str) -> str:
    """Return a reply without an introduction, and without a tag or a fence around all of it.

    An introduction is a line such as "Sure, here is …:".
    """
    text = unfenced(clean(reply)).strip()
    tagged = _TAGGED.fullmatch(text)
    return tagged[2].strip() if tagged else text
