"""What can go wrong, as exceptions.

StepcraftError
├── BadInput            what a caller gave cannot be used; nothing was done
│   └── ModelUnknown    no model goes by this name, or its key is missing
├── MemoryFailure       a memory cannot be opened, read or written
│   ├── ReadOnlyMemory  this memory can be searched, not changed
│   └── AddStopped      some procedures were added, then the memory failed
├── SourceFailure       a source of evidence has nothing to give, since something failed
│   └── FetchFailed     a page is not there, does not come in time, or cannot be read
│       └── FetchRefused    a page that must not be fetched
├── ModelFailure        a model refuses to be asked, so that no step can succeed
├── UnreadableReply     a reply is not in the form that its step needs
└── NoAnswer            a run ended without anything to answer with

Every message is a sentence that names the offending value and what to do about it. No message holds a key.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field


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


@dataclass(frozen=True)
class Failed:
    """A record that did not go in: where it stood (a line of a file, or the id of the procedure) and why."""

    where: str
    reason: str


@dataclass
class AddReport:
    """What became of the procedures that were to be added."""

    added: int = 0
    present: int = 0
    """Were there already, unchanged."""
    updated: int = 0
    """Had the same id and other content, source or metadata: replaced."""
    failed: list[Failed] = field(default_factory=list[Failed])

    def include(self, other: "AddReport") -> None:
        """Count in what another report says."""
        self.added += other.added
        self.present += other.present
        self.updated += other.updated
        self.failed += other.failed


class AddStopped(MemoryFailure):
    """A memory failed while procedures were added to it; adding them again does the rest.

    Args:
        reason: why it failed.
        report: what became of the procedures that were dealt with.
        done: so many of them were the first that were given, without a gap.
        in_doubt: the ids of those that were sent and may be in or not: nobody answers who could tell.
    """

    def __init__(self, reason: str, report: AddReport, done: int, in_doubt: Sequence[str] = ()) -> None:
        doubt = f", {len(in_doubt):,} more may be in or not" if in_doubt else ""
        super().__init__(
            f"{reason}; the first {done:,} procedures were dealt with{doubt}: add again to do the rest"
        )
        self.report = report
        self.done = done
        self.in_doubt = tuple(in_doubt)


class SourceFailure(StepcraftError):
    """A source of evidence has nothing to give, since something failed."""


class FetchFailed(SourceFailure):
    """A page is not there, does not come in time, or cannot be read."""


class FetchRefused(FetchFailed):
    """A page that must not be fetched: its address is private, say, or its content of a kind that is not read."""


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
