"""The text of e-mails, of mailboxes, and of web pages saved in MIME format."""

import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from typing import cast

from stepcraft.encoding import Unreadable, decoded
from stepcraft.sources.parse import Parsed
from stepcraft.sources.parse.html import html
from stepcraft.text.clean import clean, one_line

_SHOWN = ("from", "to", "date", "subject")
_NOT_ATTACHED = ("text", "multipart", "message")
_BEGIN = re.compile(rb"^From [^\n]*\d{4}[^\n]*\r?\n(?=[\w-]+: )", re.MULTILINE)
"""The line before each message in a mailbox."""


def mail(data: bytes) -> Parsed:
    """Return a message's subject, its headers and text, and a note naming its attachments."""
    subject, text, attached = _read(data)
    return subject, [text], _left_out(attached)


def mbox(data: bytes) -> Parsed:
    """Return the messages in a mailbox."""
    starts = [match.start() for match in _BEGIN.finditer(data)] or [0]
    texts: list[str] = []
    attached: list[str] = []
    for start, stop in zip(starts, [*starts[1:], len(data)], strict=True):
        subject, text, names = _read(_BEGIN.sub(b"", data[start:stop], count=1))
        texts.append(f"# {subject or 'Message'}\n\n{text}")
        attached += names
    return "", texts, _left_out(attached)


def mhtml(data: bytes) -> Parsed:
    """Return a page that a browser saved along with its resources."""
    for part in message_from_bytes(data, policy=policy.default).walk():
        if part.get_content_type() == "text/html":
            return html(_payload(part), part.get_content_charset() or "")
    raise Unreadable("it holds no page")


def _read(data: bytes) -> tuple[str, str, list[str]]:
    """Return the subject, the text with its headers above it, and the names of attachments."""
    message = message_from_bytes(data, policy=policy.default)
    subject = one_line(str(message["subject"] or ""))
    attached = [
        clean(part.get_filename() or part.get_content_type())
        for part in message.walk()
        if _is_attached(part) and not part.is_multipart()
    ]
    return subject, "\n\n".join(filter(None, _texts(message))), attached


def _texts(message: EmailMessage) -> Iterator[str]:
    """Yield the headers and text of a message and of nested messages such as forwarded ones."""
    head = [f"{name.title()}: {one_line(str(message[name]))}" for name in _SHOWN if message[name]]
    yield "\n".join(head)
    yield from _bodies(message)


def _bodies(part: MIMEPart) -> Iterator[str]:
    """Yield the texts in a part: those of its subparts, or of the first alternative with text."""
    if part.get_content_type() == "message/rfc822":
        yield from _texts(cast("EmailMessage", part.get_payload(0)))
    elif part.is_multipart():
        texts = [[*filter(None, _bodies(each))] for each in part.iter_parts()]
        is_choice = part.get_content_type() == "multipart/alternative"
        for several in [*filter(None, texts)][: 1 if is_choice else None]:
            yield from several
    elif not _is_attached(part):
        yield _shown(part)


def _is_attached(part: MIMEPart) -> bool:
    return bool(part.get_filename()) or part.get_content_maintype() not in _NOT_ATTACHED


def _shown(part: MIMEPart) -> str:
    data, charset = _payload(part), part.get_content_charset() or ""
    if part.get_content_subtype() == "html":
        return html(data, charset)[1][0].strip()
    with suppress(Unreadable):  # a part that is not text after all
        return clean(decoded(data, charset)[0]).strip()
    return ""


def _payload(part: MIMEPart) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _left_out(names: list[str]) -> str:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"what is attached was not read: {shown}" if names else ""
