"""The benchmarks without a language model: who knows the answers scores the maximum, who knows nothing the minimum."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from stepcraft import BadInput
from stepcraft.evals.benchmarks import BENCHMARKS, named_samples
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.evaluate import Scorer, evaluate
from stepcraft.evals.methods import Method
from stepcraft.evals.samples import Sample
from stepcraft.evals.textworld import solve, tasks
from stepcraft.graphs.baselines import build_direct
from tests.scripted import ScriptedModel

HOTPOTQA = Path(__file__).parents[3] / "shared/data/hotpotqa-distractor/dev_60.jsonl"


def samples_of(name: str) -> tuple[list[Sample], Scorer]:
    """The first 30 samples of a benchmark, and what scores them."""
    if name == "hotpotqa" and not HOTPOTQA.exists():
        pytest.skip("the file of HotpotQA is not beside the checkout")
    samples, score, _ = named_samples(name, HOTPOTQA if name == "hotpotqa" else None, 30)
    return samples, score


def gold(sample: Sample) -> str:
    """A right answer."""
    if "answers" in sample:
        return sample["answers"][0]
    steps = sample.get("steps")
    if steps is None:
        task = next(task for task in tasks() if task.id == sample["id"])
        steps = [f"{kind} {count} {item}" for kind, item, count in solve(task.item, task.count)]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def means(name: str, knows: Callable[[int], bool], directory: Path) -> dict[str, float]:
    """The mean scores of a model that knows the answers to some of the questions, and says nothing else."""
    samples, score = samples_of(name)
    place = {sample["question"].split("\n")[0]: number for number, sample in enumerate(samples)}

    def reply(_node: str, prompt: str) -> str:
        number = next(number for question, number in place.items() if question in prompt)
        return gold(samples[number]) if knows(number) else "-"

    graph = build_direct(model=ScriptedModel(reply))
    methods = [Method("direct", "direct")]
    asyncio.run(evaluate(methods, samples, directory, scorers=[score], graph_of=lambda _: graph))
    outcomes = list(read_outcomes(directory))
    assert not [outcome["error"] for outcome in outcomes if outcome["error"]]
    return {name: fmean(outcome["scores"][name] for outcome in outcomes) for name in outcomes[0]["scores"]}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_an_oracle_a_null_and_a_third(name: str, tmp_path: Path) -> None:
    oracle = means(name, lambda _: True, tmp_path / "oracle")
    null = means(name, lambda _: False, tmp_path / "null")
    third = means(name, lambda number: number % 3 == 0, tmp_path / "third")
    count = len(samples_of(name)[0])
    assert set(oracle.values()) == {1.0}
    assert set(null.values()) == {0.0}
    assert list(third.values()) == [pytest.approx(len(range(0, count, 3)) / count)] * len(third)


def test_what_is_no_benchmark() -> None:
    with pytest.raises(
        BadInput, match="there is no file and no benchmark 'textwolrd'; did you mean 'textworld'"
    ):
        named_samples("textwolrd", None, None)
    with pytest.raises(BadInput, match="hotpotqa is not part of the package; get it from https"):
        named_samples("hotpotqa", None, None)
    with pytest.raises(BadInput, match="leave out --data"):
        named_samples("textworld", Path("x.jsonl"), None)


def test_the_renamed_domain_brings_its_memory() -> None:
    samples, _, fields = named_samples("lgstep-renamed-val", None, 2)
    assert len(samples) == 2
    assert Path(fields["memory"]).exists()
