"""Read official benchmark files (records, texts, passages) and build benchmarks from them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from stepcraft.errors import BadInput
from stepcraft.evals.benchmark import Benchmark, Questions
from stepcraft.evals.passages import cached
from stepcraft.evals.samples import Sample
from stepcraft.evals.scoring import Scorer, default_scores
from stepcraft.files import open_regular
from stepcraft.records import records
from stepcraft.text.clean import clean
from stepcraft_papers.source import Release, fetched, unpacked


@dataclass(frozen=True)
class Entry:
    """A record of a benchmark's file."""

    fields: Mapping[str, Any]
    where: str
    """The file and line, for messages."""
    id: str
    """The value of the first identifier field present, or else the number of the record."""

    def refuse(self, benchmark: str, needed: str) -> NoReturn:
        """Raise an error for a record that matches none of the benchmark's formats.

        Raises:
            BadInput: Always.
        """
        raise BadInput(
            f"{self.where} is no record of {benchmark}: it has no {needed}; name its official file "
            "with --data"
        )


def entries(file: Path, *ids: str) -> Iterator[Entry]:
    """Yield the records of a file.

    Args:
        file: The file.
        ids: The names of fields that can contain an identifier, in order of preference.

    Raises:
        BadInput: The file or one of its records cannot be read.
    """
    for number, record in enumerate(records(file), 1):
        where = f"{file}:{record.line}"
        if record.values is None:
            raise BadInput(f"{where} cannot be read: {record.reason}")
        identifiers = [record.values[name] for name in ids if record.values.get(name) is not None]
        yield Entry(record.values, where, str((identifiers or [number])[0]) or str(number))


def whole(file: Path) -> object:
    """Return the JSON value in a file, or None if the file name does not end in .json.

    Raises:
        BadInput: The file cannot be read or is not valid JSON.
    """
    if file.suffix.lower() != ".json":
        return None
    try:
        with open_regular(file) as opened:
            value: object = json.load(opened)
            return value
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file} is not JSON: {error}") from error


def mapping_of(value: object, *names: str) -> Mapping[str, Any]:
    """Return the object at a path of names in a JSON value, or an empty object."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; return an empty list for any other value."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def text_of(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first text in these fields, cleaned, or "" if none of them contains one."""
    return next((text for name in names for text in texts_of([fields.get(name)])), "")


def texts_of(value: object) -> list[str]:
    """Return the texts in a list, in a string with a JSON list (as in tables), or a single text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    parts: Iterable[object] = value if isinstance(value, list) else [value]
    return [text for part in parts if isinstance(part, str) and (text := clean(part).strip())]


def passages_of(entry: Entry) -> list[tuple[str, list[str]]]:
    """Return the passages in a record, each as a title and a list of sentences.

    They are read from our own field, from that of HotpotQA and 2WikiMultiHopQA, from ALCE's or from
    DPR's. Empty sentences are kept, because supporting facts refer to sentences by number.
    """
    for name in ("passages", "context", "docs", "ctxs"):
        value = entry.fields.get(name)
        if isinstance(value, Mapping):  # the columns of the Hugging Face hub
            value = list(zip(value.get("title", ()), value.get("sentences", ()), strict=False))
        if isinstance(value, list) and value:
            return [_passage(passage, entry.where) for passage in value]
    return []


def _passage(value: object, where: str) -> tuple[str, list[str]]:
    match value:
        case str(text) | {"text": str(text)}:
            sentences = [text]
        case {"sentences": [*sentences]} | [str(), [*sentences]]:
            pass
        case _:
            raise BadInput(f"{where} has a passage that is none: {value!r:.80}; see its source")
    title = value.get("title") if isinstance(value, Mapping) else ""
    title = value[0] if isinstance(value, list | tuple) else title
    return fold(str(title or "")), [fold(str(sentence)) for sentence in sentences]


def fold(text: str) -> str:
    """Return a cleaned text in which each run of whitespace is a single space."""
    return " ".join(clean(text).split())


def corpus_settings(file: Path) -> dict[str, Any]:
    """Return the setting by which methods search the passages of all records; {} without any.

    Raises:
        BadInput: A passage cannot be read, or the cache cannot be written.
    """
    passages = {
        (title, " ".join(filter(None, sentences))): None
        for record in records(file)
        for title, sentences in passages_of(Entry(record.values or {}, f"{file}:{record.line}", ""))
    }
    lines = ({"title": title, "text": text} for title, text in passages if text)
    corpus = cached(f"{file.stem}-passages", lines)
    return {"sources": [f"corpus:{corpus}"]} if corpus else {}


def file_benchmark(
    name: str,
    description: str,
    read: Callable[[Path], list[Sample]],
    *,
    source: str,
    licence: str,
    citation: str,
    score: Scorer = default_scores,
    settings: Mapping[str, Any] | None = None,
    searched: Callable[[Path], Mapping[str, Any]] = corpus_settings,
    release: Release | None = None,
) -> Benchmark:
    """Return a benchmark whose samples are in one file.

    Args:
        name: Its name.
        description: What it measures.
        read: Reads the samples.
        source: The address of its makers.
        licence: Of its data.
        citation: The paper.
        score: Scores an answer.
        settings: Settings of its methods.
        searched: Returns the settings that name what the file brings to be searched.
        release: Its published file, where it can be downloaded.
    """

    def load(data: Path | None, limit: int | None) -> Questions:
        file = data_file(name, source, release, data)
        samples = read(file)[:limit]
        if not samples:
            raise BadInput(f"{file} has no samples of {name}; name its official file with --data")
        return Questions(samples, [score], {**(settings or {}), **searched(file)})

    return Benchmark(name, description, load, source, licence, citation)


def data_file(name: str, source: str, release: Release | None, data: Path | None) -> Path:
    """Return the file for a benchmark: the given one, or else the published one.

    Raises:
        BadInput: No file is given or published, or the file cannot be used.
        SourceFailure: It cannot be downloaded.
    """
    if data:
        return unpacked(data)
    if release is None:
        raise BadInput(
            f"{name} is not part of the package; get it from {source} and name its file with --data"
        )
    return fetched(release)


def built_in(
    name: str, make: Callable[[], Questions]
) -> Callable[[Path | None, int | None], Questions]:
    """Return a function that loads a benchmark without a file."""
    return partial(_built_in, name, make)


def _built_in(
    name: str, make: Callable[[], Questions], data: Path | None, limit: int | None
) -> Questions:
    if data:
        raise BadInput(f"{name} makes its samples itself; leave out --data {data}")
    questions = make()
    return Questions(questions.samples[:limit], questions.scorers, questions.settings)
