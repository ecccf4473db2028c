"""`stepcraft` as a process: no traceback, Ctrl-C, pipes, traces."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.cli.shell import HEARS_CTRL_C, STEPCRAFT
from tests.servers.langsmith_server import LangSmithServer
from tests.servers.openai_replies import Reply, hang
from tests.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.usefixtures("kitchen")


def shell(
    line: str, env: Mapping[str, str] | None = None, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell that has the command `stepcraft`."""
    return subprocess.run(
        ["/bin/sh", "-c", f'stepcraft() {{ {shlex.join(STEPCRAFT)} "$@"; }}; {line}'],
        env={**os.environ, "PYTHONUNBUFFERED": "", **(env or {})},
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=45,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "status", "value"),
    [
        ("stepcraft aag x --memory /no/such.jsonl", 2, "/no/such.jsonl"),
        ("stepcraft memory add --memory m.db <&-", 2, "no procedure to add"),
        ("mkdir gone; cd gone; rmdir ../gone; stepcraft graphs", 2, "working directory"),
        ("stepcraft graphs >/dev/full", 1, "No space left"),
        ("stepcraft --help >/dev/full", 1, "No space left"),
    ],
)
def test_a_failure_is_one_sentence(line: str, status: int, value: str) -> None:
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    done = shell(line)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert value in done.stderr


def test_ctrl_c_ends_a_run_at_once() -> None:
    asked = Event()

    def reply(_body: Any) -> Reply:
        asked.set()
        return hang()

    with OpenAIServer(reply) as server:
        arguments = shlex.split("aag x -m kitchen.jsonl --model openai:m --quiet")
        running = subprocess.Popen(
            [*HEARS_CTRL_C, *STEPCRAFT, *arguments],
            env={**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert asked.wait(60)
            running.send_signal(signal.SIGINT)
            assert running.communicate(timeout=20) == (b"", b""), "the model is not waited for"
            assert running.returncode == 130
        finally:
            running.kill()
            running.wait()


@pytest.mark.parametrize(("bad", "lines"), [(3, 3), (25, 21)])
def test_every_record_that_is_left_out_is_named(bad: int, lines: int) -> None:
    records = ['{"output": "tea", "input": "leaves", "steps": ["Boil."]}', *["{}"] * bad]
    Path("mine.jsonl").write_text("\n".join(records))
    done = shell("stepcraft memory search tea -m mine.jsonl", {"STEPCRAFT_EMBEDDINGS": "none"})
    assert (done.returncode, done.stderr.count("\n")) == (0, lines), done.stderr
    assert all(f"mine.jsonl:{line} is left out" in done.stderr for line in (2, 3, 4))
    assert done.stderr.endswith("stepcraft: further messages are left out\n") == (bad > 20)


def test_a_broken_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = shell("stepcraft graphs", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_characters_that_the_output_cannot_hold() -> None:
    done = shell("stepcraft aag 烤面包 -m kitchen.jsonl", {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout[:3]) == (0, "1. ")


LETTERS = "żurek 🍞, 80 °C"


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "gb18030", "utf-8"])
def test_json_is_whole_in_every_encoding(encoding: str) -> None:
    step = {"output": LETTERS, "input": "flour", "steps": [LETTERS]}
    Path("mine.jsonl").write_text(json.dumps(step))
    done = shell(
        "stepcraft memory export -m mine.jsonl > out.jsonl; stepcraft memory import out.jsonl "
        "-m new.db; stepcraft memory list --json -m new.db > out.json",
        {"PYTHONIOENCODING": encoding},
    )
    assert done.stderr == ""
    [record] = json.loads(Path("out.json").read_text("utf-8"))
    assert (record["output"], record["steps"]) == (LETTERS, [LETTERS])
    assert (LETTERS in Path("out.json").read_text("utf-8")) == (encoding == "utf-8")


@pytest.mark.parametrize(
    ("encoding", "text", "lacks"),
    [
        ("cp1252", LETTERS, "cp1252, lacks 2 "),
        ("iso8859-5", LETTERS, "iso8859-5, lacks 3 "),
        ("cp1252", "80 °C", ""),
        ("utf-8", LETTERS, ""),
    ],
)
def test_text_that_is_not_whole_is_noted_once(encoding: str, text: str, lacks: str) -> None:
    records = [{"output": text, "input": str(place), "steps": ["Bake."]} for place in range(3)]
    Path("mine.jsonl").write_text("\n".join(map(json.dumps, records)))
    done = shell("stepcraft memory list -m mine.jsonl >out", {"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr.count("PYTHONIOENCODING=utf-8")) == (0, bool(lacks))
    assert lacks in done.stderr
    assert (text in Path("out").read_text(encoding)) != bool(lacks)


def test_progress_that_a_terminal_cannot_show_is_not_noted() -> None:
    line = "stepcraft run chat 面包 -m kitchen.jsonl --json >out 2>progress"
    shell(line, {"PYTHONIOENCODING": "cp1252"})
    progress = Path("progress").read_text("cp1252")
    assert "??" in progress
    assert "PYTHONIOENCODING" not in progress


def traced(langsmith: LangSmithServer, goal: str) -> subprocess.CompletedProcess[str]:
    settings = {"TRACING": "true", "API_KEY": "lsv2_pt_ofmine", "ENDPOINT": langsmith.url}
    done = shell(
        f"stepcraft aag '{goal}' -m kitchen.jsonl --json --quiet",
        {f"LANGSMITH_{name}": value for name, value in settings.items()},
    )
    assert done.returncode == 0, done.stderr
    return done


def test_traces_are_masked() -> None:
    with LangSmithServer() as langsmith:
        done = traced(langsmith, "bake a rye bread with lsv2_pt_ofmine")
    [root] = langsmith.roots
    assert json.loads(done.stdout)["trace_id"] == root["id"]
    assert b"lsv2_pt_ofmine" not in langsmith.received
    assert b"bake a rye bread" in langsmith.received


@pytest.mark.parametrize("compression", [True, False])
def test_a_langsmith_that_never_answers_does_not_hold_up_the_end(compression: bool) -> None:
    with LangSmithServer(mute=True, compression=compression) as langsmith:
        done = traced(langsmith, "bake bread")
    assert json.loads(done.stdout)["answer"]
    assert done.stderr.count("\n") <= 1
