"""`stepcraft eval`: output, errors and exit status."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from stepcraft.evals.directory import read_outcomes
from tests.evals.runs import environment, problem_of, questions, stepcraft
from tests.servers.openai_server import OpenAIServer


def test_a_run_and_its_report(tmp_path: Path) -> None:
    directory, file = tmp_path / "run", tmp_path / "report.md"
    options = f"--methods rag,direct --into {directory} --allow-keyless"
    command = f"run {questions(tmp_path, 2)} {options}"
    ran = stepcraft(command)
    assert ran.exit_code == 0, ran.output
    assert "4 of 4 done, 0 failed" in ran.stderr
    assert "| rag | " in ran.stdout
    assert "The keyless model wrote these answers" in ran.stdout
    again = stepcraft(f"{command} --quiet")
    assert (again.stdout, again.stderr) == (ran.stdout, "")
    assert stepcraft(f"report {directory} --to {file}").exit_code == 0
    assert file.read_text("utf-8").strip() == ran.stdout.strip()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--methods rag", "rag has no language model"),
        ("--methods ragg", "there is no graph 'ragg'"),
        ("--methods rag --set kk=3", "did you mean 'k'?"),
        ("--method mine=tests.evals.test_methods:shout --set k=3", "'k'; they have none"),
        ("--methods direct --from corpus:{file}", "no method has a setting 'sources'; they have"),
        ("--methods rag --allow-keyless --data x", "leave it out"),
        ("--methods rag --allow-keyless --into {file}", "cannot be used"),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path: Path, options: str, problem: str) -> None:
    file = questions(tmp_path, 1)
    command = f"run {file} --into {tmp_path / 'run'} {options.format(file=file)}"
    assert problem in problem_of(command)


def test_how_much_so_many_questions_show_is_said_before(tmp_path: Path) -> None:
    options = f"--methods rag,direct --into {tmp_path / 'run'} --allow-keyless"
    ran = stepcraft(f"run {questions(tmp_path, 30)} {options}")
    assert ran.stderr.startswith(
        "with 30 questions, the chance to detect a true gain in right answers is 10% for 10%, "
        "40% for 20%, 77% for 30%"
    )


def test_a_wrong_source_is_refused_before_anything_runs(tmp_path: Path) -> None:
    command = (
        f"run {questions(tmp_path, 3)} --methods rag --allow-keyless --into {tmp_path / 'run'}"
    )
    ran = stepcraft(f"{command} --from corpus:{tmp_path}/nowhere")
    assert ran.exit_code == 2
    assert "nowhere" in ran.stderr
    assert not (tmp_path / "run").exists()
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "a.md").write_text("Question 1 is answered by 1.")
    mended = stepcraft(f"{command} --from corpus:{tmp_path}/nowhere")
    assert mended.exit_code == 0, mended.output


def test_the_list() -> None:
    names = re.findall(r"[\w-]+", stepcraft("list").stdout)
    assert {"rat", "lgstep-val", "stepcraft-papers"} <= {*names}


def test_each_answer_has_a_seed(tmp_path: Path) -> None:
    options = f"--methods direct --limit 1 --samples 2 --into {tmp_path / 'run'}"
    command = f"run {questions(tmp_path, 2)} {options}"
    with OpenAIServer(lambda _body: "yes") as server:
        ran = stepcraft(f"{command} --model openai:seeded", server)
    assert "2 of 2 done, 0 failed" in ran.stderr, ran.output
    assert sorted(body["seed"] for body in server.bodies) == [1, 2]


def test_ctrl_c_stops_it_and_the_same_command_goes_on(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    options = f"--methods direct --model openai:test --into {directory}"
    command = f"run {questions(tmp_path, 50)} {options}"
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeding}; from stepcraft.cli import main; main()"
    is_silent = Event()

    def reply(_body: object) -> str:
        if len(server.bodies) > 10:
            is_silent.set()
            server.closing.wait(60)
        return "yes"

    with OpenAIServer(reply) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "eval", *command.split()],
            env={**os.environ, **environment(server)},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert is_silent.wait(60)
            process.send_signal(signal.SIGINT)
            _, written = process.communicate(timeout=30)
        finally:
            process.kill()
            process.communicate()
    first, *_, last = written.splitlines()
    assert "of 50 done" in first
    assert (process.returncode, last) == (130, "stopped; run the same command again to continue")
    finished = list(read_outcomes(directory))
    assert 3 <= len(finished) <= 10
    with OpenAIServer(lambda _body: "yes") as server:
        assert "50 of 50 done" in stepcraft(command, server).stderr
    assert len(server.bodies) == 50 - len(finished)
