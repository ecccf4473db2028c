"""The documents that memories are built from: each is read whole, when its turn comes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from stepcraft.errors import Failed, StepcraftError
from stepcraft.sources.corpus.content import Heading
from stepcraft.sources.corpus.files import Root

Kind = Literal["document", "transcript"]


class Unreadable(StepcraftError):
    """A document cannot be read. The message is the reason, a clause whose subject is the document."""


@dataclass(frozen=True)
class Document:
    """A whole document."""

    source: str
    """Where it comes from, such as a path or a URL; no two documents of a build have the same."""
    title: str
    """Its title; "" if it has none."""
    text: str
    kind: Kind = "document"
    """Whether it is written for readers, or the record of what an agent did."""
    headings: tuple[Heading, ...] = ()
    """Its headings in order, where the text does not mark them as Markdown does."""
    note: str = ""
    """What was not read of it because of a limit, a sentence; "" if all was."""
    succeeded: bool | None = None
    """Of a transcript: whether the agent reached its goal, by feedback or by how the run ended; None where a model is to
    say it."""
    outcome: str = ""
    """What `succeeded` rests on, a clause; "" where it is None."""

    @cached_property
    def digest(self) -> str:
        """Identifies its content: what a model reads of it, and whether what it records succeeded."""
        content = json.dumps([self.title, self.text, self.kind, self.succeeded], ensure_ascii=False)
        return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Listed:
    """A document that a source holds, and how it is read."""

    source: str
    read: Callable[[], Document]
    """Reads it; may block. It raises Unreadable or SourceFailure."""
    spec: str = ""
    """The source that lists it, as it was named."""
    at_hand: bool = False
    """Whether reading it takes no time, because it came with the list."""
    path: Path | None = None
    """Its file, in its real folder, if it is one."""

    def named(self, source: str) -> "Listed":
        """The same document under another name."""
        return replace(self, source=source, read=lambda: replace(self.read(), source=source))


@dataclass
class Listing:
    """The documents of some sources, and what of the sources cannot be listed."""

    documents: list[Listed] = field(default_factory=list[Listed])
    failed: list[Failed] = field(default_factory=list[Failed])
    specs: list[str] = field(default_factory=list[str])
    """The sources, as they were named."""
    roots: list[Root] = field(default_factory=list[Root])
    """The files and folders among them."""


def known_as(documents: Sequence[Listed], names: Iterable[str]) -> list[Listed]:
    """The documents, files among them under the names that earlier builds have for them.

    Args:
        documents: The documents.
        names: The names of documents in earlier builds.
    """
    listed = {one.source for one in documents}
    others = {
        _in_real_folder(name): name for name in names if name not in listed and "://" not in name
    }
    return [one.named(others.pop(one.path)) if one.path in others else one for one in documents]


def _in_real_folder(name: str) -> Path:
    path = Path(name)
    try:
        return path.parent.expanduser().resolve() / path.name
    except (OSError, RuntimeError, ValueError):
        return path
