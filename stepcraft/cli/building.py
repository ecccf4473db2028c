"""`stepcraft memory build`: procedures from documentation."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stepcraft.cli.evals import MaxCalls, MaxTokens, MaxUsd, PriceOptions
from stepcraft.cli.memory import EmbeddingsName, FilledMemoryUrl
from stepcraft.cli.options import AsJson, Model, Quiet, Settings, context_fields, reported
from stepcraft.cli.output import one_line, print_json, say
from stepcraft.errors import BadInput, Failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepcraft.building.build import BuildReport
    from stepcraft.building.plan import Plan
    from stepcraft.evals.prices import Prices

_PLACED = ("added", "present", "merged", "linked", "skipped")
_SHOWN = 20
"""Failed documents that are named; the page has all."""

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE…",
        help="corpus:PATH or a path, https://…, weaviate://host:8080/Collection, package.module:attribute (a loader), "
        "traces:FILE.jsonl or langsmith:PROJECT.",
    ),
]


@reported()
def build(
    sources: Sources,
    memory: FilledMemoryUrl = None,
    embeddings: EmbeddingsName = None,
    model: Model = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Reject procedures that name what their document does not have.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Have each procedure read by someone who has only its steps.")
    ] = False,
    on_duplicate: Annotated[
        Literal["merge", "keep", "skip"],
        typer.Option(help="A procedure for whose task there is one already: merge, keep or skip."),
    ] = "merge",
    directory: Annotated[
        Path | None, typer.Option(help="Where the records are kept; by default beside the memory.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the documents and what they would cost; ask no model.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, max=1_000, help="Model calls at the same time.")] = 16,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    price: PriceOptions = None,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add the procedures that documents teach to a memory. The same command goes on with a build that was stopped.

    A document that has changed is built again. The exit status is 1 if a document could not be built.
    """
    from rich.console import Console

    from stepcraft.building.build import build_memory, directory_of
    from stepcraft.building.extraction import Extraction
    from stepcraft.cli.eval_progress import ShownProgress
    from stepcraft.cli.tracing import tracing
    from stepcraft.contexts.extract import ExtractContext
    from stepcraft.evals.prices import Prices
    from stepcraft.evals.progress import Budget
    from stepcraft.memory.open import VARIABLE

    where = memory or os.environ.get(VARIABLE, "").strip()
    if not where:
        raise BadInput("there is no memory to build; name one with --memory, such as --memory docs.db")
    context = ExtractContext(**context_fields(settings, strict=strict, verify=verify))
    prices = Prices.of(price)
    if dry_run:
        from stepcraft.building.plan import plan_build

        extraction = Extraction(context, prices, model=model)
        plan = plan_build(sources, extraction, directory or directory_of(where))
        _show_plan(plan, prices, extraction.model, as_json=as_json)
        return
    err = Console(stderr=True, quiet=quiet)
    with tracing(err) as callbacks, ShownProgress(quiet=quiet) as progress:
        work = build_memory(
            sources,
            where,
            embeddings=embeddings,
            model=model,
            context=context,
            on_duplicate=on_duplicate,
            directory=directory,
            concurrency=concurrency,
            budget=Budget(max_calls, max_tokens, max_usd),
            prices=prices,
            callbacks=callbacks,
            on_begin=progress.say,
            on_progress=progress,
        )
        try:
            report = asyncio.run(work)
        except KeyboardInterrupt:
            progress.say("stopped; the same command goes on from here")
            raise
    _show_report(report, as_json=as_json, quiet=quiet)


def _show_report(report: "BuildReport", *, as_json: bool, quiet: bool) -> None:
    """Print what came of a build; exit with 1 if a document could not be built."""
    from stepcraft.progress import counted

    for warning in () if quiet else report.warnings:
        say(one_line(f"warning: {warning}"), err=True)
    _show_failed(report.failed)
    if as_json:
        print_json(
            {
                "documents": report.documents,
                "unchanged": report.unchanged,
                "procedures": report.procedures,
                **{how: report.placed.get(how, 0) for how in _PLACED},
                "flagged": report.flagged,
                "rejected": report.rejected,
                "stale": report.stale,
                "failed": [{"where": one.where, "reason": one.reason} for one in report.failed],
                "usage": {name: value for name, value in report.usage.items() if name != "nodes"},
                "usd": report.usd,
                "warnings": report.warnings,
                "page": str(report.page),
            }
        )
    else:
        placed = "".join(f", {report.placed[how]:,} {how}" for how in _PLACED if report.placed.get(how))
        say(
            f"{counted(report.documents, 'document')}, {report.unchanged:,} unchanged, {len(report.failed):,} failed"
        )
        say(
            f"{counted(report.procedures, 'procedure')}{placed}; {report.flagged:,} flagged, {report.rejected:,} rejected, "
            f"{report.stale:,} of earlier versions stale"
        )
        say(f"the page is {report.page}")
    if report.failed:
        raise typer.Exit(1)


def _show_plan(plan: "Plan", prices: "Prices", model: str, *, as_json: bool) -> None:
    """Print what a build would ask; exit with 1 if a document cannot be read."""
    from stepcraft.progress import counted

    _show_failed(plan.failed)
    figured = {"input_tokens": plan.input_tokens, "output_tokens": plan.output_tokens}
    usd = prices.cost({**figured, "nodes": {}}, lambda _node: model)
    if as_json:
        print_json(
            {
                "documents": [
                    {
                        "source": one.source,
                        "title": one.title,
                        "characters": one.characters,
                        "sections": one.sections,
                    }
                    | {"done": one.done}
                    for one in plan.documents
                ],
                "failed": [{"where": one.where, "reason": one.reason} for one in plan.failed],
                "calls": plan.calls,
                **figured,
                "usd": usd,
            }
        )
    else:
        for one in plan.documents:
            sections = "done" if one.done else counted(one.sections, "section")
            say(f"{sections:>12}  {one.characters:>9,} characters  {one_line(one.source)}")
        cost = "" if usd is None else f", {usd:,.4f} USD"
        say(
            f"{counted(len(plan.documents), 'document')}; at most about {plan.calls:,} calls, {plan.input_tokens:,} tokens read and "
            f"{plan.output_tokens:,} written{cost}, if no call is repeated"
        )
    if plan.failed:
        raise typer.Exit(1)


def _show_failed(failed: "Sequence[Failed]") -> None:
    for one in failed[:_SHOWN]:
        say(one_line(f"{one.where}: {one.reason}"), err=True)
    if len(failed) > _SHOWN:
        say(f"and {len(failed) - _SHOWN:,} more", err=True)
