"""`stepcraft source`: try a source of evidence, or build a corpus in Weaviate or Postgres."""

from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option, Typer

from stepcraft.cli.options import AsJson, Quiet, tags_of
from stepcraft.cli.output import note, print_json, say, show_counts, show_failed
from stepcraft.errors import BadInput, Failed
from stepcraft.text.clean import one_line

if TYPE_CHECKING:
    from stepcraft.sources.corpus.update import Updated

_EVERY_S = 5.0

source_app = Typer(
    help="Try and build sources of evidence.", no_args_is_help=True, rich_markup_mode=None
)


@source_app.command()
def build(
    corpus: Annotated[str, Argument(help="corpus:PATH: files and folders (several with commas).")],
    into: Annotated[
        str,
        Option(help="weaviate://host:8080/Collection or postgresql://host:5432/database/name."),
    ],
    embeddings: Annotated[
        str | None,
        Option(help='The embeddings of the corpus: "wordllama", "none" or provider:model.'),
    ] = None,
    tag: Annotated[
        list[str] | None,
        Option(
            help="A tag of these files, such as product=kitchen; may be repeated. Files with "
            "other tags stay.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Build or update a corpus in Weaviate or Postgres from files.

    Only changed files are read and embedded; files that no longer exist are removed from the
    corpus. Rerun the command to resume a stopped build. The exit code is 1 if a file could
    not be read.
    """
    from stepcraft.sources.open import corpus_paths
    from stepcraft.sources.shared.retriever import build_corpus

    paths, fields = corpus_paths(corpus.removeprefix("corpus:"))
    report = build_corpus(
        paths,
        into,
        embeddings=embeddings,
        tags=tags_of(tag),
        on_progress=(lambda _report, _total: None) if quiet else _progress(),
        **fields,
    )
    counts = dict(vars(report))
    failed, left_out = (
        [Failed(path, why) for path, why in counts.pop(name).items()]
        for name in ("problems", "left_out")
    )
    show_failed(failed)
    show_counts({**counts, "failed": failed, "left_out": left_out}, as_json=as_json)
    if failed:
        raise Exit(1)


def _progress() -> Callable[["Updated", int], None]:
    """Return a function that prints a build's progress to stderr every five seconds."""
    began = due = monotonic()

    def show(report: "Updated", total: int) -> None:
        nonlocal due
        now = monotonic()
        if now < due + _EVERY_S:
            return
        due = now
        seconds = now - began
        left = seconds / report.files * (total - report.files)
        note(
            f"{report.files:,} of {total:,} files, {report.passages:,} passages, "
            f"{report.passages / seconds:,.0f} a second, about {left:,.0f} s left"
        )

    return show


@source_app.command()
def check(
    spec: Annotated[
        str,
        Argument(
            help="corpus:PATH (several with commas), weaviate://host:8080/Collection, "
            "postgresql://host/database/name, web, memory, memory:URL, or "
            "package.module:attribute."
        ),
    ],
    query: Annotated[str, Argument(help="The query to search for.")] = "",
    k: Annotated[int, Option("-k", help="The number of passages.")] = 5,
    files: Annotated[
        bool, Option("--files", help="List the files of a corpus: read, not read or skipped.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the passages that a source finds for a query: score, title, origin and beginning."""
    from stepcraft.evidence import NOTES
    from stepcraft.sources.open import open_source

    if files and query and as_json:
        raise BadInput("--json prints one list: name a query or --files")
    source = open_source(spec, k=k)
    if files:
        _list_files(source, as_json=as_json)
    if not query:
        if not files:
            raise BadInput("name a query to search for, or --files")
        return
    documents = source.invoke(query)
    notes = documents[0].metadata.get(NOTES, ()) if documents else getattr(source, "notes", ())
    for text in notes:
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
    """List a corpus's files, with the reason for each that was not read or only partly read."""
    from stepcraft.sources.corpus.files import shown_path
    from stepcraft.sources.corpus.retriever import CorpusRetriever

    if not isinstance(source, CorpusRetriever):
        raise BadInput("only a corpus has files; name corpus:PATH")
    reasons = {**dict.fromkeys(source.paths, ""), **source.problems}
    listed = [
        *(("problem" if why else "read", path, why) for path, why in reasons.items()),
        *(("left out", path, why) for path, why in source.left_out.items()),
    ]
    files = [
        {"file": shown_path(path, source.roots), "state": state, "why": why}
        for state, path, why in listed
    ]
    if as_json:
        print_json(files)
        return
    for file in files:
        say(": ".join(filter(None, [f"{file['state']:8}  {one_line(file['file'])}", file["why"]])))
    counts = Counter(file["state"] for file in files)
    note(", ".join(f"{count:,} {state}" for state, count in counts.items()))
