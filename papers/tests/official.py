"""Small files in the official formats of the benchmarks, with made-up content."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TOWNS = (
    "Arvel",
    "Brint",
    "Cosk",
    "Dunmar",
    "Elvo",
    "Farnik",
    "Gresh",
    "Holt",
    "Ingar",
    "Jarrow",
    "Kesk",
    "Lomm",
)


def _hop(town: str) -> dict[str, Any]:
    """A question of two hops with four passages, of which two are gold."""
    return {
        "_id": f"hop-{town}",
        "question": f"In which year was the architect of the lighthouse of {town} born?",
        "answer": f"18{len(town)}{ord(town[0]) % 10}",
        "supporting_facts": [[f"Lighthouse of {town}", 1], [f"Architect O{town.lower()}", 0], [f"Lighthouse of {town}", 9]],
        "context": [
            ["Lighthouses", ["A lighthouse is a tower with a light.", " It guides ships."]],
            [f"Lighthouse of {town}", [f"{town} has a lighthouse.", f" It was built by O{town.lower()}, an architect."]],
            [f"Harbour of {town}", [f"The harbour of {town} is small.", " Ships are rare there."]],
            [f"Architect O{town.lower()}", [f"O{town.lower()} was born in 18{len(town)}{ord(town[0]) % 10}.", " He built towers."]],
        ],
    }  # fmt: skip


def _wiki(town: str) -> dict[str, Any]:
    return {
        **_hop(town),
        "answer": f"the {town} coast",
        "answer_id": f"Q{town}",
        "evidences": [],
        "evidences_id": [],
    }


def _asqa(town: str) -> dict[str, Any]:
    return {
        "ambiguous_question": f"When was the lighthouse of {town} opened?",
        "qa_pairs": [
            {"question": f"When was the first lighthouse of {town} opened?", "short_answers": [f"1 May, {town}", "1801"]},
            {"question": f"When was the second lighthouse of {town} opened?", "short_answers": ["1899"]},
        ],
        "wikipages": [],
        "annotations": [
            {"long_answer": f"The lighthouse of {town} was opened in 1899.", "knowledge": []},
            {"long_answer": f"The first lighthouse of {town} was opened in 1801. The second followed in 1899.", "knowledge": []},
        ],
    }  # fmt: skip


def _eli5(town: str) -> dict[str, Any]:
    claims = [f"The lighthouse of {town} guides ships.", "Its light turns in a lens."]
    passages = [
        {"title": f"Lighthouse of {town}", "text": f"{town} has a lighthouse.", "score": 1.0}
    ]
    question = f"Why does the lighthouse of {town} blink?"
    return {
        "question": question,
        "question_ctx": "",
        "answer": " ".join(claims),
        "claims": claims,
        "docs": passages,
    }


def _popqa(town: str) -> list[str]:
    answers = json.dumps([f"{town} council", f"council of {town}"])
    return [
        f"1{ord(town[0])}",
        f"{town} light",
        "owner",
        f"Who owns the lighthouse of {town}?",
        answers,
    ]


def _pubhealth(number: int, town: str) -> list[str]:
    label = ("true", "false", "mixture", "unproven")[number % 4]
    return [str(number), f"c{number}", f'The air of {town} heals "all" colds.', "nan", label]


def _recipe(number: int, town: str) -> list[str]:
    steps = [
        f"Wash the {town} beans.",
        *(f"Stir pot {place} of {town}." for place in range(1, number + 2)),
    ]
    return [
        str(number),
        f"{town} stew",
        json.dumps([f"{number} beans", "salt"]),
        json.dumps(steps),
        "example.org",
        "Gathered",
        "[]",
    ]


def _champ(number: int, town: str) -> dict[str, Any]:
    steps = [
        {"_raw_text": f"There are @@{number}@@ keepers in {town}.", "_text": None, "ch_idxs": []}
    ] * (number + 1)
    return {
        "identifier": f"P_{town}",
        "_raw_text": f"{town} has $n$ keepers, each with @@$n$@@ lamps. How many lamps are there?",
        "category": "combinatorics",
        "solution": {"steps": steps},
        "_raw_answer": "$n^2$",
        "ch_list": [],
    }  # fmt: skip


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _champ_file() -> str:
    problems = {f"P_{town}": _champ(number, town) for number, town in enumerate(TOWNS)}
    return json.dumps({"problems": problems, "concepts": {}, "hints": {}}, indent=1)


OFFICIAL: dict[str, tuple[str, Callable[[], str]]] = {
    "hotpotqa": (
        "hotpot_dev_distractor_v1.json",
        lambda: json.dumps([_hop(town) for town in TOWNS]),
    ),
    "2wikimultihopqa": ("dev.json", lambda: json.dumps([_wiki(town) for town in TOWNS])),
    "asqa": (
        "ASQA.json",
        lambda: json.dumps({"train": {}, "dev": {f"a{town}": _asqa(town) for town in TOWNS}}),
    ),
    "eli5": ("eli5_eval_bm25_top100.json", lambda: json.dumps([_eli5(town) for town in TOWNS])),
    "popqa": (
        "popQA.tsv",
        lambda: _table(
            ("id", "subj", "prop", "question", "possible_answers"), [*map(_popqa, TOWNS)], "\t"
        ),
    ),
    "pubhealth": (
        "test.tsv",
        lambda: (
            _table(
                ("", "claim_id", "claim", "explanation", "label"),
                [_pubhealth(*pair) for pair in enumerate(TOWNS)],
                "\t",
            )
            + '98\tc98\tA claim without a label.\t\tnan\n99\tc99\ta row that is cut off\n100\tc100\ta claim\t"a "quotation" breaks it"\tnan\n'
        ),
    ),
    "recipenlg-val": (
        "full_dataset.csv",
        lambda: _table(
            ("", "title", "ingredients", "directions", "link", "source", "NER"),
            [_recipe(*pair) for pair in enumerate(TOWNS)],
            ",",
        ),
    ),
    "champ-val": ("v0.json", _champ_file),
}
"""The name of each benchmark's official file, and what makes its content."""
for _split in ("recipenlg", "champ"):
    OFFICIAL[f"{_split}-test"] = OFFICIAL[f"{_split}-val"]


def official_file(name: str, folder: Path) -> Path:
    """Write the official file of a benchmark."""
    file_name, content = OFFICIAL[name]
    file = folder / file_name
    file.write_text(content(), "utf-8")
    return file
