"""The review of a run's steps in the terminal: show what is to be approved, and ask."""

import getpass
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console

from stepcraft.cli.output import one_line, write
from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput
from stepcraft.retrieval.opening import shared_memory
from stepcraft.text.lists import numbered, read_steps


def review_checkpointer(context: Context) -> InMemorySaver | None:
    """What keeps the state of a run that pauses for a review; None for any other run.

    Raises:
        BadInput: this is no terminal to ask in, or the memory cannot be changed.
        MemoryFailure: the memory cannot be opened.
    """
    if not (isinstance(context, AagContext) and context.pauses):
        return None
    if context.remember:
        memory = shared_memory(context.memory, embeddings=context.embeddings)
        if memory.read_only:
            raise BadInput(
                f"{memory.name} can only be searched, so nothing can be remembered in it; name a database with --memory "
                "(`stepcraft memory add` makes one)"
            )
    if not all(stream and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise BadInput(
            "--review and --remember ask for your approval in a terminal, and this is none; leave them out, or run the "
            "graph on a LangGraph server and answer there"
        )
    return InMemorySaver()


def in_editor(text: str) -> str:
    """A text as it was left in the editor of VISUAL or EDITOR.

    Raises:
        BadInput: the editor cannot be started, or fails.
    """
    default = "notepad" if os.name == "nt" else "vi"
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or default
    with tempfile.TemporaryDirectory(prefix="stepcraft-") as folder:
        file = Path(folder, "steps.md")
        file.write_text(f"{text}\n", encoding="utf-8")
        try:
            subprocess.run([*shlex.split(named, posix=os.name != "nt"), str(file)], check=True)  # noqa: S603 - the user's own editor
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise BadInput(f"the editor {named!r} cannot be used: {error}; name another in EDITOR") from error


def ask_for_review(
    request: Mapping[str, Any],
    console: Console,
    *,
    read: Callable[[], str] = input,
    edit: Callable[[str], str] = in_editor,
) -> dict[str, Any]:
    """Show what a run asks before its steps are final, and return what the user says.

    Args:
        request: what the run asks (`ReviewRequest`).
        console: where it is shown.
        read: reads a line from the user.
        edit: lets the user edit a text.

    Raises:
        KeyboardInterrupt: the user left, by Ctrl-C or the end of the input.
    """
    offer: Mapping[str, Any] = request["remember"] or {"flags": [], "problem": ""}
    can_force = bool(offer["flags"]) and not offer["problem"]
    _show(request, offer, console)
    force = "accept and remember all the same (f), " if can_force else ""
    said: dict[str, Any] = {"by": _user()}
    while True:
        write(console, f"accept (a), {force}edit (e) or reject (r)?", style="bold")
        answer = _line(read).lower()[:1]
        if answer == "a":
            return {**said, "type": "accept"}
        if answer == "f" and can_force:
            return {**said, "type": "accept", "force": True}
        if answer == "r":
            write(console, "What is to be changed, and why?", style="bold")
            if reason := _line(read):
                return {**said, "type": "reject", "reason": reason}
        if answer == "e" and (steps := _edited(request["steps"], console, edit)):
            return {**said, "type": "edit", "steps": steps}


def _show(request: Mapping[str, Any], offer: Mapping[str, Any], console: Console) -> None:
    """The steps, and what there is to know of them."""
    write(console, "\nThe steps to approve:", style="bold")
    write(console, numbered(request["steps"]))
    unverified = [f"{one['name']} (step {one['step']})" for one in request["unverified"]]
    notes = [request["problem"]]
    if unverified and not offer["flags"]:
        notes.append(f"found nowhere: {', '.join(unverified)}")
    if offer["problem"]:
        notes.append(f"they will not be remembered: {offer['problem']}")
    elif offer["flags"]:
        notes.append(f"they are remembered only if you force it: {'; '.join(offer['flags'])}")
    for note in filter(None, notes):
        write(console, one_line(note), style="yellow")


def _edited(steps: list[str], console: Console, edit: Callable[[str], str]) -> list[str]:
    """The steps as the user left them in the editor; none where nothing came of it, which is told."""
    try:
        edited = read_steps(edit(numbered(steps)))
    except BadInput as error:
        write(console, one_line(str(error)), style="yellow")
        return []
    if edited and edited != steps:
        return edited
    write(console, "nothing was changed" if edited else "no steps were left", style="yellow")
    return []


def _line(read: Callable[[], str]) -> str:
    try:
        return read().strip()
    except EOFError:
        raise KeyboardInterrupt from None


def _user() -> str:
    """The name of whoever uses the command, "" where the system does not tell."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
