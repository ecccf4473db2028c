"""`stepcraft source`: try a source of evidence."""

from collections import Counter
from typing import Annotated

from typer import Argument, Option, Typer

from stepcraft.cli.options import AsJson
from stepcraft.cli.output import note, one_line, print_json, say
from stepcraft.errors import BadInput

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
    query: Annotated[str, Argument(help="The query to search for.")] = "",
    k: Annotated[int, Option("-k", help="Limit on the passages.")] = 5,
    files: Annotated[
        bool, Option("--files", help="List the files of a corpus: read, not read, left out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a source finds for a query: score, title, origin and beginning of each passage."""
    from stepcraft.evidence import NOTES
    from stepcraft.sources.open import open_source

    source = open_source(spec, k=k)
    if files:
        _list_files(source, as_json=as_json)
    if not query:
        if not files:
            raise BadInput("name a query to search for, or --files")
        return
    documents = source.invoke(query)
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


def _list_files(source: object, *, as_json: bool) -> None:
    """List the files of a corpus, each with why it, or a part of it, was not read."""
    from stepcraft.sources.corpus.files import shown
    from stepcraft.sources.corpus.retriever import CorpusRetriever

    if not isinstance(source, CorpusRetriever):
        raise BadInput("only a corpus has files; name corpus:PATH")
    reasons = {**dict.fromkeys(source.paths, ""), **source.problems}
    listed = [
        *(("problem" if why else "read", path, why) for path, why in reasons.items()),
        *(("left out", path, why) for path, why in source.left_out.items()),
    ]
    files = [
        {"file": shown(path, source.roots), "state": state, "why": why}
        for state, path, why in listed
    ]
    if as_json:
        print_json(files)
        return
    for file in files:
        say(": ".join(filter(None, [f"{file['state']:8}  {one_line(file['file'])}", file["why"]])))
    counts = Counter(file["state"] for file in files)
    note(", ".join(f"{count:,} {state}" for state, count in counts.items()))
