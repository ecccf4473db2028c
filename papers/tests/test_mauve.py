"""MAUVE of a finished evaluation, with the features of bundled embeddings."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stepcraft import BadInput
from stepcraft.cli import app
from stepcraft.evals.directory import Outcome, RunDirectory
from stepcraft.evals.mauve import mauve_scores
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.summary import summarise

TOPICS = [
    "bread",
    "rivers",
    "engines",
    "poems",
    "planets",
    "taxes",
    "cheese",
    "violins",
    "glaciers",
    "stamps",
]
needs_mauve = pytest.mark.skipif(
    find_spec("mauve") is None, reason='needs pip install "stepcraft[mauve]"'
)


def evaluation(directory: Path, count: int) -> Path:
    """A method that says what is right in other words, and one that always says the same."""
    methods = {
        name: {"graph": "rag", "settings": {}, "model": "writer"} for name in ("same", "stuck")
    }
    with RunDirectory(directory, {"methods": methods}) as kept:
        for number in range(count):
            topic = f"{TOPICS[number % 10]} and {TOPICS[number // 10 % 10]}"
            for method, answer in {
                "same": f"It is all about {topic}, as everybody knows.",
                "stuck": "I cannot answer that, because nothing about it was found in any passage.",
            }.items():
                kept.add(
                    Outcome(
                        method=method,
                        id=str(number),
                        sample={
                            "id": str(number),
                            "question": "What?",
                            "answers": [f"It is about {topic}, as everybody knows."],
                        },
                        output={"answer": answer},
                        error="",
                        scores={},
                        usage={},
                        seconds=1.0,
                        warnings=[],
                    )
                )
    return directory


@needs_mauve
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the bundled embeddings have no wheel")
def test_answers_like_the_right_ones_score_high_and_others_low(tmp_path: Path) -> None:
    evaluation(tmp_path, 100)
    found = {one.method: one for one in mauve_scores(tmp_path, "wordllama")}
    assert found["same"].score > 0.8
    assert found["stuck"].score < 0.1
    assert (found["same"].samples, found["same"].features) == (100, "wordllama")
    told = markdown(summarise(tmp_path, "wordllama"))
    assert (
        f"MAUVE with the features wordllama: same {found['same'].score:.3f} (100 samples), stuck 0.0"
        in told
    )
    assert "MAUVE" not in markdown(summarise(tmp_path))


@needs_mauve
def test_few_samples_have_no_mauve(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"MAUVE of 99 samples .* evaluate at least 100"):
        mauve_scores(evaluation(tmp_path, 99), "wordllama")


@pytest.mark.skipif(
    find_spec("mauve") is not None and find_spec("torch") is not None,
    reason="the packages are installed",
)
def test_what_is_missing_is_named_in_one_line(tmp_path: Path) -> None:
    evaluation(tmp_path, 1)
    ran = CliRunner().invoke(app, ["eval", "report", str(tmp_path), "--mauve", "gpt2-large"])
    assert ran.exit_code == 2
    assert "MAUVE with the features 'gpt2-large' needs " in ran.stderr
    assert 'pip install "stepcraft[mauve]" torch transformers' in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
