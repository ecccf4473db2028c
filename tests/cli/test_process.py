"""`stepcraft` as a process: no traceback, Ctrl-C, pipes, traces."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from stepcraft.memory.files import write_jsonl
from tests.kitchen import GOAL, PROCEDURES
from tests.servers.langsmith_server import LangSmithServer
from tests.servers.openai_replies import Reply, hang
from tests.servers.openai_server import OpenAIServer

STEPCRAFT = [sys.executable, "-c", "from stepcraft.cli import main; main()"]
HEARS_CTRL_C = [
    sys.executable,
    "-c",
    "import os, signal, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
]
"""Prefix of a command that restores Ctrl-C, which the test process may have been told to ignore."""


@pytest.fixture
def kitchen(tmp_path: Path) -> str:
    write_jsonl(PROCEDURES, tmp_path / "kitchen.jsonl")
    return str(tmp_path / "kitchen.jsonl")


def process(
    *arguments: str, stdout: Any = subprocess.PIPE, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STEPCRAFT, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=env,
        timeout=60,
        check=False,
    )


def test_a_failure_is_one_sentence() -> None:
    done = process("aag", "x", "--memory", "/no/such.jsonl")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "/no/such.jsonl" in done.stderr


def test_ctrl_c_ends_a_run_at_once(kitchen: str) -> None:
    asked = Event()

    def reply(_body: Any) -> Reply:
        asked.set()
        return hang()

    with OpenAIServer(reply) as server:
        running = subprocess.Popen(
            [
                *HEARS_CTRL_C,
                *STEPCRAFT,
                "aag",
                "x",
                "-m",
                kitchen,
                "--model",
                "openai:m",
                "--quiet",
            ],
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("argument", ["graphs", "--help"])
def test_a_full_disk_is_one_sentence(argument: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        done = process(argument, stdout=full, env=env)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left" in done.stderr


def test_a_broken_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = process("graphs", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("shell", "value"),
    [
        ('mkdir gone; cd gone; rmdir ../gone; "$@" graphs', "working directory"),
        ('"$@" memory add --memory m.db <&-', "no procedure to add"),
    ],
)
def test_a_shell_without_a_folder_or_an_input(tmp_path: Path, shell: str, value: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", *STEPCRAFT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert value in done.stderr


def test_characters_that_the_output_cannot_hold(kitchen: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = process("aag", "烤面包", "--memory", kitchen, env=env)
    assert (done.returncode, done.stdout[:3]) == (0, "1. ")


def traced(langsmith: LangSmithServer) -> dict[str, str]:
    settings = {"TRACING": "true", "API_KEY": "lsv2_pt_ofmine", "ENDPOINT": langsmith.url}
    return {**os.environ, **{f"LANGSMITH_{name}": value for name, value in settings.items()}}


def test_traces_are_masked(kitchen: str) -> None:
    with LangSmithServer() as langsmith:
        secret = f"{GOAL['question']} with lsv2_pt_ofmine"
        arguments = ["aag", secret, "-m", kitchen, "--json"]
        done = process(*arguments, env=traced(langsmith))
    assert done.returncode == 0, done.stderr
    [root] = langsmith.roots
    assert json.loads(done.stdout)["trace_id"] == root["id"]
    assert b"lsv2_pt_ofmine" not in langsmith.received
    assert GOAL["question"].encode() in langsmith.received


@pytest.mark.parametrize("compression", [True, False])
def test_a_langsmith_that_never_answers_does_not_hold_up_the_end(
    kitchen: str, compression: bool
) -> None:
    with (
        LangSmithServer(mute=True, compression=compression) as langsmith,
        subprocess.Popen(
            [*STEPCRAFT, "aag", "bake bread", "-m", kitchen, "--json", "--quiet"],
            env=traced(langsmith),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running,
    ):
        out, err = running.communicate(timeout=30)
    assert running.returncode == 0
    assert json.loads(out)["answer"]
    assert err.count("\n") <= 1


def test_nothing_heavy_is_imported_before_a_command_runs() -> None:
    heavy = "('numpy', 'langchain_core', 'langgraph', 'langsmith', 'wordllama', 'pydantic')"
    code = f"import sys, stepcraft.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
