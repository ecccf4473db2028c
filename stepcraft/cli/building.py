"""`stepcraft memory build`, `check` and `dedupe`: memories and their documents."""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from typer import Argument, Exit, Option
from typing_extensions import Unpack

from stepcraft.cli.memory import FieldNames, compare, field_names, headline, opened
from stepcraft.cli.options import (
    AsJson,
    ChangedMemory,
    Embeddings,
    Model,
    Quiet,
    Settings,
    WorkOptions,
    fields_of,
    unpacked,
    work_arguments,
)
from stepcraft.cli.output import note, one_line, progress_lines, say, show_counts, show_failed
from stepcraft.errors import BadInput, Failed

if TYPE_CHECKING:
    from stepcraft.building.plan import Plan
    from stepcraft.evals.prices import Prices
    from stepcraft.memory.procedure import Procedure

T = TypeVar("T")


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do work that is kept; where Ctrl-C stops it, say how it goes on."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        note("stopped; the same command goes on from here")
        raise


@unpacked
def build(
    sources: Annotated[
        list[str],
        Argument(
            metavar="SOURCE…",
            help="corpus:PATH or a path, https://…, weaviate://host:8080/Collection, "
            "package.module:attribute (a loader), traces:FILE.jsonl or langsmith:PROJECT.",
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
    on_duplicate: Annotated[
        Literal["merge", "keep", "skip"],
        Option(help="A procedure for whose task there is one already: merge, keep or skip."),
    ] = "merge",
    directory: Annotated[
        Path | None, Option(help="Where the records are kept; by default beside the memory.")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="List the documents and their cost; ask no model.")
    ] = False,
    settings: Settings = None,
    as_json: AsJson = False,
    **options: Unpack[WorkOptions],
) -> None:
    """Add the procedures that documents teach to a memory.

    The same command goes on with a build that was stopped, and builds again what has changed. The
    exit code is 1 if a document could not be built.
    """
    from stepcraft.building.build import build_memory, directory_of
    from stepcraft.building.extraction import Extraction
    from stepcraft.building.plan import plan_build
    from stepcraft.building.settings import ExtractContext
    from stepcraft.memory.open import MEMORY_VARIABLE

    where = memory or os.environ.get(MEMORY_VARIABLE, "").strip()
    if not where:
        raise BadInput("there is no memory to build; name one with --memory, such as docs.db")
    context = ExtractContext(**fields_of(settings, strict=strict, verify=verify))
    arguments, quiet = work_arguments(options), options["quiet"]
    if dry_run:
        extraction = Extraction(context, arguments["prices"], model=model)
        plan = plan_build(sources, extraction, directory or directory_of(where))
        _show_plan(plan, arguments["prices"], extraction.model, as_json=as_json)
        return
    report = finish(
        build_memory(
            sources,
            where,
            embeddings=embeddings,
            model=model,
            context=context,
            on_duplicate=on_duplicate,
            directory=directory,
            on_begin=(lambda _: None) if quiet else note,
            **arguments,
        )
    )
    for warning in () if quiet else report.warnings:
        note(f"warning: {warning}")
    show_failed(report.failed)
    show_counts({**vars(report), **report.placed}, as_json=as_json)
    if not as_json:
        say(f"the page is {report.page}")
    if report.failed:
        raise Exit(1)


def _show_plan(plan: "Plan", prices: "Prices", model: str, *, as_json: bool) -> None:
    """Print what a build would ask at most; exit with 1 if a document cannot be read."""
    show_failed(plan.failed)
    totals = {name: getattr(plan, name) for name in ("calls", "input_tokens", "output_tokens")}
    usd = prices.cost({**totals, "nodes": {}}, lambda _node: model)
    for document in () if as_json else plan.documents:
        sections = "done" if document.done else f"{document.sections:,} sections"
        size = f"{document.characters:>9,} characters"
        say(f"{sections:>12}  {size}  {one_line(document.source)}")
    show_counts({**vars(plan), **totals, "usd": usd}, as_json=as_json)
    if plan.failed:
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
    from stepcraft.memory.procedure import Procedure

    expected: list[Procedure] = []
    for _, outcome in read_procedures(file, fields=names):
        if isinstance(outcome, Failed):
            raise BadInput(f"{outcome.where}: {outcome.reason}; nothing was compared")
        expected.append(outcome)
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
    on_duplicate: Annotated[
        Literal["merge", "keep"],
        Option(help="Make one of two procedures for the same task, or keep and link them."),
    ] = "merge",
    threshold: Annotated[
        float | None,
        Option(
            help="The share of common words from which on two are compared; by default 0.5.",
        ),
    ] = None,
    concurrency: Annotated[int, Option(min=1, help="Compare N at a time.")] = 8,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Ask the model, and change nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Merge or link the procedures that are for the same task.

    The same command goes on with a run that was stopped.
    """
    from stepcraft.building.dedupe import dedupe as dedupe_memory
    from stepcraft.building.duplicates import Comparer, check_writable
    from stepcraft.building.verdicts import VerdictFile

    with opened(memory, embeddings) as target, closing(VerdictFile()) as verdicts:
        if not dry_run:
            check_writable(target)
        comparer = Comparer(target, model, threshold=threshold, cache=verdicts)
        work = dedupe_memory(
            comparer,
            on_duplicate,
            concurrency=concurrency,
            dry_run=dry_run,
            on_progress=progress_lines(quiet=quiet),
        )
        result = finish(work)
    would = "would be " if dry_run else ""
    for change in () if as_json else result.changes:
        how = f"{would}{change.kind}"
        say(f"{headline(change.kept)}\n    {headline(change.other)}  ({how})")
        if change.verdict.left_out:
            say(f"    left out: {one_line(', '.join(change.verdict.left_out))}")
    counts = {f"{would}{kind}": result.count(kind) for kind in ("merged", "linked")}
    show_counts({**vars(result), **counts}, as_json=as_json)
    for warning in () if quiet else result.warnings:
        note(f"warning: {warning}")
    if result.undecided:
        raise Exit(1)
