"""Text from outside reaches a terminal or a pipe without anything that a terminal obeys."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft.cli import app
from stepcraft.cli.output import note, print_json, say
from tests.servers.openai_server import OpenAIServer

STEPCRAFT = [sys.executable, "-c", "from stepcraft.cli import main; main()"]
HOSTILE = (
    "Rye\x1b]0;title\x07 \x1b[2J\x9b31m over\rwritten\x08\x08 \u202eexe.fdp\u2066 \x00\x7fbread"
)
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
OF_RICH = re.compile(r"\r?\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\r\n")
"""Colours, the cursor of a spinner, and how a terminal ends a line."""


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    """A folder with a memory, a corpus and files that cannot be read, all of them hostile."""
    record = {"output": HOSTILE, "input": HOSTILE, "steps": [HOSTILE, "bake"], "source": HOSTILE}
    line = json.dumps(record) + "\n"
    (tmp_path / "memory.jsonl").write_text(line)
    (tmp_path / "bad.jsonl").write_text(json.dumps({HOSTILE: HOSTILE}) + "\n")
    (tmp_path / "half.jsonl").write_text(json.dumps({**record, "id": HOSTILE}) + "\n" + line)
    (tmp_path / "corpus").mkdir()
    # With a NUL it would not be read as text.
    text = f"# {HOSTILE}\n\nRye bread {HOSTILE}.\n".replace("\0", "")
    (tmp_path / "corpus" / "rye\x1b[2J\x07\u202e.md").write_text(text)
    return tmp_path


COMMANDS: dict[str, list[str]] = {
    "list": ["memory", "list", "-m", "memory.jsonl"],
    "import of other fields": ["memory", "import", "bad.jsonl", "-m", "new.db"],
    "import of a bad record": ["memory", "import", "half.jsonl", "-m", "new.db"],
    "a name": ["memory", "count", "-m", "no\x1b[2J\x9b\u202esuch.jsonl"],
    "corpus": ["source", "check", "corpus:corpus", "rye"],
    "rag": ["run", "rag", "rye", "--memory", "memory.jsonl"],
    "rat": ["rat", HOSTILE.replace("\0", ""), "--from", "corpus:corpus", "--show-changes"],
}


def environment(**more: str) -> dict[str, str]:
    screen = {"TERM": "xterm-256color", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}
    return {**os.environ, **screen, **more}


def in_a_pipe(arguments: list[str], folder: Path, env: dict[str, str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, arguments, env=env)
    return done.stdout + done.stderr


def in_a_terminal(arguments: list[str], folder: Path, env: dict[str, str]) -> str:
    """What a terminal is sent, without what Rich sends it to show colours and a spinner."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*STEPCRAFT, *arguments], stdout=theirs, stderr=theirs, cwd=folder, env=env
    ) as process:
        os.close(theirs)
        pieces: list[bytes] = []
        try:
            while piece := os.read(ours, 65536):
                pieces.append(piece)
        except OSError:  # how a terminal on Linux says that nobody writes to it any more
            pass
        assert process.wait(100) is not None
    os.close(ours)
    return OF_RICH.sub("\n", b"".join(pieces).decode())


@pytest.mark.parametrize(
    ("command", "shown_in"),
    [(command, in_a_pipe) for command in COMMANDS]
    + [(command, in_a_terminal) for command in ("list", "a name", "rat")],
)
def test_a_command(command: str, shown_in: Callable[..., str], kitchen: Path) -> None:
    shown = shown_in(COMMANDS[command], kitchen, environment())
    assert shown.strip()
    assert FORBIDDEN.findall(shown) == []
    assert "Traceback" not in shown
    if command not in {"import of a bad record", "a name"}:
        assert "Rye" in shown or "title" in shown


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_the_reply_of_a_model(json_too: list[str], tmp_path: Path) -> None:
    with OpenAIServer([f"Rye bread. {HOSTILE}"]) as server:
        env = environment(OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
        command = ["run", "direct", "How?", "--model", "openai:m", *json_too]
        shown = in_a_pipe(command, tmp_path, env)
    assert FORBIDDEN.findall(shown) == []
    assert "Rye bread." in shown


def test_json_keeps_what_is_escaped(capsys: Any) -> None:
    value = {"a": HOSTILE, HOSTILE: ["\u2028", "\ud800", "é漢"]}
    print_json(value)
    shown = capsys.readouterr().out
    assert FORBIDDEN.findall(shown) == []
    assert [code for code in (r"\u009b", r"\u202e", r"\u001b", "é漢") if code not in shown] == []
    assert json.loads(shown) == value


def test_text_and_errors(capsys: Any) -> None:
    say(f"one\ttwo\n{HOSTILE}")
    note(f"{HOSTILE}\nsecond line")
    shown = capsys.readouterr()
    assert shown.out == "one\ttwo\nRye]0;title [2J31m over\nwritten exe.fdp bread\n"
    assert shown.err == "Rye]0;title [2J31m over written exe.fdp bread second line\n"
