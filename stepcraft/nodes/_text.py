"""What the nodes that write running text have in common."""

from stepcraft.context import Context
from stepcraft.text import clean, unfenced


def text_of(reply: str, *, fenced: bool = False) -> str:
    """The text of a reply, without a remark before it and, unless it is `fenced` itself, a fence around it."""
    text = clean(reply)
    return (text if fenced else unfenced(text)).strip()


def language_of(context: Context) -> str:
    """The programming language that the answer is a program in; "" where it is none."""
    return str(getattr(context, "language", "")) if getattr(context, "finish", "answer") == "code" else ""
