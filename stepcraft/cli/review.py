"""The review of a run's steps in the terminal, using LangChain's decision schema."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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
            if memory.read_only:
                raise BadInput(
                    f"{memory.name} can only be searched, so nothing can be remembered in it; name "
                    "a database with --memory (`stepcraft memory add` makes one)"
                )
    if not all(stream and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise BadInput(
            "--review and --remember need a terminal to ask for your approval; leave them out, or "
            "run the graph on a LangGraph server and answer there"
        )


def in_editor(text: str) -> str:
    """Let the user edit text in the editor set by VISUAL or EDITOR, and return the result.

    Raises:
        OSError, ValueError, CalledProcessError: The editor cannot be started, or fails.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="stepcraft-") as folder:
        file = Path(folder, "steps.md")
        file.write_text(f"{text}\n", encoding="utf-8")
        subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - the user's
        return file.read_text(encoding="utf-8")


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
    while True:
        say("approve (a), edit (e) or reject (r)?", err=True)
        choice = read().strip().lower()
        if choice in {"a", "approve"}:
            return {"type": "approve"}
        if choice in {"r", "reject"}:
            say("What should change, and why?", err=True)
            if message := read().strip():
                return {"type": "reject", "message": message}
        if choice in {"e", "edit"} and (steps := _edited(action["args"]["steps"], edit)):
            edited = {"name": action["name"], "args": {"steps": steps}}
            return {"type": "edit", "edited_action": edited}


def _edited(steps: list[str], edit: Callable[[str], str]) -> list[str]:
    """Return the edited steps, or none if they cannot be used.

    This is the case if editing failed, changed nothing, left no steps, or left a line outside them.
    """
    try:
        text = edit(numbered(steps))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        note(f"the editor cannot be used: {error}; name another in EDITOR")
        return []
    edited = read_steps(text)
    if lost := outside_steps(text, edited):
        note(f"{lost[0]!r} belongs to no step; begin it with a number")
        return []
    if not edited or edited == steps:
        note("nothing was changed" if edited else "there were no steps")
        return []
    return edited
