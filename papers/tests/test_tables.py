"""Ablation tables, TrueSkill and MAUVE, as the command line prints them."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from papers.tests.official import official_file
from stepcraft.errors import BadInput
from stepcraft.evals.directory import SAMPLES, read_outcomes
from stepcraft.evals.votes import VOTES
from stepcraft_papers.__main__ import app
from stepcraft_papers.ablations import Protocol, aag_rows, ablate, score_rows
from stepcraft_papers.mauve import mauve_scores
from stepcraft_papers.published import RAT_ABLATIONS, RPG_ABLATIONS
from stepcraft_papers.trueskill import rate, ratings
from tests.scripted import ScriptedModel

TOPICS = (
    *("bread", "rivers", "engines", "poems", "planets"),
    *("taxes", "cheese", "violins", "glaciers", "stamps"),
)


def test_rpg_is_ablated_beside_the_papers_figures(tmp_path: Path) -> None:
    """A model that knows the short answers alone: what runs is every graph of the table."""

    def reply(node: str, prompt: str) -> str:
        town = prompt.partition("born in 18")[2][:2]
        return f"18{town}" if town else "NONE"

    settings = {"model": ScriptedModel(reply)}
    data = official_file("2wikimultihopqa", tmp_path)
    protocol = Protocol(tmp_path / "run", data, limit=2, settings=settings)
    table = RPG_ABLATIONS["2wikimultihopqa"]
    rows = score_rows(table, ablate(table, "2wikimultihopqa", protocol))
    assert [row[0] for row in rows] == [figure.label for figure in table]
    assert [row[3] for row in rows] == ["-", "-", "0.302", "0.336"]
    assert all("(" in row[2] for row in rows)
    assert not [each["error"] for each in read_outcomes(tmp_path / "run") if each["error"]]


def test_rat_is_ablated_on_programs(sandbox: None, tmp_path: Path) -> None:
    task = {
        "task_id": "HumanEval/0",
        "prompt": "def f(x):\n    '''Return x + 1.'''\n",
        "entry_point": "f",
        "canonical_solution": "    return x + 1\n",
        "test": "def check(f):\n    assert f(1) == 2",
    }
    data = tmp_path / "HumanEval.jsonl"
    data.write_text(json.dumps(task))
    corpus = tmp_path / "docs"
    corpus.mkdir()
    (corpus / "f.md").write_text("The function f returns x + 1.")

    def reply(node: str, _prompt: str) -> str:
        if node == "revise":
            return "NO CHANGE"
        return "It adds one." if node == "draft" else "```python\ndef f(x): return x + 1\n```"

    settings = {"model": ScriptedModel(reply), "sources": [f"corpus:{corpus}"]}
    table = RAT_ABLATIONS["humaneval"]
    summary = ablate(table, "humaneval", Protocol(tmp_path / "run", data, settings=settings))
    rows = score_rows(table, summary)
    assert [row[3] for row in rows] == ["0.473", "0.506", "0.539", "0.573", "0.592"]
    assert [row[2][:5] for row in rows][1:] == ["1.000"] * 4


def test_aag_is_ablated_against_rag_by_a_judge(tmp_path: Path) -> None:
    def reply(node: str, prompt: str) -> str:
        return "NO UPDATE REQUIRED" if node == "critic" else "1. Boil water.\n2. Drink it."

    settings = {"model": ScriptedModel(reply), "embeddings": "none"}
    protocol = Protocol(tmp_path / "run", limit=1, settings=settings)
    rows = aag_rows("lgstep-test", protocol, [ScriptedModel(lambda *_: "T")], votes=2)
    assert len(rows) == 7
    (whole,) = [row for row in rows if row[0].startswith("AAG against RAG")]
    assert whole[1:] == ("wins/losses/ties", "0.000 / 0.000 / 1.000", "0.696 / 0.125 / 0.179")


def test_trueskill_follows_the_votes(tmp_path: Path) -> None:
    votes = [("a", "b", "a")] * 20 + [("b", "c", None)] * 20
    first, second, third = sorted(rate(votes), key=lambda rating: rating.method)
    assert first.mean > 25 > second.mean
    assert abs(second.mean - third.mean) < third.sigma
    assert first in rate(votes[::-1]), "the order of the votes does not count"
    with pytest.raises(BadInput, match="no judge has voted"):
        ratings(tmp_path)
    line: dict[str, Any] = {"kind": "vote", "judge": "j", "method": "a", "against": "b", "id": "1"}
    verdicts = [{**line, "number": n, "verdict": v} for n, v in enumerate(("win", "win", "loss"))]
    (tmp_path / VOTES).write_text("".join(json.dumps(each) + "\n" for each in verdicts))
    assert [rating.method for rating in ratings(tmp_path)["j"]] == ["a", "b"]
    assert "TrueSkill" in CliRunner().invoke(app, ["trueskill", str(tmp_path)]).stdout


def evaluation(directory: Path, count: int) -> Path:
    """A method that says what is right in other words, and one that always says the same."""
    lines: list[dict[str, Any]] = []
    for number in range(count):
        topic = f"{TOPICS[number % 10]} and {TOPICS[number // 10 % 10]}"
        right = [f"It is about {topic}, as everybody knows."]
        sample = {"id": str(number), "question": "What?", "answers": right}
        for method, answer in {
            "same": f"It is all about {topic}, as everybody knows.",
            "stuck": "I cannot answer that, because nothing about it was found.",
        }.items():
            outcome = {"method": method, "id": str(number), "output": {"answer": answer}}
            lines.append({**outcome, "sample": sample, "error": ""})
    directory.mkdir()
    (directory / SAMPLES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


@pytest.mark.skipif(
    find_spec("mauve") is None, reason='needs pip install "stepcraft-papers[mauve]"'
)
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the bundled embeddings have no wheel")
def test_answers_like_the_right_ones_have_a_high_mauve(tmp_path: Path) -> None:
    scores = mauve_scores(evaluation(tmp_path / "100", 100), "wordllama")
    assert scores["same"] > 0.8
    assert scores["stuck"] < 0.1
    with pytest.raises(BadInput, match=r"MAUVE of 99 samples .* evaluate at least 100"):
        mauve_scores(evaluation(tmp_path / "99", 99), "wordllama")


def test_the_papers_figures() -> None:
    ran = CliRunner().invoke(app, ["figures", "gsm8k"])
    assert "0.714" in ran.stdout
    assert CliRunner().invoke(app, ["figures", "gsm9k"]).exit_code == 2
