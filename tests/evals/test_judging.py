"""Judging a directory: several judges and their agreement, budgets, and inputs that are too long."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from stepcraft import BadInput
from stepcraft.cli import app
from stepcraft.errors import RunStopped
from stepcraft.evals.progress import Budget
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.summary import summarise
from stepcraft.evals.votes import every_judgement, read_judgements
from stepcraft.evidence import Evidence
from tests.evals.judged import JudgeModel, evaluation, judged, shown
from tests.servers.openai_server import OpenAIServer


def by_question(name: str, *verdicts: str) -> JudgeModel:
    """A judge that prefers the method's answer ("w"), the other ("l") or none ("t"), question by question."""

    def reply(_node: str, prompt: str) -> str:
        texts = shown(prompt)
        wanted = verdicts[int(texts["question", ""].partition("Question ")[2].rstrip("?"))]
        letter = "A" if texts["answer", "A"].startswith("rat") == (wanted == "w") else "B"
        return "T" if wanted == "t" else letter

    return JudgeModel(reply, model=name)


def test_two_judges_of_one_name_and_none(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"], "rat": ["rat"]})
    for judges in ([JudgeModel(["A"]), JudgeModel(["A"])], []):
        with pytest.raises(BadInput, match="name each once"):
            judged(tmp_path, judges)


def test_a_budget_of_calls_is_kept_and_the_same_command_goes_on(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 4, "rat": ["rat"] * 4})
    model = JudgeModel(lambda *_: "T", latency=0.001)
    for most, made in ((5, 5), (5, 5), (12, 12)):
        stopped = f"the budget of {most} calls is used up: {made} of 16 calls to judges are done; raise it"
        with pytest.raises(RunStopped, match=stopped):
            judged(tmp_path, model, votes=4, concurrency=3, budget=Budget(calls=most))
        assert len(model.calls) == len(read_judgements(tmp_path)) == made
    other = JudgeModel(lambda *_: "T", model="other")
    judged(tmp_path, other, votes=4, budget=Budget(calls=16))
    assert len(other.calls) == 16, "what another judge was asked does not count"
    judged(tmp_path, model, votes=4, budget=Budget(calls=16))
    assert len(model.calls) == 16, "a budget that just does is no reason to stop"


def test_a_budget_of_tokens_counts_calls_that_failed_before(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2, "rat": ["rat"] * 2})

    def counted(_node: str, _prompt: str) -> AIMessage:
        return AIMessage(
            "T", usage_metadata={"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
        )

    with pytest.raises(RunStopped, match="the budget of 250 tokens is used up: 3 of 4"):
        judged(tmp_path, JudgeModel(counted), votes=2, budget=Budget(tokens=250))
    with pytest.raises(RunStopped, match="the budget of 300 tokens is used up: 3 of 4"):
        judged(tmp_path, JudgeModel(counted), votes=2, budget=Budget(tokens=300))
    assert sum(one["usage"]["input_tokens"] for one in every_judgement(tmp_path)) == 270
    failing = JudgeModel(lambda *_: RuntimeError("no such luck"))
    judged(tmp_path, failing, votes=2, budget=Budget(calls=4))
    with pytest.raises(RunStopped, match="the budget of 4 calls is used up: 3 of 4"):
        judged(tmp_path, failing, votes=2, budget=Budget(calls=4))


def test_several_judges_within_a_budget_have_samples_in_common(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 6, "rat": ["rat"] * 6})
    judges = [by_question("one", *"wwwwww"), by_question("two", *"llllll")]
    with pytest.raises(RunStopped, match="the budget of 12 calls"):
        judged(tmp_path, judges, votes=2, budget=Budget(calls=12))
    found = summarise(tmp_path).preferences
    assert [(one.judge, one.wins, one.losses) for one in found] == [("one", 3, 0), ("two", 0, 3)]


def test_votes_stand_where_another_method_becomes_the_cheapest(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2, "rat": ["rat"] * 2})
    judged(tmp_path, by_question("one", *"wwww"), votes=2)
    file = tmp_path / "samples.jsonl"
    file.write_text(
        file.read_text("utf-8").replace('"input_tokens": 100,', '"input_tokens": 900,'), "utf-8"
    )
    again, other = by_question("one", *"wwww"), by_question("two", *"wwww")
    summary = judged(tmp_path, [again, other], votes=2)
    assert (len(again.calls), len(other.calls)) == (0, 4)
    found = [(one.judge, one.method, one.against, one.wins) for one in summary.preferences]
    assert found == [("one", "rat", "rag", 2), ("two", "rat", "rag", 2)]


def test_ctrl_c_stops_judging_and_the_same_command_goes_on(tmp_path: Path) -> None:
    evaluation(tmp_path / "run", {"rag": ["rag"] * 20, "rat": ["rat"] * 20})
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeding}; from stepcraft.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "eval",
        "judge",
        str(tmp_path / "run"),
        "--judge",
        "openai:judge",
    ]

    def reply(_body: object) -> str:
        if len(server.bodies) > 10:  # so that it is under way when it is stopped
            server.closing.wait(60)
        return "T"

    with OpenAIServer(reply) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "x"}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr
            assert "of 200 done" in process.stderr.readline()
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
    kept = len(read_judgements(tmp_path / "run"))
    assert 3 <= kept <= 10
    rest = JudgeModel(lambda *_: "T", model="openai:judge")
    judged(tmp_path / "run", rest, concurrency=16)
    assert len(rest.calls) == 200 - kept


def passage(id_: str, *sentences: str) -> Evidence:
    return Evidence(id=id_, title=f"Page {id_}", text=" ".join(sentences), source="", score=1.0)


LONG = "Nothing in particular happened in that quiet valley. " * 20
BRIDGE = "The bridge of Mostar was finished in 1566 by an Ottoman builder."


@pytest.mark.parametrize(
    "output",
    [
        {"answer": "It was finished in 1566 [2]."},
        {"answer": "…", "sentences": [{"text": "It was finished in 1566.", "evidence": ["b"]}]},
    ],
)
def test_passages_that_are_cited_are_shown_before_others(
    tmp_path: Path, output: dict[str, object]
) -> None:
    evidence = [passage("a", LONG), passage("b", BRIDGE), passage("c", LONG)]
    evaluation(tmp_path, {"rag": [{**output, "evidence": evidence}]})
    model = JudgeModel(lambda *_: "NONE")
    summary = judged(tmp_path, model, passage_tokens=300)
    [call] = model.calls
    assert [id_ for name, id_ in shown(call.prompt) if name == "passage"] == ["1", "2"]
    assert (summary.supports[0].answers, summary.supports[0].cut) == (1, 1)
    assert "| scripted:judge | rag | 1.000 (0.207\u20131.000) | 1 | 0 | 0 | 1 |" in markdown(
        summary
    )


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2, "rat": ["rat"] * 2})
    monkeypatch.setenv("OPENAI_API_KEY", "opensesame-opensesame")
    command = [
        "eval",
        "judge",
        str(tmp_path),
        "--judge",
        "openai:one",
        "--judge",
        "openai:two",
        "--votes",
        "2",
    ]
    with OpenAIServer(lambda _body: "T") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        stopped = CliRunner().invoke(app, [*command, "--max-calls", "5", "--quiet"])
        assert stopped.exit_code == 1
        assert stopped.stderr.strip().endswith("start the same command again")
        assert len(stopped.stderr.strip().splitlines()) == 1
        poor = CliRunner().invoke(
            app, [*command, "--max-usd", "0.000001", "--price", "1/1", "--quiet"]
        )
        assert "the budget of 1e-06 USD is used up: 5 of 8" in poor.stderr
        unknown = CliRunner().invoke(app, [*command, "--max-usd", "1", "--price", "openai:one=1/1"])
        assert "that of openai:two is unknown; name it with --price" in unknown.stderr
        result = CliRunner().invoke(app, [*command, "--price", "1/1"])
        assert re.search(r"8 of 8 done.* 8 calls.* USD", result.stderr)
        assert result.exit_code == 0, result.stderr
        assert "| openai:two | rat | rag | 0 | 0 | 2 |" in result.stdout
        asked = [
            json.loads(line)["judge"]
            for line in (tmp_path / "votes.jsonl").read_text().splitlines()
        ]
        assert sorted(asked) == ["openai:one"] * 4 + ["openai:two"] * 4
