"""What a build would ask at most, without asking anything."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from stepcraft.building.documents import Document, Unreadable
from stepcraft.building.duplicates import NEAREST
from stepcraft.building.ledger import Ledger
from stepcraft.building.parts import parts_of
from stepcraft.building.plan import plan_document
from stepcraft.building.read import Reader
from stepcraft.building.settings import ExtractContext
from stepcraft.building.sources import Source, list_documents
from stepcraft.errors import Failed, SourceFailure
from stepcraft.sources.corpus.content import markdown_headings

_INSTRUCTIONS = 1_500
"""Tokens of the longest instructions, with the format of the reply and two procedures."""
_PROCEDURE = 600
"""Tokens of a procedure with many steps."""


@dataclass
class Estimate:
    """What a document would be asked for."""

    source: str
    characters: int
    done: bool = False
    """Whether a model has read it, so that it is not asked again."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass
class Estimates:
    """What a build would ask at most.

    That holds if no call is repeated and no section teaches more tasks than it has headings.
    """

    documents: list[Estimate] = field(default_factory=list[Estimate])
    failed: list[Failed] = field(default_factory=list[Failed])
    """Documents that a build cannot read."""

    def total(self, name: str) -> int:
        """Return a sum: of "calls", "input_tokens" or "output_tokens"."""
        return sum(getattr(each, name) for each in self.documents)


def estimate(sources: Sequence[Source], reader: Reader, ledger: Ledger | None) -> Estimates:
    """Read the documents, and estimate what a build would ask.

    Args:
        sources: As in `build_memory`.
        reader: The model and the settings.
        ledger: The records of earlier builds, if there are some.

    Raises:
        BadInput: A source cannot be used.
        SourceFailure: A source cannot be opened.
    """
    listing = list_documents(sources)
    result = Estimates(failed=listing.failed)
    for listed in listing.documents:
        try:
            document = listed.read()
        except (Unreadable, SourceFailure) as error:
            result.failed.append(Failed(listed.source, str(error)))
            continue
        record = ledger.get(listed.key) if ledger else None
        asked = Estimate(listed.source, len(document.text), done=True)
        if plan_document(record, document, reader.identity) == "read":
            asked = _estimate(document, reader.settings)
        result.documents.append(asked)
    return result


def _estimate(document: Document, settings: ExtractContext) -> Estimate:
    """Estimate the calls of one document.

    There is a call for each section; each procedure has those that compare it with its nearest
    ones, of which one at most is for the same task and merged.
    """
    parts = len(parts_of(document.text, settings.max_characters, settings.overlap))
    is_transcript = document.kind == "transcript"
    headings = 0 if is_transcript else len(markdown_headings(document.text))
    procedures = max(parts, headings)
    calls = parts + procedures * (NEAREST + settings.verify) + (parts and is_transcript)
    size = len(document.text.encode("utf-8", "replace")) // 3 + parts * settings.overlap
    return Estimate(
        document.source,
        len(document.text),
        calls=calls,
        input_tokens=calls * _INSTRUCTIONS + (1 + is_transcript) * size,
        output_tokens=calls * 100 + 2 * procedures * _PROCEDURE,
    )
