"""`stepcraft eval`: output, errors and exit status."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft.cli import app
from tests.servers.openai_replies import Body
from tests.servers.openai_server import OpenAIServer

QUESTIONS = """\
{"question": "How do I pause a graph for a human?", "contains": ["interrupt"]}
{"question": "How do I stream tokens?", "contains": [["messages", "stream_mode"]]}
"""


@pytest.fixture
def questions(tmp_path: Path) -> str:
    file = tmp_path / "questions.jsonl"
    file.write_text(QUESTIONS)
    return str(file)


def stepcraft(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["eval", *arguments])


def test_a_run_and_its_report(questions: str, tmp_path: Path) -> None:
    directory = str(tmp_path / "run")
    command = ["run", questions, "--methods", "rag,direct", "--into", directory, "--allow-keyless"]
    ran = stepcraft(*command)
    assert ran.exit_code == 0, ran.output
    assert "4 of 4 done, 0 failed" in ran.stderr
    assert "| rag | " in ran.stdout
    assert "The keyless model wrote these answers" in ran.stdout
    again = stepcraft(*command, "--quiet")
    assert (again.stdout, again.stderr) == (ran.stdout, "")
    file = tmp_path / "report.md"
    assert stepcraft("report", directory, "--to", str(file)).exit_code == 0
    assert file.read_text("utf-8").strip() == ran.stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--methods", "rag"], "rag has no language model"),
        (["--methods", "ragg"], "there is no graph 'ragg'"),
        (["--methods", "rag", "--allow-keyless", "--data", "x"], "leave it out"),
        (["--methods", "rag", "--samples", "2", "--cache", "c"], "leave one out"),
        (
            ["--methods", "rag", "--allow-keyless", "--into", "{file}"],
            "cannot be used for an evaluation",
        ),
    ],
)
def test_what_cannot_be_run_is_one_line(
    questions: str, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    into = [] if "--into" in arguments else ["--into", str(tmp_path / "run")]
    ran = stepcraft("run", questions, *(part.format(file=questions) for part in arguments), *into)
    assert ran.exit_code == 2
    assert problem in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_a_report_of_nothing(tmp_path: Path) -> None:
    ran = stepcraft("report", str(tmp_path))
    assert ran.exit_code == 2
    assert "is no directory of an evaluation" in ran.stderr


def test_the_list() -> None:
    ran = stepcraft("list")
    assert ran.exit_code == 0
    named = re.findall(r"[\w-]+", ran.stdout)
    assert {"rat", "self_refinement", "lgstep-val", "stepcraft-papers"} <= {*named}


def test_each_answer_has_a_seed(
    questions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer(lambda _body: "yes") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        command = ["run", questions, "--methods", "direct", "--limit", "1", "--samples", "2"]
        ran = stepcraft(*command, "--model", "openai:seeded", "--into", str(tmp_path / "run"))
        assert "2 of 2 done, 0 failed" in ran.stderr, ran.output
    assert sorted(body["seed"] for body in server.bodies) == [1, 2]


def test_ctrl_c_stops_it_and_the_same_command_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"question": "Question {number}?"}}\n' for number in range(500)))
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeding}; from stepcraft.cli import main; main()"
    run = ["eval", "run", str(file), "--methods", "direct", "--model", "openai:test"]
    command = [sys.executable, "-c", code, *run, "--into", str(tmp_path / "run")]

    def reply(_body: Body) -> str:
        if len(server.bodies) > 10:  # so that the run is under way when it is stopped
            server.closing.wait(60)
        return "yes"

    with OpenAIServer(reply) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "x"}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr
            assert "of 500 done" in process.stderr.readline()
            while len(server.bodies) <= 10:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            told = process.stderr.read()
            assert process.wait(30) == 130
        finally:
            process.kill()
            process.communicate()
    assert told.strip().splitlines()[-1] == "stopped; the same command goes on from here"
    kept = (tmp_path / "run" / "samples.jsonl").read_text("utf-8").splitlines()
    assert 3 <= len(kept) <= 10
