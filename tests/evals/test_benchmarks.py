"""The benchmarks without a language model: who knows the answers scores the maximum, who knows nothing the minimum."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from stepcraft import BadInput
from stepcraft.evals.benchmarks.registry import BENCHMARKS, named_samples
from stepcraft.evals.benchmarks.word_problems import program_accuracy
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.evaluate import Scorer, evaluate
from stepcraft.evals.methods import Method
from stepcraft.evals.samples import Sample
from stepcraft.evals.sandbox import Sandbox
from stepcraft.evals.textworld import solve, tasks
from stepcraft.graphs.baselines import build_direct
from tests.scripted import ScriptedModel

DATA = Path(__file__).parents[3] / "shared/data"
FILES = {
    "hotpotqa": DATA / "hotpotqa-distractor/dev_60.jsonl",
    "gsm8k": DATA / "gsm8k/test.jsonl",
    "gsm-hard": DATA / "gsm-hard/gsmhardv2.jsonl",
}


def samples_of(name: str, request: pytest.FixtureRequest) -> tuple[list[Sample], Scorer]:
    """The first samples of a benchmark, and what scores them."""
    if BENCHMARKS[name].score_code:
        request.getfixturevalue("sandbox")
    file = FILES.get(name)
    if file and not file.exists():
        pytest.skip(f"the file of {name} is not beside the checkout")
    samples, score, _ = named_samples(name, file, 12 if BENCHMARKS[name].score_code else 30)
    return samples, score


def gold(sample: Sample) -> str:
    """A right answer."""
    if "Python program" in sample["question"]:
        return f"It is computed.\n\n```python\nprint({sample['answers'][0]})\n```"
    if "answers" in sample:
        return sample["answers"][0]
    steps = sample.get("steps")
    if steps is None:
        task = next(task for task in tasks() if task.id == sample["id"])
        steps = [f"{kind} {count} {item}" for kind, item, count in solve(task.item, task.count)]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def means(
    loaded: tuple[list[Sample], Scorer], knows: Callable[[int], bool], directory: Path
) -> dict[str, float]:
    """The mean scores of a model that knows the answers to some of the questions, and says nothing else."""
    samples, score = loaded
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
def test_an_oracle_a_null_and_a_third(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    loaded = samples_of(name, request)
    oracle = means(loaded, lambda _: True, tmp_path / "oracle")
    null = means(loaded, lambda _: False, tmp_path / "null")
    third = means(loaded, lambda number: number % 3 == 0, tmp_path / "third")
    count = len(loaded[0])
    assert set(oracle.values()) == {1.0}
    assert set(null.values()) == {0.0}
    assert list(third.values()) == [pytest.approx(len(range(0, count, 3)) / count)] * len(third)


@pytest.mark.parametrize(
    ("answer", "right", "ran"),
    [
        ("```python\nprint('so', 18.0004)\n```", 1.0, 1.0),
        ("print(19)", 0.0, 1.0),
        ("```\nraise ValueError\n```", 0.0, 0.0),
        ("```\nwhile True: pass\n```", 0.0, 0.0),
        ("18", 0.0, 1.0),
        ("I do not know.", 0.0, 0.0),
    ],
)
def test_programs(sandbox: Sandbox, answer: str, right: float, ran: float) -> None:
    sample = Sample(id="1", question="?", answers=["18"])
    made = asyncio.run(program_accuracy(sandbox, sample, {"answer": answer}))
    assert made == {"right": right, "program ran": ran}


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
