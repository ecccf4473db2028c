"""Reading a model's message: its text without reasoning, tags or fences, refusals, and replies that were cut off."""

import re

from langchain_core.messages import AIMessage

from stepcraft.errors import UnreadableReply
from stepcraft.text.clean import clean, is_refusal, unfenced
from stepcraft.text.sections import restored

_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
_WITHHELD = frozenset({"content_filter", "refusal", "safety"})
_TAGGED = re.compile(r"<(\w+)>(.*)</\1>", re.DOTALL)
_LABEL = re.compile(
    r"(?:\*\*|__)?(?:(?:final |short )?answer|segment)\s*[:\uff1a](?:\*\*|__)?\s*", re.IGNORECASE
)


class Refused(Exception):
    """The model declined to do what the step asks. Asking again would not help, so the step is skipped."""


def reply_text(message: AIMessage) -> str:
    """The text of a message, without a leading `<think>` block.

    Raises:
        Refused: the provider signals a refusal (a refusal field or block, a content filter), or the whole reply is
            a short refusal.
        UnreadableReply: there is no text.
    """
    text = restored(_THINKING.sub("", str(message.text)).strip())
    ended = _finish_reason(message)
    if refusal := message.additional_kwargs.get("refusal"):
        raise Refused(str(refusal))
    for block in message.content if isinstance(message.content, list) else []:
        if isinstance(block, dict) and block.get("type") == "refusal":
            raise Refused(str(block.get("refusal") or "it gave no reason"))
    if not text and ended in _WITHHELD:
        raise Refused(f"the reply was withheld ({ended})")
    if is_refusal(text):
        raise Refused(text)
    if not text:
        raise UnreadableReply("it was cut off before any text" if is_cut_off(message) else "it was empty")
    return text


def is_cut_off(message: AIMessage) -> bool:
    """Whether the reply ended at the model's token limit."""
    return _finish_reason(message) in _CUT_OFF


def _finish_reason(message: AIMessage) -> str:
    """Why the reply ended, in lower case, from whichever metadata the provider uses."""
    metadata = message.response_metadata
    reason = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    if reason is None and isinstance(details := metadata.get("incomplete_details"), dict):
        reason = details.get("reason")
    return str(reason or "").lower()


def text_of(reply: str, *, fenced: bool = False) -> str:
    """The reply without an introduction ("Sure, here is …:") and without a code fence around all of it.

    Args:
        reply: The text of a reply.
        fenced: Whether the wanted text is itself fenced, so that nothing is removed.
    """
    text = clean(reply)
    return (text if fenced else unfenced(text)).strip()


def unwrapped(text: str) -> str:
    """The text without a tag around all of it, which models copy from prompts with sections."""
    tagged = _TAGGED.fullmatch(text)
    return tagged[2].strip() if tagged else text


def answer_text(reply: str) -> str:
    """The answer in a reply, without a tag around it or a label such as "Answer:" before it."""
    text = unwrapped(text_of(reply))
    return _LABEL.sub("", text, count=1).strip() if _LABEL.match(text) else text
