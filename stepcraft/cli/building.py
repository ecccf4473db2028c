"""`stepcraft memory build`, `check` and `dedupe`: memories and their documents."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Argument, Exit, Option

from stepcraft.cli.memory import FieldNames, compare, field_names, headline, opened
from stepcraft.cli.options import (
    AsJson,
    ChangedMemory,
    Embeddings,
    Model,
    Quiet,
    Settings,
    fields_of,
)
from stepcraft.cli.output import note, one_line, progress_lines, say, show_counts, show_failed
from stepcraft.errors import BadInput, Failed

if TYPE_CHECKING:
    from stepcraft.building.settings import ExtractContext
    from stepcraft.llm.usage import Usage
    from stepcraft.memory.procedure import Procedure

T = TypeVar("T")

LedgerFile = Annotated[
    Path | None,
    Option("--ledger", help="The file with the records of builds; by default beside the memory."),
]


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do work that is kept; where Ctrl-C stops it, say how it goes on."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        note("stopped; the same command goes on from here")
        raise


def build(
    sources: Annotated[
        list[str],
        Argument(
            metavar="SOURCE…",
            help="corpus:PATH or a path, https://…, package.module:attribute (a loader), "
            "threads:FILE.jsonl or langsmith:PROJECT.",
        ),
    ],
    memory: ChangedMemory = None,
    embeddings: Embeddings = None,
    model: Model = None,
    strict: Annotated[
        bool,
        Option("--strict", help="Reject procedures that name what their document does not have."),
    ] = False,
    verify: Annotated[
        bool,
        Option("--verify", help="Ask whether each procedure can be followed by its steps alone."),
    ] = False,
    ledger: LedgerFile = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="List the documents and their calls at most; ask no model.")
    ] = False,
    concurrency: Annotated[int, Option(min=1, help="Make N calls at a time.")] = 8,
    max_calls: Annotated[
        int | None, Option(min=1, help="Stop after N model calls, earlier builds included.")
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add the procedures that documents teach to a memory.

    The same command goes on with a build that was stopped, and builds again what has changed. The
    exit code is 1 if a document could not be built.
    """
    from stepcraft.building.build import BuildReport, build_memory
    from stepcraft.building.settings import ExtractContext
    from stepcraft.memory.open import MEMORY_VARIABLE

    where = memory or os.environ.get(MEMORY_VARIABLE, "").strip()
    if not where:
        raise BadInput("there is no memory to build; name one with --memory, such as docs.db")
    context = ExtractContext(**fields_of(settings, strict=strict, verify=verify))
    if dry_run:
        _estimate(sources, where, ledger, context, model, as_json=as_json)
        return
    show = _progress(quiet=quiet)

    def progress(report: BuildReport) -> None:
        show(report.done, len(report.failed), report.documents, report.usage)

    report = finish(
        build_memory(
            sources,
            where,
            embeddings=embeddings,
            model=model,
            context=context,
            ledger=ledger,
            concurrency=concurrency,
            max_calls=max_calls,
            on_progress=progress,
        )
    )
    for warning in () if quiet else report.warnings:
        note(f"warning: {warning}")
    show_failed(report.failed)
    calls = report.usage["calls"]
    show_counts({**vars(report), **report.placed, "calls": calls}, as_json=as_json)
    if not as_json:
        say(f"the page is {report.page}")
    if report.failed:
        raise Exit(1)


def _progress(*, quiet: bool) -> "Callable[[int, int, int, Usage], None]":
    """Return what prints how far work is: done, failed, in all, and what it used."""
    from stepcraft.evals.progress import Progress

    show = progress_lines(quiet=quiet)

    def progress(done: int, failed: int, total: int, usage: "Usage") -> None:
        tokens = usage["input_tokens"] + usage["output_tokens"]
        show(Progress(done, failed, total, 0.0, usage["calls"], tokens))

    return progress


def _estimate(
    sources: list[str],
    where: str,
    ledger: Path | None,
    context: "ExtractContext",
    model: str | None,
    *,
    as_json: bool,
) -> None:
    """Print what a build would ask at most; exit with 1 if a document cannot be read."""
    from stepcraft.building.estimate import estimate
    from stepcraft.building.ledger import Ledger, ledger_of
    from stepcraft.building.read import Reader

    where = where.partition("?")[0]  # the name of an opened memory has no options
    path = ledger or ledger_of(where)
    reader = Reader(context, model)
    with Ledger(path, where) if path.exists() else nullcontext() as records:
        documents, failed = estimate(sources, reader, records)
    show_failed(failed)
    for document in () if as_json else documents:
        calls = "done" if document.done else f"{document.calls:,} calls"
        say(f"{calls:>12}  {document.characters:>9,} characters  {one_line(document.source)}")
    total = sum(document.calls for document in documents)
    show_counts({"documents": documents, "failed": failed, "calls": total}, as_json=as_json)
    if failed:
        raise Exit(1)


def check(
    memory: Annotated[str, Argument(help="The memory to compare.")],
    file: Annotated[
        Path | None, Argument(help="A JSONL, JSON or CSV file with what to expect.")
    ] = None,
    against: Annotated[
        list[str] | None,
        Option(
            metavar="SOURCE",
            help="Documents that the memory was built from, as in `memory build`; may be repeated.",
        ),
    ] = None,
    mark: Annotated[
        bool, Option("--mark", help="With --against: mark in the memory what is stale.")
    ] = False,
    fields: FieldNames = "",
    as_json: AsJson = False,
) -> None:
    """Compare a memory with a file, or with the documents that it was built from.

    The exit code is 1 if a procedure is missing, extra or different, or its document has changed.
    """
    if bool(file) == bool(against) or (mark and file):
        raise BadInput("name a file to compare the memory with, or --against and its documents")
    result = (
        _check_file(memory, file, field_names(fields))
        if file
        else _check_documents(memory, against or [], mark=mark)
    )
    for name, entries in () if as_json else result.items():
        for entry in entries if isinstance(entries, list) else ():
            say(f"{name:9}  {_line(entry)}")
    show_counts(result, as_json=as_json)
    if any(isinstance(entries, list) and entries for entries in result.values()):
        raise Exit(1)


def _line(entry: "Procedure | tuple[Procedure, str] | Failed") -> str:
    if isinstance(entry, Failed):
        return one_line(f"{entry.where}: {entry.reason}")
    return f"{headline(entry[0])}: {entry[1]}" if isinstance(entry, tuple) else headline(entry)


def _check_file(memory: str, file: Path, names: dict[str, str]) -> dict[str, Any]:
    from stepcraft.memory.files import read_procedures

    failed: list[Failed] = []
    expected = list(read_procedures(file, failed, fields=names))
    for failure in failed:
        raise BadInput(f"{failure.where}: {failure.reason}; nothing was compared")
    with opened(memory) as source:
        return vars(compare(source, expected))


def _check_documents(memory: str, sources: list[str], *, mark: bool) -> dict[str, Any]:
    from stepcraft.building.staleness import check_documents

    with opened(memory, None if mark else "none") as target:
        result = check_documents(target, sources, mark=mark)
    return vars(result)


def dedupe(
    memory: ChangedMemory = None,
    embeddings: Embeddings = None,
    model: Model = None,
    threshold: Annotated[
        float,
        Option(min=0, max=1, help="The share of common words from which on two are compared."),
    ] = 0.5,
    ledger: LedgerFile = None,
    concurrency: Annotated[int, Option(min=1, help="Compare N at a time.")] = 8,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Ask the model, and change nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Merge the procedures that are for the same task, or link them where they contradict.

    The same command goes on with a run that was stopped.
    """
    from stepcraft.building.dedupe import Deduped
    from stepcraft.building.dedupe import dedupe as dedupe_memory
    from stepcraft.building.duplicates import Placer
    from stepcraft.building.ledger import Ledger, ledger_of

    with opened(memory, embeddings) as target:
        show, total = _progress(quiet=quiet), target.count()

        def progress(deduped: Deduped) -> None:
            show(deduped.procedures, deduped.undecided, total, deduped.usage)

        with Ledger(ledger or ledger_of(target.name), target.name) as records:
            placer = Placer(target, model, threshold=threshold, ledger=records, dry_run=dry_run)
            work = dedupe_memory(placer, concurrency=concurrency, on_progress=progress)
            result = finish(work)
    would = "would be " if dry_run else ""
    for step in () if as_json else result.changes:
        if step.stored:
            say(headline(step.stored))
        say(f"    {headline(step.procedure)}  ({would}{step.how})")
        if step.verdict.left_out:
            say(f"    left out: {one_line(', '.join(step.verdict.left_out))}")
    counts = {f"{would}{how}": result.count(how) for how in ("merged", "linked")}
    show_counts({**vars(result), **counts}, as_json=as_json)
    for warning in () if quiet else result.warnings:
        note(f"warning: {warning}")
    if result.undecided:
        raise Exit(1)
