"""The benchmarks without a model: who knows the answers has all points, who knows nothing none."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from papers.tests.official import OFFICIAL, official_file
from papers.tests.registered import BENCHMARKS
from stepcraft.errors import BadInput
from stepcraft.evals.benchmark import Questions
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import Method, read_methods
from stepcraft.evals.samples import Sample, repeated
from stepcraft_papers import python_tasks
from stepcraft_papers.long_form import str_em
from stepcraft_papers.source import unpacked
from stepcraft_papers.textworld import solve, tasks
from stepcraft_papers.word_problems import program_accuracy
from tests.scripted import ScriptedModel

DATA = Path(__file__).parents[3] / "shared/data"
FILES = {
    "hotpotqa": DATA / "hotpotqa-distractor/dev_60.jsonl",
    "2wikimultihopqa": DATA / "2wikimultihopqa/dev_1000q_trustmargin.json",
    "asqa": DATA / "asqa-rpg-demo/test_long_form.json",
    "eli5": DATA / "expertqa/rand_lfqa_val.json",
    "popqa": DATA / "popqa/DisambPopQA.csv",
    "recipenlg-test": DATA / "recipes/recipes.jsonl",
    "champ-test": DATA / "competition-math/problems.jsonl",
    "gsm8k": DATA / "gsm8k/test.jsonl",
    "gsm-hard": DATA / "gsm-hard/gsmhardv2.jsonl",
    "humaneval": DATA / "humaneval/HumanEval.jsonl.gz",
    "mbpp": DATA / "mbpp/mbpp.jsonl",
    "mbpp+": DATA / "mbppplus/MbppPlus.jsonl",
}
TASKS = {
    "humaneval": python_tasks.humaneval_tasks,
    "humaneval+": python_tasks.humaneval_plus_tasks,
    "mbpp": python_tasks.mbpp_tasks,
    "mbpp+": python_tasks.mbpp_plus_tasks,
}
CASES = [
    *((name, "official") for name in OFFICIAL),
    *((name, "beside") for name in (*FILES, "textworld")),
    ("humaneval+", "made"),
]


class Finder(BaseRetriever):
    """Finds what a function says."""

    find: Callable[[str], list[Document]]

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, k: int = 5
    ) -> list[Document]:
        return self.find(query)


def plus_file(folder: Path) -> Path:
    """A task in the format of HumanEval+."""
    task = {
        "task_id": "HumanEval/0",
        "prompt": 'def double(x):\n    """Twice."""\n',
        "entry_point": "double",
        "canonical_solution": "    return 2 * x\n",
        "base_input": [[1]],
        "plus_input": [[2], [3]],
        "atol": 0,
        "contract": "",
    }
    file = folder / "HumanEvalPlus.jsonl"
    file.write_text(json.dumps(task))
    return file


def loaded(
    name: str, kind: str, folder: Path, request: pytest.FixtureRequest
) -> tuple[Questions, dict[str, str]]:
    """The first samples of a benchmark, and the programs that answer them."""
    runs_code = name in TASKS or name.startswith("gsm")
    if runs_code:
        request.getfixturevalue("sandbox")
    file = official_file(name, folder) if kind == "official" else FILES.get(name)
    if file and not file.exists():
        pytest.skip(f"the file of {name} is not beside the checkout")
    if name == "humaneval+":
        file = plus_file(folder)
    questions = BENCHMARKS[name].load(file, 6 if runs_code else 12)
    solved = TASKS[name](unpacked(file)) if name in TASKS and file else []
    return questions, {task.id: task.solution for task in solved}


def gold(sample: Sample, programs: dict[str, str]) -> str:
    """A right answer."""
    if programs:
        return f"This one:\n\n```python\n{programs[sample['id']]}\n```"
    if "Python program" in sample["question"]:
        return f"It is computed.\n\n```python\nprint({sample['answers'][0]})\n```"
    if "long_answers" in sample:
        readings = sample.get("contains", [])
        return max(sample["long_answers"], key=lambda answer: str_em(answer, readings))
    if "steps" not in sample and "answers" in sample:
        return sample["answers"][0]
    steps = sample.get("steps") or [*map(str, solve(*tasks()[sample["id"]]))]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def means(
    questions: Questions, programs: dict[str, str], knows: Callable[[int], bool], directory: Path
) -> dict[str, float]:
    """The mean scores of a model and a search that know some answers, and nothing else."""
    samples = questions.samples
    graph = "rag" if any("gold" in sample for sample in samples) else "direct"
    place = {
        Method(graph, graph).input(sample)["question"]: number
        for number, sample in enumerate(samples)
    }

    def asked(text: str) -> int:
        return next(number for question, number in place.items() if question in text)

    def reply(_node: str, prompt: str) -> str:
        return gold(samples[asked(prompt)], programs) if knows(asked(prompt)) else "-"

    def find(query: str) -> list[Document]:
        wanted = samples[asked(query)].get("gold", []) if knows(asked(query)) else []
        return [
            Document(" ".join(p["sentences"]) or "-", metadata={"title": p["title"]}, id=p["title"])
            for p in wanted
        ]

    method = Method(
        graph, graph, options={"model": ScriptedModel(reply), "sources": Finder(find=find)}
    )
    asyncio.run(evaluate([method], samples, directory, scorers=questions.scorers))
    outcomes = list(read_outcomes(directory))
    assert not [outcome["error"] for outcome in outcomes if outcome["error"]]
    return {
        name: fmean(outcome["scores"][name] for outcome in outcomes)
        for name in outcomes[0]["scores"]
    }


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_oracle_a_null_and_a_third(
    name: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    questions, programs = loaded(name, kind, tmp_path, request)
    oracle = means(questions, programs, lambda _: True, tmp_path / "oracle")
    null = means(questions, programs, lambda _: False, tmp_path / "null")
    third = means(questions, programs, lambda number: number % 3 == 0, tmp_path / "third")
    count = len(questions.samples)
    assert oracle
    assert list(oracle.values()) == [pytest.approx(1)] * len(oracle)
    assert set(null.values()) == {0.0}
    assert list(third.values()) == [pytest.approx(len(range(0, count, 3)) / count)] * len(third)


@pytest.mark.parametrize(
    ("answer", "right", "ran"),
    [
        ("```python\nprint('so', 18.0004)\n```", 1.0, 1.0),
        ("print(19)", 0.0, 1.0),
        ("```\nprint(18); raise ValueError\n```", 0.0, 0.0),
        ("18", 0.0, 1.0),
        # A short helper beside the program, which has no function: the program is the longer one.
        (
            "```python\ndef double(x): return 2 * x\n```\n```python\n"
            "price = 9\ncount = 2\nprint(price * count)\n```",
            1.0,
            1.0,
        ),
    ],
)
def test_a_program_is_right_by_what_it_prints_last(
    sandbox: None, answer: str, right: float, ran: float
) -> None:
    sample = Sample(id="1", question="?", answers=["18"])
    scores = asyncio.run(program_accuracy(sample, {"answer": answer}))
    assert scores == {"right": right, "program ran": ran}


def test_several_answers_to_a_task(sandbox: None, tmp_path: Path) -> None:
    if not FILES["mbpp"].exists():
        pytest.skip("the file of mbpp is not beside the checkout")
    questions = BENCHMARKS["mbpp"].load(FILES["mbpp"], 1)
    program = python_tasks.mbpp_tasks(FILES["mbpp"])[0].solution
    replies = iter([program, "-"])
    method = Method("direct", "direct", options={"model": ScriptedModel(lambda *_: next(replies))})
    samples = repeated(questions.samples, 2)
    asyncio.run(evaluate([method], samples, tmp_path, scorers=questions.scorers, concurrency=1))
    assert [each["scores"] for each in read_outcomes(tmp_path)] == [{"pass@1": 1}, {"pass@1": 0}]
    (paper,) = read_methods("rat_paper", questions.settings)
    settings = paper.context().model_dump(include={"finish", "query", "max_retrievals", "k"})
    assert settings == {"finish": "code", "query": "draft", "max_retrievals": 5, "k": 1}


def test_what_is_no_file_of_a_benchmark() -> None:
    with pytest.raises(BadInput, match="hotpotqa is not part of the package; get it from https"):
        BENCHMARKS["hotpotqa"].load(None, None)
    for name in ("textworld", "writing"):
        with pytest.raises(BadInput, match=r"leave out --data x\.jsonl"):
            BENCHMARKS[name].load(Path("x.jsonl"), None)


def test_every_benchmark_is_registered_by_its_name_with_its_origin() -> None:
    for name, benchmark in BENCHMARKS.items():
        assert benchmark.name == name
        assert all(benchmark.origin().values()), name
