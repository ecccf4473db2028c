"""Training: losses fall, batches train as singles do, and a killed run ends as another."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from papers.training_tests.made import SAMPLES
from stepcraft.errors import BadInput
from stepcraft_papers.training.examples import TASKS, encoded, examples
from stepcraft_papers.training.train import (
    RECORD,
    Collator,
    Recipe,
    loaded_model,
    loaded_tokenizer,
    token_losses,
    train,
)

# Whoever comes first waits for the training.
pytestmark = pytest.mark.timeout(900)

Tuned = tuple[Path, dict[str, Any]]


def test_the_losses_of_both_tasks_fall_below_a_tenth(tuned: Tuned) -> None:
    _, record = tuned
    assert set(record["losses"]) == set(TASKS)
    for loss in record["losses"].values():
        assert loss["after"] < loss["before"] / 10


def test_a_batch_of_odd_lengths_is_as_its_singles(base: str) -> None:
    tokenizer, model = loaded_tokenizer(base), loaded_model(base)
    rows = [
        encoded(each, tokenizer, instructions=False)
        for sample in SAMPLES[:3]
        for each in examples(sample)
    ]
    assert len({len(each["input_ids"]) for each in rows}) > 2
    collate = Collator(0)

    def losses(batch: list[Any]) -> torch.Tensor:
        inputs = collate(batch)
        inputs.pop("task_ids")
        model.zero_grad()
        found = token_losses(model, {**inputs, "task_ids": torch.zeros(len(batch))})
        found.sum().backward()
        return torch.cat([found.sum(1), model.lm_head.weight.grad.flatten()])

    together = losses(rows)
    singles = [losses([each]) for each in rows]
    sums = torch.stack([each[0] for each in singles])
    torch.testing.assert_close(together[: len(rows)], sums, rtol=1e-4, atol=1e-4)
    gradient = torch.stack([each[1:] for each in singles]).sum(0)
    torch.testing.assert_close(together[len(rows) :], gradient, rtol=1e-3, atol=1e-4)


def test_a_killed_run_ends_with_the_same_losses(base: str, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    samples.write_text("".join(f"{each.model_dump_json()}\n" for each in SAMPLES[:12]))
    command = [sys.executable, "-m", "stepcraft_papers.training", "train", str(samples)]
    command += [
        "--method",
        "lora",
        "--base",
        base,
        "--learning-rate",
        "1e-3",
        "--batch",
        "4",
        "--save-steps",
        "4",
    ]

    def folder(name: str) -> Path:
        return tmp_path / name

    whole = subprocess.run([*command, "--into", folder("whole")], capture_output=True, check=True)
    assert b"tokens a second" in whole.stderr
    with subprocess.Popen([*command, "--into", folder("killed")], stderr=subprocess.PIPE) as begun:
        while not [*folder("killed").rglob("checkpoint-4/trainer_state.json")]:
            assert begun.poll() is None
            time.sleep(0.01)
        begun.kill()
    assert not (folder("killed") / RECORD).exists()
    subprocess.run([*command, "--into", folder("killed")], capture_output=True, check=True)
    one, other = (json.loads((folder(name) / RECORD).read_text()) for name in ("whole", "killed"))
    for task in TASKS:
        assert other["losses"][task]["after"] == pytest.approx(one["losses"][task]["after"])


def test_a_folder_is_not_trained_with_something_else(base: str, tmp_path: Path) -> None:
    recipe = Recipe(epochs=0.01, learning_rate=1e-3)
    made = train(base, SAMPLES[:2], (), tmp_path, recipe)
    assert train(base, SAMPLES[:2], (), tmp_path, recipe) == made
    with pytest.raises(BadInput, match="begun with another learning_rate"):
        train(base, SAMPLES[:2], (), tmp_path, Recipe(epochs=0.01))


def test_what_cannot_be_trained_is_one_sentence(base: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere cannot be loaded"):
        train(str(tmp_path / "nowhere"), SAMPLES[:1], (), tmp_path / "a", Recipe())
    with pytest.raises(BadInput, match="at most 10 tokens, the shortest has"):
        train(base, SAMPLES[:1], (), tmp_path / "b", Recipe(max_tokens=10))
