"""What the nodes that write running text have in common."""

import re

from stepcraft.text.clean import clean, unfenced

_WRAPPED = re.compile(r"<(\w+)>\s*(.*?)\s*</\1>", re.DOTALL)
_LABEL = re.compile(
    r"(?:\*\*|__)?(?:(?:final |short )?answer|segment)\s*[:\uff1a](?:\*\*|__)?\s*", re.IGNORECASE
)


def text_of(reply: str, *, fenced: bool = False) -> str:
    """The text of a reply, without a remark before it and, unless it is `fenced` itself, a fence around it."""
    text = clean(reply)
    return (text if fenced else unfenced(text)).strip()


def unwrapped(text: str) -> str:
    """The text without a tag around all of it, which models take over from prompts with sections."""
    wrapped = _WRAPPED.fullmatch(text)
    return wrapped[2] if wrapped else text


def told_in(reply: str) -> str:
    """What an answer says, without a tag around it or a label before it."""
    text = unwrapped(text_of(reply))
    return _LABEL.sub("", text, count=1).strip() if _LABEL.match(text) else text
