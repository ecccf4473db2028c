"""A run from the command line, from its input to what is printed and written."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from stepcraft.cli.news import show_result
from stepcraft.cli.run import watched
from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, NoAnswer
from stepcraft.nodes.begin import KEYLESS
from stepcraft.report import page


def answer(
    method: str,
    given: Mapping[str, Any],
    context: Context,
    *,
    as_json: bool,
    html: Path | None,
    quiet: bool,
    show_changes: bool = False,
) -> dict[str, Any]:
    """Run a graph, print its answer, and write the page if one is wanted."""
    if html and not html.parent.is_dir():
        raise BadInput(
            f"{html} cannot be written, for there is no folder {html.parent}; make the folder first"
        )
    err, out = Console(stderr=True, quiet=quiet), Console(highlight=False)
    result, times = watched(method, given, context, err)
    if as_json:
        typer.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        show_result(method, result, out, err)
    if show_changes:
        from stepcraft.cli.changes import show_changes as show

        show(result, err if as_json else out)
    if html:
        html.write_text(page(method, {**vars(context), **given}, result, times), encoding="utf-8")
    return result


def check_all_thoughts(result: Mapping[str, Any]) -> None:
    """For `--strict`.

    Raises:
        NoAnswer: a thought could not be checked.
    """
    skipped = [revision for revision in result["revisions"] if revision["skipped"]]
    if skipped:
        count, all_ = len(skipped), len(result["revisions"])
        raise NoAnswer(
            f"{count} of {all_} thoughts could not be checked, and --strict asks for all: {skipped[0]['skipped']}"
        )


def check_all_segments(result: Mapping[str, Any]) -> None:
    """For `--strict`.

    Raises:
        NoAnswer: a segment was written without evidence.
    """
    bare = [segment for segment in result["segments"] if segment["unsupported"]]
    if bare:
        count, all_ = len(bare), len(result["segments"])
        raise NoAnswer(
            f"{count} of {all_} segments rest on no evidence, and --strict asks for all: {bare[0]['plan']}"
        )


def check_all(result: Mapping[str, Any]) -> None:
    """For `--strict` of any graph.

    Raises:
        NoAnswer: there is a warning other than that no language model was asked.
    """
    if told := [warning for warning in result["warnings"] if warning != KEYLESS]:
        raise NoAnswer(f"a part of the work was not done, and --strict asks for all of it: {told[0]}")
    if result.get("revisions"):
        check_all_thoughts(result)
    if result.get("segments"):
        check_all_segments(result)
