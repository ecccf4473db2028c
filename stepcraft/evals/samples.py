"""The questions in an evaluation, with reference data such as right answers."""

import difflib
import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.records import Record, records
from stepcraft.text.clean import clean

_LISTS = (
    "answer",
    "answers",
    "contains",
    "steps",
    "long_answers",
    "facts",
    "rubric",
    "gold",
    "passages",
)
RIGHT = ("answers", "long_answers", "steps", "contains")
"""The fields that say what a right answer is."""
_FIELDS = {"id", "question", "output", "resources", "input", *_LISTS}
_ANSWER = re.compile(
    r"(expected|gold|correct|reference)_answer|expected(_output)?|ground_truth|references?|target"
    r"|label|answers? \(\d+\)"
)
"""Field names that other tools use for a right answer, and those of a second column for it."""


class Gold(TypedDict):
    """A passage that supports the answer."""

    title: str
    """The title, or "" if only the sentences are known."""
    sentences: list[str]
    """The sentences in the passage that support the answer, if known."""


def _text(value: object) -> object:
    """Return a text without spaces around it, and None for NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return clean(value).strip() if isinstance(value, str) else value


def listed(value: object) -> list[object]:
    """Return a list, or a single value as a list, without empty texts and NaN."""
    texts = map(_text, value if isinstance(value, list) else [value])
    return [text for text in texts if text not in (None, "")]


def _alternatives(value: object) -> list[object]:
    """Return alternative texts, with a whole number such as 42.0 in both spellings."""
    return [
        text
        for each in listed(value)
        for text in ([int(each), each] if isinstance(each, float) and each.is_integer() else [each])
    ]


def _passage(value: object) -> object:
    fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {"title": value}
    if not fields.get("title") and not fields.get("sentences"):
        raise ValueError("a gold passage has a title or sentences")
    return {"title": "", "sentences": [], **fields}


_Text = Annotated[str, BeforeValidator(_text)]
_Texts = Annotated[list[str], BeforeValidator(listed)]
_Alternatives = Annotated[list[str], BeforeValidator(_alternatives)]


@with_config(coerce_numbers_to_str=True)
class Sample(TypedDict):
    """A question, with reference data such as right answers."""

    id: _Text
    question: Annotated[
        _Text, Field(min_length=1, validation_alias=AliasChoices("question", "output"))
    ]
    resources: NotRequired[
        Annotated[_Text, Field(validation_alias=AliasChoices("resources", "input"))]
    ]
    """The available resources, for methods that take them."""
    answers: NotRequired[_Alternatives]
    """The right answers; an answer need only match one of them."""
    contains: NotRequired[Annotated[list[_Alternatives], BeforeValidator(listed)]]
    """The things that a right answer mentions, each as a list of alternative names."""
    steps: NotRequired[_Texts]
    """The steps of a correct procedure."""
    long_answers: NotRequired[_Texts]
    """Right answers of several sentences, for ROUGE."""
    facts: NotRequired[_Texts]
    """The facts that a right answer states, as sentences."""
    rubric: NotRequired[_Texts]
    """What a judge looks for in an answer, as sentences."""
    gold: NotRequired[
        Annotated[list[Annotated[Gold, BeforeValidator(_passage)]], BeforeValidator(listed)]
    ]
    """The passages that support the answer."""
    task: NotRequired[str]
    """The id of the sample that this one repeats."""
    seed: NotRequired[int]
    """The model's seed in this repetition."""


_READER = TypeAdapter(Sample)


def read_samples(path: Path, limit: int | None = None) -> list[Sample]:
    """Read samples from a .jsonl, .json or .csv file; a CSV cell can contain a list as JSON.

    A record has `question`, and optionally `id`, `resources`, `answer` or `answers`, `contains`,
    `steps`, `long_answers`, `facts`, `rubric` and `gold` (titles, or objects with title and
    sentences). A procedure (`output`, `input`, `steps`) is read with its output as the question and
    its input as the resources. Other fields are ignored.

    Raises:
        BadInput: The file or a record cannot be read, a field is probably a misspelling of one of
            these, or two records have the same id.
    """
    samples: dict[str, Sample] = {}
    for number, record in enumerate(islice(records(path), limit), 1):
        where = f"{path}:{record.line}"
        fields = fields_of(record, path)
        for name in sorted(fields.keys() - _FIELDS):
            near = difflib.get_close_matches(name.casefold(), _FIELDS, 1, 0.88)
            if meant := "answer" if _ANSWER.fullmatch(name.casefold()) else "".join(near):
                raise BadInput(
                    f"{where} has a field {name!r:.80}; did you mean {meant!r}? Other names are "
                    "ignored"
                )
        accepted = {name: value for name, value in fields.items() if name in _FIELDS}
        for name, other in (("question", "output"), ("resources", "input")):
            if accepted.get(name) and accepted.get(other):
                raise BadInput(
                    f"{where} has both {name!r} and {other!r}, two names for the same field; keep "
                    "one of them, and call a right answer 'answer'"
                )
        if accepted.get("output") and not accepted.get("steps"):
            raise BadInput(
                f"{where} has 'output' but no 'steps', so it is no procedure; call a question "
                "'question', a right answer 'answer' and resources 'resources'"
            )
        accepted["answers"] = [
            *listed(accepted.get("answers")),
            *listed(accepted.pop("answer", None)),
        ]
        try:
            read = _READER.validate_python({"id": "", **accepted})
        except ValidationError as error:
            problem = error.errors()[0]
            name = ".".join(map(str, problem["loc"]))
            raise BadInput(
                f"{where} cannot be used: {name} is {problem['input']!r:.80} ({problem['msg']})"
            ) from error
        sample: Any = {"id": str(number), **{name: value for name, value in read.items() if value}}
        if samples.setdefault(sample["id"], sample) is not sample:
            raise BadInput(
                f"{where} has the id {sample['id']!r:.80} of an earlier record; give each question "
                "an id of its own"
            )
    if not samples:
        raise BadInput(f"{path} has no questions; write one record with 'question' a line")
    return list(samples.values())


def fields_of(record: Record, path: Path) -> dict[str, Any]:
    """Return the fields of a record, parsing lists in CSV cells.

    Raises:
        BadInput: The record cannot be read.
    """
    if record.values is None:
        raise BadInput(f"{path}:{record.line} cannot be read: {record.reason}")
    fields = dict(record.values)
    for name in _LISTS if path.suffix.lower() in {".csv", ".tsv"} else ():
        if fields.get(name, "").lstrip().startswith("["):
            try:
                fields[name] = json.loads(fields[name])
            except ValueError as error:
                raise BadInput(
                    f"{path}:{record.line} has in {name!r} no list in JSON: {error}"
                ) from error
    return fields


def repeated(samples: Sequence[Sample], times: int) -> list[Sample]:
    """Return each sample `times` times, with ids such as `HumanEval/0#2` and separate seeds."""
    if times == 1:
        return list(samples)
    return [
        {**sample, "id": f"{sample['id']}#{number}", "task": sample["id"], "seed": number}
        for number in range(1, times + 1)
        for sample in samples
    ]


def asked(sample: Sample) -> tuple[object, ...]:
    """Return the question, resources and seed, which identify a sample regardless of its id."""
    return (
        sample["question"].encode("utf-8", "replace"),
        sample.get("resources"),
        sample.get("seed"),
    )


def right_answer(sample: Sample, fields: Collection[str] | None = None) -> str:
    """Return a fingerprint of a sample's reference data: of some fields, or by default of all."""
    if fields is None:
        fields = sample.keys() - {"id", "question", "resources", "task", "seed"}
    return fingerprint([{name: it for name, it in sample.items() if name in fields}])


def fingerprint(samples: Iterable[Mapping[str, Any]]) -> str:
    """Return a fingerprint of the samples' content."""
    digest = hashlib.sha256()
    for sample in samples:
        text = json.dumps(sample, sort_keys=True, ensure_ascii=False)
        digest.update(text.encode("utf-8", "replace") + b"\n")
    return digest.hexdigest()[:16]
