"""`stepcraft memory build`, `dedupe`, `credit` and `repair`: memories from documents and runs."""

import asyncio
import os
from collections import Counter
from collections.abc import Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer import Argument, Exit, Option

from stepcraft.cli.memory import Id, headline, opened
from stepcraft.cli.options import (
    AsJson,
    ChangedMemory,
    Embeddings,
    Model,
    Quiet,
    Settings,
    check_changeable,
    fields_of,
)
from stepcraft.cli.output import (
    note,
    progress_lines,
    say,
    show_counts,
    show_failed,
    show_warnings,
)
from stepcraft.errors import BadInput
from stepcraft.text.clean import one_line

if TYPE_CHECKING:
    from stepcraft.building.read import Reader
    from stepcraft.evals.progress import Progress
    from stepcraft.llm.usage import Usage

T = TypeVar("T")

LedgerFile = Annotated[
    Path | None,
    Option("--ledger", help="The file with the records of builds; by default beside the memory."),
]


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run work that can be resumed; if Ctrl-C stops it, say how to continue."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        note("stopped; run the same command again to continue")
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
        Option("--strict", help="Reject procedures with names that their document does not have."),
    ] = False,
    ledger: LedgerFile = None,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="List the documents and the most calls they take; ask no model."),
    ] = False,
    concurrency: Annotated[int, Option(min=1, help="Make N calls at a time.")] = 8,
    max_calls: Annotated[
        int | None,
        Option(min=1, help="Stop after N model calls, including those of earlier builds."),
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add to a memory the procedures that documents teach.

    Rerun the command to resume a stopped build and to reread changed documents. The exit code is
    1 if a document could not be processed.
    """
    from stepcraft.building.build import build_memory
    from stepcraft.building.read import Reader
    from stepcraft.building.settings import ExtractContext
    from stepcraft.memory.open import MEMORY_VARIABLE

    where = memory or os.environ.get(MEMORY_VARIABLE, "").strip()
    if not where:
        raise BadInput("no memory is named; name one with --memory, such as docs.db")
    context = ExtractContext(**fields_of(settings, strict=strict))
    counts: dict[str, Any]
    if dry_run:
        counts = _estimates(sources, where, ledger, Reader(context, model))
        if not as_json:
            for document in counts["documents"]:
                calls = "done" if document.done else f"at most {document.calls:,} calls"
                size = f"{document.characters:>9,} characters"
                say(f"{calls:>20}  {size}  {one_line(document.source)}")
            counts["calls_at_most"] = counts.pop("calls")
    else:
        show = progress_lines(quiet=quiet)
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
                on_progress=lambda report: show(
                    _progress(report.done, len(report.failed), report.documents, report.usage)
                ),
            )
        )
        counts = {**vars(report), **report.placed, "calls": report.usage["calls"]}
        show_warnings(report.warnings, quiet=quiet)
    show_failed(counts["failed"])
    show_counts(counts, as_json=as_json)
    if "page" in counts and not as_json:
        say(f"the page is {counts['page']}")
    if counts["failed"]:
        raise Exit(1)


def _estimates(
    sources: list[str], where: str, ledger: Path | None, reader: "Reader"
) -> dict[str, Any]:
    """Return a build's documents, failures, and numbers of model calls."""
    from stepcraft.building.ledger import Ledger, ledger_of
    from stepcraft.building.read import estimate

    path = ledger or ledger_of(where)
    with Ledger(path, where) if path.exists() else nullcontext() as records:
        documents, failed = estimate(sources, reader, records)
    return {
        "documents": documents,
        "failed": failed,
        "calls_to_read": sum(document.calls_to_read for document in documents),
        "calls": sum(document.calls for document in documents),
    }


def _progress(done: int, failed: int, total: int, usage: "Usage") -> "Progress":
    from stepcraft.evals.calls import total_tokens
    from stepcraft.evals.progress import Progress

    return Progress(done, failed, total, calls=usage["calls"], tokens=total_tokens(usage))


def dedupe(
    memory: ChangedMemory = None,
    embeddings: Embeddings = None,
    model: Model = None,
    ledger: LedgerFile = None,
    concurrency: Annotated[int, Option(min=1, help="Compare N at a time.")] = 8,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Ask the model, but change nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Merge procedures for the same task, and link procedures that contradict each other.

    Rerun the command to resume a stopped run.
    """
    from stepcraft.building.dedupe import Deduped
    from stepcraft.building.dedupe import dedupe as dedupe_memory
    from stepcraft.building.duplicates import Placer
    from stepcraft.building.ledger import Ledger, ledger_of

    with opened(memory, embeddings) as target:
        show, total = progress_lines(quiet=quiet), target.count()

        def progress(deduped: Deduped) -> None:
            show(_progress(deduped.procedures, deduped.undecided, total, deduped.usage))

        with Ledger(ledger or ledger_of(target.name), target.name) as records:
            placer = Placer(target, model, ledger=records, dry_run=dry_run)
            result = finish(dedupe_memory(placer, concurrency=concurrency, on_progress=progress))
    would = "would be " if dry_run else ""
    for plan in () if as_json else result.changes:
        if plan.stored:
            say(headline(plan.stored))
        say(f"    {headline(plan.procedure)}  ({would}{plan.how})")
    counts = {f"{would}{how}": result.count(how) for how in ("merged", "linked")}
    show_counts({**vars(result), **counts}, as_json=as_json)
    show_warnings(result.warnings, quiet=quiet)
    if result.undecided:
        raise Exit(1)


Runs = Annotated[
    list[str], Argument(metavar="RUNS…", help="threads:FILE.jsonl or langsmith:PROJECT.")
]


def credit(runs: Runs, memory: ChangedMemory = None, as_json: AsJson = False) -> None:
    """Credit the outcomes of runs to the procedures that the agents were shown.

    Feedback with the key success or thumbs_up says which runs succeeded. A run counts once,
    however often it is read.
    """
    from stepcraft.building.sources import list_documents
    from stepcraft.memory.credit import record_outcome
    from stepcraft.memory.procedure import MOST_RUNS

    listing, credited = list_documents(runs), 0
    with opened(memory) as target:
        judged = [run for _, run in listing.read() if run.judged is not None and run.shown]
        # The latest first: LangSmith lists them in this order, and a file ends with them.
        projects = [run for run in judged if run.source.startswith("langsmith:")]
        files = [run for run in reversed(judged) if not run.source.startswith("langsmith:")]
        latest = [*projects, *files]
        shown = Counter(id_ for run in latest for id_ in {*run.shown})
        remaining = shown.copy()
        for run in reversed(latest):
            remembered = [id_ for id_ in run.shown if remaining[id_] <= MOST_RUNS]
            remaining.subtract({*run.shown})
            id_, succeeded = _run_id(run.source), bool(run.judged)
            credited += len(record_outcome(target, remembered, succeeded=succeeded, run=id_))
        for each, number in shown.items():
            if number > MOST_RUNS and target.get(each):
                note(
                    f"warning: {number:,} of the runs were shown {each}; only the latest "
                    f"{MOST_RUNS} are credited, as it remembers no more"
                )
    show_failed(listing.failed)
    counts = {"runs": len(listing.documents), "judged": len(judged), "credited": credited}
    failed = {"failed": listing.failed} if listing.failed else {}
    show_counts({**counts, **failed}, as_json=as_json)
    if failed:
        raise Exit(1)


def _run_id(source: str) -> str:
    """Return the id of a run, the same for relative and absolute paths of its file."""
    kind, _, path = source.partition(":")
    return f"{kind}:{Path(path).resolve()}" if kind == "threads" else source


def repair(
    id_: Id,
    run: Annotated[str, Argument(help="The run that failed: threads:FILE.jsonl with one run.")],
    memory: ChangedMemory = None,
    model: Model = None,
    candidate: Annotated[
        bool, Option("--candidate", help="Add it as a second procedure, to see which works.")
    ] = False,
    yes: Annotated[bool, Option("--yes", help="Store it without asking.")] = False,
) -> None:
    """Have a model correct a procedure after a run that followed it and failed.

    The new version is stored once you approve it; the old one stays in the history.
    """
    from dataclasses import replace

    from stepcraft.building.repair import repaired_version
    from stepcraft.building.sources import list_documents
    from stepcraft.memory.history import reason, with_text
    from stepcraft.memory.procedure import Outcomes
    from stepcraft.memory.protocol import by_short_id

    listing = list_documents([run])
    documents = [document for _, document in listing.read()]
    show_failed(listing.failed)
    if len(documents) != 1:
        raise BadInput(
            f"{run} has {len(documents)} runs; name a file with only the one that failed"
        )
    with opened(memory, None) as target:
        check_changeable(target)
        procedure = by_short_id(target, id_)
        new, cause = repaired_version(procedure, documents[0], model=model)
        say(f"cause: {cause or 'unknown'}")
        if not new:
            say("the procedure is not at fault, or the model could not tell; nothing was changed")
            return
        say(new.text())
        if not (yes or typer.confirm("Store it?")):
            say("nothing was changed")
            return
        if candidate:
            untried = replace(new, outcomes=Outcomes(), versions=())
            target.add([replace(untried, id="", key="", metadata={"instead_of": procedure.id})])
        else:
            with reason(cause):
                target.update(procedure.id, lambda kept: with_text(kept, new), made_from=procedure)
        say("added beside it" if candidate else "changed; `stepcraft memory undo` restores it")
