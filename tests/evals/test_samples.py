"""Samples: gold passages and their recall, lists in CSV, and searching the passages of a file."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from stepcraft import BadInput
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.passages import corpus_settings
from stepcraft.evals.samples import Gold, read_samples
from stepcraft.evals.scoring import default_scores, gold_scores
from tests.evals.runs import stepcraft

GOLD = [
    Gold(title="Mostar", sentences=["It has a bridge.", "A town."]),
    Gold(title="Una", sentences=["A river."]),
    Gold(title="", sentences=["It flows north."]),
]


def evidence(**texts: str) -> list[dict[str, str]]:
    return [{"id": title, "title": title, "text": text} for title, text in texts.items()]


def written(folder: Path, **fields: Any) -> Path:
    file = folder / "questions.json"
    file.write_text(json.dumps([{"question": "Who?", **fields}]))
    return file


def test_the_gold_of_a_record(tmp_path: Path) -> None:
    gold = [{"title": "Mostar", "sentences": ["It has a bridge."]}, "Una"]
    [sample] = read_samples(written(tmp_path, gold=gold))
    assert sample["gold"] == [
        Gold(title="Mostar", sentences=["It has a bridge."]),
        Gold(title="Una", sentences=[]),
    ]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "no questions|empty"),
        (['{"question": " "}'], "1 cannot be used: question"),
        (['{"question": "a"}', "nonsense"], "2 cannot be read"),
        (['{"question": "a", "id": 1}', '{"question": "b", "id": "1"}'], "2 has the id '1' of an"),
        (['{"question": "a", "id": 0}', '{"question": "b", "id": 0}'], "2 has the id '0' of an"),
        (['{"question": "a", "expected": "b"}'], "1 has a field 'expected'; did you mean 'answer'"),
        (['{"question": "a", "output": "b"}'], "1 has both 'question' and 'output'"),
        (['{"input": "How long?", "output": "Two minutes."}'], "1 has 'output' but no 'steps'"),
        (['{"question": "a", "input": "b", "resources": "c"}'], "both 'resources' and 'input'"),
        (['{"question": "a", "contain": ["b"]}'], "'contain'; did you mean 'contains'"),
        (['{"question": "a", "Answer": "b"}'], "1 has a field 'Answer'; did you mean 'answer'"),
    ],
)
def test_questions_that_cannot_be_used(tmp_path: Path, lines: list[str], problem: str) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(BadInput, match=problem):
        read_samples(file)


def test_questions_of_several_kinds(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"question": "Who?", "answer": "Ada", "id": "one"}\n'
        '{"question": "What?", "answers": ["a", "b"], "contains": [["x", "y"], "z"]}\n'
        '{"output": "bake bread", "input": "flour", "steps": ["Mix.", "Bake."]}\n'
    )
    assert read_samples(file) == [
        {"id": "one", "question": "Who?", "answers": ["Ada"]},
        {"id": "2", "question": "What?", "answers": ["a", "b"], "contains": [["x", "y"], ["z"]]},
        {"id": "3", "question": "bake bread", "resources": "flour", "steps": ["Mix.", "Bake."]},
    ]
    assert [sample["id"] for sample in read_samples(file, 1)] == ["one"]


def test_numbers_of_a_data_frame_are_read_as_they_were_meant(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    answers = ("42.0", "NaN", "1e6", "2.5", '"3.0"')
    file.write_text("\n".join(f'{{"question": "How many?", "answer": {it}}}' for it in answers))
    read = [sample.get("answers") for sample in read_samples(file)]
    assert read == [["42", "42.0"], None, ["1000000", "1000000.0"], ["2.5"], ["3.0"]]


@pytest.mark.parametrize("gold", [[{"sentences": []}], [True], [{"title": 5, "sentences": [{}]}]])
def test_gold_that_cannot_be_read(tmp_path: Path, gold: Any) -> None:
    with pytest.raises(BadInput, match=r"questions\.json:1 cannot be used: gold"):
        read_samples(written(tmp_path, gold=gold))


@pytest.mark.parametrize("passage", [7, {"titel": "x"}, None, {"sentences": 5}])
def test_passages_that_cannot_be_read(tmp_path: Path, passage: Any) -> None:
    with pytest.raises(ValidationError, match="for Passage"):
        corpus_settings(written(tmp_path, passages=[passage]))


@pytest.mark.parametrize(
    ("passages", "texts"),
    [
        ("It is so.", ["It is so."]),
        ({"title": "T", "text": "It is so."}, ["It is so."]),
        ({"sentences": ["It is so.", "Or not."]}, ["It is so. Or not."]),
        (["It is so. ", {"text": "Or not."}], ["It is so. ", "Or not."]),
        *((none, []) for none in (float("nan"), "", " \n", None, [])),
    ],
)
def test_a_single_passage_needs_no_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passages: Any, texts: list[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = corpus_settings(written(tmp_path, passages=passages)).get("sources", [])
    lines = [Path(each.removeprefix("corpus:")).read_text("utf-8") for each in found]
    assert [json.loads(line)["text"] for line in "".join(lines).splitlines()] == texts


def test_a_table_may_have_one_right_answer_or_several(tmp_path: Path) -> None:
    file = tmp_path / "questions.csv"
    file.write_text('question,output,answer,answers\nA?,,Ada,\nB?,,,"[""b"", 2]"\nC?,,c,["d"]\n')
    assert [sample.get("answers") for sample in read_samples(file)] == [
        ["Ada"],
        ["b", "2"],
        ["d", "c"],
    ]


def test_a_second_column_of_right_answers_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "questions.csv"
    for name in ("answer", "answers"):
        file.write_text(f"question,{name},{name}\nA?,Ada,Eva\n")
        with pytest.raises(BadInput, match=rf"'{name} \(3\)'; did you mean 'answer'"):
            read_samples(file)
    file.write_text("question,note,note\nA?,new,old\n")
    assert read_samples(file) == [{"id": "1", "question": "A?"}]


def test_lists_in_the_cells_of_csv_are_lists(tmp_path: Path) -> None:
    file = tmp_path / "questions.csv"
    file.write_text(
        "question,answers,contains\n"
        'Who?,"[""Ann"", ""Bob""]","[[""x"", ""y""], ""z""]"\n'
        '"[1, 2]?",Ann,x\n'
    )
    first, second = read_samples(file)
    assert first["answers"] == ["Ann", "Bob"]
    assert first["contains"] == [["x", "y"], ["z"]]
    assert default_scores(first, {"answer": "Bob"})["exact match"] == 1
    assert (second["question"], second["answers"]) == ("[1, 2]?", ["Ann"])
    file.write_text('question,answers\nWho?,"[""Ann"", oops"\n')
    with pytest.raises(BadInput, match=r"2 has in 'answers' no list in JSON"):
        read_samples(file)


def test_long_answers_are_scored_by_rouge(tmp_path: Path) -> None:
    [sample] = read_samples(written(tmp_path, long_answers=["Tea is hot.", "Water boils."]))
    assert default_scores(sample, {"answer": "Water boils."}) == {"ROUGE-Lsum": 1.0}


@pytest.mark.parametrize(
    ("found", "passages", "sentences"),
    [
        ({"Mostar": "A town. It has a bridge."}, 1 / 3, 2 / 4),
        ({"MOSTAR": "A town.\nIt has a\nbridge.", "Una": "It flows north."}, 3 / 3, 3 / 4),
        ({"Other": "A town. It has a bridge. A river."}, 0.0, 0.0),
        ({}, 0.0, 0.0),
    ],
)
def test_recall(found: dict[str, str], passages: float, sentences: float) -> None:
    assert gold_scores(GOLD, evidence(**found)) == {
        "gold passages": pytest.approx(passages),
        "gold sentences": pytest.approx(sentences),
    }


def test_titles_alone_have_no_sentences_to_find() -> None:
    assert gold_scores([Gold(title="Una", sentences=[])], evidence(Una="x")) == {
        "gold passages": 1.0
    }
    assert gold_scores([], evidence(Una="x")) == {}


def test_a_file_of_ones_own_is_searched_in_its_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    memory = tmp_path / "procedures.jsonl"
    memory.write_text('{"output": "a bridge", "input": "stones", "steps": ["Lay stones."]}\n')
    records = [
        {
            "question": f"Who built the bridge of {town}?",
            "answer": builder,
            "passages": [
                {"title": f"Bridge of {town}", "text": f"The bridge of {town} is by {builder}."},
                {"title": "Rivers", "text": "A river is water that flows."},
            ],
            "gold": [f"Bridge of {town}"],
        }
        for town, builder in (("Arvel", "Oda"), ("Brint", "Ulf"))
    ]
    file = tmp_path / "own.json"
    file.write_text(json.dumps(records))
    command = f"run {file} --methods rag:k=1 --allow-keyless --into {tmp_path}"
    ran = stepcraft(f"{command}/run")
    assert ran.exit_code == 0, ran.output
    assert "| gold passages |" in ran.stdout
    assert stepcraft(f"{command}/run").stdout == ran.stdout
    assert stepcraft(f"{command}/memory --memory {memory}").exit_code == 0
    scores = [
        [outcome["scores"]["gold passages"] for outcome in read_outcomes(tmp_path / name)]
        for name in ("run", "memory")
    ]
    assert scores == [[1.0, 1.0], [0.0, 0.0]]
