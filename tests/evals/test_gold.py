"""Gold passages: reading them, the recall of what was found, and searching the passages of a file."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft import BadInput
from stepcraft.cli import app
from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.gold import Gold, gold_of, passages_of, retrieval_scores

PASSAGES = [("Mostar", ["A town.", "It has a bridge."]), ("Una", ["A river."])]
GOLD = [
    Gold(title="Mostar", sentences=["It has a bridge.", "A town."]),
    Gold(title="Una", sentences=["A river."]),
    Gold(title="", sentences=["It flows north."]),
]


def evidence(**texts: str) -> list[dict[str, str]]:
    return [{"id": title, "title": title, "text": text} for title, text in texts.items()]


@pytest.mark.parametrize(
    "fields",
    [
        {"passages": [{"title": "Mostar", "sentences": ["A town.", " It has a  bridge."]}, {"title": "Una", "text": "A river."}]},
        {"context": [["Mostar", ["A town.", " It has a bridge."]], ["Una", ["A river."]]]},
        {"context": {"title": ["Mostar", "Una"], "sentences": [["A town.", "It has a bridge."], ["A river."]]}},
        {"context": "", "docs": [{"title": "Mostar", "sentences": ["A town.", "It has a bridge."]}, ["Una", ["A river."]]]},
    ],
)  # fmt: skip
def test_the_passages_of_a_record(fields: dict[str, Any]) -> None:
    assert passages_of(fields, "f:1") == PASSAGES


@pytest.mark.parametrize(
    "fields",
    [
        {"gold": [{"title": "Mostar", "sentences": ["It has a bridge."]}, "Una"]},
        {"supporting_facts": [["Mostar", 1], ["Una", 9]]},
        {"supporting_facts": [{"title": "Mostar", "sentence": 1}, {"title": "Una", "sentence": 7}]},
        {"supporting_facts": {"title": ["Mostar", "Una"], "sent_id": [1, 2]}},
    ],
)
def test_the_gold_of_a_record(fields: dict[str, Any]) -> None:
    passages = [{"title": title, "sentences": sentences} for title, sentences in PASSAGES]
    expected = [
        Gold(title="Mostar", sentences=["It has a bridge."]),
        Gold(title="Una", sentences=[]),
    ]
    assert gold_of({**fields, "passages": passages}, "f:1") == expected


def test_supporting_facts_count_empty_sentences() -> None:
    fields = {
        "context": [["Mostar", ["A town.", " ", "It has a bridge.", "It is old."]]],
        "supporting_facts": [["Mostar", 2], ["Mostar", 1]],
    }
    assert gold_of(fields, "f:1") == [Gold(title="Mostar", sentences=["It has a bridge."])]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"gold": "Mostar"}, "a gold that is no list: 'Mostar'"),
        ({"gold": [7]}, "a gold passage that is none: 7"),
        ({"gold": [{"sentences": []}]}, "a gold passage that is none"),
        ({"gold": [{"sentences": [" "]}]}, "a gold passage that is none"),
        ({"supporting_facts": [["Mostar", "one"]]}, "a supporting fact that is none"),
        ({"supporting_facts": 5}, "a supporting fact that is none: 5"),
        (
            {"supporting_facts": [["Mostar", 0]], "passages": [{"titel": "x"}]},
            "a passage that is none",
        ),
    ],
)
def test_gold_that_cannot_be_read(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=f"^f:1 has {problem}"):
        gold_of(fields, "f:1")


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
    made = retrieval_scores(GOLD, {"evidence": evidence(**found)})
    assert made == {
        "gold passages": pytest.approx(passages),
        "gold sentences": pytest.approx(sentences),
    }


def test_what_was_selected_is_told_apart_from_what_is_cited() -> None:
    selected = [
        {"passage": "m", "text": "A town."},
        {"passage": "m", "text": "It has a bridge."},
        {"passage": "u", "text": "No."},
    ]
    output = {
        "evidence": evidence(Una="A river."),
        "segments": [{"sentences": selected}, {"sentences": []}],
    }
    assert retrieval_scores(GOLD, output) == {
        "gold passages": pytest.approx(1 / 3),
        "gold sentences": 0.25,
        "gold sentences selected": 0.5,
    }


def test_titles_alone_have_no_sentences_to_find() -> None:
    gold = [Gold(title="Una", sentences=[])]
    assert retrieval_scores(gold, {"evidence": evidence(Una="x"), "segments": []}) == {
        "gold passages": 1.0
    }
    assert retrieval_scores([], {"evidence": evidence(Una="x")}) == {}


def test_a_file_of_ones_own_is_searched_in_its_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    file = tmp_path / "own.json"
    shared = {"title": "Rivers", "text": "A river is water that flows."}
    records = [
        {
            "question": f"Who built the bridge of {town}?",
            "answer": builder,
            "passages": [
                {
                    "title": f"Bridge of {town}",
                    "text": f"The bridge of {town} was built by {builder}.",
                },
                shared,
            ],
            "gold": [f"Bridge of {town}"],
        }
        for town, builder in (("Arvel", "Oda"), ("Brint", "Ulf"))
    ]
    file.write_text(json.dumps(records))
    command = [
        "eval",
        "run",
        str(file),
        "--methods",
        "rag:k=1",
        "--allow-keyless",
        "--into",
        str(tmp_path / "run"),
    ]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0, ran.output
    outcomes = list(read_outcomes(tmp_path / "run"))
    assert [one["scores"]["gold passages"] for one in outcomes] == [1.0, 1.0]
    assert "| gold passages |" in ran.stdout
    assert CliRunner().invoke(app, command).stdout == ran.stdout
    of_memory = CliRunner().invoke(
        app, [*command[:-1], str(tmp_path / "memory"), "--memory", str(_memory(tmp_path))]
    )
    assert of_memory.exit_code == 0, of_memory.output
    assert [one["scores"]["gold passages"] for one in read_outcomes(tmp_path / "memory")] == [
        0.0,
        0.0,
    ]


def _memory(folder: Path) -> Path:
    file = folder / "procedures.jsonl"
    file.write_text('{"output": "a bridge", "input": "stones", "steps": ["Lay stones."]}\n')
    return file
