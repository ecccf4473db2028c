"""The review of a run's steps in the terminal, using LangChain's decision schema."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from stepcraft.cli.options import check_changeable
from stepcraft.cli.output import note, say
from stepcraft.errors import BadInput
from stepcraft.memory.open import open_memory
from stepcraft.text.lists import numbered, outside_steps, read_steps


def check_can_review(options: Mapping[str, Any]) -> None:
    """Refuse a run if nobody can be asked for a review, or if its memory cannot be changed.

    Args:
        options: The arguments of the graph's builder.

    Raises:
        BadInput: Standard input or standard error is not a terminal, or the memory is read-only.
        MemoryFailure: The memory cannot be opened.
    """
    settings = options["settings"]
    if settings.remember:
        with open_memory(
            options.get("memory"), embeddings=options.get("embeddings"), create=False
        ) as memory:
            check_changeable(memory)
    if not all(stream and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise BadInput(
            "--review and --remember need a terminal to ask for your approval; leave them out, or "
            "run the graph on a LangGraph server and answer there"
        )


_MOST_EDITS = 10
"""The maximum number of edits, since a script used as editor would never stop."""


def in_editor(text: str, check: Callable[[str], object] = str) -> str:
    """Let the user edit text in the editor set by VISUAL or EDITOR, and return the result.

    If `check` raises ValueError for the result, or it is not UTF-8, the user can edit it again.

    Raises:
        OSError, CalledProcessError: The editor cannot be started, or fails.
        ValueError: The editor command is malformed, or the user gave up on a result that cannot be
            used; the message names the file that contains it.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    with tempfile.TemporaryDirectory(prefix="stepcraft-") as folder:
        file = Path(folder, "steps.md")
        file.write_text(f"{text}\n", encoding="utf-8")
        command = command_of(editor, file)
        tries = 0
        while True:
            tries += 1
            subprocess.run(command, check=True)  # noqa: S603 - the user's
            try:
                edited = file.read_text(encoding="utf-8")
                check(edited)
            except ValueError as error:
                note(str(error))
                if tries == _MOST_EDITS or not _wants_to_edit_again():
                    kept = Path(tempfile.mkdtemp(prefix="stepcraft-"), file.name)
                    kept.write_bytes(file.read_bytes())
                    raise BadInput(f"{error}; your text is in {kept}") from error
            else:
                return edited


def command_of(editor: str, file: Path, *, windows: bool = os.name == "nt") -> str | list[str]:
    """Return the command that opens a file in an editor, which may have options.

    On Windows it is a text that the system splits, since paths have backslashes there.

    Raises:
        ValueError: The editor command is malformed.
    """
    if windows:
        return f'{editor or "notepad"} "{file}"'
    return [*shlex.split(editor or "vi"), str(file)]


def _wants_to_edit_again() -> bool:
    try:
        return typer.confirm("Edit it again?", default=True, err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        return False


def ask_for_review(
    request: Mapping[str, Any],
    *,
    read: Callable[[], str] = input,
    edit: Callable[[str], str] = in_editor,
) -> dict[str, Any]:
    """Show a run's request for a review of its steps, and return the user's response.

    Args:
        request: The HITLRequest of the run.
        read: A function that reads a line from the user.
        edit: A function that lets the user edit text.

    Raises:
        KeyboardInterrupt: The user pressed Ctrl-C or closed the input.
    """
    action = request["action_requests"][0]
    say(f"\nTo approve:\n{action['description']}", err=True)
    try:
        return {"decisions": [_decision(action, read, edit)]}
    except (EOFError, KeyboardInterrupt):
        note("the steps were not approved, and this run cannot be resumed")
        raise KeyboardInterrupt from None


def _decision(
    action: Mapping[str, Any], read: Callable[[], str], edit: Callable[[str], str]
) -> dict[str, Any]:
    text = numbered(action["args"]["steps"])
    while True:
        say("approve (a), edit (e) or reject (r)?", err=True)
        choice = read().strip().lower()
        if choice in {"a", "approve"}:
            return {"type": "approve"}
        if choice in {"r", "reject"}:
            say("What should change, and why?", err=True)
            if message := read().strip():
                return {"type": "reject", "message": message}
        if choice in {"e", "edit"}:
            steps, text = _edited(action["args"]["steps"], text, edit)
            if steps:
                edited = {"name": action["name"], "args": {"steps": steps}}
                return {"type": "edit", "edited_action": edited}


def _edited(steps: list[str], text: str, edit: Callable[[str], str]) -> tuple[list[str], str]:
    """Return the edited steps, or none if they cannot be used, and the text for the next edit.

    They cannot be used if editing failed, changed nothing, left no steps, or left a line outside
    them.
    """
    try:
        written = edit(text)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        note(f"the editor cannot be used: {error}; name another in EDITOR")
        return [], text
    edited = read_steps(written)
    if lost := outside_steps(written, edited):
        note(
            f"{lost[0]!r} belongs to no step; begin it with a number (edit (e) opens your text "
            "again)"
        )
        return [], written
    if not edited or edited == steps:
        note("nothing was changed" if edited else "there were no steps")
        return [], numbered(steps)
    return edited, written
