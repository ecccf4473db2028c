"""`stepcraft memory`: fill, search, show, rate and copy memories of procedures."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Exit, Option, Typer

from stepcraft.cli.options import (
    AsJson,
    ChangedMemory,
    Embeddings,
    Memory,
    check_changeable,
    check_writable,
    tags_of,
)
from stepcraft.cli.output import (
    counter,
    note,
    print_data,
    print_json,
    say,
    show_counts,
    show_failed,
)
from stepcraft.errors import AddReport, BadInput, Failed
from stepcraft.text.clean import one_line

if TYPE_CHECKING:
    from stepcraft.memory.procedure import Procedure
    from stepcraft.memory.protocol import ProcedureMemory

memory_app = Typer(
    help="Fill, search and show a procedural memory.", no_args_is_help=True, rich_markup_mode=None
)

Id = Annotated[
    str, Argument(metavar="ID", help="The id, or a beginning of it that no other id has.")
]
FieldNames = Annotated[
    str,
    Option(
        "--map",
        help="The fields of the file: output=title,input=ingredients,steps=directions.",
    ),
]


@memory_app.command("import")
def import_(
    files: Annotated[
        list[Path],
        Argument(help="JSONL, JSON or CSV files, or folders of skills (NAME/SKILL.md)."),
    ],
    memory: ChangedMemory = None,
    embeddings: Embeddings = None,
    fields: FieldNames = "",
    as_json: AsJson = False,
) -> None:
    """Add the procedures in files and skills; the exit code is 1 if one could not be read."""
    from stepcraft.memory.files import read_procedures
    from stepcraft.memory.skills import FILE, import_skills, read_skills

    report, read = AddReport(), partial(read_procedures, fields=field_names(fields))

    def is_skills(file: Path) -> bool:
        return file.is_dir() or file.name == FILE

    for file in files:  # a bad file fails before a memory is created
        next(read_skills(file, []) if is_skills(file) else read(file, []), None)
    with opened(memory, embeddings, create=True) as target:
        filled = None if target.is_empty() else target
        for file in files:
            progress = counter("procedures read")
            if is_skills(file):
                report.include(import_skills(target, file, progress=progress))
            else:
                procedures = read(file, report.failed, memory=filled)
                report.include(target.add(procedures, progress=progress))
    _show_report(report, as_json=as_json)


@memory_app.command()
def add(
    memory: ChangedMemory = None,
    embeddings: Embeddings = None,
    output: Annotated[str, Option("--output", "-o", help="What it produces.")] = "",
    needs: Annotated[str, Option("--input", "-i", help="What it needs, separated by commas.")] = "",
    step: Annotated[
        list[str] | None, Option("--step", "-s", help="A step; repeat for each, in order.")
    ] = None,
    source: Annotated[str, Option(help="Where the procedure comes from.")] = "",
    as_json: AsJson = False,
) -> None:
    """Add one procedure, given by options or as a JSON object on standard input."""
    from dataclasses import replace

    from stepcraft.memory.procedure import Procedure

    if output or needs or step:
        procedure = Procedure(output=output, input=needs, steps=tuple(step or ()), source=source)
    elif not sys.stdin or sys.stdin.isatty():
        raise BadInput(
            "there is no procedure to add; name --output, --input and --step, or give it as "
            "JSON on the standard input"
        )
    else:
        record = json.loads(sys.stdin.buffer.read())
        procedure = Procedure.from_dict(record if isinstance(record, dict) else {})
        procedure = replace(procedure, source=source or procedure.source)
    with opened(memory, embeddings, create=True) as target:
        _show_report(target.add([procedure]), as_json=as_json)


@memory_app.command()
def search(
    query: Annotated[str, Argument(help="The query to search for.")],
    memory: Memory = None,
    embeddings: Embeddings = None,
    k: Annotated[int, Option("-k", help="Limit on the procedures.")] = 3,
    alpha: Annotated[
        float | None, Option(help="Weight of the vectors, from 0 (words alone) to 1.")
    ] = None,
    outcome_weight: Annotated[
        float, Option(help="By how much outcomes move a score at most, from 0 to 1.")
    ] = 0.1,
    where: Annotated[
        list[str] | None, Option(help="A tag that procedures must have, such as product=kitchen.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the procedures that best match a query, best first."""
    from stepcraft.memory.outcomes import ranked

    with opened(memory, embeddings) as source:
        search_ = partial(source.search, query, alpha=alpha, where=tags_of(where))
        hits = ranked(search_, k, outcome_weight)
    if as_json:
        print_json([{"score": hit.score, **hit.procedure.to_dict()} for hit in hits])
    else:
        for hit in hits:
            say(f"{hit.score:.3f}  {headline(hit.procedure)}")


@memory_app.command("list")
def list_(memory: Memory = None, as_json: AsJson = False) -> None:
    """List all procedures, each with the beginning of its id and its output."""
    with opened(memory) as source:
        if as_json:
            print_json(list(source))
        else:
            for procedure in source:
                say(headline(procedure))


@memory_app.command()
def show(id_: Id, memory: Memory = None, as_json: AsJson = False) -> None:
    """Show one procedure."""
    from stepcraft.memory.outcomes import marks

    procedure = _read(memory, id_)
    if as_json:
        print_json(procedure)
        return
    say(f"{procedure.output}\n\nid      {procedure.id}\nneeds   {procedure.input}")
    if procedure.key:
        say(f"key     {procedure.key}")
    if procedure.tags:
        say(f"tags    {_tag_list(procedure.tags)}")
    if procedure.source:
        say(f"source  {procedure.source}")
    if procedure.expires:
        say(f"expires {procedure.expires}")
    for mark in marks(procedure):
        say(f"note    {one_line(mark)}")
    say("")
    for number, text in enumerate(procedure.steps, 1):
        say(f"{number}. {text}")


@memory_app.command()
def history(id_: Id, memory: Memory = None, as_json: AsJson = False) -> None:
    """List the earlier versions of a procedure, the latest first."""
    earlier = _read(memory, id_).versions
    if as_json:
        print_json([*earlier])
        return
    for number, version in enumerate(earlier, 1):
        facts = [version["at"], version["by"], one_line(version["why"])]
        say(f"{number}. {'  '.join(filter(None, facts))}\n   {one_line(version['output'])}")
        if tags := version.get("tags"):
            say(f"   tags {one_line(_tag_list(tags))}")
        if expires := version.get("expires"):
            say(f"   expires {expires}")
        for place, step in enumerate(version["steps"], 1):
            say(f"   {place}. {one_line(step)}")


@memory_app.command()
def undo(
    id_: Id,
    number: Annotated[int, Argument(help="The number of the version in the history.")] = 1,
    memory: ChangedMemory = None,
) -> None:
    """Restore an earlier version; the replaced one stays in the history."""
    from stepcraft.memory.history import reason, undone

    with opened(memory, None) as target, reason(f"version {number} was restored"):
        _change(target, id_, partial(undone, number=number))


@memory_app.command()
def edit(id_: Id, memory: ChangedMemory = None) -> None:
    """Edit a procedure in the editor set by VISUAL or EDITOR.

    The new version is stored once you approve it; the old one stays in the history.
    """
    from stepcraft.cli.review import in_editor
    from stepcraft.memory.history import same_text, with_text
    from stepcraft.memory.protocol import by_short_id
    from stepcraft.memory.skills import body_of, edited

    with opened(memory, None) as target:
        check_changeable(target)
        stored = by_short_id(target, id_)
        try:
            new = edited(stored, in_editor(body_of(stored).strip(), partial(edited, stored)))
        except (OSError, ValueError, CalledProcessError) as error:
            raise BadInput(f"nothing was changed: {error}") from error
        if not same_text(stored, new):
            say(new.text())
        if same_text(stored, new) or not typer.confirm("Store it?"):
            say("nothing was changed")
            return
        target.update(stored.id, lambda kept: with_text(kept, new), made_from=stored)
        say("changed; `stepcraft memory undo` restores it")


@memory_app.command()
def remove(
    ids: Annotated[list[str], Argument(help="Ids, or beginnings that no other id has.")],
    memory: ChangedMemory = None,
) -> None:
    """Remove the named procedures, or none of them if one is not in the memory."""
    from stepcraft.memory.protocol import by_short_id

    with opened(memory) as target:
        say(f"{target.delete([by_short_id(target, prefix).id for prefix in ids])} removed")


@memory_app.command()
def export(
    folder: Annotated[
        Path | None,
        Argument(metavar="[DIR]", help="The folder of the skills, with --format skills."),
    ] = None,
    memory: Memory = None,
    to: Annotated[
        Path | None, Option(help="A .jsonl file; by default the standard output.")
    ] = None,
    form: Annotated[
        Literal["jsonl", "skills"],
        Option("--format", help="JSONL, or a folder with a SKILL.md for each procedure."),
    ] = "jsonl",
) -> None:
    """Write all procedures as JSONL, or as skills for agents."""
    from stepcraft.memory.files import json_line, write_jsonl
    from stepcraft.memory.skills import write_skills

    if (form == "skills") != bool(folder) or (folder and to):
        raise BadInput("write stepcraft memory export --format skills DIR, or --to FILE for JSONL")
    if to and to.suffix.lower() != ".jsonl":
        raise BadInput(f"{to} is no .jsonl file; write --to procedures.jsonl")
    check_writable(to)
    with opened(memory) as source:
        if to and to.resolve() == Path(source.name).resolve():
            raise BadInput(f"{to} is the memory that is exported; name another file")
        if folder:
            edited: list[Failed] = []
            note(f"{write_skills(source, folder, edited)} written to {folder}")
            show_failed(edited)
            if edited:
                raise Exit(1)
        elif to:
            note(f"{write_jsonl(source, to)} written to {to}")
        else:
            for procedure in source:
                print_data(json_line(procedure))


@memory_app.command()
def count(memory: Memory = None) -> None:
    """Print the number of procedures."""
    with opened(memory) as source:
        say(str(source.count()))


@memory_app.command()
def copy(
    source: Annotated[str, Argument(metavar="FROM", help="The memory to read.")],
    target: Annotated[str, Argument(metavar="TO", help="The memory to fill.")],
    embeddings: Embeddings = None,
    as_json: AsJson = False,
) -> None:
    """Copy all procedures from one memory to another, completing any interrupted copy.

    The vectors are recomputed.
    """
    with opened(source) as read, opened(target, embeddings, create=True) as filled:
        report = filled.add(read, progress=counter("procedures copied"))
    _show_report(report, as_json=as_json)


@memory_app.command(context_settings={"ignore_unknown_options": True})  # so that -1 is a value
def rate(
    id_: Id,
    outcome: Annotated[
        Literal["+1", "1", "-1"], Argument(help="+1 if following it worked, -1 if it did not.")
    ],
    memory: ChangedMemory = None,
) -> None:
    """Record whether following a procedure worked; searches then rank it higher or lower."""
    from stepcraft.memory.outcomes import with_outcome

    with opened(memory) as target:
        _change(target, id_, partial(with_outcome, succeeded=outcome != "-1"))


def _change(
    target: "ProcedureMemory", prefix: str, change: "Callable[[Procedure], Procedure]"
) -> None:
    """Change a stored procedure, and print it on one line."""
    from stepcraft.memory.protocol import by_short_id

    before = by_short_id(target, prefix)
    after = target.update(before.id, change)
    say(headline(after))
    if after == before:
        note("nothing was changed")


def opened(
    url: str | None, embeddings: str | None = "none", *, create: bool = False
) -> "ProcedureMemory":
    """Open the memory named by a command.

    Args:
        url: The URL, as for `open_memory`.
        embeddings: "none" if nothing will be embedded; None for the memory's own embeddings.
        create: Whether to create a missing database.
    """
    from stepcraft.memory.open import open_memory

    return open_memory(url, embeddings=embeddings, create=create)


def field_names(text: str) -> dict[str, str]:
    """Parse the value of `--map`, such as "output=title,steps=directions".

    Raises:
        BadInput: The text does not have this form.
    """
    from stepcraft.memory.procedure import FIELDS

    try:
        pairs = [pair.split("=") for pair in text.split(",") if pair.strip()]
        names = {field.strip(): name.strip() for field, name in pairs}
    except ValueError as error:
        raise BadInput(
            f"--map {text!r} is no list such as output=title,steps=directions"
        ) from error
    if len(names) < len(pairs):
        raise BadInput(f"--map {text!r} names a field twice; a field has one column")
    for field in names.keys() - {*FIELDS}:
        raise BadInput(f"--map {text!r}: {field!r} is none of the fields {', '.join(FIELDS)}")
    return names


def headline(procedure: "Procedure") -> str:
    """Return a one-line summary of a procedure: start of its id, output, and outcomes."""
    from stepcraft.memory.outcomes import has_expired, keeps_failing

    notes = {
        str(procedure.outcomes): any(procedure.outcomes[:2]),
        "keeps failing": keeps_failing(procedure),
        "expired": has_expired(procedure),
        "stale": bool(procedure.metadata.get("stale")),
    }
    marked = [note for note, holds in notes.items() if holds]
    shown = f"  ({', '.join(marked)})" if marked else ""
    return f"{procedure.id[:8]}  {one_line(procedure.output)}{shown}"


def _read(memory: str | None, prefix: str) -> "Procedure":
    from stepcraft.memory.protocol import by_short_id

    with opened(memory) as source:
        return by_short_id(source, prefix)


def _tag_list(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in tags.items())


def _show_report(report: AddReport, *, as_json: bool) -> None:
    """Print what was added, with failures on stderr; exit with 1 if a record failed."""
    show_failed(report.failed)
    show_counts(vars(report), as_json=as_json)
    if report.failed:
        raise Exit(1)
