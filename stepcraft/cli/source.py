"""`stepcraft source`: try a source of evidence."""

from typing import Annotated

import typer

from stepcraft.cli.options import AsJson, reported
from stepcraft.cli.output import one_line, print_json, say

source_app = typer.Typer(help="Try a source of evidence.", no_args_is_help=True, rich_markup_mode=None)


@source_app.callback()
def source() -> None:
    """Try a source of evidence."""


@source_app.command()
@reported()
def check(
    spec: Annotated[
        str,
        typer.Argument(
            help="corpus:PATH (several with commas), web, memory, memory:URL, weaviate://host:8080/Collection, "
            "or package.module:attribute."
        ),
    ],
    query: Annotated[str, typer.Argument(help="The query to search for.")],
    k: Annotated[int, typer.Option("-k", help="How many passages to find.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show what a source finds for a query: the score, title and origin of each passage, and how it begins."""
    from rich.console import Console

    from stepcraft.cli.progress import counting
    from stepcraft.cli.tracing import tracing
    from stepcraft.evidence import NOTES
    from stepcraft.sources.open import open_source

    with counting("files read") as count:
        opened = open_source(spec, k=k, progress=count)
    with tracing(Console(stderr=True)) as callbacks:
        found = opened.invoke(query, {"callbacks": [*callbacks]})
    for note in found[0].metadata.get(NOTES, ()) if found else []:
        say(one_line(note), err=True)
    if as_json:
        plain = [
            {
                "id": document.id,
                **{name: document.metadata.get(name, "") for name in ("score", "title", "source")},
                "text": document.page_content,
            }
            for document in found
        ]
        print_json(plain)
        return
    for document in found:
        facts = document.metadata
        first = next((line.strip() for line in document.page_content.splitlines() if line.strip()), "")
        say(f"{facts['score']:.3f}  {one_line(facts['title'])}  ({one_line(facts['source'])})")
        say(f"       {one_line(first)[:160]}")
    if not found:
        say("nothing found", err=True)
