"""`stepcraft source`: try a source of evidence."""

from typing import Annotated

from typer import Argument, Option, Typer

from stepcraft.cli.options import AsJson
from stepcraft.cli.output import note, one_line, print_json, say

source_app = Typer(help="Try a source of evidence.", no_args_is_help=True, rich_markup_mode=None)


@source_app.callback()
def source() -> None:
    """Try a source of evidence."""


@source_app.command()
def check(
    spec: Annotated[
        str,
        Argument(
            help="corpus:PATH (several with commas), web, memory, memory:URL, "
            "or package.module:attribute."
        ),
    ],
    query: Annotated[str, Argument(help="The query to search for.")],
    k: Annotated[int, Option("-k", help="Limit on the passages.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show what a source finds for a query: score, title, origin and beginning of each passage."""
    from stepcraft.evidence import NOTES
    from stepcraft.sources.open import open_source

    documents = open_source(spec, k=k).invoke(query)
    for text in documents[0].metadata.get(NOTES, ()) if documents else ():
        note(text)
    if as_json:
        passages = [
            {"id": document.id, **document.metadata, "text": document.page_content}
            for document in documents
        ]
        print_json(passages)
        return
    for document in documents:
        facts = document.metadata
        first = next(filter(str.strip, document.page_content.splitlines()), "")
        title, origin = one_line(facts["title"]), one_line(facts["source"])
        say(f"{facts['score']:.3f}  {title}  ({origin})\n       {one_line(first)[:160]}")
    if not documents:
        note("nothing found")
