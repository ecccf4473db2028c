"""The questions of an evaluation, from a file: each with whatever is known of a right answer."""

import difflib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NotRequired

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evals.gold import Gold, gold_of
from stepcraft.records import Record, records
from stepcraft.text.clean import clean

_PLACES = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?")
_KNOWN = {
    "id", "question", "resources", "answer", "answers", "contains", "steps", "output", "input", "gold", "passages"
}  # fmt: skip


class Sample(TypedDict):
    """A question, and what is known of a right answer."""

    id: str
    question: str
    resources: NotRequired[str]
    """The available resources, for methods that take them."""
    answers: NotRequired[list[str]]
    """The right answers; any of them is right."""
    contains: NotRequired[list[list[str]]]
    """What a right answer contains: each a list of names for one thing."""
    steps: NotRequired[list[str]]
    """The steps of a right procedure."""
    long_answers: NotRequired[list[str]]
    """Right answers of several sentences, each to be compared with by ROUGE."""
    claims: NotRequired[list[str]]
    """What a right answer states, each a sentence (ALCE)."""
    gold: NotRequired[list[Gold]]
    """The passages that bear out the answer."""
    task: NotRequired[str]
    """The id of the sample that this one repeats, where each is answered several times."""
    seed: NotRequired[int]
    """The seed of the model, where each sample is answered several times."""


def read_samples(path: Path, limit: int | None = None) -> list[Sample]:
    """Read samples from a .jsonl, .json or .csv file.

    A record has `question`, and optionally `id`, `resources`, `answer` or `answers`, `contains`, `steps` and `gold` (see
    `gold_of`). A procedure (`output`, `input`, `steps`) is read as the question how its output is reached with its input.

    Args:
        path: The file.
        limit: The number of samples to read; None for all.

    Raises:
        BadInput: The file cannot be read, has no samples, or has a record that cannot be used or an id twice.
    """
    samples: list[Sample] = []
    lines: dict[str, int] = {}
    for number, record in enumerate(islice(records(path), limit), 1):
        sample = _sample(record, path, number)
        if sample["id"] in lines:
            raise BadInput(
                f"{path}:{record.line} has the id {sample['id']!r:.80} of line {lines[sample['id']]}; "
                "give each question an id of its own"
            )
        lines[sample["id"]] = record.line
        samples.append(sample)
    if not samples:
        raise BadInput(f"{path} has no questions; write one record with 'question' a line")
    return samples


def repeated(samples: Sequence[Sample], times: int) -> list[Sample]:
    """Each sample so many times, with ids such as `HumanEval/0#2` and a seed of its own; all once, then all again."""
    if times == 1:
        return list(samples)
    return [
        {**sample, "id": f"{sample['id']}#{number}", "task": sample["id"], "seed": number}
        for number in range(1, times + 1)
        for sample in samples
    ]


def picked(samples: Sequence[Sample], items: str) -> list[Sample]:
    """The samples that `items` names, in their own order, each once.

    Args:
        samples: The samples.
        items: Places from 1, ranges of places, and ids, with commas between them: `3-10,17,HumanEval/5`. What may be
            a place is one.

    Raises:
        BadInput: A place is out of range, there is no such id, or nothing is named.
    """
    place_of = {sample["id"]: place for place, sample in enumerate(samples)}
    chosen: set[int] = set()
    for item in filter(None, map(str.strip, items.split(","))):
        if places := _PLACES.fullmatch(item):
            first, last = int(places[1]), int(places[2] or places[1])
            if not 1 <= first <= last <= len(samples):
                raise BadInput(
                    f"--items {item!r:.80} cannot be used: the places are 1 to {len(samples):,}, the smaller one first"
                )
            chosen |= set(range(first - 1, last))
        elif item in place_of:
            chosen.add(place_of[item])
        else:
            near = difflib.get_close_matches(item, place_of, 1)
            hint = f"did you mean {near[0]!r}" if near else f"the first is {samples[0]['id']!r:.80}"
            raise BadInput(
                f"no sample has the id {item!r:.80}; {hint}, or name places from 1 to {len(samples):,}"
            )
    if not chosen:
        raise BadInput("--items names no sample; name places and ids, such as 3-10,17")
    return [samples[place] for place in sorted(chosen)]


def fingerprint(samples: Sequence[Sample]) -> str:
    """Identify samples by their content."""
    digest = hashlib.sha256()
    for sample in samples:
        digest.update(json.dumps(sample, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()[:16]


def _sample(record: Record, path: Path, number: int) -> Sample:
    where = f"{path}:{record.line}"
    if record.values is None:
        raise BadInput(f"{where} cannot be read: {record.reason}")
    fields = record.values
    for name in fields:
        if name.casefold() in _KNOWN and name not in _KNOWN:
            raise BadInput(f"{where} has a field {name!r:.80}; names are written in lower case")
    is_procedure = "question" not in fields and "output" in fields
    question = _text(fields, "output" if is_procedure else "question", where)
    if not question:
        raise BadInput(f"{where} has no question; give each record one under 'question'")
    given = [str(fields[key]) for key in ("id", "_id") if fields.get(key) not in (None, "")]
    sample = Sample(id=given[0] if given else str(number), question=question)
    if resources := _text(fields, "input" if is_procedure else "resources", where):
        sample["resources"] = resources
    if answers := _texts(fields, "answers", where) or _texts(fields, "answer", where):
        sample["answers"] = answers
    if steps := _texts(fields, "steps", where):
        sample["steps"] = steps
    if contains := fields.get("contains"):
        parts = contains if isinstance(contains, list) else [contains]
        sample["contains"] = [_texts({"contains": part}, "contains", where) for part in parts]
    if gold := gold_of(fields, where):
        sample["gold"] = gold
    return sample


def _text(fields: Mapping[str, Any], name: str, where: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise BadInput(
            f"{where} has {'an' if name[0] in 'aeiou' else 'a'} {name} that is no text: {value!r:.80}"
        )
    return clean(str(value)).strip()


def _texts(fields: Mapping[str, Any], name: str, where: str) -> list[str]:
    value = fields.get(name)
    parts = value if isinstance(value, list) else [] if value is None else [value]
    return [text for part in parts if (text := _text({name: part}, name, where))]
