"""`stepcraft memory dedupe`: procedures for the same task become one, or are linked."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepcraft.cli.memory import ChangedMemoryUrl, EmbeddingsName
from stepcraft.cli.options import AsJson, Model, Quiet, reported
from stepcraft.cli.output import one_line, print_json, say
from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from stepcraft.building.dedupe import Change, Deduped


@reported()
def dedupe(
    memory: ChangedMemoryUrl = None,
    embeddings: EmbeddingsName = None,
    model: Model = None,
    on_duplicate: Annotated[
        str,
        typer.Option(
            help='What becomes of two procedures for the same task: "merge" makes one of them, "keep" links them.'
        ),
    ] = "merge",
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="The share of words in common from which on two procedures are compared; 0.5 unless given.",
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1_000, help="Comparisons that are made at the same time.")
    ] = 16,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask the model, say what would be done, and change nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Merge or link the procedures that are for the same task. The same command goes on with a run that was stopped."""
    from rich.console import Console

    from stepcraft.building.dedupe import dedupe as dedupe_memory
    from stepcraft.building.duplicates import Comparer, check_writable
    from stepcraft.building.verdicts import VerdictFile
    from stepcraft.cli.eval_progress import ShownProgress
    from stepcraft.cli.tracing import tracing
    from stepcraft.memory.open import open_memory

    if on_duplicate not in ("merge", "keep"):
        raise BadInput(f"--on-duplicate {on_duplicate!r} cannot be used; it is merge or keep")
    err = Console(stderr=True, quiet=quiet)
    with open_memory(memory, embeddings=embeddings, create=False) as opened:
        if not dry_run:
            check_writable(opened)
        with tracing(err) as callbacks, ShownProgress(quiet=quiet) as progress:
            verdicts = VerdictFile()
            try:
                comparer = Comparer(
                    opened, model, threshold=threshold, cache=verdicts, config={"callbacks": [*callbacks]}
                )
                work = dedupe_memory(
                    comparer,
                    "merge" if on_duplicate == "merge" else "keep",
                    concurrency=concurrency,
                    dry_run=dry_run,
                    on_progress=progress,
                )
                found = asyncio.run(work)
            except KeyboardInterrupt:
                progress.say("stopped; the same command goes on from here")
                raise
            finally:
                verdicts.close()
    if as_json:
        print_json({**_counts(found, dry_run=dry_run), "changes": [_shown(one) for one in found.changes]})
    else:
        _say(found, dry_run=dry_run)
    if not quiet:
        for warning in found.warnings:
            say(one_line(warning), err=True)
    if found.undecided:
        raise typer.Exit(1)


def _say(found: "Deduped", *, dry_run: bool) -> None:
    """Print each change in two or three lines, and the counts."""
    from stepcraft.progress import counted

    would = "would be " if dry_run else ""
    for one in found.changes:
        say(f"{one.kept.id[:8]}  {one_line(one.kept.output)}")
        how = "merged into it" if one.kind == "merged" else "linked to it"
        say(f"    {one.other.id[:8]}  {one_line(one.other.output)}  ({would}{how})")
        if one.verdict.left_out:
            say(f"    left out: {one_line(', '.join(one.verdict.left_out))}")
    counts = _counts(found, dry_run=dry_run)
    parts = [f"{counts['merged']} {would}merged", f"{counts['linked']} {would}linked"]
    if found.undecided:
        parts.append(f"{found.undecided} without a verdict: the same command asks again")
    if found.gone:
        parts.append(f"{found.gone} passed over because somebody else changed or removed one of the two")
    say(
        f"{counted(found.procedures, 'procedure')}, {counted(found.compared, 'pair')} compared: {', '.join(parts)}"
    )


def _counts(found: "Deduped", *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "procedures": found.procedures,
        "compared": found.compared,
        "merged": found.count("merged"),
        "linked": found.count("linked"),
        "undecided": found.undecided,
        "gone": found.gone,
        "usage": found.usage,
        "warnings": found.warnings,
    }


def _shown(change: "Change") -> dict[str, Any]:
    return {
        "kind": change.kind,
        "kept": change.kept.to_dict(),
        "other": change.other.to_dict(),
        "result": change.result.to_dict(),
        "left_out": list(change.verdict.left_out),
    }
