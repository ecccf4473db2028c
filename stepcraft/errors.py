"""The exceptions of the package.

StepcraftError
├── BadInput            the caller's input cannot be used (also a ValueError)
│   └── ModelUnknown    no model has this name, or its package or key is missing
├── MemoryFailure       a memory cannot be opened, read or written (also a ConnectionError)
│   ├── ReadOnlyMemory  the memory can be searched but not changed
│   └── AddStopped      some procedures were added before the memory failed
├── SourceFailure       a source of evidence failed (also a ConnectionError)
│   └── FetchFailed     a page does not exist, times out, or cannot be read
│       └── FetchRefused    a page must not be fetched
├── NoAnswer            a run ended without an answer (also a RuntimeError)
├── ModelFailure        the model refuses every call (also a RuntimeError)
├── UnreadableReply     a reply is not in its step's format (never leaves a run)
└── RunStopped          an evaluation or a build cannot go on; finished work is kept
                        (also a RuntimeError)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepcraft.secrets import without_secrets


class StepcraftError(Exception):
    """The base class of the exceptions that Stepcraft raises deliberately.

    Secrets in the message are masked.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(
            *(without_secrets(part) if isinstance(part, str) else part for part in args)
        )

    def dict(self) -> dict[str, str]:
        """Return the error in the form that a LangGraph server sends to a client.

        Otherwise, the server would hide the message of a ConnectionError.
        """
        return {"error": type(self).__name__, "message": str(self)}


class BadInput(StepcraftError, ValueError):
    """The caller's input cannot be used. Nothing was done."""


class ModelUnknown(BadInput):
    """No model has this name, its package is not installed, or its key is missing."""


class MemoryFailure(StepcraftError, ConnectionError):
    """A memory cannot be opened, read or written."""


class ReadOnlyMemory(MemoryFailure):
    """The memory can be searched but not changed."""


@dataclass(frozen=True)
class Failed:
    """A record that was not added, with the reason.

    `where` is a line in a file, or the id of a procedure.
    """

    where: str
    reason: str


@dataclass
class AddReport:
    """The outcome of adding procedures."""

    added: int = 0
    present: int = 0
    """Procedures already stored with the same content."""
    updated: int = 0
    """Procedures replaced because their stored content, source or metadata was different."""
    failed: list[Failed] = field(default_factory=list[Failed])

    def include(self, other: "AddReport") -> None:
        """Add the counts and failures of another report."""
        self.added += other.added
        self.present += other.present
        self.updated += other.updated
        self.failed += other.failed


class Conflict(BadInput):
    """A procedure was changed in the meantime; the error contains both texts."""


class AddStopped(MemoryFailure):
    """A memory failed while procedures were being added. Adding them again adds the rest.

    Args:
        reason: Why the memory failed.
        report: The outcome for the procedures that were processed.
        done: The number of procedures processed, counted from the start of the input.
    """

    def __init__(self, reason: str, report: AddReport, done: int) -> None:
        super().__init__(reason, report, done)
        self.report = report
        self.done = done

    def __str__(self) -> str:
        return (
            f"{self.args[0]}; the first {self.done:,} procedures were processed; "
            "add them again to add the rest"
        )


class SourceFailure(StepcraftError, ConnectionError):
    """A source of evidence failed."""


class FetchFailed(SourceFailure):
    """A page does not exist, times out, or cannot be read."""


class FetchRefused(FetchFailed):
    """A page must not be fetched.

    For example, its address is private or its content type is not supported.
    """


class ModelFailure(StepcraftError, RuntimeError):
    """The model refuses every call, for example because of a wrong key, so no step can succeed."""


class UnreadableReply(StepcraftError):
    """A model's reply does not have the format that its step needs.

    The message tells the model what was wrong.

    Args:
        message: The problem with the reply, worded for the model.
        update: The update from the readable part of the reply. The step returns it, with a warning,
            if the model is not asked again or does no better.
    """

    def __init__(self, message: str, *, update: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.update = update


class NoAnswer(StepcraftError, RuntimeError):
    """A run ended without an answer.

    Retrying immediately is pointless: the client has already retried.
    """


class RunStopped(StepcraftError, RuntimeError):
    """An evaluation or a build cannot continue. Finished work is in its directory.

    Rerunning the command continues from there.
    """


REFUSED = frozenset({401, 403, 404})
"""The HTTP statuses that mean a provider refuses every call, not just this one."""


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status in an error from a provider's client, or in its cause, if any."""
    while error:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):  # boto3
            response = response.get("ResponseMetadata")
            statuses = [response.get("HTTPStatusCode")] if isinstance(response, Mapping) else []
        else:
            names = ("status_code", "code", "status")
            statuses = [getattr(each, name, None) for each in (error, response) for name in names]
        for status in statuses:
            if isinstance(status, int) and 100 <= status < 600:
                return int(status)
        error = error.__cause__
    return None
