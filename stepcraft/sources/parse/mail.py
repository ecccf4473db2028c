"""The text of e-mails, of mailboxes, and of web pages saved in MIME format."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email import message_from_bytes, policy
from email.header import decode_header
from email.message import EmailMessage, MIMEPart
from itertools import chain
from typing import NamedTuple, TypeAlias, cast

from stepcraft.encoding import Unreadable, decoded
from stepcraft.sources.parse import SECONDS, Parsed, as_heading, first_few, in_time
from stepcraft.sources.parse.html import html
from stepcraft.text.clean import clean, one_line, terms
from stepcraft.text.markdown import replaced

_SHOWN = ("from", "to", "cc", "date", "subject")
_NOT_ATTACHED = ("text", "multipart", "message")
_BEGIN = re.compile(rb"^From [^\n]*\d{4}[^\n]*\r?\n(?=[\w-]+:(?!//))", re.MULTILINE)
"""The line before each message in a mailbox."""
_HEADING_LIKE = re.compile(r"^ {0,3}(?:#{1,6}(?=\s)|(?:=+|-+)[ \t]*$)", re.MULTILINE)
"""What Markdown reads as a heading, such as a shell prompt; in plain text, it is indented."""
_HEADING = re.compile(r"^#{1,5}(?=[ \t])", re.MULTILINE)


_Text: TypeAlias = tuple[str, str]
"""A text, and a note if it was not read, or not read correctly, as a whole."""


class _Message(NamedTuple):
    subject: str = ""
    text: str = ""
    attached: Sequence[str] = ()
    """The names of the attachments."""
    notes: Sequence[str] = ()


def mail(data: bytes) -> Parsed:
    """Return a message's subject, its headers and text, and a note naming its attachments."""
    message = _read(data)
    notes = [*message.notes, *_left_out(message.attached)]
    return message.subject, [message.text], "; ".join(notes)


def mbox(data: bytes, seconds: float = SECONDS) -> Parsed:
    """Return the messages in a mailbox."""
    starts = [match.start() for match in _BEGIN.finditer(data)] or [0]
    spans = zip(starts, [*starts[1:], len(data)], strict=True)
    texts: list[str] = []
    attached: list[str] = []
    broken: list[int] = []
    doubts: dict[str, int] = {}
    notes: list[str] = []
    for number, (start, stop) in enumerate(in_time(spans, notes, "messages", seconds), 1):
        message = _Message()
        try:
            message = _read(_BEGIN.sub(b"", data[start:stop], count=1))
        except Exception:  # such as HTML that is nested too deeply
            broken.append(number)
        below = replaced(message.text, _HEADING, "#{0[0]}".format)
        texts.append(f"# {as_heading(message.subject) or 'Message'}\n\n{below}")
        attached += message.attached
        for note in message.notes:
            doubts.setdefault(note, number)
    if broken:
        notes.append(f"messages that cannot be read: {first_few(broken, 10)}")
    if doubts:
        shown = [f"of message {number}, {note}" for note, number in doubts.items()]
        notes.append(first_few(shown, 5))
    return "", texts, "; ".join([*notes, *_left_out(attached)])


def mhtml(data: bytes) -> Parsed:
    """Return a page that a browser saved along with its resources, or the pages in its frames."""
    message = message_from_bytes(data, policy=policy.default)
    parts = [part for part in message.walk() if part.get_content_type() == "text/html"]
    if not parts:
        raise Unreadable("it holds no page")
    has_frames = b"<frameset" in _payload(parts[0]).lower()
    read = [
        html(_payload(part), part.get_content_charset() or "")
        for part in (parts if has_frames else parts[:1])
    ]
    texts = [text for _, [text], _ in read if text.strip()]
    notes = dict.fromkeys(note for _, _, note in read if note)
    return read[0][0], ["\n\n".join(texts)], "; ".join(notes)


def _read(data: bytes) -> _Message:
    """Return a message, with its headers above its text."""
    message = message_from_bytes(data, policy=policy.default)
    subject = _header(message, "subject")
    attached = [
        clean(part.get_filename() or part.get_content_type())
        for part in message.walk()
        if _is_attached(part) and not part.is_multipart()
    ]
    texts = [*_texts(message)]
    text = "\n\n".join(text for text, _ in texts if text)
    notes = dict.fromkeys(note for _, note in texts if note)
    return _Message(subject, text, attached, [*notes])


def _texts(message: EmailMessage) -> Iterator[_Text]:
    """Yield the headers and text of a message and of nested messages such as forwarded ones."""
    head = {name.title(): _header(message, name) for name in _SHOWN}
    yield "\n".join(f"{name}: {value}" for name, value in head.items() if value), ""
    yield from _bodies(message)


def _header(message: MIMEPart, name: str) -> str:
    """Return a header, as it is written if the standard library cannot read it whole."""
    with suppress(Exception):
        header = message[name]
        shown = one_line(str(header or ""))
        if "\ufffd" not in shown and all(each.domain for each in getattr(header, "addresses", ())):
            return shown
    written = next(str(value) for each, value in message.raw_items() if each.lower() == name)
    shown = one_line(str(policy.default.header_fetch_parse("subject", written)))
    if "\ufffd" in shown:  # its encoding is named wrongly or not at all
        with suppress(Exception):
            charset = message.get_content_charset() or ""
            text = decoded(written.encode(errors="surrogateescape"), charset)[0]
            words = (
                word if isinstance(word, str) else decoded(word, label or "")[0]
                for word, label in decode_header(text)
            )
            return one_line("".join(words))
    return shown


def _bodies(part: MIMEPart) -> Iterator[_Text]:
    """Yield the texts in a part and its subparts."""
    if part.get_content_type() == "message/rfc822":
        yield from _texts(cast("EmailMessage", part.get_payload(0)))
    elif part.is_multipart() and part.get_content_maintype() == "message":  # such as a bounce
        for each in part.iter_parts():
            head = (f"{name}: {one_line(str(value))}" for name, value in each.raw_items())
            yield "\n".join(head), ""
            yield from _bodies(each)
    elif part.is_multipart() and part.get_content_type() == "multipart/alternative":
        yield from _alternatives([*part.iter_parts()])
    elif part.is_multipart():
        for each in part.iter_parts():
            yield from _bodies(each)
    elif not _is_attached(part):
        yield _shown(part)


def _alternatives(parts: list[MIMEPart]) -> Iterator[_Text]:
    """Yield the texts in the first part that has any.

    The last one follows if most of its words are new: the first may be "View this mail online".
    """
    parts = [each for each in parts if each.get_content_type() != "text/calendar"] or parts
    every = ([*_bodies(part)] for part in parts)
    read = [texts for texts in every if any(text for text, _ in texts)]
    yield from chain(*read[:1])
    first, last = (
        set(terms(" ".join(text for text, _ in chain(*some)))) for some in (read[:1], read[-1:])
    )
    if 2 * len(last - first) > len(last):
        yield from read[-1]


def _is_attached(part: MIMEPart) -> bool:
    return bool(part.get_filename()) or part.get_content_maintype() not in _NOT_ATTACHED


def _shown(part: MIMEPart) -> _Text:
    data, charset = _payload(part), part.get_content_charset() or ""
    if part.get_content_subtype() == "html":
        _, [text], note = html(data, charset)
        return text.strip(), note
    with suppress(Unreadable):  # a part that is not text after all
        text, note = decoded(data, charset)
        return replaced(clean(text).strip(), _HEADING_LIKE, "    {0[0]}".format), note
    return "", ""


def _payload(part: MIMEPart) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _left_out(names: Sequence[str]) -> list[str]:
    return [f"what is attached was not read: {first_few(names, 5)}"] if names else []
