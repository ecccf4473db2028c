"""Build a memory: read each document as a whole and add the procedures that it teaches.

    list_documents → catch_up → for each document: Reader.read → Placer.place

`catch_up` updates the records and the memory after files are moved or deleted. A reader calls the
model through the graph in `extract.py`, unless the ledger has an answer for the same content; a
placer compares each procedure with similar ones in the memory. The ledger is written after each of
these two steps, so that no model call is paid for twice.
"""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from stepcraft.building.changes import (
    catch_up,
    drafted_procedure,
    mark_stale,
    removed_as,
    removed_by_people,
)
from stepcraft.building.documents import Document, Listed
from stepcraft.building.duplicates import NoCallsLeft, Placer
from stepcraft.building.ledger import Ledger, Placed, Record, ledger_of
from stepcraft.building.read import Reader
from stepcraft.building.report import write_page
from stepcraft.building.settings import DuplicatesContext, ExtractContext
from stepcraft.building.sources import Source, list_documents
from stepcraft.concurrency import side_by_side
from stepcraft.contexts.base import Settings
from stepcraft.errors import (
    BadInput,
    Failed,
    MemoryFailure,
    ModelFailure,
    RunStopped,
    SourceFailure,
)
from stepcraft.llm.usage import Usage, add_usage, add_warnings, no_usage
from stepcraft.memory.open import open_memory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.resolve import ChatModel


@dataclass(kw_only=True)
class BuildReport:
    """The results for the documents in a build, including those that earlier builds finished."""

    page: Path
    """The path of the page that shows the results."""
    documents: int
    done: int = 0
    """The number of finished documents, including failed ones."""
    unchanged: int = 0
    """The number of documents that a model had already read."""
    procedures: int = 0
    """The number of procedures found."""
    placed: Counter[str] = field(default_factory=Counter)
    """The number of procedures by outcome: added, present, merged, linked or removed."""
    flagged: int = 0
    """The number of procedures with names or numbers that are not in their document."""
    rejected: int = 0
    stale: int = 0
    """The number of procedures that were marked stale because no document teaches them any more."""
    failed: list[Failed] = field(default_factory=list)
    """Documents that could not be processed, which the next build retries."""
    warnings: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=no_usage)
    """The model calls and tokens used by this build."""

    def count(self, record: Record) -> None:
        """Count the results for a document."""
        self.done += 1
        self.procedures += len(record.procedures)
        self.rejected += len(record.rejected)
        self.flagged += sum(bool(draft["flagged"]) for draft in record.procedures)
        self.placed.update(placed.how for placed in record.placed)
        if record.error:
            self.failed.append(Failed(record.source, record.error))
        self.warnings = add_warnings(self.warnings, record.warnings)


async def build_memory(
    sources: Sequence[Source],
    memory: str | ProcedureMemory,
    *,
    embeddings: str | Embeddings | None = None,
    model: ChatModel | str | None = None,
    context: ExtractContext | Mapping[str, Any] | None = None,
    ledger: Path | None = None,
    concurrency: int = 8,
    max_calls: int | None = None,
    on_progress: Callable[[BuildReport], object] = lambda _report: None,
) -> BuildReport:
    """Extract the procedures in documents into a memory, without repeating finished work.

    A document that has changed is read again. Procedures that no document teaches any more, because
    a document has changed or its file is gone, are marked stale. Procedures for the same task are
    merged or linked. A document that cannot be read or processed is listed in the report and
    retried by the next build.

    Args:
        sources: The sources of the documents, as for `list_documents`.
        memory: The memory, or its URL; a missing database is created.
        embeddings: The embeddings for a memory opened by URL, as for `open_memory`.
        model: The model that reads the documents, as an object or a name.
        context: The settings for the extraction, such as `strict`.
        ledger: The file that holds the records; None means a file next to the memory.
        concurrency: The maximum number of concurrent model calls.
        max_calls: The number of calls, including those of earlier builds, after which no further
            document is started; 0 means no model calls, None means no limit.
        on_progress: Called with the progress after each document.

    Raises:
        BadInput: A source, a setting, a number, the model or the ledger is invalid.
        ReadOnlyMemory: The memory cannot be changed.
        RunStopped: The call limit is reached, the model refuses every call, or the memory or the
            ledger cannot be written. Finished work is kept; rerunning the build continues from
            there.
    """
    if concurrency < 1 or (max_calls is not None and max_calls < 0):
        raise BadInput(
            f"concurrency must be at least 1 and max_calls at least 0, not {concurrency} and "
            f"{max_calls}"
        )
    settings = ExtractContext.model_validate(context or {})
    reader = await asyncio.to_thread(Reader, settings, model)
    listing = await asyncio.to_thread(list_documents, sources)
    with ExitStack() as stack:
        if isinstance(memory, str):
            memory = await asyncio.to_thread(open_memory, memory, embeddings=embeddings)
            stack.enter_context(memory)
        open_ledger = stack.enter_context(Ledger(ledger or ledger_of(memory.name), memory.name))
        shared = settings.model_dump(include={*Settings.model_fields}, exclude_unset=True)
        placer = Placer(memory, model, ledger=open_ledger, settings=DuplicatesContext(**shared))
        number = len(listing.documents)
        report = BuildReport(page=open_ledger.page, documents=number, failed=listing.failed)
        # Documents and their parts together make at most `concurrency` calls at a time.
        parts = max(1, concurrency // number)
        calls_left = (math.inf if max_calls is None else max_calls) - open_ledger.calls()
        build = _Build(reader, placer, open_ledger, report, parts, calls_left, on_progress)
        try:
            stale, warnings = await asyncio.to_thread(catch_up, listing, open_ledger, memory)
            report.stale, report.warnings = stale, warnings
            await side_by_side(map(build.document, listing.documents), concurrency)
        except (MemoryFailure, ModelFailure) as error:
            raise RunStopped(
                f"{error}; what was found is kept in {open_ledger.path}, "
                "and the same command goes on from there"
            ) from error
        finally:
            try:
                write_page(open_ledger, memory.name, report.failed)
            except (OSError, RunStopped) as error:
                warning = f"the page {report.page} cannot be written: {error}"
                report.warnings = add_warnings(report.warnings, [warning])
    if report.done < number:
        raise RunStopped(
            f"the budget of {max_calls:,} calls is used up: {report.done:,} of {number:,} "
            "documents are done; a larger one goes on from there"
        )
    return report


@dataclass
class _Build:
    """A build in progress."""

    reader: Reader
    placer: Placer
    ledger: Ledger
    report: BuildReport
    parts: int
    """The maximum number of parts of a document that are read at the same time."""
    calls_left: float
    on_progress: Callable[[BuildReport], object]
    reading: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """A lock for each content digest, so that documents with the same content are read only once.
    """
    started: set[str] = field(default_factory=set)
    """The keys of the documents that the model reads in this build, which are always finished."""

    async def document(self, listed: Listed) -> None:
        """Process a document, unless it is done or no calls are left."""
        try:
            record = await self._record(listed)
        except SourceFailure as error:
            # Its record is kept, so that it need not be read again once its folder is back.
            self.report.failed.append(Failed(listed.source, str(error)))
            self.report.done += 1
            self.on_progress(self.report)
            return
        if not record:
            return
        if not record.done:
            try:
                await self._place(record, may_ask=listed.key in self.started or self.calls_left > 0)
            except NoCallsLeft:
                return
            self.ledger.put(listed.key, record)
        self.report.count(record)
        self.on_progress(self.report)

    async def _record(self, listed: Listed) -> Record | None:
        """Return a document's record, rereading the document if changed; None if no calls are left.

        Raises:
            SourceFailure: The document cannot be read.
        """
        record, identity = self.ledger.get(listed.key), self.reader.identity
        is_valid = record and (record.error, record.identity) == ("", identity)
        if not (record and is_valid and listed.stamp and record.stamp == listed.stamp):
            document = await asyncio.to_thread(listed.read)
            if not (record and is_valid and record.digest == document.digest):
                async with self.reading[document.digest]:
                    return await self._read(listed, document, record)
            record.stamp = listed.stamp
            self.ledger.touch(listed.key, listed.stamp)  # not to read it again until it changes
        self.report.unchanged += 1
        return record

    async def _read(
        self, listed: Listed, document: Document, earlier: Record | None
    ) -> Record | None:
        """Return a new record for a document, or None if no calls are left.

        The model is called unless it has already read the same content elsewhere.
        """
        memory = self.placer.memory
        if same := self.ledger.same(document.digest, self.reader.identity):
            same.removed |= await asyncio.to_thread(removed_by_people, same, memory)
            record = same.of(listed)
            self.report.unchanged += 1
        elif self.calls_left < 1:
            return None
        else:
            self.started.add(listed.key)
            self.calls_left -= 1  # until the actual number is known
            record = await self.reader.read(listed, document, self.parts)
            self.calls_left += 1
            self._count(record.usage)
        if earlier:
            record.taught = earlier.taught_so_far()
            record.usage = add_usage(earlier.usage, record.usage)
            record.removed |= earlier.removed
            record.removed |= await asyncio.to_thread(removed_by_people, earlier, memory)
        self.ledger.put(listed.key, record)  # it has been paid for
        return record

    def _count(self, usage: Usage) -> None:
        self.calls_left -= usage["calls"]
        self.report.usage = add_usage(self.report.usage, usage)

    async def _place(self, record: Record, *, may_ask: bool) -> None:
        """Add a record's procedures to the memory; mark those no longer taught as stale.

        Raises:
            NoCallsLeft: A comparison needs a call, and `may_ask` is false.
        """
        procedures = [drafted_procedure(record, draft) for draft in record.procedures]
        if not record.error:
            # Done first, so that new procedures are not merged with those that they replace.
            ids = {procedure.id for procedure in procedures}
            stale = await asyncio.to_thread(mark_stale, record, ids, self.placer.memory)
            self.report.stale += stale  # after the await, since other tasks add to it
        record.placed = []
        for procedure, draft in zip(procedures, record.procedures, strict=True):
            if removed := removed_as(record, draft, procedure.id):
                why = "it was removed from the memory, and stays out"
                record.placed.append(Placed(min(removed), "removed", why))
                continue
            plan = await self.placer.place(procedure, may_ask=may_ask)
            name = plan.stored.id if plan.stored and plan.how != "linked" else procedure.id
            record.placed.append(Placed(name, plan.how, plan.verdict.why))
            for verdict in plan.verdicts:
                record.usage = add_usage(record.usage, verdict.usage)
                record.warnings += verdict.warnings
                self._count(verdict.usage)
        if not record.error:
            record.done, record.taught = True, []
