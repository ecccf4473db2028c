"""Build a memory from documentation: each document is read whole, and the procedures that it teaches are added."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from stepcraft.building.directory import BuildDirectory, Counts, Known, Placed, Record
from stepcraft.building.documents import Document, Listed, Unreadable, known_as
from stepcraft.building.duplicates import Comparer, Duplicates, OnDuplicate, in_background, renew
from stepcraft.building.extraction import METHOD, Extraction
from stepcraft.building.placing import Before, as_untaught, links_of, procedure_of
from stepcraft.building.report import write_page
from stepcraft.building.settings import DuplicatesContext, ExtractContext
from stepcraft.building.sources import Source, list_documents
from stepcraft.concurrency import in_thread
from stepcraft.contexts.base import Settings
from stepcraft.errors import (
    BadInput,
    Failed,
    MemoryFailure,
    ModelFailure,
    RunStopped,
    SourceFailure,
)
from stepcraft.evals.evaluate import side_by_side
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Finished, Progress, Tally, unpriced
from stepcraft.llm.usage import add_usage
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.urls import path_of, scheme_of
from stepcraft.models.resolve import EXTRACTIVE
from stepcraft.nodes.begin import KEYLESS
from stepcraft.progress import counted

CONCURRENCY = 16
"""Model calls at the same time, unless another number is named."""

_SHARED = set(Settings.model_fields) - {"node_models"}
"""The settings of extraction that comparisons have, too."""


@dataclass(kw_only=True)
class BuildReport(Counts):
    """What came of the documents of a build, those included that earlier builds finished."""

    directory: Path
    """Where the records are."""
    page: Path
    """The page that shows them."""
    documents: int
    unchanged: int = 0
    """Documents that were done before."""
    failed: list[Failed] = field(default_factory=list[Failed])
    """Documents that could not be built, which the next build tries again, and what could not be listed or added."""
    warnings: list[str] = field(default_factory=list[str])

    def count(self, record: Record) -> None:
        """Count what became of a document."""
        super().count(record)
        self.failed += [
            Failed(record["source"], f"a procedure was not added: {placed['reason']}")
            for placed in record["placed"] or ()
            if placed["how"] == "failed"
        ]
        if record["error"]:
            self.failed.append(Failed(record["source"], record["error"]))


async def build_memory(
    sources: Sequence[Source],
    memory: str | ProcedureMemory,
    *,
    embeddings: str | Embeddings | None = None,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    context: ExtractContext | Mapping[str, Any] | None = None,
    on_duplicate: OnDuplicate = "merge",
    directory: Path | None = None,
    concurrency: int = CONCURRENCY,
    budget: Budget | None = None,
    prices: Prices | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    on_begin: Callable[[str], object] = lambda _sentence: None,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> BuildReport:
    """Add the procedures that documents teach to a memory; documents that are done are not asked again.

    A document that has changed is built again, and procedures that it no longer teaches are marked stale. A document that
    cannot be read or built is named in the report, and tried again by the next build.

    Args:
        sources: What the documents are read from: see `list_documents`.
        memory: The memory, or its URL; a database that is not there is made.
        embeddings: Those of a memory that is opened by its URL, as `open_memory` takes them.
        model: The model that reads the documents, as an object or a name.
        node_models: Another model for some nodes ("extract", "verify").
        context: The settings of the extraction, `strict` and `verify` among them.
        on_duplicate: What becomes of a procedure for whose task the memory has one already: see `Duplicates`.
        directory: Where the records are kept; None for a folder beside the memory.
        concurrency: The most model calls at the same time. With more than one, other documents are prepared and added
            meanwhile.
        budget: When to stop.
        prices: What tokens cost; None for the prices in STEPCRAFT_PRICES.
        callbacks: The callbacks of every run, such as a tracer.
        on_begin: Is told, in a sentence, what is about to be built.
        on_progress: Is told of the progress before and after each document.

    Raises:
        BadInput: A source, a setting, the model or the directory cannot be used.
        ReadOnlyMemory: The memory cannot be changed.
        RunStopped: The budget is used up, the model refuses every call, or the memory or the directory cannot be written.
            What is finished is kept, and the same build goes on from there.
    """
    if concurrency < 1:
        raise BadInput(f"concurrency must be at least 1, not {concurrency}")
    budget, prices = budget or Budget(), Prices.of(None) if prices is None else prices
    at_once = 2 * concurrency - 1
    turns = asyncio.Semaphore(concurrency)
    settings = ExtractContext.model_validate(context or {})
    extraction = Extraction(
        settings, prices, model=model, node_models=node_models, callbacks=callbacks, turns=turns
    )
    if budget.usd is not None and prices.price(extraction.model) is None:
        raise BadInput(unpriced(METHOD, extraction.model))
    await extraction.check_models()  # before a memory or a directory is made
    listing = await in_background(partial(list_documents, sources))
    if isinstance(memory, str):
        opened = await in_background(partial(open_memory, memory, embeddings=embeddings))
    else:
        opened = memory
    try:
        comparer = Comparer(
            opened,
            model,
            context=DuplicatesContext(**settings.model_dump(include=_SHARED, exclude_unset=True)),
            config={"callbacks": [*callbacks]},
            turns=turns,
        )
        duplicates = Duplicates(comparer, on_duplicate)
        with BuildDirectory(directory or directory_of(opened.name), _short(opened.name)) as kept:
            tally = Tally[Finished](
                {METHOD: len(listing.documents)},
                slots=at_once,
                budget=budget,
                cost=lambda _outcome: None,
                tell=on_progress,
            )
            report = BuildReport(
                directory=kept.path,
                page=kept.page,
                documents=len(listing.documents),
                failed=list(listing.failed),
            )
            if extraction.model == EXTRACTIVE:
                report.warnings.append(KEYLESS)
            build = _Build(extraction, opened, duplicates, kept, tally, report)
            await build.prepare()
            documents = known_as(listing.documents, [*kept.known, *build.before.by_document])
            recorded = sum(listed.source in kept.known for listed in documents)
            done = f", of which {recorded:,} are recorded" if recorded else ""
            on_begin(
                f"{counted(len(documents), 'document')}{done}, read by {extraction.model}, into {opened.name}; "
                f"the records are in {kept.path}"
            )
            jobs = (partial(build.document, listed) for listed in documents)
            for listed in documents:
                if known := kept.known.get(listed.source):
                    tally.add(
                        known.usage,
                        extraction.cost(known.usage) if known.usd is None else known.usd,
                    )
            try:
                await side_by_side(jobs, at_once)
            finally:
                build.show()
            tally.check_finished(len(documents) - tally.refused, "documents")
            if build.gone:
                report.warnings.append(
                    f"{opened.name} no longer has {counted(build.gone, 'procedure')} of earlier builds; what was removed is "
                    "not added again, unless --directory names a new folder for the records"
                )
            return report
    finally:
        if opened is not memory:
            await opened.aclose()


def directory_of(memory: str) -> Path:
    """Where the records of a memory's builds are kept: beside its file, or in the working directory."""
    if scheme_of(memory) in {"", "file"}:
        with suppress(BadInput):  # it has no file
            path = path_of(memory)
            return path.with_name(f"{path.name}.build")
    return Path(f"{_short(memory)}.build")


def _short(memory: str) -> str:
    """The last part of a memory's name, without options, as the name of a file."""
    return (
        re.sub(r"[^\w.-]", "", memory.partition("?")[0].rstrip("/").rpartition("/")[2]) or "memory"
    )


@dataclass
class _Build:
    """One build while it runs."""

    extraction: Extraction
    memory: ProcedureMemory
    duplicates: Duplicates
    kept: BuildDirectory
    tally: Tally[Finished]
    report: BuildReport
    before: Before = field(default_factory=Before)
    gone: int = 0
    """Procedures that somebody has removed since earlier builds added them."""
    unread: list[Failed] = field(default_factory=list[Failed])
    """Documents that could not be read."""

    async def prepare(self) -> None:
        """Look at what the memory and the records hold.

        Raises:
            RunStopped: The memory cannot be read.
        """
        identity = self.extraction.identity
        self.extraction.answered = any(
            known.asked and known.settings == identity for known in self.kept.known.values()
        )
        try:
            self.before = await in_background(partial(Before.of, self.memory))
        except MemoryFailure as error:
            raise self._stopped(error) from error
        added = [name for known in self.kept.known.values() for name in known.ids]
        if added and not any(map(self.before.has, added)):
            await in_background(self.kept.forget_placed)  # it is another memory, or an emptied one

    async def document(self, listed: Listed) -> None:
        """Build a document unless it is done or the budget is used up.

        Raises:
            RunStopped: No further document can be built.
        """
        is_free = self.kept.has_finished(listed.source)
        if not self.tally.begin(is_free=is_free):
            return
        known = None
        try:
            document = (
                listed.read()
                if listed.at_hand
                else await asyncio.wrap_future(in_thread(listed.read))
            )
        except (Unreadable, SourceFailure) as error:
            # What is known of it stays: where its folder is back, it need not be built again.
            record = self.extraction.begun(listed)
            record["error"] = str(error)
            self.unread.append(Failed(listed.source, str(error)))
        else:
            if is_free and not self._is_unchanged(listed, document):
                is_free = False
                if not self.tally.asks():
                    self.tally.running -= 1
                    return
            record, known = await self._record(listed, document)
            try:
                await self._place(record)
            except (MemoryFailure, ModelFailure) as error:
                raise self._stopped(error) from error
        self.report.count(record)
        # What earlier builds used is counted already.
        usage: dict[str, Any] = {
            name: record["usage"][name] - (known.usage[name] if known else 0)
            for name in ("calls", "input_tokens", "output_tokens")
        }
        self.tally.end(
            Finished(
                method=METHOD,
                id=record["source"],
                output={},
                error=record["error"],
                usage=usage,
                seconds=record["seconds"],
                models=[record["model"]],
                usd=self.extraction.cost(usage) if known else record["usd"],
            ),
            is_free=is_free,
        )

    def _is_unchanged(self, listed: Listed, document: Document) -> bool:
        """Whether an earlier build has read a document as it is, with the same models and settings."""
        known, now = self.kept.known.get(listed.source), (document.digest, self.extraction.identity)
        return known is not None and not known.failed and (known.digest, known.settings) == now

    async def _record(self, listed: Listed, document: Document) -> tuple[Record, Known | None]:
        """The record of a document: an earlier one if nothing has changed, else what the model finds now.

        With it, what is known of an earlier one whose usage it has.
        """
        known = self.kept.known.get(listed.source)
        if self._is_unchanged(listed, document) and (earlier := self.kept.record(listed.source)):
            self.report.unchanged += 1
            return earlier, known
        record = await self.extraction.run(document, listed)
        failed = self.kept.record(listed.source) if known and known.failed else None
        if failed:
            record["usage"] = add_usage(failed["usage"], record["usage"])
            record["usd"] = self.extraction.cost(record["usage"])
        if record["procedures"]:
            self.kept.add(record)  # what is found is paid for, and is not lost while it is added
        return record, known if failed else None

    async def _place(self, record: Record) -> None:
        """Add the procedures of a record to the memory, and mark those as stale that its document taught before.

        Raises:
            MemoryFailure: The memory cannot be read or written.
            ModelFailure: The model refuses to compare procedures.
        """
        if record["placed"] is not None:
            await self._keep(record, record["placed"])
            return
        placed: list[Placed] = []
        procedures: list[tuple[int, Procedure]] = []
        for number in range(len(record["procedures"])):
            placed.append(Placed(id="", how="failed", reason=""))
            try:
                procedures.append((number, _procedure(record, number)))
            except BadInput as error:
                placed[number]["reason"] = str(error)
        if not record["error"]:
            # Before the new ones are added, which are not to be merged with what they replace.
            record["stale"] = await self._mark_stale(
                record["source"], {one.id for _, one in procedures}
            )
        for number, procedure in procedures:
            placed[number] = await self._add(record, procedure)
        record["placed"] = placed
        self.kept.add(record)

    async def _add(self, record: Record, procedure: Procedure) -> Placed:
        """Add a procedure of a record to the memory."""
        made = await self.duplicates.add(procedure)
        record["usage"] = add_usage(record["usage"], made.usage)
        record["usd"] = self.extraction.cost(record["usage"])
        record["warnings"] += made.warnings
        return Placed(id=made.procedure.id, how=made.kind, reason=made.verdict.why)

    async def _keep(self, record: Record, placed: list[Placed]) -> None:
        """Look after the procedures of a document that has not changed, as far as the memory has changed."""
        gone: list[Placed] = []
        is_changed = False
        for number, one in enumerate(placed):
            is_stale, is_there = one["id"] in self.before.stale, self.before.has(one["id"])
            if one["how"] == "skipped" and (is_stale or not is_there):
                # What it was left out for is no longer taught.
                placed[number] = await self._add(record, _procedure(record, number))
                is_changed = True
            elif is_stale:
                # A document that was gone when `memory check --mark` looked for it is back as it was.
                renewed = partial(renew, procedure=_procedure(record, number))
                await self.duplicates.update(one["id"], renewed)
            elif not is_there and one["how"] != "failed":
                gone.append(one)
        if is_changed:
            self.kept.add(record)
        for one in gone:  # not in the record: it may come back
            one["how"] = "gone"
        self.gone += len(gone)

    async def _mark_stale(self, source: str, taught: set[str]) -> list[str]:
        """Mark what a document taught before as stale, unless others teach it, too; return the ids of what was marked.

        Args:
            source: The document.
            taught: The ids of the procedures that it teaches now.
        """
        merged = taught - self.before.ids

        def change(known: Procedure) -> Procedure | None:
            if not merged.isdisjoint(links_of(known)):
                return None
            return as_untaught(known, source, f"{source} no longer teaches it")

        before = sorted(self.before.by_document.get(source, set()) - taught)
        changed = [await self.duplicates.update(name, change) for name in before]
        return [one.id for one in changed if one and "stale" in one.metadata]

    def show(self) -> None:
        """Write the page; where that cannot be, the build is none the worse."""
        try:
            write_page(self.kept.path, self.memory.name, self.unread)
        except OSError as error:
            self.report.failed.append(
                Failed(str(self.kept.page), f"it cannot be written: {error.strerror}")
            )

    def _stopped(self, error: MemoryFailure | ModelFailure) -> RunStopped:
        return RunStopped(
            f"{error}; what was found is kept in {self.kept.path}, and the same command goes on from there"
        )


def _procedure(record: Record, number: int) -> Procedure:
    """The procedure of a record with this number.

    Raises:
        BadInput: It cannot be one.
    """
    built = {
        "from": record["source"],
        **{name: record[name] for name in ("digest", "spec", "model")},
        "at": record["began"],
    }
    return procedure_of(record["procedures"][number], built)
