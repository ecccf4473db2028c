"""`stepcraft aag --review` and `--remember`: the steps are approved in the terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from stepcraft import open_memory
from stepcraft.cli.review import ask_for_review, command_of, in_editor
from stepcraft.nodes.decision import read_decision
from tests.cli.shell import HEARS_CTRL_C, STEPCRAFT
from tests.kitchen import GOAL, PROCEDURES

STEPS = ["Mix.\n```\na\n```", "Bake it."]
MINE = ["Mix.", "Bake it.", "Taste it."]
REQUEST = {
    "action_requests": [{"name": "review", "args": {"steps": STEPS}, "description": "1. Mix."}]
}
EDITOR = """
import pathlib, sys
file = pathlib.Path(sys.argv[1])
file.write_text(file.read_text("utf-8") + "9. Taste it.\\n", "utf-8")
"""


def decided(*lines: str, edited: str = "") -> Any:
    """Return the decision of a user who types these lines and leaves this text in the editor."""
    typed = iter(lines)

    def read() -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    def edit(_text: str) -> str:
        if not edited:
            raise OSError("there is no editor")
        return edited

    decision = read_decision(ask_for_review(REQUEST, read=read, edit=edit), "review")
    assert next(typed, None) is None, "nothing is asked after the response"
    return decision


def test_what_the_user_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert decided("what?", "", "Also tell the team.", " Approve ")["type"] == "approve"
    assert decided("Remove step 2.", "a")["type"] == "approve"
    assert decided("reject", "", "r", " Shorter. ")["message"] == "Shorter."
    edit = decided("e", edited="1. Mix.\n2. Bake it.\n3. Taste it.\n")
    assert edit["edited_action"]["args"] == {"steps": MINE}
    assert "1. Mix." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("edited", "note"),
    [
        ("1. Mix.\n   ```\n   a\n   ```\n2. Bake it.\n", "nothing was changed"),
        ("\n\n", "there were no steps"),
        ("Wash your hands.\n1. Mix.\n2. Bake it.\n", "'Wash your hands.' belongs to no step"),
        ("", "there is no editor"),
    ],
)
def test_an_edit_that_nothing_comes_of_is_asked_again(
    edited: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decided("e", "a", edited=edited)["type"] == "approve"
    assert note in capsys.readouterr().err


@pytest.mark.parametrize("between", [[], ["what?"], ["r", ""]])
def test_refused_text_is_in_the_editor_the_next_time(
    between: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    mine = "1. Mix.\n2. Bake it for an hour.\n## Note\n"
    typed, written, opened = iter(["e", *between, "e"]), iter([mine, mine[:-8]]), list[str]()

    def edit(text: str) -> str:
        opened.append(text)
        return next(written)

    response: Any = ask_for_review(REQUEST, read=lambda: next(typed), edit=edit)
    assert opened[1] == mine
    edited = response["decisions"][0]["edited_action"]["args"]["steps"]
    assert edited == ["Mix.", "Bake it for an hour."]
    assert "edit (e) opens your text again" in capsys.readouterr().err


def test_an_empty_file_is_not_in_the_editor_the_next_time() -> None:
    typed, written, opened = iter(["e", "e", "a"]), iter(["\n", "1. Mix.\n"]), list[str]()

    def edit(text: str) -> str:
        opened.append(text)
        return next(written)

    ask_for_review(REQUEST, read=lambda: next(typed), edit=edit)
    assert opened[0] == opened[1]


@pytest.mark.parametrize("lines", [[], ["r"]])
def test_the_end_of_the_input_leaves_the_review(lines: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        decided(*lines)


def test_the_editor_of_the_environment(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    program = here / "an editor.py"
    program.write_text(EDITOR)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} '{program}'")
    assert in_editor("1. Mäh.") == "1. Mäh.\n9. Taste it.\n"
    for name in ("/no/such/editor", "false", "'"):
        monkeypatch.setenv("VISUAL", name)
        with pytest.raises((OSError, ValueError, subprocess.CalledProcessError)):
            in_editor("1. Mix.")


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("gvim -f", 'gvim -f "steps.md"'),
        (r'"C:\Program Files\Vim\gvim.exe" -f', r'"C:\Program Files\Vim\gvim.exe" -f "steps.md"'),
        (r"C:\Tools\npp.exe", r'C:\Tools\npp.exe "steps.md"'),
        ("", 'notepad "steps.md"'),
    ],
)
def test_an_editor_on_windows_may_have_options_and_backslashes(editor: str, command: str) -> None:
    assert command_of(editor, Path("steps.md"), windows=True) == command


class Terminal:
    """A command on a terminal, and what it shows there."""

    def __init__(self, *arguments: str, env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*HEARS_CTRL_C, *STEPCRAFT, *arguments],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb", **env},
        )
        os.close(theirs)
        self.shown = ""

    def until(self, text: str) -> str:
        """Return what is shown up to a text."""
        while text not in self.shown:
            try:
                self.shown += os.read(self._ours, 65536).decode().replace("\r", "")
            except OSError as error:  # nobody writes to the terminal any more
                raise AssertionError(f"it ended without {text!r}:\n{self.shown}") from error
        before, _, self.shown = self.shown.partition(text)
        return before

    def waits(self) -> None:
        """Return once the command waits for a line: a signal just before is not seen."""
        pause, stat = Event(), Path(f"/proc/{self.process.pid}/stat")
        while stat.read_text().rpartition(") ")[2][0] != "S":
            pause.wait(0.01)

    def types(self, line: str) -> None:
        os.write(self._ours, f"{line}\n".encode())

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._ours)


@pytest.fixture
def memory(here: Path) -> Path:
    with open_memory("kitchen.db", embeddings="none") as memory:
        memory.add(PROCEDURES)
    return here / "kitchen.db"


@pytest.fixture
def terminal(memory: Path) -> Iterator[Terminal]:
    program = memory.with_name("editor.py")
    program.write_text(EDITOR)
    arguments = ["aag", GOAL["question"], "--memory", str(memory), "--remember"]
    terminal = Terminal(*arguments, env={"EDITOR": f"{sys.executable} {program}"})
    yield terminal
    terminal.close()


def test_reject_then_edit_in_a_terminal(terminal: Terminal, memory: Path) -> None:
    terminal.until("reject (r)?")
    terminal.types("r")
    terminal.until("What should change, and why?")
    terminal.types("Shorter, please.")
    terminal.until("reject (r)?")
    terminal.types("e")
    terminal.until("Remembered the steps")
    out, _ = terminal.process.communicate(timeout=60)
    assert terminal.process.returncode == 0
    id_ = out.decode().rpartition("Remembered as ")[2].strip().removesuffix(".")
    with open_memory(memory) as opened:
        procedure = opened.get(id_)
    assert procedure
    assert (procedure.output, procedure.steps[-1]) == (GOAL["question"], "Taste it.")


def test_ctrl_c_in_a_review(terminal: Terminal, memory: Path) -> None:
    terminal.until("reject (r)?\n")
    terminal.waits()
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("the steps were not approved")
    out, _ = terminal.process.communicate(timeout=60)
    assert (terminal.process.returncode, out) == (130, b"")
    with open_memory(memory) as opened:
        assert opened.count() == len(PROCEDURES)
