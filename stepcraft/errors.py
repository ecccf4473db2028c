"""What can go wrong, as exceptions.

StepcraftError
├── BadInput            what a caller gave cannot be used; nothing was done
│   └── ModelUnknown    no model goes by this name, or its key is missing
├── MemoryFailure       a memory cannot be opened, read or written
│   └── ReadOnlyMemory  this memory can be searched, not changed
├── SourceFailure       a source of evidence can give nothing, for something failed
├── ModelFailure        a model refuses to be asked, so that no step can succeed
├── UnreadableReply     a reply is not in the form that its step needs
└── NoAnswer            a run ended without anything to answer with

Every message is a sentence that names the offending value and what to do about it. No message holds a key.
"""

import os
import re


class StepcraftError(Exception):
    """The base of all exceptions that Stepcraft raises on purpose."""


class BadInput(StepcraftError, ValueError):
    """What a caller gave cannot be used; nothing was done."""


class ModelUnknown(BadInput):
    """No model goes by this name, its package is not installed, or its key is missing."""


class MemoryFailure(StepcraftError):
    """A memory cannot be opened, read or written."""


class ReadOnlyMemory(MemoryFailure):
    """This memory can be searched, not changed."""


class SourceFailure(StepcraftError):
    """A source of evidence can give nothing, for something failed."""


class ModelFailure(StepcraftError):
    """A model refuses to be asked (a wrong key, say), so that no step can succeed."""


class UnreadableReply(StepcraftError):
    """A model's reply is not in the form that its step needs; the message tells the model what was wrong."""


class NoAnswer(StepcraftError):
    """A run ended without anything to answer with."""


_SECRET = re.compile(
    r"\b(?:sk|pk|key|lsv2)[-_][\w*-]{6,}|(?<=Bearer )\S+|(?<=://)[^\s/@]+(?=@)", re.IGNORECASE
)


def without_secrets(text: str) -> str:
    """The text with keys, bearer tokens, passwords in URLs and secret environment variables blotted out."""
    for name, value in os.environ.items():
        if len(value) >= 8 and name.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")):
            text = text.replace(value, "***")
    return _SECRET.sub("***", text)
