"""The documents that memories are built from, each read as a whole and only when needed."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
    """A sentence that says what was not read and why, or "" if everything was read."""
    succeeded: bool | None = None
    """For a transcript, whether the agent reached its goal; None if a model should decide."""
    outcome: str = ""
    """The basis for `succeeded`, phrased as a clause, or "" if `succeeded` is None."""
    judged: bool | None = None
    """The feedback on the run: True for success, False for failure, or None."""
    shown: tuple[str, ...] = ()
    """The ids of the procedures that the agent was shown, if they were recorded."""

    @cached_property
    def digest(self) -> str:
        """A digest of the content that a model reads and of the recorded run's success."""
        return digest_of(self.title, self.text, self.kind, self.succeeded)


@dataclass(frozen=True)
class Listed:
    """A document listed by a source, and how to read it."""

    source: str
    read: Callable[[], Document]
    """Reads the document; can block, and raises SourceFailure if it fails."""
    key: str
    """The key that identifies the document: for a file, normally its path relative to `root`."""
    stamp: str = ""
    """A value that changes when the document does, or "" if only reading it shows changes."""
    root: str = ""
    """The resolved path of the named folder, or of the folder that contains the named file; "" for
    other sources.
    """


@dataclass
class Listing:
    """The documents in some sources, and the failures for anything that cannot be listed."""

    documents: list[Listed]
    failed: list[Failed]
    roots: list[Path]
    """The files and folders among the sources, resolved."""
    unread: set[str] = field(default_factory=set)
    """The paths of files and folders below these that cannot be listed or copied."""

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
    """Return a listing entry for a document that has already been read."""
    return Listed(document.source, lambda: document, document.source, stamp=document.digest)


def key_of(source: str) -> str:
    """Return the key that identifies a document; it has the real path of a file."""
    if source.startswith("threads:"):
        path, mark, thread = source.removeprefix("threads:").partition("?thread=")
        return f"threads:{_real(path)}{mark}{thread}"
    if ":" in source[2:]:  # a URL or the like, ignoring the colon after a drive letter
        return source
    return _real(source)


def _real(name: str) -> str:
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - a name such as "~$a.docx" stays
    return str(path.parent.resolve() / path.name)


def digest_of(*values: object) -> str:
    """Return a digest that identifies the given JSON values."""
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()
