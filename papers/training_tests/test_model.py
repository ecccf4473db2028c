"""A trained model in the paper's graph, and as vLLM serves it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from papers.tests.official import OFFICIAL
from papers.training_tests.made import SAMPLES
from stepcraft.errors import BadInput
from stepcraft_papers.graphs.rpg import build_rpg_paper
from stepcraft_papers.training.__main__ import app
from stepcraft_papers.training.ablations import compare
from stepcraft_papers.training.examples import TASKS
from stepcraft_papers.training.model import TunedModel, vllm_command
from stepcraft_papers.training.train import Recipe, train
from tests.shelf import Shelf

# Whoever comes first waits for the training.
pytestmark = pytest.mark.timeout(900)

ASKED = SAMPLES[::16]


def test_it_plans_and_answers_its_own_questions(tuned: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = tuned
    facts = {
        f"{each.question.split()[3]} of {each.question.split()[5].rstrip('?')}": each
        for each in SAMPLES
    }
    shelf = Shelf(
        passages={place: f"{each.segments[0].support[0].text}" for place, each in facts.items()}
    )
    graph = build_rpg_paper(model=TunedModel(folder), sources=shelf)
    for sample in ASKED:
        result = graph.invoke({"question": sample.question}, context={"select": False})
        assert [each["plan"] for each in result["segments"]] == [sample.segments[0].plan]
        assert result["answer"] == sample.segments[0].text
        assert result["usage"]["nodes"]["plan"]["output_tokens"] <= 60


def test_vllm_serves_the_loras(base: str, tmp_path: Path) -> None:
    train(base, SAMPLES[:2], (), tmp_path, Recipe(method="lora", instructions=True, epochs=0.01))
    result = CliRunner().invoke(app, ["serve", str(tmp_path)])
    assert f"vllm serve {base} --tokenizer {tmp_path} --enable-lora" in result.output
    assert f"plan={tmp_path}/plan answer={tmp_path}/answer" in result.output
    for task in TASKS:
        config = json.loads((tmp_path / task / "adapter_config.json").read_text())
        assert (config["peft_type"], config["r"]) == ("LORA", 64)


def test_vllm_serves_nothing_that_reads_no_instructions(tuned: tuple[Path, Any]) -> None:
    with pytest.raises(BadInput, match="instructions"):
        vllm_command(tuned[0])


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no trained model"):
        TunedModel(tmp_path)


def test_the_table_of_ablations(base: str, tmp_path: Path) -> None:
    name, content = OFFICIAL["asqa"]
    (tmp_path / name).write_text(content())
    rows = compare(
        base,
        SAMPLES[:4],
        Recipe(epochs=1, learning_rate=1e-3),
        tmp_path / "table",
        benchmark="asqa",
        data=tmp_path / name,
        limit=1,
        sizes=[2],
    )
    labels = ["RPG", "without the plan loss", "one prompt for both tasks", "on 2 samples"]
    assert [row[0] for row in rows] == labels
    assert {row[1] for row in rows} == {"ROUGE-Lsum"}
    assert [row[3] for row in rows] == ["0.376", "-", "-", "-"]
