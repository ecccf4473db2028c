"""`stepcraft aag --review` and `--remember`: the steps are approved in the terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from stepcraft import open_memory
from stepcraft.cli import app
from stepcraft.cli.review import ask_for_review, in_editor
from stepcraft.errors import BadInput
from stepcraft.memory.files import write_jsonl
from tests.cli.test_process import HEARS_CTRL_C, STEPCRAFT
from tests.kitchen import GOAL, PROCEDURES

QUESTION = "edit (e) or reject (r)?"
STEPS = ["Mix.\n```\na\n```", "Bake it."]
MINE = ["Mix.", "Bake it.", "Taste it."]
REQUEST: dict[str, Any] = {"steps": STEPS, "unverified": [], "remember": None, "problem": ""}
UNVERIFIED = [{"name": "oven.heat_up", "step": 1, "found_in": [], "verified": False}]
FLAGS = ["there are fewer than two steps"]


def reviewed(*lines: str, edited: str = "", **request: Any) -> tuple[dict[str, Any], str]:
    """What is said when the user types these lines, and what was shown; who said it is left out."""
    shown, typed = io.StringIO(), iter(lines)

    def read() -> str:
        line = next(typed, None)
        if line is None:
            raise EOFError
        return line

    def edit(_text: str) -> str:
        if not edited:
            raise BadInput("the editor 'none' cannot be used; name another in EDITOR")
        return edited

    said = ask_for_review({**REQUEST, **request}, Console(file=shown, width=200), read=read, edit=edit)
    assert said.pop("by")
    assert next(typed, None) is None, "nothing is asked after the response"
    return said, shown.getvalue()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a"], {"type": "accept"}),
        (["what?", "", "f", " Accept "], {"type": "accept"}),
        (["r", " Shorter. "], {"type": "reject", "reason": "Shorter."}),
        (["reject", "", "r", "Shorter."], {"type": "reject", "reason": "Shorter."}),
        (["e"], {"type": "edit", "steps": MINE}),
    ],
)
def test_what_the_user_types(lines: list[str], said: dict[str, Any]) -> None:
    response, shown = reviewed(*lines, edited="1. Mix.\n2. Bake it.\n3. Taste it.\n")
    assert response == said
    assert "1. Mix.\n   ```\n   a\n   ```\n2. Bake it.\n" in shown
    assert f"accept (a), {QUESTION}" in shown


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ("1. Mix.\n   ```\n   a\n   ```\n2. Bake it.\n", "nothing was changed"),
        ("\n\n", "no steps were left"),
        ("", "the editor 'none' cannot be used; name another in EDITOR"),
    ],
)
def test_an_edit_that_nothing_comes_of_is_asked_again(edited: str, told: str) -> None:
    response, shown = reviewed("e", "a", edited=edited)
    assert (response, told in shown, shown.count(QUESTION)) == ({"type": "accept"}, True, 2)


def test_what_speaks_against_remembering_can_be_forced() -> None:
    offer = {"memory": "k.db", "flags": FLAGS, "problem": ""}
    response, shown = reviewed("f", remember=offer)
    assert response == {"type": "accept", "force": True}
    assert f"they are remembered only if you force it: {FLAGS[0]}" in shown
    assert f"accept (a), accept and remember all the same (f), {QUESTION}" in shown


def test_what_there_is_to_know() -> None:
    offer = {"memory": "k.db", "flags": FLAGS, "problem": "the memory k.db can only be searched"}
    _, shown = reviewed("a", remember=offer, problem="step 2 of the edit is empty\x1b[2J")
    assert "step 2 of the edit is empty[2J\n" in shown
    assert "they will not be remembered: the memory k.db can only be searched\n" in shown
    assert "(f)" not in shown
    _, shown = reviewed("a", unverified=UNVERIFIED)
    assert "found nowhere: oven.heat_up (step 1)\n" in shown


@pytest.mark.parametrize("lines", [[], ["r"]])
def test_the_end_of_the_input_leaves_the_review(lines: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        reviewed(*lines)


def test_the_editor_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "an editor.py"
    program.write_text(EDITOR)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} '{program}'")
    assert in_editor("1. Mäh.") == "1. Mäh.\n9. Taste it.\n"
    for named in ("/no/such/editor", "false", "'"):
        monkeypatch.setenv("VISUAL", named)
        with pytest.raises(BadInput, match=r"cannot be used: .*; name another in EDITOR"):
            in_editor("1. Mix.")


EDITOR = """
import pathlib, sys
file = pathlib.Path(sys.argv[1])
file.write_text(file.read_text("utf-8") + "9. Taste it.\\n", "utf-8")
"""


@pytest.fixture
def kitchen(tmp_path: Path) -> str:
    with open_memory(tmp_path / "kitchen.db", embeddings="none") as memory:
        memory.add(PROCEDURES)
    return str(tmp_path / "kitchen.db")


@pytest.mark.parametrize("options", [["--review"], ["--remember"], ["--set", "review=true"]])
def test_without_a_terminal_it_is_refused_before_any_call(kitchen: str, options: list[str]) -> None:
    done = CliRunner().invoke(app, ["aag", "bake", "--memory", kitchen, "--model", "nosuch:model", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("stepcraft: --review and --remember ask for your approval in a terminal")


def test_a_memory_that_can_only_be_searched_is_refused_before_any_call(tmp_path: Path) -> None:
    file = tmp_path / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    options = ["--memory", str(file), "--remember", "--model", "nosuch:model", "--set", "embeddings=none"]
    done = CliRunner().invoke(app, ["aag", "bake", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"stepcraft: {file} can only be searched, so nothing can be remembered in it"
    )


class Terminal:
    """A command on a terminal, and what it shows there."""

    def __init__(self, *options: str, env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        arguments = ["aag", GOAL["question"], "--set", "questions=false", "--set", "critic=false", *options]
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
        """What is shown up to a text."""
        while text not in self.shown:
            try:
                self.shown += os.read(self._ours, 65536).decode().replace("\r", "")
            except OSError as error:  # how a terminal on Linux says that nobody writes to it any more
                raise AssertionError(f"it ended without {text!r}:\n{self.shown}") from error
        before, _, self.shown = self.shown.partition(text)
        return before

    def types(self, line: str) -> None:
        os.write(self._ours, f"{line}\n".encode())

    def waits(self) -> None:
        """Return once the command waits for a line: Python does not see a signal that comes just before it does."""
        pause, stat = Event(), Path(f"/proc/{self.process.pid}/stat")
        while stat.read_text().rpartition(") ")[2][0] != "S":
            pause.wait(0.01)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._ours)


@pytest.fixture
def terminal(kitchen: str, tmp_path: Path) -> Iterator[Terminal]:
    program = tmp_path / "editor.py"
    program.write_text(EDITOR)
    opened = Terminal("--memory", kitchen, "--remember", env={"EDITOR": f"{sys.executable} {program}"})
    yield opened
    opened.close()


def test_reject_edit_and_force_in_a_terminal(terminal: Terminal, kitchen: str) -> None:
    assert "The steps to approve:\n1. " in terminal.until(QUESTION)
    terminal.types("r")
    terminal.until("What is to be changed, and why?")
    terminal.types("Shorter, please.")
    again = terminal.until(QUESTION)
    assert re.search(r"s  review +rejected\n", again)
    assert re.search(r"s  edit +\d steps?\n", again)
    terminal.types("e")
    terminal.until("edited")
    assert re.search(r"s  remember +[0-9a-f-]{36}", terminal.until("warning: "))
    out, _ = terminal.process.communicate(timeout=60)
    assert terminal.process.returncode == 0
    (shown,) = re.findall(r"^Remembered as (\S+)\.$", out.decode(), re.MULTILINE)
    assert "Taste it.\n" in out.decode()
    with open_memory(kitchen) as memory:
        kept = memory.get(shown)
    assert kept is not None
    assert (kept.output, kept.steps[-1]) == (GOAL["question"], "Taste it.")
    assert kept.metadata["approved"]["by"]
    assert kept.metadata["approved"]["model"] == "extractive"


def test_ctrl_c_in_a_review_says_what_becomes_of_it(terminal: Terminal, kitchen: str) -> None:
    terminal.until(QUESTION)
    terminal.waits()
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("the steps were not approved, and this run cannot be resumed\n")
    out, _ = terminal.process.communicate(timeout=60)
    assert (terminal.process.returncode, out) == (130, b"")
    with open_memory(kitchen) as memory:
        assert memory.count() == len(PROCEDURES)
