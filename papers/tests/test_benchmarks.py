"""The benchmarks without a language model: who knows the answers scores the maximum, who knows nothing the minimum."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from stepcraft import BadInput
from stepcraft.evals.benchmarks import humaneval, mbpp
from stepcraft.evals.benchmarks.registry import BENCHMARKS, named_samples
from stepcraft.evals.benchmarks.source import unpacked
from stepcraft.evals.benchmarks.word_problems import program_accuracy
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.evaluate import Scorer, evaluate
from stepcraft.evals.methods import Method, read_methods
from stepcraft.evals.samples import Sample
from stepcraft.evals.sandbox import Sandbox
from stepcraft.evals.scores import contains
from stepcraft.evals.textworld import solve, tasks
from tests.evals.official import OFFICIAL, official_file
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
    "humaneval+": DATA / "humanevalplus/HumanEvalPlus.jsonl",
    "mbpp": DATA / "mbpp/mbpp.jsonl",
    "mbpp+": DATA / "mbppplus/MbppPlus.jsonl",
}
TASKS = {
    "humaneval": humaneval.tasks,
    "humaneval+": humaneval.plus_tasks,
    "mbpp": mbpp.tasks,
    "mbpp+": mbpp.plus_tasks,
}


CASES = [
    *((name, "official") for name in OFFICIAL),
    *(
        (name, "beside")
        for name, one in BENCHMARKS.items()
        if name in FILES or one.packaged or name == "textworld"
    ),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of a benchmark's file is written into the folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Finder(BaseRetriever):
    """Finds what a function says."""

    find: Callable[[str], list[Document]]

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, k: int = 5
    ) -> list[Document]:
        return self.find(query)


VALID = """
import json, sys
for task in json.loads(sys.stdin.read()):
    names = {}
    exec(task["prompt"] + task["contract"] + task["canonical_solution"], names)
    valid = []
    for number, arguments in enumerate(task["plus_input"]):
        try:
            names[task["entry_point"]](*arguments)
            valid.append(number)
        except Exception:
            pass
    print(json.dumps(valid))
"""
"""Prints the inputs of each task that its contract permits."""


def drafted(folder: Path, sandbox: Sandbox, count: int) -> Path:
    """The first tasks of the early draft of HumanEval+, without the inputs that break a contract, as it was released."""
    parts = FILES["humaneval+"].read_text("utf-8").splitlines()[:count]
    inputs = (
        FILES["humaneval+"].with_name("HumanEvalPlusInputs.jsonl").read_text("utf-8").splitlines()
    )
    plus = {one["task_id"].replace("_", "/"): one["inputs"] for one in map(json.loads, inputs)}
    made: list[dict[str, Any]] = []
    for line, part in zip(
        unpacked(FILES["humaneval"], folder).read_text("utf-8").splitlines(), parts, strict=False
    ):
        task = {**json.loads(line), **json.loads(part)}
        made.append(
            {
                **task,
                "canonical_solution": task["reference"],
                "plus_input": plus.get(task["task_id"], []),
            }
        )
    told = sandbox.run(VALID, json.dumps(made)).stdout.splitlines()
    for task, valid in zip(made, map(json.loads, told), strict=True):
        task["plus_input"] = [task["plus_input"][number] for number in valid]
    file = folder / "HumanEvalPlus.jsonl"
    file.write_text("".join(json.dumps(task) + "\n" for task in made))
    return file


def samples_of(
    name: str, kind: str, folder: Path, request: pytest.FixtureRequest
) -> tuple[list[Sample], Scorer, dict[str, str]]:
    """The first samples of a benchmark, what scores them, and the programs that answer them."""
    sandbox = request.getfixturevalue("sandbox") if BENCHMARKS[name].score_code else None
    file = official_file(name, folder) if kind == "official" else FILES.get(name)
    if file and not file.exists():
        pytest.skip(f"the file of {name} is not beside the checkout")
    if name == "humaneval+" and sandbox:
        file = drafted(folder, sandbox, 6)
    programs = (
        {task.id: task.solution for task in TASKS[name](unpacked(file))}
        if name in TASKS and file
        else {}
    )
    samples, score, _ = named_samples(name, file, 6 if sandbox else 12, sandbox)
    return samples, score, programs


def gold(sample: Sample, programs: dict[str, str]) -> str:
    """A right answer."""
    if programs:
        return f"This one:\n\n```python\n{programs[sample['id']]}\n```"
    if "Python program" in sample["question"]:
        return f"It is computed.\n\n```python\nprint({sample['answers'][0]})\n```"
    if "long_answers" in sample:
        readings = sample.get("contains", [])
        return max(sample["long_answers"], key=lambda answer: contains(answer, readings))
    steps = sample.get("steps")
    if steps is None and "answers" in sample:
        return sample["answers"][0]
    if steps is None:
        task = next(task for task in tasks() if task.id == sample["id"])
        steps = [f"{kind} {count} {item}" for kind, item, count in solve(task.item, task.count)]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def means(
    loaded: tuple[list[Sample], Scorer, dict[str, str]],
    knows: Callable[[int], bool],
    directory: Path,
) -> dict[str, float]:
    """The mean scores of a model and a search that know some of the questions, and say and find nothing else."""
    samples, score, programs = loaded
    graph = "rag" if any("gold" in sample for sample in samples) else "direct"
    place = {
        Method(graph, graph).given(sample["question"], sample.get("resources", ""))[
            "question"
        ]: number
        for number, sample in enumerate(samples)
    }

    def asked(text: str) -> int:
        return next(number for question, number in place.items() if question in text)

    def reply(_node: str, prompt: str) -> str:
        return gold(samples[asked(prompt)], programs) if knows(asked(prompt)) else "-"

    def found(query: str) -> list[Document]:
        wanted = samples[asked(query)].get("gold", []) if knows(asked(query)) else []
        return [
            Document(
                " ".join(one["sentences"]) or "-", metadata={"title": one["title"]}, id=one["title"]
            )
            for one in wanted
        ]

    method = Method(
        graph, graph, options={"model": ScriptedModel(reply), "sources": Finder(find=found)}
    )
    asyncio.run(evaluate([method], samples, directory, scorers=[score]))
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
    loaded = samples_of(name, kind, tmp_path, request)
    oracle = means(loaded, lambda _: True, tmp_path / "oracle")
    null = means(loaded, lambda _: False, tmp_path / "null")
    third = means(loaded, lambda number: number % 3 == 0, tmp_path / "third")
    count = len(loaded[0])
    assert oracle
    assert list(oracle.values()) == [pytest.approx(1)] * len(oracle)
    assert set(null.values()) == {0.0}
    assert list(third.values()) == [pytest.approx(len(range(0, count, 3)) / count)] * len(third)


@pytest.mark.parametrize(
    ("answer", "right", "ran"),
    [
        ("```python\nprint('so', 18.0004)\n```", 1.0, 1.0),
        ("print(19)", 0.0, 1.0),
        ("```\nraise ValueError\n```", 0.0, 0.0),
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


def test_a_program_of_rat(sandbox: Sandbox) -> None:
    """Thoughts about a program, and the program that is written from them."""
    if not FILES["mbpp"].exists():
        pytest.skip("the file of mbpp is not beside the checkout")
    samples, score, fields = named_samples("mbpp", FILES["mbpp"], 1, sandbox)
    method, paper = read_methods("rat,rat_paper", fields)
    assert paper.context().model_dump(include={"finish", "query", "max_retrievals", "k"}) == {
        "finish": "code",
        "query": "draft",
        "max_retrievals": 5,
        "k": 1,
    }
    program = next(
        task for task in mbpp.tasks(FILES["mbpp"]) if task.id == samples[0]["id"]
    ).solution

    def reply(node: str, _prompt: str) -> str:
        return (
            f"```python\n{program}\n```"
            if node == "finish"
            else "NO CHANGE"
            if node == "revise"
            else "It loops."
        )

    graph = replace(method, options={"model": ScriptedModel(reply)}).compiled()
    output = graph.invoke({"question": samples[0]["question"]}, context=method.context())
    assert asyncio.run(score(samples[0], output)) == {"pass@1": 1.0}


def test_the_renamed_domain_brings_its_memory() -> None:
    samples, _, fields = named_samples("lgstep-renamed-val", None, 2)
    assert len(samples) == 2
    assert Path(fields["memory"]).exists()
