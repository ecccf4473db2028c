"""`stepcraft` as a process: models over HTTP, signals, pipes, terminals, tracing."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any

import pytest

from stepcraft.memory.files import write_jsonl
from tests.kitchen import GOAL, PROCEDURES, REVISED, cook
from tests.servers.langsmith_server import LangSmithServer, metadata
from tests.servers.openai_replies import Reply, hang
from tests.servers.openai_server import OpenAIServer

STEPCRAFT = [sys.executable, "-c", "from stepcraft.cli import main; main()"]
HEARS_CTRL_C = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
]
"""Prefix of a command that restores the handling of Ctrl-C, which the test process may have been told to ignore."""
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""What a user's Python does, whatever the tests run with."""


@pytest.fixture
def kitchen(tmp_path: Path) -> str:
    file = tmp_path / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    return str(file)


def arguments(kitchen: str, *more: str) -> list[str]:
    using = ["--using", GOAL["resources"], "--memory", kitchen]
    return [*STEPCRAFT, "aag", GOAL["question"], *using, "--set", "paper=true", *more]


def openai(base_url: str) -> dict[str, str]:
    return {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "k"}


def run(kitchen: str, *more: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments(kitchen, *more), capture_output=True, text=True, env=env, timeout=60, check=False
    )


def kitchen_replies(body: Any) -> str:
    """Return the cook's reply to a node, which is recognised by the reply format that it asks for."""
    form = re.findall(r'<reply_format id="(\w+)">', body["messages"][0]["content"])[0]
    replies = cook()
    if form == "steps":
        return replies["revise" if "<notes>" in body["messages"][1]["content"] else "draft"][0]
    return replies[{"questions": "to_query", "text": "answer", "critique": "critic"}[form]][0]


def test_a_model_over_http(kitchen: str) -> None:
    with OpenAIServer(kitchen_replies) as server:
        done = run(kitchen, "--model", "openai:anything", env=openai(server.base_url))
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 8
    assert {body["model"] for body in server.bodies} == {"anything"}
    assert done.stdout.startswith(f"{REVISED}\n\nProcedures used:\n")
    lines = done.stderr.splitlines()
    assert len(lines) == 11, "one for each step, and no warning"
    assert [line.split()[2] for line in lines[-2:]] == ["revise", "critic"]
    assert "\x1b" not in done.stdout + done.stderr


def test_a_model_that_is_down(kitchen: str) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        done = run(kitchen, "--model", "openai:m", "--set", "retry_wait_s=0", env=openai(url))
    assert (done.returncode, done.stdout) == (1, "")
    *_, last = done.stderr.splitlines()
    assert last.startswith(
        "stepcraft: no steps were written: revise was skipped: the model could not be asked: "
    )
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_quietly(kitchen: str) -> None:
    asked = Event()

    def reply(_body: Any) -> Reply:
        asked.set()
        return hang()

    with OpenAIServer(reply) as server:
        process = subprocess.Popen(
            [*HEARS_CTRL_C, *arguments(kitchen, "--model", "openai:m", "--quiet")],
            env=openai(server.base_url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=20) == (b"", b""), "the model is not waited for"
            assert process.returncode == 130
        finally:
            process.kill()
            process.wait()


def test_a_broken_pipe_is_quiet(kitchen: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            arguments(kitchen, "--quiet"),
            stdout=writing,
            stderr=subprocess.PIPE,
            env=BUFFERED,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("argument", ["graphs", "--help"])
def test_a_full_disk_is_one_sentence(argument: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*STEPCRAFT, argument],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=BUFFERED,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "stepcraft: the output cannot be written: no space is left; make room, or write it elsewhere\n",
    )


@pytest.mark.parametrize(
    ("shell", "sentence"),
    [
        ('mkdir gone; cd gone; rmdir ../gone; "$@" graphs', "the working directory is no longer there"),
        ('"$@" memory add --memory m.db <&-', "there is no procedure to add"),
    ],
)
def test_a_shell_without_a_folder_or_an_input_is_told_so(tmp_path: Path, shell: str, sentence: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", *STEPCRAFT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith(f"stepcraft: {sentence}")


def read_all(terminal: int) -> str:
    pieces: list[bytes] = []
    try:
        while piece := os.read(terminal, 65536):
            pieces.append(piece)
    except OSError:  # how a terminal on Linux says that nobody writes to it any more
        pass
    return b"".join(pieces).decode()


def test_a_terminal_shows_progress_live_and_leaves_the_answer_clean(kitchen: str) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(arguments(kitchen), stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    try:
        shown = read_all(ours)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    live, hidden_until, after = shown.rpartition("\x1b[?25h")
    assert live.startswith("\x1b[?25l"), "the cursor is hidden while the spinner turns"
    assert hidden_until
    assert "draft · to_query" in live
    assert re.search(r"\n? +\d\.\d s  critic    \w", live)
    answer, _, used = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r", "", after).partition("\nProcedures used:\n")
    assert re.fullmatch(r"(\d+\. .+\n)+", answer)
    assert "warning: no language model wrote this" in used


def test_characters_that_the_output_cannot_hold(kitchen: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*STEPCRAFT, "aag", "烤面包", "--memory", kitchen, "--set", "questions=false"],
        capture_output=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"1. ")


SECRET = "Log in with lsv2_pt_opensesame."


def traced(endpoint: str, **more: str) -> dict[str, str]:
    settings = {"TRACING": "true", "API_KEY": "lsv2_secret", "ENDPOINT": endpoint, **more}
    return {**os.environ, **{f"LANGSMITH_{name}": value for name, value in settings.items()}}


def test_a_run_is_traced(kitchen: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with LangSmithServer() as langsmith:
        options = ["--set", "k=2", "--json", "--html", str(page), "--set", f"draft_instructions={SECRET}"]
        done = run(kitchen, *options, env=traced(langsmith.url))
    assert done.returncode == 0
    assert "LangSmith" not in done.stderr
    [root] = langsmith.roots
    assert json.loads(done.stdout)["trace_id"] == root["id"] == root["trace_id"]
    assert f"trace {root['id']}" in page.read_text("utf-8")
    labels = {"stepcraft_method": "aag", "stepcraft_k": 2, "stepcraft_memory": kitchen}
    assert metadata(root).items() >= labels.items()
    names = {one["name"] for one in langsmith.below(root)}
    assert {"aag", "draft", "to_query", "retrieve", "answer", "revise", "critic"} <= names
    assert b"lsv2_secret" not in langsmith.received
    assert b"Log in with ***." in langsmith.received
    assert b"opensesame" not in langsmith.received


class Dripping(BaseRequestHandler):
    """Answers a header line that never ends."""

    def handle(self) -> None:
        with suppress(OSError):
            self.request.sendall(b"HTTP/1.1 200 OK\r\n")
            while not self.server.over.wait(0.2):  # type: ignore[attr-defined]
                self.request.sendall(b"x")


@contextmanager
def dripping() -> Iterator[str]:
    with ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        server.over = Event()  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, args=(0.02,)).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.over.set()  # type: ignore[attr-defined]
        server.shutdown()


@contextmanager
def refused() -> Iterator[str]:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{nobody.getsockname()[1]}"


def test_a_langsmith_that_is_silent_costs_one_line(kitchen: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = run(kitchen, "--json", env=traced(endpoint))
        silent.settimeout(5)
        silent.accept()[0].close()
        silent.settimeout(0)
        with pytest.raises(BlockingIOError):
            silent.accept()  # it was asked once and no more
    assert done.returncode == 0
    assert json.loads(done.stdout)["steps"]
    assert "trace_id" not in json.loads(done.stdout)
    told = [line for line in done.stderr.splitlines() if "LangSmith" in line]
    assert told == [f"warning: LangSmith does not answer at {endpoint}; this run is not traced"]


@pytest.mark.parametrize("away", [refused, dripping])
def test_a_langsmith_that_is_away_costs_one_line(
    kitchen: str, away: Callable[[], AbstractContextManager[str]]
) -> None:
    with away() as endpoint:
        done = run(kitchen, "--json", env=traced(endpoint))
    assert (done.returncode, "trace_id" in done.stdout) == (0, False)
    told = [line for line in done.stderr.splitlines() if "LangSmith" in line]
    assert told == [f"warning: LangSmith does not answer at {endpoint}; this run is not traced"]


@pytest.mark.parametrize(
    ("command", "compression"),
    [
        pytest.param(["aag", "bake bread", "--memory"], False, id="a run"),
        pytest.param(["aag", "bake bread", "--memory"], True, id="a run, compressed"),
        pytest.param(["source", "check"], True, id="a search"),
    ],
)
def test_a_langsmith_that_never_answers_a_post_delays_the_exit_by_seconds_only(
    kitchen: str, command: list[str], compression: bool
) -> None:
    if command[0] == "source":
        command = [*STEPCRAFT, *command, f"memory:{kitchen}", "bake bread", "--json"]
    else:
        command = [*STEPCRAFT, *command, kitchen, "--json"]
    with LangSmithServer(mute=True, compression=compression) as langsmith:
        told = after_the_answer(command, traced(langsmith.url))
    assert told == ["warning: LangSmith did not take the whole trace of this run"]


def test_a_silent_collector_delays_the_exit_by_seconds_only(kitchen: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, LangSmithServer() as langsmith:
        env = traced(langsmith.url, OTEL_ENABLED="true")
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        told = after_the_answer([*STEPCRAFT, "aag", "bake bread", "--memory", kitchen, "--json"], env)
    assert told == ["warning: the OpenTelemetry collector did not take the whole trace of this run"]
    assert [root["name"] for root in langsmith.roots] == ["aag"]


def after_the_answer(command: list[str], env: dict[str, str]) -> list[str]:
    """The warnings of a command about tracing, which may not end much later than its answer."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=env, text=True, **pipes) as process:
        assert process.stdout
        assert process.stderr
        out = process.stdout.readline()
        answered = time.monotonic()
        out += process.stdout.read()
        waited = time.monotonic() - answered
        err = process.stderr.read()
    assert (process.returncode, waited < 6) == (0, True), f"it ended {waited:.1f} s after its answer"
    assert json.loads(out)
    return [line for line in err.splitlines() if "trace" in line]
