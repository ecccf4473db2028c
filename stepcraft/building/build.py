"""Build a memory from documentation: each document is read whole, and the procedures that it teaches are added."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.errors import GraphBubbleUp

from stepcraft.building.directory import REPORT, BuildDirectory, How, Known, Placed, Record
from stepcraft.building.documents import Document, Listed, Unreadable
from stepcraft.building.placing import Placing, built_from, procedure_of
from stepcraft.building.report import page
from stepcraft.building.sources import Source, list_documents
from stepcraft.concurrency import in_thread
from stepcraft.contexts.extract import ExtractContext
from stepcraft.errors import (
    BadInput,
    Failed,
    MemoryFailure,
    ModelFailure,
    ModelUnknown,
    ReadOnlyMemory,
    RunStopped,
    SourceFailure,
)
from stepcraft.evals.evaluate import side_by_side
from stepcraft.evals.local import Calls
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Finished, Progress, Tally, unpriced
from stepcraft.graphs.compile import Graph, resources_of
from stepcraft.graphs.extract import build_extract
from stepcraft.memory.open import open_memory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.urls import scheme_of
from stepcraft.models.resolve import model_name
from stepcraft.secrets import without_secrets

CONCURRENCY = 16
"""Documents that are built at the same time, unless another number is named."""

METHOD = "extract"
_PASSING = frozenset({"max_calls", "deadline_s", "retry_wait_s"})
"""Settings that change nothing of what is built."""
_REFUSALS = 10
"""So many refusals in a row stop a build in which a model has answered before."""


@dataclass
class BuildReport:
    """What came of a build, the documents that earlier builds finished included."""

    directory: Path
    """Where its records and its report page are."""
    documents: int = 0
    unchanged: int = 0
    """Documents that were done before."""
    found: int = 0
    """Procedures that were found."""
    placed: dict[How, int] = field(default_factory=dict[How, int])
    """What became of them."""
    flagged: int = 0
    """Procedures with something that their document does not have."""
    rejected: int = 0
    stale: int = 0
    """Procedures of earlier versions of the documents that were marked stale."""
    failed: list[Failed] = field(default_factory=list[Failed])
    """Documents that could not be built, which the next build tries again, and what could not be listed."""
    warnings: list[str] = field(default_factory=list[str])
    progress: Progress | None = None

    def count(self, record: Record) -> None:
        """Count what became of a document."""
        self.found += len(record["procedures"])
        self.rejected += len(record["rejected"])
        self.flagged += sum(bool(one["flagged"]) for one in record["procedures"])
        self.stale += len(record["stale"])
        for placed in record["placed"] or ():
            self.placed[placed["how"]] = self.placed.get(placed["how"], 0) + 1
            if placed["how"] == "failed":
                self.failed.append(Failed(record["source"], f"a procedure was not added: {placed['reason']}"))
        if record["error"]:
            self.failed.append(Failed(record["source"], record["error"]))


async def build_memory(
    sources: Sequence[Source],
    memory: str | ProcedureMemory,
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    context: ExtractContext | Mapping[str, Any] | None = None,
    directory: Path | None = None,
    concurrency: int = CONCURRENCY,
    budget: Budget | None = None,
    prices: Prices | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    on_begin: Callable[[str], object] = lambda _line: None,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> BuildReport:
    """Add the procedures that documents teach to a memory; documents that are done are not asked again.

    A document that has changed is built again, and procedures that it no longer teaches are marked stale. A document that
    cannot be read or built is named in the report, and tried again by the next build.

    Args:
        sources: What the documents are read from: see `list_documents`.
        memory: The memory, or its URL; a database that is not there is made.
        model: The model that reads the documents, as an object or a name.
        node_models: Another model for some nodes ("extract", "verify").
        context: The settings of the extraction, `strict` and `verify` among them.
        directory: Where the records are kept; None for a folder beside the memory.
        concurrency: The most documents that are built at the same time.
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
    settings = ExtractContext.of(context)
    graph = build_extract(model=model, node_models=node_models)
    budget, prices = budget or Budget(), Prices.of(None) if prices is None else prices
    reader = _model_of(graph, settings, METHOD)
    if budget.usd is not None and prices.price(reader) is None:
        raise BadInput(unpriced(METHOD, reader))
    listing = await _threaded(partial(list_documents, sources))
    opened = await _threaded(partial(open_memory, memory)) if isinstance(memory, str) else memory
    try:
        if opened.read_only:
            raise ReadOnlyMemory(
                f"{opened.name} can be searched, not changed; build into a .db file, Weaviate or Postgres"
            )
        with BuildDirectory(directory or directory_of(opened.name), _short(opened.name)) as kept:
            report = BuildReport(kept.path, len(listing.documents), failed=listing.failed)
            build = _Build(graph, settings, reader, prices, kept, opened, report, callbacks)
            build.tally = Tally[Finished](
                {METHOD: len(listing.documents)},
                slots=concurrency,
                budget=budget,
                cost=lambda _outcome: None,
                tell=on_progress,
            )
            await build.prepare()
            on_begin(build.first_line(len(listing.documents)))
            try:
                await side_by_side(
                    (partial(build.document, listed) for listed in listing.documents),
                    concurrency,
                    lambda: bool(build.tally.stopped),
                )
            finally:
                report.progress = build.tally.progress()
            if build.tally.stopped:
                raise RunStopped(
                    f"{build.tally.stopped}: {report.progress.done:,} of {report.documents:,} documents are done; "
                    "raise it and start the same command again"
                )
            return report
    finally:
        if opened is not memory:
            await opened.aclose()


def directory_of(memory: str) -> Path:
    """Where the records of a memory's builds are kept: beside its file, or in the working directory."""
    if scheme_of(memory) in {"", "file"}:
        path = Path(memory)
        return path.with_name(f"{path.name}.build")
    return Path(f"{_short(memory)}.build")


def _short(memory: str) -> str:
    """The last part of a memory's name, without options."""
    return memory.partition("?")[0].rstrip("/").rpartition("/")[2] or "memory"


class _Build:
    """One build while it runs."""

    tally: Tally[Finished]

    def __init__(
        self,
        graph: Graph,
        settings: ExtractContext,
        reader: str,
        prices: Prices,
        kept: BuildDirectory,
        memory: ProcedureMemory,
        report: BuildReport,
        callbacks: Sequence[BaseCallbackHandler],
    ) -> None:
        self.graph = graph
        self.settings = settings
        self.reader = reader
        self.prices = prices
        self.kept = kept
        self.memory = memory
        self.report = report
        self.callbacks = callbacks
        self.placing = Placing(memory)
        self.fingerprint = _fingerprint(graph, settings)
        self.refusals = 0
        self.answered = any(
            known.asked and known.settings == self.fingerprint for known in kept.known.values()
        )
        self.before: dict[str, set[str]] = {}
        """The procedures of each document that were in the memory when the build began."""
        self.is_empty = False
        """Whether the memory was emptied since it was built, so that what was found is added again."""

    async def prepare(self) -> None:
        """Look at what the memory holds.

        Raises:
            RunStopped: It cannot be read.
        """
        try:
            self.is_empty = await _threaded(self.memory.is_empty)
            self.before = {} if self.is_empty else await _threaded(partial(built_from, self.memory))
        except MemoryFailure as error:
            raise self._stopped(error) from error

    def first_line(self, documents: int) -> str:
        """What is about to be built, and where the records are."""
        done = f", of which {len(self.kept.known):,} are recorded" if self.kept.known else ""
        return (
            f"{documents:,} documents{done} into {self.memory.name}, read by {self.reader}; "
            f"the records are in {self.kept.path}"
        )

    async def document(self, listed: Listed) -> None:
        """Build a document unless it is done.

        Raises:
            RunStopped: No further document can be built.
        """
        self.tally.begin()
        try:
            document = await _threaded(listed.read)
        except (Unreadable, SourceFailure) as error:
            # It keeps the record that it has: where its folder is back, it need not be built again.
            record = self._begun(listed)
            record["error"] = str(error)
        else:
            record = await self._record(listed, document)
            try:
                await self._place(record)
            except MemoryFailure as error:
                raise self._stopped(error) from error
        self.report.count(record)
        self.tally.end(
            Finished(
                method=METHOD,
                id=record["source"],
                output={},
                error=record["error"],
                usage=record["usage"],
                seconds=record["seconds"],
                models=[record["model"]],
                usd=record["usd"],
            )
        )

    async def _record(self, listed: Listed, document: Document) -> Record:
        """The record of a document: an earlier one if it has not changed, else what the model finds in it now."""
        known = self.kept.known.get(listed.source)
        if known and self._is_current(known, document) and (earlier := self.kept.record(listed.source)):
            self.report.unchanged += 1
            if self.is_empty:
                earlier["placed"] = None
            return earlier
        began, record = time.monotonic(), self._begun(listed)
        record["title"], record["digest"] = document.title, document.digest
        if document.note:
            record["warnings"].append(document.note)
        if document.text.strip():
            await self._extract(document, record)
        else:
            record["warnings"].append("it has no text")
        record["seconds"] = round(time.monotonic() - began, 3)
        if record["procedures"]:
            self.kept.add(record)  # what is found is paid for, and is not lost while it is added
        return record

    def _begun(self, listed: Listed) -> Record:
        return Record(
            source=listed.source,
            title="",
            digest="",
            settings=self.fingerprint,
            spec=listed.spec,
            model=self.reader,
            began=datetime.now(UTC).isoformat(timespec="seconds"),
            trace="",
            error="",
            procedures=[],
            rejected=[],
            warnings=[],
            usage={"calls": 0, "input_tokens": 0, "output_tokens": 0, "nodes": {}},
            seconds=0.0,
            usd=0.0,
            placed=None,
            stale=[],
        )

    def _is_current(self, known: Known, document: Document) -> bool:
        return not known.failed and (known.digest, known.settings) == (document.digest, self.fingerprint)

    async def _extract(self, document: Document, record: Record) -> None:
        """Write what the model finds in a document into its record, its usage also where it fails."""
        calls, trace = Calls(), uuid7()
        slots = self.tally.slots
        left = self.tally.total - len(self.tally.failed)
        config: RunnableConfig = {
            "run_id": trace,
            "run_name": without_secrets(document.title or document.source)[:200],
            "callbacks": [calls, *self.callbacks],
            # The sections of a long document share the calls that other documents leave.
            "max_concurrency": max(1, slots // max(1, min(slots, left))),
            "metadata": {"stepcraft_source": without_secrets(document.source)},
        }
        given: dict[str, Any] = {
            "title": document.title,
            "text": document.text,
            "source": document.source,
            "kind": document.kind,
        }
        if document.headings:
            given["headings"] = [asdict(heading) for heading in document.headings]
        record["trace"] = str(trace)
        try:
            result = await self.graph.ainvoke(given, config, context=self.settings)
        except (GraphBubbleUp, ModelUnknown):
            raise
        except Exception as failure:
            record["error"] = without_secrets(f"{type(failure).__name__}: {failure}")[:1000]
            record["usage"] = calls.usage()
            self._check_refusals(failure)
        else:
            self.refusals, self.answered = 0, True
            record["procedures"], record["rejected"] = result["procedures"], result["rejected"]
            record["usage"] = dict(result["usage"])
            record["warnings"] += result["warnings"]
            if unread := result["unread"]:
                parts = "1 part" if unread == 1 else f"{unread} parts"
                why = f": {result['warnings'][-1]}" if result["warnings"] else ""
                record["error"] = f"{parts} of it could not be read{why}"
        finally:
            record["usd"] = self.prices.cost(
                record["usage"], lambda node: _model_of(self.graph, self.settings, node or METHOD)
            )

    def _check_refusals(self, failure: Exception) -> None:
        """Raise RunStopped where the model refuses every call; a single document may be one that it refuses."""
        if not isinstance(failure, ModelFailure):
            return
        self.refusals += 1
        if not self.answered or self.refusals >= _REFUSALS:
            raise RunStopped(f"the build was stopped: {failure}") from failure

    async def _place(self, record: Record) -> None:
        """Add the procedures of a record to the memory, and mark those as stale that its document taught before.

        Raises:
            MemoryFailure: The memory cannot be read or written.
        """
        if record["placed"] is not None:
            return
        built = {"from": record["source"], **{name: record[name] for name in ("digest", "spec", "model")}}
        built["at"] = record["began"]
        placed: list[Placed] = []
        for drafted in record["procedures"]:
            try:
                procedure = procedure_of(drafted, built)
            except BadInput as error:
                placed.append(Placed(id="", how="failed", reason=str(error)))
            else:
                placed.append(await self.placing.place(procedure))
        record["placed"] = placed
        if not record["error"]:
            before = self.before.get(record["source"], set()) - {one["id"] for one in placed}
            reason = f"{record['source']} has changed and no longer teaches it"
            record["stale"] = await self.placing.mark_stale(before, record["source"], reason)
        self.kept.add(record)

    def _stopped(self, error: MemoryFailure) -> RunStopped:
        return RunStopped(
            f"{error}; what was found is kept in {self.kept.path}, and the same command goes on from there"
        )


def _fingerprint(graph: Graph, settings: ExtractContext) -> str:
    """Identifies the models and the settings that documents are built with."""
    chosen = {
        "models": {node: _model_of(graph, settings, node) for node in settings.model_nodes},
        "settings": {
            name: value for name, value in settings.for_state()["values"].items() if name not in _PASSING
        },
    }
    text = json.dumps(chosen, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _model_of(graph: Graph, settings: ExtractContext, node: str) -> str:
    """The name of the model that a node asks."""
    choice = resources_of(graph).models.choice(node, settings)
    return choice if isinstance(choice, str) else model_name(choice)


async def _threaded(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the call returns
    return await asyncio.wrap_future(in_thread(call))
