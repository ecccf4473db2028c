"""Small files in the official formats of the benchmarks, with made-up content."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TOWNS = (
    *("Arvel", "Brint", "Cosk", "Dunmar", "Elvo", "Farnik"),
    *("Gresh", "Holt", "Ingar", "Jarrow", "Kesk", "Lomm"),
)


def _hop(town: str) -> dict[str, Any]:
    """A question of two hops with four passages, of which two are gold."""
    light, name, year = f"Lighthouse of {town}", f"O{town.lower()}", f"18{len(town)}"
    return {
        "_id": f"hop-{town}",
        "question": f"In which year was the architect of the lighthouse of {town} born?",
        "answer": f"{year}{ord(town[0]) % 10}",
        "supporting_facts": [[light, 1], [f"Architect {name}", 0], [light, 9]],
        "context": [
            ["Lighthouses", ["A lighthouse is a tower with a light.", " It guides ships."]],
            [light, [f"{town} has a lighthouse.", f" It was built by {name}, an architect."]],
            [f"Harbour of {town}", [f"The harbour of {town} is small."]],
            [f"Architect {name}", [f"{name} was born in {year}{ord(town[0]) % 10}.", " He built."]],
        ],
    }


def _wiki(town: str) -> dict[str, Any]:
    return {**_hop(town), "answer": f"the {town} coast", "answer_id": f"Q{town}", "evidences": []}


def _asqa(town: str) -> dict[str, Any]:
    first, second = f"The first lighthouse of {town}", "The second followed in 1899."
    return {
        "ambiguous_question": f"When was the lighthouse of {town} opened?",
        "qa_pairs": [{"short_answers": [f"1 May, {town}", "1801"]}, {"short_answers": ["1899"]}],
        "annotations": [
            {"long_answer": f"The lighthouse of {town} was opened in 1899."},
            {"long_answer": f"{first} was opened in 1801. {second}"},
        ],
    }


def _eli5(town: str) -> dict[str, Any]:
    claims = [f"The lighthouse of {town} guides ships.", "Its light turns in a lens."]
    return {
        "question": f"Why does the lighthouse of {town} blink?",
        "answer": " ".join(claims),
        "claims": claims,
        "docs": [{"title": f"Lighthouse of {town}", "text": f"{town} has a lighthouse."}],
    }


def _popqa(town: str) -> list[str]:
    answers = json.dumps([f"{town} council", f"council of {town}"])
    return [f"1{ord(town[0])}", f"Who owns the lighthouse of {town}?", answers]


def _pubhealth(number: int, town: str) -> list[str]:
    label = ("true", "false", "mixture", "unproven")[number % 4]
    return [str(number), f"c{number}", f'The air of {town} heals "all" colds.', "nan", label]


def _recipe(number: int, town: str) -> list[str]:
    steps = [f"Wash the {town} beans.", *(f"Stir pot {n} of {town}." for n in range(number + 1))]
    return [str(number), f"{town} stew", json.dumps(["beans", "salt"]), json.dumps(steps)]


def _champ(number: int, town: str) -> dict[str, Any]:
    step = {"_raw_text": f"There are @@{number}@@ keepers in {town}.", "_text": None}
    return {
        "_raw_text": f"{town} has $n$ keepers, each with @@$n$@@ lamps. How many lamps are there?",
        "category": "combinatorics",
        "solution": {"steps": [step] * (number + 1)},
        "_raw_answer": "$n^2$",
    }


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _claims() -> str:
    rows = [_pubhealth(*pair) for pair in enumerate(TOWNS)]
    table = _table(("", "claim_id", "claim", "explanation", "label"), rows, "\t")
    broken = '99\tc99\ta row that is cut off\n100\tc100\ta claim\t"a "quotation" breaks it"\tnan\n'
    return f"{table}98\tc98\tA claim without a label.\t\tnan\n{broken}"


def _recipes() -> str:
    rows = [_recipe(*pair) for pair in enumerate(TOWNS)]
    return _table(("", "title", "ingredients", "directions"), rows, ",")


def _problems() -> str:
    problems = {f"P_{town}": _champ(number, town) for number, town in enumerate(TOWNS)}
    return json.dumps({"problems": problems, "concepts": {}, "hints": {}}, indent=1)


OFFICIAL: dict[str, tuple[str, Callable[[], str]]] = {
    "hotpotqa": ("hotpot_dev_distractor_v1.json", lambda: json.dumps([*map(_hop, TOWNS)])),
    "2wikimultihopqa": ("dev.json", lambda: json.dumps([*map(_wiki, TOWNS)])),
    "asqa": (
        "ASQA.json",
        lambda: json.dumps({"train": {}, "dev": {f"a{town}": _asqa(town) for town in TOWNS}}),
    ),
    "eli5": ("eli5_eval_bm25_top100.json", lambda: json.dumps([*map(_eli5, TOWNS)])),
    "popqa": (
        "popQA.tsv",
        lambda: _table(("id", "question", "possible_answers"), [*map(_popqa, TOWNS)], "\t"),
    ),
    "pubhealth": ("test.tsv", _claims),
    "recipenlg-val": ("full_dataset.csv", _recipes),
    "recipenlg-test": ("full_dataset.csv", _recipes),
    "champ-val": ("v0.json", _problems),
    "champ-test": ("v0.json", _problems),
}
"""The name of each benchmark's official file, and what makes its content."""


def official_file(name: str, folder: Path) -> Path:
    """Write the official file of a benchmark."""
    file_name, content = OFFICIAL[name]
    file = folder / file_name
    file.write_text(content(), "utf-8")
    return file
