"""`stepcraft memory`: fill, search, show, copy and compare memories of procedures."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stepcraft.cli.options import AsJson, check_writable, reported
from stepcraft.cli.output import complain, one_line, print_data, print_json, say
from stepcraft.errors import AddReport, AddStopped, BadInput, Failed

if TYPE_CHECKING:
    from stepcraft.memory.procedure import Procedure
    from stepcraft.memory.protocol import ProcedureMemory

memory_app = typer.Typer(
    help="Fill, search and show a procedural memory.", no_args_is_help=True, rich_markup_mode=None
)

_URLS = (
    "weaviate://host:8080/Collection, or store+postgresql://host/database/name. By default STEPCRAFT_MEMORY"
)
MemoryUrl = Annotated[
    str | None,
    typer.Option(
        "--memory",
        "-m",
        help=f"A .db, .jsonl, .json or .csv file, {_URLS}, or else the procedures that ship with stepcraft.",
    ),
]
ChangedMemoryUrl = Annotated[
    str | None, typer.Option("--memory", "-m", help=f"The memory to change: a .db file, {_URLS}.")
]
FilledMemoryUrl = Annotated[
    str | None,
    typer.Option(
        "--memory", "-m", help=f"The memory to fill: a .db file (made if it is not there), {_URLS}."
    ),
]
EmbeddingsName = Annotated[
    str | None,
    typer.Option(
        "--embeddings", help='"wordllama", "none" or provider:model, such as openai:text-embedding-3-small.'
    ),
]
FieldNames = Annotated[
    str,
    typer.Option(
        "--map", help="The names of the fields in the file: output=title,input=ingredients,steps=directions."
    ),
]


@memory_app.command("import")
@reported()
def import_(
    files: Annotated[
        list[Path], typer.Argument(help="JSONL, JSON or CSV files, or folders of skills (NAME/SKILL.md).")
    ],
    memory: FilledMemoryUrl = None,
    embeddings: EmbeddingsName = None,
    fields: FieldNames = "",
    as_json: AsJson = False,
) -> None:
    """Add the procedures of files and skills. If one cannot be read, the others are added and the exit status is 1."""
    from stepcraft.cli.progress import counting
    from stepcraft.memory.files import import_file
    from stepcraft.memory.skills import import_skills, is_skills_path

    report, names, stop = AddReport(), field_names(fields), None
    extras: dict[str, tuple[str, ...]] = {}
    _check_files(files, names)
    with opened_memory(memory, embeddings, create=True) as opened, counting("procedures read") as count:
        for file in files:
            count.next_source()
            try:
                if is_skills_path(file):
                    skills = import_skills(opened, file, progress=count)
                    report.include(skills)
                    extras |= skills.extras
                else:
                    report.include(import_file(opened, file, fields=names, progress=count))
            except BadInput as error:
                if len(files) == 1:
                    raise
                report.failed.append(Failed(str(file), str(error)))
            except AddStopped as error:
                report.include(error.report)
                stop = error
                break
    for path, others in extras.items():
        say(one_line(f"{path}: only the text was imported, not {', '.join(others)}"), err=True)
    _show_report(report, as_json=as_json, stop=stop)


@memory_app.command()
@reported()
def add(
    memory: FilledMemoryUrl = None,
    embeddings: EmbeddingsName = None,
    output: Annotated[str, typer.Option("--output", "-o", help="What the procedure produces.")] = "",
    input: Annotated[str, typer.Option("--input", "-i", help="What it needs, separated by commas.")] = "",  # noqa: A002 - the field is called input
    step: Annotated[
        list[str] | None, typer.Option("--step", "-s", help="A step; repeat for each, in order.")
    ] = None,
    source: Annotated[str, typer.Option("--source", help="Where the procedure comes from.")] = "",
    as_json: AsJson = False,
) -> None:
    """Add one procedure, given by options or as a JSON object on the standard input."""
    from stepcraft.memory.procedure import Procedure

    if output or input or step:
        procedure = Procedure(output=output, input=input, steps=tuple(step or ()), source=source)
    else:
        if not sys.stdin or sys.stdin.isatty():
            raise BadInput(
                "there is no procedure to add; name it with --output, --input and --step, or give it as JSON on the "
                "standard input"
            )
        try:
            record = json.loads(sys.stdin.buffer.read())
        except (ValueError, RecursionError) as error:
            raise BadInput(f"the standard input is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise BadInput(f"the standard input must hold one JSON object, not a {type(record).__name__}")
        procedure = Procedure.from_dict(record)  # pyright: ignore[reportUnknownArgumentType] - checked there
    with opened_memory(memory, embeddings, create=True) as opened:
        report = opened.add([procedure])
    _show_report(report, as_json=as_json)


@memory_app.command()
@reported()
def search(
    query: Annotated[str, typer.Argument(help="The query to search for.")],
    memory: MemoryUrl = None,
    embeddings: EmbeddingsName = None,
    k: Annotated[int, typer.Option("-k", help="How many procedures to find.")] = 3,
    alpha: Annotated[
        float | None, typer.Option(help="The share of vectors in the score, from 0 (words alone) to 1.")
    ] = None,
    feedback_weight: Annotated[
        float | None,
        typer.Option(
            help="By how much votes move a score at most, from 0 (not at all) to 1; by default 0.1."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the procedures that fit a query best, best first."""
    from stepcraft.memory.feedback import FEEDBACK_WEIGHT, fetched, reranked

    weight = FEEDBACK_WEIGHT if feedback_weight is None else feedback_weight
    wanted = fetched(k, weight)
    with opened_memory(memory, embeddings) as opened:
        found = reranked(opened.search(query, wanted, alpha=alpha), k, weight)
        if as_json:
            print_json([{"score": hit.score, **hit.procedure.to_dict()} for hit in found])
            return
        for hit in found:
            say(f"{hit.score:.3f}  {headline(hit.procedure)}")


@memory_app.command("list")
@reported()
def list_(memory: MemoryUrl = None, as_json: AsJson = False) -> None:
    """List all procedures: the beginning of the id, and the output."""
    with opened_memory(memory, "none") as opened:
        if as_json:
            print_json([procedure.to_dict() for procedure in opened])
            return
        for procedure in opened:
            say(headline(procedure))


@memory_app.command()
@reported()
def show(
    id: Annotated[str, typer.Argument(help="The id, or a beginning of it that no other id has.")],  # noqa: A002 - the field is called id
    memory: MemoryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show one procedure."""
    from stepcraft.memory.feedback import counts, votes
    from stepcraft.memory.history import versions
    from stepcraft.memory.protocol import by_short_id

    with opened_memory(memory, "none") as opened:
        procedure = by_short_id(opened, id)
    if as_json:
        print_json(procedure.to_dict())
        return
    say(f"{procedure.output}\n\nid      {procedure.id}\nneeds   {procedure.input}")
    if procedure.source:
        say(f"source  {procedure.source}")
    if given := votes(procedure):
        say(f"votes   {counts(procedure)}")
        for vote in given:
            if vote["why"]:
                say(f"        {vote['vote']:+}  {one_line(vote['why'])}")
    if stale := procedure.metadata.get("stale"):
        say(f"stale   {one_line(str(stale))}")
    if known := len(versions(procedure)):
        say(f"version {known + 1}; `stepcraft memory history {procedure.id[:8]}` shows the earlier ones")
    say("")
    for number, text in enumerate(procedure.steps, 1):
        say(f"{number}. {text}")


@memory_app.command()
@reported()
def remove(
    ids: Annotated[list[str], typer.Argument(help="Ids, or beginnings of them that no other id has.")],
    memory: ChangedMemoryUrl = None,
) -> None:
    """Remove procedures: all that are named, or none if one of them is not in the memory."""
    from stepcraft.memory.protocol import by_short_id

    with opened_memory(memory, "none") as opened:
        say(f"{opened.delete([by_short_id(opened, prefix).id for prefix in ids])} removed")


@memory_app.command()
@reported()
def export(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="The folder of the skills; with --format skills.")
    ] = None,
    memory: MemoryUrl = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="A .jsonl file; by default the standard output.")
    ] = None,
    form: Annotated[
        Literal["jsonl", "skills"],
        typer.Option("--format", help="JSONL, or a folder with a SKILL.md for each procedure."),
    ] = "jsonl",
) -> None:
    """Write all procedures as JSONL, or as skills that agents read."""
    from stepcraft.memory.files import json_line, write_jsonl
    from stepcraft.policy import real_path

    if form == "skills":
        from stepcraft.memory.skills import write_skills

        if not folder or to:
            raise BadInput("the skills need a folder; write stepcraft memory export --format skills DIR")
        with opened_memory(memory, "none") as opened:
            done = write_skills(opened, folder)
        say(
            f"{done.created} created, {done.updated} updated, {done.unchanged} unchanged in {folder}",
            err=True,
        )
        return
    if folder:
        raise BadInput(f"{folder} is a folder for skills; write --format skills, or --to FILE for JSONL")
    if to:
        if to.suffix.lower() != ".jsonl":
            raise BadInput(f"{to} is no .jsonl file; write --to procedures.jsonl")
        check_writable(to)
    with opened_memory(memory, "none") as opened:
        if to:
            if real_path(to) == real_path(opened.name):
                raise BadInput(f"{to} is the memory that is exported; name another file")
            say(f"{write_jsonl(opened, to)} written to {to}", err=True)
            return
        for procedure in opened:
            print_data(json_line(procedure))


@memory_app.command()
@reported()
def count(memory: MemoryUrl = None) -> None:
    """Print the number of procedures."""
    with opened_memory(memory, "none") as opened:
        say(str(opened.count()))


@memory_app.command()
@reported()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The memory to read.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The memory to fill; created if missing.")],
    embeddings: Annotated[
        str | None, typer.Option("--embeddings", help="The embeddings of the memory to fill.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy all procedures of one memory to another. An interrupted copy is completed by running it again.

    Vectors are copied, not computed, if both memories have the same embeddings and template.
    """
    from stepcraft.cli.progress import counting
    from stepcraft.memory.transfer import copy as copy_procedures

    with (
        opened_memory(source, "none") as read,
        opened_memory(target, embeddings, create=True) as filled,
        counting("procedures copied") as count,
    ):
        try:
            report, stop = copy_procedures(read, filled, progress=count), None
        except AddStopped as error:
            report, stop = error.report, error
    _show_report(report, as_json=as_json, stop=stop)


def opened_memory(url: str | None, embeddings: str | None, *, create: bool = False) -> "ProcedureMemory":
    """Open the memory that a command names.

    Args:
        url: as `open_memory` takes it.
        embeddings: "none" where nothing is embedded; None for the model that the memory was made with.
        create: whether a missing database is created.
    """
    from stepcraft.memory.open import open_memory

    return open_memory(url, embeddings=embeddings, create=create)


def field_names(text: str) -> dict[str, str]:
    """Parse `--map`: "output=title,steps=directions".

    Raises:
        BadInput: the text has another form.
    """
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if any(not equals or not name.strip() for _, equals, name in pairs):
        raise BadInput(
            f"--map {text!r} is not understood; write --map output=title,input=ingredients,steps=directions"
        )
    return {field.strip(): name.strip() for field, _, name in pairs}


def headline(procedure: "Procedure") -> str:
    """A procedure on one line: the beginning of its id, its output, and its votes if it has any."""
    from stepcraft.memory.feedback import counts

    given = counts(procedure)
    marks = [str(given)] if any(given) else []
    if procedure.metadata.get("stale"):
        marks.append("stale")
    said = f"  ({', '.join(marks)})" if marks else ""
    return f"{procedure.id[:8]}  {one_line(procedure.output)}{said}"


def _check_files(files: list[Path], names: dict[str, str]) -> None:
    """Check files before a memory is made for them.

    Raises:
        BadInput: one of them cannot be read, or nothing in the only one is meant as a procedure.
    """
    from stepcraft.memory.files import check_file, read_procedures
    from stepcraft.memory.procedure import Procedure
    from stepcraft.memory.skills import is_skills_path, read_skills

    for file in files:
        if not is_skills_path(file):
            check_file(file)
    if len(files) == 1 and is_skills_path(files[0]):
        next(read_skills(files[0]))
    elif len(files) == 1:
        any(isinstance(outcome, Procedure) for _, outcome in read_procedures(files[0], fields=names))


def _show_report(report: AddReport, *, as_json: bool, stop: AddStopped | None = None) -> None:
    """Print what was added, failures on stderr; exit with 1 if a record failed or the memory did."""
    for failed in report.failed:
        say(one_line(f"{failed.where}: {failed.reason}"), err=True)
    if as_json:
        failures = [{"where": failed.where, "reason": failed.reason} for failed in report.failed]
        counts = {"added": report.added, "present": report.present, "updated": report.updated}
        stopped = {"stopped": str(stop), "in_doubt": list(stop.in_doubt)} if stop else {}
        print_json({**counts, "failed": failures, **stopped})
    else:
        unread = f", {len(report.failed)} failed" if report.failed else ""
        say(f"{report.added} added, {report.present} already there, {report.updated} updated{unread}")
    if stop:
        complain(str(stop))
    if stop or report.failed:
        raise typer.Exit(1)
