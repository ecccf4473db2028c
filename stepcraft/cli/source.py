"""`stepcraft source`: try a source of evidence."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepcraft.cli.errors import reported

if TYPE_CHECKING:
    from langchain_core.documents import Document

source_app = typer.Typer(help="Try a source of evidence.", no_args_is_help=True, rich_markup_mode=None)


@source_app.callback()
def source() -> None:
    """Try a source of evidence."""


@source_app.command()
def check(
    spec: Annotated[
        str,
        typer.Argument(
            help="corpus:PATH (several with commas), web, memory, memory:URL, weaviate://host:8080/Collection, "
            "or package.module:attribute."
        ),
    ],
    query: Annotated[str, typer.Argument(help="What to look for.")],
    k: Annotated[int, typer.Option("-k", help="How many passages to find.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a source finds for a query: score, title and source, and how the text begins."""
    with reported():
        from stepcraft.cli.progress import counting
        from stepcraft.sources.open import open_source

        _see_own_modules()
        with counting("files read") as count:
            opened = open_source(spec, k=k, progress=count)
        found = opened.invoke(query)
        for note in found[0].metadata.get("notes", []) if found else []:
            typer.echo(note, err=True)
        if as_json:
            typer.echo(json.dumps([_plain(document) for document in found], ensure_ascii=False, indent=2))
        elif found:
            typer.echo("\n".join(_shown(document) for document in found))
        else:
            typer.echo("nothing found", err=True)


def _see_own_modules() -> None:
    """A console script looks for modules beside itself, not in the folder that one works in."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def _plain(document: "Document") -> dict[str, Any]:
    facts = {name: document.metadata.get(name, "") for name in ("score", "title", "source")}
    return {"id": document.id, **facts, "text": document.page_content}


def _shown(document: "Document") -> str:
    facts = document.metadata
    first = next((line.strip() for line in document.page_content.splitlines() if line.strip()), "")
    return f"{facts['score']:.3f}  {facts['title']}  ({facts['source']})\n       {first[:160]}"
