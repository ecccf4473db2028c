"""`stepcraft memory rate`, `history` and `restore`: votes on procedures, and their earlier versions."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stepcraft.cli.memory import ChangedMemoryUrl, EmbeddingsName, MemoryUrl, headline, opened_memory
from stepcraft.cli.options import AsJson, reported
from stepcraft.cli.output import one_line, print_json, say
from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from stepcraft.memory.history import Version

_VOTES: dict[str, Literal[1, -1]] = {"+1": 1, "1": 1, "-1": -1}

Id = Annotated[str, typer.Argument(help="The id, or a beginning of it that no other id has.")]


@reported()
def rate(
    id: Id,  # noqa: A002 - the field is called id
    vote: Annotated[str, typer.Argument(help="+1 or -1.")],
    why: Annotated[str, typer.Option("--why", help="The reason.")] = "",
    by: Annotated[str, typer.Option("--by", help="Who votes.")] = "",
    memory: ChangedMemoryUrl = None,
) -> None:
    """Vote for a procedure or against it; searches rank it higher or lower."""
    from stepcraft.memory.feedback import with_vote
    from stepcraft.memory.protocol import by_short_id

    if vote not in _VOTES:
        raise BadInput(f"the vote {vote!r} is not understood; write +1 or -1")
    with opened_memory(memory, "none") as opened:
        found = by_short_id(opened, id)
        rated = opened.update(found.id, lambda kept: with_vote(kept, _VOTES[vote], why=why, by=by))
    say(headline(rated))


@reported()
def history(
    id: Id,  # noqa: A002 - the field is called id
    memory: MemoryUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the versions of a procedure, the oldest first, and what each changed."""
    from stepcraft.memory.history import current, versions
    from stepcraft.memory.protocol import by_short_id

    with opened_memory(memory, "none") as opened:
        procedure = by_short_id(opened, id)
    known = [*versions(procedure), current(procedure)]
    if as_json:
        print_json(known)
        return
    before = None
    for number, version in enumerate(known, 1):
        replaced = f"until {one_line(version['until'])[:19]} UTC" if version["until"] else "of unknown date"
        say(f"version {number}, {replaced if number < len(known) else 'now'}")
        say("\n".join(f"  {line}" for line in (_changed(before, version) if before else _lines(version))))
        before = version


@reported()
def restore(
    id: Id,  # noqa: A002 - the field is called id
    version: Annotated[
        int | None,
        typer.Argument(help="The version, as `history` numbers it; by default the one before the current."),
    ] = None,
    memory: ChangedMemoryUrl = None,
    embeddings: EmbeddingsName = None,
) -> None:
    """Make an earlier version of a procedure the current one again. What it replaces becomes a version, too."""
    from stepcraft.memory.history import restored
    from stepcraft.memory.protocol import by_short_id

    with opened_memory(memory, embeddings) as opened:
        found = by_short_id(opened, id)
        say(headline(opened.update(found.id, restored(version))))


def _lines(version: "Version") -> list[str]:
    """A version as the lines that are compared."""
    steps = [f"{number}. {one_line(step)}" for number, step in enumerate(version["steps"], 1)]
    return [
        one_line(version["output"]),
        f"needs   {one_line(version['input'])}",
        *([f"source  {one_line(version['source'])}"] if version["source"] else []),
        *steps,
    ]


def _changed(before: "Version", after: "Version") -> list[str]:
    """What a version changed, by line: removed words as [-…-], added ones as {+…+}."""
    from stepcraft.text.diff import word_diff

    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    pieces = word_diff("\n".join(_lines(before)), "\n".join(_lines(after)))
    shown = "".join(
        "\n".join(marks[kind].format(line) if line else "" for line in text.split("\n"))
        for kind, text in pieces
    )
    changed = [line for line in shown.split("\n") if "[-" in line or "{+" in line]
    return changed or ["(the metadata alone)"]
