"""`stepcraft memory`: fill, search and show a procedural memory."""

from pathlib import Path
from typing import Annotated

import typer

from stepcraft.cli.errors import reported
from stepcraft.cli.memory_io import by_prefix, from_stdin, headline, mapping, opened, print_json, tell
from stepcraft.cli.memory_transfer import check, copy
from stepcraft.errors import AddStopped, BadInput

memory_app = typer.Typer(
    help="Fill, search and show a procedural memory.", no_args_is_help=True, rich_markup_mode=None
)

MemoryUrl = Annotated[
    str | None,
    typer.Option(
        "--memory",
        "-m",
        help="A .db, .jsonl, .json or .csv file, or weaviate://host:8080/Collection. "
        "Else STEPCRAFT_MEMORY, else the procedures that ship with stepcraft.",
    ),
]
EmbeddingsName = Annotated[
    str | None,
    typer.Option(
        "--embeddings", help='"wordllama", "none" or provider:model, such as openai:text-embedding-3-small.'
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@memory_app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="JSONL, JSON or CSV files.")],
    memory: MemoryUrl = None,
    embeddings: EmbeddingsName = None,
    fields: Annotated[
        str,
        typer.Option(
            "--map", help="What fields are called: output=title,input=ingredients,steps=directions."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Add the procedures of files; exit status 1 if a record could not be read (the rest goes in)."""
    with reported():
        from stepcraft.cli.progress import counting
        from stepcraft.errors import AddReport, Failed
        from stepcraft.memory.files import check_file, import_file

        report, names, stop = AddReport(), mapping(fields), None
        for file in files:
            check_file(file)
        with opened(memory, embeddings, create=True) as kept, counting("procedures read") as count:
            for file in files:
                count.next_source()
                try:
                    report.include(import_file(kept, file, fields=names, progress=count))
                except BadInput as error:
                    if len(files) == 1:
                        raise
                    report.failed.append(Failed(str(file), str(error)))
                except AddStopped as error:
                    report.include(error.report)
                    stop = error
                    break
        tell(report, as_json=as_json, stop=stop)


@memory_app.command()
def add(
    memory: MemoryUrl = None,
    embeddings: EmbeddingsName = None,
    output: Annotated[str, typer.Option("--output", "-o", help="What the procedure reaches.")] = "",
    input: Annotated[str, typer.Option("--input", "-i", help="What it needs, separated by commas.")] = "",  # noqa: A002 - the field is called input
    step: Annotated[
        list[str] | None, typer.Option("--step", "-s", help="A step; repeat for each, in order.")
    ] = None,
    source: Annotated[str, typer.Option("--source", help="Where the procedure was found.")] = "",
    as_json: AsJson = False,
) -> None:
    """Add one procedure, from options or else as JSON from the standard input."""
    with reported():
        from stepcraft.memory.procedure import Procedure

        if output or input or step:
            procedure = Procedure(output=output, input=input, steps=tuple(step or ()), source=source)
        else:
            procedure = from_stdin()
        with opened(memory, embeddings, create=True) as kept:
            report = kept.add([procedure])
        tell(report, as_json=as_json)


@memory_app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    memory: MemoryUrl = None,
    embeddings: EmbeddingsName = None,
    k: Annotated[int, typer.Option("-k", help="How many to find.")] = 3,
    alpha: Annotated[float | None, typer.Option(help="0 words alone … 1 vectors alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the procedures that fit best, best first."""
    with reported(), opened(memory, embeddings) as kept:
        found = kept.search(query, k, alpha=alpha)
        if as_json:
            print_json([{"score": hit.score, **hit.procedure.to_dict()} for hit in found])
        for hit in [] if as_json else found:
            typer.echo(f"{hit.score:.3f}  {headline(hit.procedure)}")


@memory_app.command("list")
def list_(memory: MemoryUrl = None, as_json: AsJson = False) -> None:
    """List all procedures: the beginning of the id, and what is reached."""
    with reported(), opened(memory, "none") as kept:
        if as_json:
            print_json([procedure.to_dict() for procedure in kept])
        for procedure in [] if as_json else kept:
            typer.echo(headline(procedure))


@memory_app.command()
def show(
    id: Annotated[str, typer.Argument(help="The id, or a beginning of it that no other shares.")],  # noqa: A002 - the field is called id
    memory: MemoryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show one procedure."""
    with reported(), opened(memory, "none") as kept:
        procedure = by_prefix(kept, id)
        if as_json:
            print_json(procedure.to_dict())
            return
        typer.echo(f"{procedure.output}\n\nid      {procedure.id}\nneeds   {procedure.input}")
        if procedure.source:
            typer.echo(f"source  {procedure.source}")
        typer.echo()
        for number, text in enumerate(procedure.steps, 1):
            typer.echo(f"{number}. {text}")


@memory_app.command()
def remove(
    ids: Annotated[list[str], typer.Argument(help="Ids, or beginnings of them that no other shares.")],
    memory: MemoryUrl = None,
) -> None:
    """Forget procedures; all of them, or none if an id is not there."""
    with reported(), opened(memory, "none") as kept:
        removed = kept.delete([by_prefix(kept, id).id for id in ids])  # noqa: A001 - the field is called id
        typer.echo(f"{removed} removed")


@memory_app.command()
def export(
    memory: MemoryUrl = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="A .jsonl file; the standard output unless given.")
    ] = None,
) -> None:
    """Write all procedures as JSONL."""
    with reported(), opened(memory, "none") as kept:
        from stepcraft.memory.files import json_line, write_jsonl

        if to:
            typer.echo(f"{write_jsonl(kept, to)} written to {to}", err=True)
        else:
            for procedure in kept:
                typer.echo(json_line(procedure))


@memory_app.command()
def count(memory: MemoryUrl = None) -> None:
    """Print how many procedures there are."""
    with reported(), opened(memory, "none") as kept:
        typer.echo(kept.count())


memory_app.command()(copy)
memory_app.command()(check)
