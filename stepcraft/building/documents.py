"""The documents that memories are built from: each is read whole, when its turn comes."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from stepcraft.errors import Failed, SourceFailure


@dataclass(frozen=True)
class Document:
    """A whole document."""

    source: str
    """Where it comes from, such as a path or a URL; no two documents of a build have the same."""
    title: str
    """Its title; "" if it has none."""
    text: str
    """Its text, with headings as in Markdown."""
    kind: Literal["document", "transcript"] = "document"
    """Whether it is written for readers, or the record of what an agent did."""
    note: str = ""
    """What was not read of it because of a limit, a sentence; "" if all was."""
    succeeded: bool | None = None
    """Of a transcript: whether the agent reached its goal; None where a model is to say it."""
    outcome: str = ""
    """What `succeeded` rests on, a clause; "" where it is None."""
    judged: bool | None = None
    """What feedback says of the run: that it succeeded, that it did not, or None."""
    shown: tuple[str, ...] = ()
    """The ids of the procedures that the agent was shown, as far as the record has them."""

    @cached_property
    def digest(self) -> str:
        """Identifies what a model reads of it, and whether what it records succeeded."""
        return digest_of(self.title, self.text, self.kind, self.succeeded)


@dataclass(frozen=True)
class Listed:
    """A document that a source holds, and how it is read."""

    source: str
    read: Callable[[], Document]
    """Reads it; may block. It raises SourceFailure."""
    key: str
    """What identifies it: for a file, its path below the file or folder that was named."""
    stamp: str = ""
    """Changes whenever a file's content does; "" for what has to be read to see that."""
    root: str = ""
    """The real path of the folder that was named, or of the folder of the file that was; "" for
    what is no file."""


@dataclass
class Listing:
    """The documents of some sources, and what of the sources cannot be listed."""

    documents: list[Listed]
    failed: list[Failed]
    roots: list[Path]
    """The files and folders among them, resolved."""

    def read(self) -> Iterator[tuple[Listed, Document]]:
        """Yield the documents as they are read; those that cannot be are added to `failed`."""
        for each in self.documents:
            try:
                document = each.read()
            except SourceFailure as error:
                self.failed.append(Failed(each.source, str(error)))
            else:
                yield each, document


def listed(document: Document) -> Listed:
    """Return a document that is read already as one of a source."""
    return Listed(document.source, lambda: document, document.source)


def key_of(source: str) -> str:
    """Return what identifies a document: for a file, its real path."""
    if ":" in source[2:]:  # behind the letter of a drive, a URL
        return source
    path = Path(source)
    return str(path.parent.resolve() / path.name)


def digest_of(*values: object) -> str:
    """Return what identifies some JSON values."""
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()
