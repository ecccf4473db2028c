"""Training samples of records, and of runs of RPG, by scripted models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from typer.testing import CliRunner, Result

from stepcraft.errors import BadInput, RunStopped
from stepcraft_papers.training.__main__ import app
from stepcraft_papers.training.build import LEFT_OUT, SAMPLES, Build, Report
from stepcraft_papers.training.records import READERS, Item
from stepcraft_papers.training.samples import TrainingSample, read_samples, split
from tests.scripted import ScriptedModel
from tests.shelf import Shelf

SELF_RAG = {
    "id": "bridge",
    "instruction": "Tell me of the Oster bridge.",
    "output": "[Retrieval]<paragraph>Oster bridge\n\nHaldruvin built the Oster bridge. It was opened in "
    "1873.</paragraph>[Relevant]Haldruvin built it.[Fully supported][Continue to Use Evidence]It was "
    "opened in 1873.[Retrieval]<paragraph>Tea\n\nTea is made of leaves.</paragraph>[Irrelevant]It has "
    "900 lamps.[Utility:5]",
}
GREETING = {
    "id": "hello",
    "instruction": "Greet me.",
    "input": "in English",
    "output": "[No Retrieval]Good day![Utility:5]",
}
LABELS = """\
SEGMENT 1
PLAN: builder of the Oster bridge
SUPPORT: 1
SEGMENT 2
PLAN: "year in which the Oster bridge was opened"
SUPPORT: 2, 9
SEGMENT 3
PLAN: lamps of the Oster bridge
SUPPORT: none"""
HOP = {
    "_id": "hop",
    "question": "In which year did the builder of the Oster bridge die?",
    "answer": "1901",
    "context": [
        ["Oster bridge", ["Haldruvin built the Oster bridge."]],
        ["Haldruvin", ["Haldruvin died in 1901.", " He lived in Graz."]],
    ],
}
LONG = f"Haldruvin built it{', as is known,' * 20}"
RUN = {
    "plan": ["KIND: long\n- Oster"],
    "look_again": ["NOTHING"],
    "generate": [f"{LONG} [1].\n\nHe died in 1901 [2]."],
    "revise": ["NO CHANGE"],
    "label": [
        "SEGMENT 1\nPLAN: builder\nSUPPORT: 1\nSEGMENT 2\nPLAN: death of Haldruvin\nSUPPORT: 1"
    ],
}


def items(tmp_path: Path, kind: str, *records: Any) -> list[Item]:
    file = tmp_path / f"{kind}.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    return list(READERS[kind](file))


def built(folder: Path, model: Any, given: list[Item], **options: Any) -> Report:
    return Build(folder, model, **options).run(given)


def test_records_of_self_rag(tmp_path: Path) -> None:
    model = ScriptedModel({"label": [LABELS]})
    report = built(tmp_path, model, items(tmp_path, "self-rag", SELF_RAG, GREETING))
    greeting, bridge = sorted(read_samples(tmp_path / SAMPLES), key=lambda each: each.question)
    assert (greeting.question, greeting.segments[0].plan) == ("Greet me.\n\nin English", "")
    first, second = bridge.segments
    assert (first.plan, first.text) == ("builder of the Oster bridge", "Haldruvin built it.")
    assert second.plan == "year in which the Oster bridge was opened"
    [support] = second.support
    assert (support.title, support.text) == ("Oster bridge", "It was opened in 1873.")
    assert (report.kept, report.segments, report.calls) == (2, 3, 1)
    assert report.left_out == {"a segment: no sentence bears it out": 1}
    for shown in ("[2] Oster bridge: It was opened in 1873.", "[1] Tea: Tea is made of leaves."):
        assert shown in model.calls[0].prompt


def test_questions_of_hotpotqa_are_answered_from_their_own_passages(tmp_path: Path) -> None:
    given = items(tmp_path, "hotpotqa", HOP)
    report = built(tmp_path, ScriptedModel(RUN), given)
    [sample] = read_samples(tmp_path / SAMPLES)
    assert [each.text for each in sample.segments] == [f"{LONG}.", "He died in 1901."]
    assert [each.support[0].text for each in sample.segments] == [
        "Haldruvin built the Oster bridge.",
        "Haldruvin died in 1901.",
    ]
    assert report.calls == 4


def test_an_answer_without_the_right_one_is_left_out(tmp_path: Path) -> None:
    given = items(tmp_path, "hotpotqa", {**HOP, "answer": "1902"})
    report = built(tmp_path, ScriptedModel(RUN), given)
    assert (report.kept, report.calls) == (0, 3)
    [line] = (tmp_path / LEFT_OUT).read_text().splitlines()
    assert json.loads(line) == {"id": "hop", "reason": "the answer lacks the right one"}


def test_a_segment_with_a_number_that_its_sentences_lack_is_left_out(tmp_path: Path) -> None:
    record = {
        **SELF_RAG,
        "output": SELF_RAG["output"].replace("It was opened in 1873.[", "In 1874.["),
    }
    report = built(
        tmp_path, ScriptedModel({"label": [LABELS]}), items(tmp_path, "self-rag", record)
    )
    assert report.left_out["a segment: it names what its sentences do not have"] == 1
    assert [each.text for each in read_samples(tmp_path / SAMPLES)[0].segments] == [
        "Haldruvin built it."
    ]


QUESTIONS = [{"id": str(number), "question": "Who built the Oster bridge?"} for number in range(4)]


def answering(node: str, _prompt: str) -> str:
    return RUN[node][0].replace("1901", "1873")


def test_a_build_that_was_stopped_goes_on(tmp_path: Path) -> None:
    given = items(tmp_path, "questions", *QUESTIONS)
    folder = tmp_path / "made"
    first = built(
        folder, ScriptedModel(answering), given, sources=[Shelf()], max_calls=8, concurrency=1
    )
    assert (first.kept, first.stopped, first.calls) == (2, True, 8)
    with (folder / SAMPLES).open("a") as file:
        file.write('{"id": "2", "cut of')
    second = built(folder, ScriptedModel(answering), given, sources=[Shelf()])
    assert (second.kept, second.present) == (2, 2)
    assert sorted(each.id for each in read_samples(folder / SAMPLES)) == ["0", "1", "2", "3"]
    assert built(folder, ScriptedModel([]), given, sources=[Shelf()]).calls == 0


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    given = items(tmp_path, "questions", QUESTIONS[0])
    broken: Callable[[str, str], Any] = lambda node, prompt: (  # noqa: E731
        RuntimeError("it is down") if node == "label" else answering(node, prompt)
    )
    report = built(tmp_path, ScriptedModel(broken), given, sources=[Shelf()])
    assert (report.kept, "it is down" in report.failed["0"]) == (0, True)
    assert built(tmp_path, ScriptedModel(answering), given, sources=[Shelf()]).kept == 1


def test_a_model_that_refuses_every_call_ends_the_build(tmp_path: Path) -> None:
    request = httpx.Request("POST", "http://127.0.0.1")
    refused = openai.AuthenticationError(
        "no key", response=httpx.Response(401, request=request), body=None
    )
    given = items(tmp_path, "self-rag", SELF_RAG)
    with pytest.raises(RunStopped, match="no key"):
        built(tmp_path, ScriptedModel([refused]), given)


def sample(number: int) -> TrainingSample:
    segment = {"plan": "p", "support": [], "text": "t"}
    return TrainingSample.model_validate(
        {"id": str(number), "question": "q", "origin": "run", "segments": [segment]}
    )


def test_a_sample_stays_on_its_side_as_the_file_grows() -> None:
    held_back = set[str]()
    for count in (100, 200, 1_000):
        learned, held = split([sample(number) for number in range(count)], 10_000, 50)
        held_back |= {each.id for each in held}
        assert not held_back & {each.id for each in learned}
    assert (len(held), len(learned)) == (50, 894)
    assert len(split([sample(number) for number in range(20)], 7, 0)[0]) == 7
    with pytest.raises(BadInput, match="none is left"):
        split([], 1, 5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no training samples"),
        ('{"id": "1"}\n', ":1 is no training sample: question"),
        ("nothing\n", "it is not JSON"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text(text)
    with pytest.raises(BadInput, match=reason):
        read_samples(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_the_commands(tmp_path: Path) -> None:
    items(tmp_path, "self-rag", GREETING)
    file, into = str(tmp_path / "self-rag.jsonl"), str(tmp_path / "made")
    arguments = ("build", file, "--records", "self-rag", "--model", "extractive", "--into", into)
    assert "samples made" in run(*arguments).output
    assert json.loads(run("schema").output)["title"] == "TrainingSample"
    for wrong in (
        ("build", file, "--records", "squad", "--model", "extractive"),
        ("build", file, "--model", "extractive"),
        ("train", file, "--base", "b", "--method", "magic"),
    ):
        assert isinstance(run(*wrong).exception, BadInput)
