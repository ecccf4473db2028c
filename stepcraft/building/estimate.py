"""What a build would ask at most, without asking anything."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepcraft.building.documents import Document, read_all
from stepcraft.building.duplicates import NEAREST
from stepcraft.building.ledger import Ledger
from stepcraft.building.parts import parts_of
from stepcraft.building.plan import is_read
from stepcraft.building.read import Reader
from stepcraft.building.settings import ExtractContext
from stepcraft.building.sources import Source, list_documents
from stepcraft.errors import Failed
from stepcraft.sources.corpus.content import markdown_headings


@dataclass
class Estimate:
    """What a document would be asked for."""

    source: str
    characters: int
    done: bool
    """Whether a model has read it, so that it is not asked again."""
    calls: int


def estimate(
    sources: Sequence[Source], reader: Reader, ledger: Ledger | None
) -> tuple[list[Estimate], list[Failed]]:
    """Return what each document would be asked for at most, and the documents that cannot be read.

    That holds if no call is repeated and no section teaches more tasks than it has headings.

    Args:
        sources: As in `build_memory`.
        reader: The model and the settings.
        ledger: The records of earlier builds, if there are some.

    Raises:
        BadInput: A source cannot be used.
        SourceFailure: A source cannot be opened.
    """
    listing = list_documents(sources)
    estimates: list[Estimate] = []
    for listed, document in read_all(listing):
        record = ledger.get(listed.key) if ledger else None
        done = bool(record and is_read(record, document.digest, reader.identity))
        calls = 0 if done else _calls(document, reader.settings)
        estimates.append(Estimate(listed.source, len(document.text), done, calls))
    return estimates, listing.failed


def _calls(document: Document, settings: ExtractContext) -> int:
    """Return the calls that a document takes at most.

    There is one for each section; each procedure has those that compare it with its nearest ones.
    """
    parts = len(parts_of(document.text, settings.max_characters, settings.overlap))
    if document.kind == "transcript":
        return parts * (2 + NEAREST + settings.verify)
    tasks = max(parts, len(markdown_headings(document.text)))
    return parts + tasks * (NEAREST + settings.verify)
