"""From a model's message to the text that a step reads."""

import re

from langchain_core.messages import AIMessage

from stepcraft.errors import UnreadableReply
from stepcraft.text.clean import is_refusal
from stepcraft.text.sections import restored

_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
_WITHHELD = frozenset({"content_filter", "refusal", "safety"})


class Refused(Exception):  # not an error of the program
    """The model declines to do what the step asks; asking again would not help."""


def reply_text(message: AIMessage) -> str:
    """What the model says, without its reasoning.

    Raises:
        Refused: it declines.
        UnreadableReply: it says nothing.
    """
    text = restored(_THINKING.sub("", str(message.text)).strip())
    if refusal := _refusal(message, text):
        raise Refused(refusal)
    if not text:
        raise UnreadableReply("it was cut off before any text" if is_cut_off(message) else "it was empty")
    return text


def is_cut_off(message: AIMessage) -> bool:
    """Whether the token limit ended the reply."""
    return _why_ended(message) in _CUT_OFF


def _why_ended(message: AIMessage) -> str:
    facts = message.response_metadata
    reason = facts.get("finish_reason") or facts.get("stop_reason") or facts.get("done_reason")
    if reason is None and isinstance(details := facts.get("incomplete_details"), dict):
        reason = details.get("reason")
    return str(reason or "").lower()


def _refusal(message: AIMessage, text: str) -> str | None:
    if refusal := message.additional_kwargs.get("refusal"):
        return str(refusal)
    blocks = message.content if isinstance(message.content, list) else []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "refusal":
            return str(block.get("refusal") or "it gave no reason")
    if not text and _why_ended(message) in _WITHHELD:
        return f"the reply was withheld ({_why_ended(message)})"
    return text if is_refusal(text) else None
