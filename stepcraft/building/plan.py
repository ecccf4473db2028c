"""What a build would ask, without asking anything: the documents, their sections, and the most calls and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stepcraft.building.directory import read_records
from stepcraft.building.documents import Document, Listing, Unreadable, known_as
from stepcraft.building.duplicates import NEAREST
from stepcraft.building.extract import check_length, headings_in
from stepcraft.building.extraction import Extraction
from stepcraft.building.parts import parts_of
from stepcraft.building.read_part import FORMAT
from stepcraft.building.settings import DuplicatesContext, ExtractContext
from stepcraft.building.sources import Source, list_documents
from stepcraft.errors import BadInput, Failed, SourceFailure
from stepcraft.text.clean import clean

_CHARACTERS = 3
"""Characters of a token in ASCII, at least; other characters count as a token each."""
_FRAME = 200
"""Tokens of a prompt beside its instructions and its text."""
_PROCEDURE = 600
"""Tokens of a procedure with many steps."""


@dataclass(frozen=True)
class Planned:
    """What a document would be asked for."""

    source: str
    title: str
    characters: int
    sections: int
    """The parts that are read in one call each; 0 for a document without text."""
    done: bool
    """Whether an earlier build finished it, so that it is not asked again."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass
class Plan:
    """What a build would ask at most, if no call is repeated and no section teaches more tasks than it has headings."""

    documents: list[Planned] = field(default_factory=list[Planned])
    failed: list[Failed] = field(default_factory=list[Failed])
    """Documents that a build cannot read or take."""

    @property
    def calls(self) -> int:
        """Model calls."""
        return sum(one.calls for one in self.documents)

    @property
    def input_tokens(self) -> int:
        """Tokens read, at most."""
        return sum(one.input_tokens for one in self.documents)

    @property
    def output_tokens(self) -> int:
        """Tokens written, at most."""
        return sum(one.output_tokens for one in self.documents)


def plan_build(sources: Sequence[Source], extraction: Extraction, directory: Path) -> Plan:
    """Read the documents, and estimate what a build would ask.

    For each section there is a call; for each procedure, of which a section is taken to hold one for each of its headings,
    there are those that compare it with its nearest ones, and with `verify` one more.

    Args:
        sources: As in `build_memory`.
        extraction: The model and the settings.
        directory: Where the records of earlier builds are, if there are some.

    Raises:
        BadInput: A source cannot be used, or a record is damaged.
        SourceFailure: A source cannot be opened.
    """
    listing: Listing = list_documents(sources)
    try:
        done = {
            record["source"]: (record["digest"], record["settings"])
            for record in read_records(directory)
            if not record["error"]
        }
    except BadInput:
        if directory.exists() and any(directory.iterdir()):
            raise
        done = {}
    plan = Plan(failed=list(listing.failed))
    for listed in known_as(listing.documents, done):
        try:
            document = listed.read()
            check_length(document.text)
        except (BadInput, Unreadable, SourceFailure) as error:
            plan.failed.append(Failed(listed.source, str(error)))
            continue
        known = done.get(document.source) == (document.digest, extraction.identity)
        plan.documents.append(_planned(document, extraction.settings, done=known))
    return plan


def _planned(document: Document, settings: ExtractContext, *, done: bool) -> Planned:
    text = clean(document.text)
    headings = headings_in(text, document.headings)
    parts = parts_of(text, headings, settings.max_characters, settings.overlap)
    planned = Planned(document.source, document.title, len(text), len(parts), done)
    if done or not parts:
        return planned
    is_transcript = document.kind == "transcript"
    told = settings.transcript_instructions if is_transcript else settings.extract_instructions
    procedures = 1 if is_transcript else max(len(parts), len(headings))
    read = sum(_tokens(told) + _tokens(FORMAT) + _tokens(part["text"]) + _FRAME for part in parts)
    written = sum(min(_tokens(part["text"]), _PROCEDURE * procedures) for part in parts)
    calls = len(parts) + procedures * NEAREST
    compared = _tokens(DuplicatesContext().compare_instructions) + 2 * _PROCEDURE + _FRAME
    read += procedures * NEAREST * compared
    written += procedures * (
        _PROCEDURE + (NEAREST - 1) * _FRAME
    )  # at most one of them is for the same task
    if settings.verify:
        calls += procedures
        read += procedures * (_tokens(settings.verify_instructions) + _PROCEDURE + _FRAME)
        written += procedures * _FRAME
    if is_transcript and document.succeeded is None:
        calls += 1
        read += (
            _tokens(settings.success_instructions)
            + _tokens(text[: settings.max_characters])
            + _FRAME
        )
        written += _FRAME
    return Planned(
        document.source, document.title, len(text), len(parts), done, calls, read, written
    )


def _tokens(text: str) -> int:
    ascii_characters = sum(character.isascii() for character in text)
    return ascii_characters // _CHARACTERS + len(text) - ascii_characters + 1
