"""The documents that memories are built from, each read as a whole when its turn comes."""

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
    """Its origin, such as a path or a URL, which is unique within a build."""
    title: str
    """Its title, or "" if it has none."""
    text: str
    """Its text, with Markdown headings."""
    kind: Literal["document", "transcript"] = "document"
    """Whether it was written for readers or records what an agent did."""
    note: str = ""
    """A sentence about what was not read because of a limit, or "" if everything was."""
    succeeded: bool | None = None
    """For a transcript, whether the agent reached its goal; None if a model should decide."""
    outcome: str = ""
    """The basis for `succeeded`, as a clause, or "" if that is None."""
    judged: bool | None = None
    """The feedback on the run: True for success, False for failure, or None."""
    shown: tuple[str, ...] = ()
    """The ids of the procedures that the agent was shown, as far as they were recorded."""

    @cached_property
    def digest(self) -> str:
        """Identifies what a model reads of it, and whether the recorded run succeeded."""
        return digest_of(self.title, self.text, self.kind, self.succeeded)


@dataclass(frozen=True)
class Listed:
    """A document listed by a source, and how to read it."""

    source: str
    read: Callable[[], Document]
    """Reads the document; it may block, and raises SourceFailure."""
    key: str
    """Identifies the document: for a file, its path below the file or folder that was named."""
    stamp: str = ""
    """A value that changes with a file's content, or "" if the document must be read to tell."""
    root: str = ""
    """The real path of the named folder, or of the folder of the named file, or "" for anything
    else.
    """


@dataclass
class Listing:
    """The documents from some sources, and whatever in the sources cannot be listed."""

    documents: list[Listed]
    failed: list[Failed]
    roots: list[Path]
    """The files and folders among the sources, resolved."""

    def read(self) -> Iterator[tuple[Listed, Document]]:
        """Yield the documents as they are read; those that cannot be read are added to `failed`."""
        for each in self.documents:
            try:
                document = each.read()
            except SourceFailure as error:
                self.failed.append(Failed(each.source, str(error)))
            else:
                yield each, document


def listed(document: Document) -> Listed:
    """Wrap a document that has already been read as a listed one."""
    return Listed(document.source, lambda: document, document.source)


def key_of(source: str) -> str:
    """Return the key that identifies a document: for a file, its real path."""
    if ":" in source[2:]:  # a URL, ignoring the colon after a drive letter
        return source
    path = Path(source)
    return str(path.parent.resolve() / path.name)


def digest_of(*values: object) -> str:
    """Return a digest that identifies the given JSON values."""
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()
