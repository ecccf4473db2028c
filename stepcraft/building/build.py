"""Build a memory: each document is read whole, and the procedures that it teaches are added."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from stepcraft.building.documents import Listed, Unreadable
from stepcraft.building.drafted import Drafted
from stepcraft.building.duplicates import Comparer, Placer, changed_in
from stepcraft.building.ledger import Ledger, Placed, Record, ledger_of
from stepcraft.building.plan import plan_document, plan_stale
from stepcraft.building.provenance import Provenance, Teacher, without_document
from stepcraft.building.read import Reader
from stepcraft.building.report import write_page
from stepcraft.building.settings import DuplicatesContext, ExtractContext
from stepcraft.building.side_by_side import side_by_side
from stepcraft.building.sources import Source, list_documents
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
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory

_SHARED = set(Settings.model_fields) - {"node_models"}
"""The settings of extraction that comparisons have, too."""


@dataclass(kw_only=True)
class BuildReport:
    """What came of the documents of a build, those included that earlier builds finished."""

    page: Path
    """The page that shows them."""
    documents: int
    done: int = 0
    """Documents that are finished, failed ones included."""
    unchanged: int = 0
    """Documents that a model has read before."""
    procedures: int = 0
    """Procedures that were found."""
    placed: Counter[str] = field(default_factory=Counter[str])
    """What became of them: added, present, merged, linked, failed."""
    flagged: int = 0
    """Procedures with something that their document does not have."""
    rejected: int = 0
    stale: int = 0
    """Procedures of earlier versions of the documents that were marked stale."""
    failed: list[Failed] = field(default_factory=list[Failed])
    """Documents that could not be built, which the next build tries again."""
    warnings: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=no_usage)
    """Model calls and tokens of this build."""

    def count(self, record: Record) -> None:
        """Count what became of a document."""
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
    model: BaseChatModel | str | None = None,
    context: ExtractContext | Mapping[str, Any] | None = None,
    ledger: Path | None = None,
    concurrency: int = 8,
    max_calls: int | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    on_progress: Callable[[BuildReport], object] = lambda _report: None,
) -> BuildReport:
    """Add the procedures that documents teach to a memory; what is done is not asked again.

    A document that has changed is read again, and procedures that no document teaches any more are
    marked stale. Of procedures for the same task one is made, or both are linked. A document that
    cannot be read or built is named in the report, and tried again by the next build.

    Args:
        sources: What the documents are read from: see `list_documents`.
        memory: The memory, or its URL; a database that is not there is made.
        embeddings: Those of a memory that is opened by its URL, as `open_memory` takes them.
        model: The model that reads the documents, as an object or a name.
        context: The settings of the extraction, `strict` and `verify` among them.
        ledger: The file with the records; None for one beside the memory.
        concurrency: The most model calls at the same time.
        max_calls: Begin no further document after so many calls, those of earlier builds included.
        callbacks: The callbacks of every run, such as a tracer.
        on_progress: Is told of the progress after each document.

    Raises:
        BadInput: A source, a setting, the model or the ledger cannot be used.
        ReadOnlyMemory: The memory cannot be changed.
        RunStopped: The calls are used up, the model refuses every call, or the memory or the ledger
            cannot be written. What is finished is kept, and the same build goes on from there.
    """
    if concurrency < 1:
        raise BadInput(f"concurrency must be at least 1, not {concurrency}")
    settings = ExtractContext.model_validate(context or {})
    reader = Reader(settings, {"model": model} if model else {}, callbacks)
    await reader.check_models()  # before a memory or a ledger is made
    listing = await asyncio.to_thread(list_documents, sources)
    if isinstance(memory, str):
        opened = await asyncio.to_thread(open_memory, memory, embeddings=embeddings)
    else:
        opened = memory
    try:
        with Ledger(ledger or ledger_of(opened.name), opened.name) as records:
            shared = settings.model_dump(include=_SHARED, exclude_unset=True)
            comparer = Comparer(
                opened,
                model,
                ledger=records,
                settings=DuplicatesContext(**shared),
                config={"callbacks": [*callbacks]},
            )
            number = len(listing.documents)
            report = BuildReport(page=records.page, documents=number, failed=listing.failed)
            # Documents and their parts together make no more calls than `concurrency`.
            parts = concurrency // min(concurrency, number)
            left = float("inf") if max_calls is None else max_calls - records.calls()
            build = _Build(reader, Placer(comparer), opened, records, report, parts, left)
            jobs = (partial(build.document, listed, on_progress) for listed in listing.documents)
            try:
                await build.check_memory()
                await side_by_side(jobs, concurrency)
            except (MemoryFailure, ModelFailure) as error:
                raise RunStopped(
                    f"{error}; what was found is kept in {records.path}, "
                    "and the same command goes on from there"
                ) from error
            finally:
                write_page(records, opened.name, report.failed)
            if build.refused:
                raise RunStopped(
                    f"the budget of {max_calls:,} calls is used up: {report.done:,} of {number:,} "
                    "documents are done; a larger one goes on from there"
                )
            return report
    finally:
        if opened is not memory:
            await opened.aclose()


@dataclass
class _Build:
    """One build while it runs."""

    reader: Reader
    placer: Placer
    memory: ProcedureMemory
    ledger: Ledger
    report: BuildReport
    parts: int
    """The most parts of a document that are read at the same time."""
    calls_left: float
    refused: bool = False
    """Whether documents were left out because no calls were left."""

    async def check_memory(self) -> None:
        """Have everything added again where the memory has nothing of what was added last.

        Then it is another one by the same name, or an emptied one. What somebody removed from it
        stays out.
        """
        ids = [each.id for record in self.ledger.latest() for each in record.placed]
        stored = await asyncio.to_thread(lambda: [*map(self.memory.get, filter(None, ids))])
        if ids and not any(stored):
            self.ledger.place_again()

    async def document(self, listed: Listed, on_progress: Callable[[BuildReport], object]) -> None:
        """Build a document, unless it is done or no calls are left."""
        earlier = self.ledger.get(listed.key)
        try:
            record = await self._record(listed, earlier)
        except (Unreadable, SourceFailure) as error:
            # What is known of it stays: where its folder is back, it need not be read again.
            self.report.failed.append(Failed(listed.source, str(error)))
            self.report.done += 1
            return
        if record is None:
            self.refused = True
            return
        if record is not earlier:
            self.ledger.put(listed.key, record)  # it is paid for
        if not record.done:
            await self._place(record)
            self.ledger.put(listed.key, record)
        self.report.count(record)
        on_progress(self.report)

    async def _record(self, listed: Listed, earlier: Record | None) -> Record | None:
        """Return the record of a document: the ledger's, or what a model finds now.

        None where no calls are left.
        """
        document, digest = None, ""
        if earlier and listed.stamp and earlier.stamp == listed.stamp:
            digest = earlier.digest
        else:
            document = await asyncio.to_thread(listed.read)
            digest = document.digest
        if plan_document(earlier, digest, self.reader.identity) != "read":
            self.report.unchanged += 1
            return earlier
        if self.calls_left < 1:
            return None
        if document is None:  # it is as it was; the settings are not
            document = await asyncio.to_thread(listed.read)
        self.calls_left -= 1  # until it is known how many it takes
        record = await self.reader.read(listed, document, self.parts)
        self.calls_left += 1
        self._count(record.usage)
        if earlier:
            ids = [each.id for each in earlier.placed if each.id]
            record.taught = [*earlier.taught, *ids]
            if earlier.error:  # its calls are paid for, too
                record.usage = add_usage(earlier.usage, record.usage)
        return record

    def _count(self, usage: Usage) -> None:
        self.calls_left -= usage["calls"]
        self.report.usage = add_usage(self.report.usage, usage)

    async def _place(self, record: Record) -> None:
        """Add the procedures of a record to the memory; mark what its document taught before."""
        procedures: dict[int, Procedure] = {}
        for number, draft in enumerate(record.procedures):
            with suppress(BadInput):  # it is too long
                procedures[number] = _procedure(record, draft)
        if not record.error:
            # Before the new ones are added, which are not to be merged with what they replace.
            ids = {procedure.id for procedure in procedures.values()}
            stale = await asyncio.to_thread(self._mark_stale, record, ids)
            self.report.stale += stale  # not read before others have counted theirs
        record.placed = [Placed("", "failed", "it is too long")] * len(record.procedures)
        for number, procedure in procedures.items():
            step = await self.placer.place(procedure)
            name = step.stored.id if step.stored and step.how != "linked" else procedure.id
            record.placed[number] = Placed(name, step.how, step.verdict.why)
            for verdict in step.verdicts:
                record.usage = add_usage(record.usage, verdict.usage)
                record.warnings += verdict.warnings
                self._count(verdict.usage)
        if not record.error:
            record.done, record.taught = True, []

    def _mark_stale(self, record: Record, ids: set[str]) -> int:
        """Mark what a document taught before and does not teach now; return how many are stale."""
        before = {name: self.memory.get(name) for name in record.taught if name not in ids}
        absent = {name for name in ids if self.memory.get(name) is None}
        change = partial(without_document, document=record.source)
        names = plan_stale(filter(None, before.values()), absent)
        changed = [changed_in(self.memory, name, change) for name in names]
        return sum(bool(each and each.metadata.get("stale")) for each in changed)


def _procedure(record: Record, draft: Drafted) -> Procedure:
    """Return the procedure that a document teaches.

    Raises:
        BadInput: It has no output, input or steps, or is too long.
    """
    teacher = Teacher(record.source, draft["source"], record.digest, record.spec)
    names = [name for flagged in draft["flagged"] for name in flagged["names"]]
    provenance = Provenance(
        teachers=(teacher,),
        model=record.model,
        at=record.at,
        flagged=tuple(dict.fromkeys(names)),
        verified=draft["verified"],
        missing=draft["missing"],
    )
    return provenance.on(Procedure(draft["input"], draft["output"], tuple(draft["steps"])))
