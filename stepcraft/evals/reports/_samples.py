"""The samples on an evaluation's page: packed so that ten thousand fit, and cut where they do not."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepcraft.evals.directory import SAMPLES, read_outcomes
from stepcraft.evals.progress import tokens_of
from stepcraft.evals.samples import Sample
from stepcraft.evals.votes import Judgement, read_judgements
from stepcraft.text.clean import clean

_LIMITS = (8000, 4000, 2000, 1000, 500, 250, 100)
"""After how many characters texts are cut, from the first try to the last."""
_MOST_UNPACKED = 45_000_000
"""The size of the samples before they are packed, so that a browser opens them at once."""
_PROBED_TEXTS, _PROBED = 2_000, 2_000_000
"""So many texts, and bytes of them, are compressed to see how far the others can be."""


@dataclass(frozen=True)
class PackedSamples:
    """The samples as base64 of compressed JSON."""

    data: str
    count: int
    note: str
    """What was cut and where the whole is, "" where nothing was."""


def packed(
    directories: Mapping[str, Path], labels: Mapping[tuple[str, str], str], most: int
) -> PackedSamples:
    """Pack the samples of evaluations with all outputs; a sample of several evaluations is one.

    Secrets are masked in the directories already.

    Args:
        directories: The directories by name.
        labels: What the page calls a method of a directory, in the order of the page.
        most: The size of the packed samples, in bytes of the page.

    Raises:
        BadInput: A directory or a line in it is damaged.
    """
    texts = _Texts()
    runs = {pair: number for number, pair in enumerate(labels)}
    samples: dict[tuple[str, str], dict[str, Any]] = {}
    for name, directory in directories.items():
        votes = _votes(read_judgements(directory))
        for one in read_outcomes(directory):
            run = runs.get((name, one["method"]))
            if run is None:
                continue
            sample = one["sample"]
            entry = samples.setdefault(
                (one["id"], sample["question"]),
                {
                    "id": _cleaned(one["id"]),
                    "question": texts.number(sample["question"]),
                    "right": [texts.number(text) for text in _right(sample)],
                    "runs": [None] * len(runs),
                },
            )
            output = one["output"]
            entry["runs"][run] = {
                "answer": texts.number(_answer(output)),
                "scores": {
                    _cleaned(score): round(value, 4) for score, value in one["scores"].items()
                },
                "cost": [one["usage"].get("calls", 0), tokens_of(one), round(one["seconds"], 2)],
                "warnings": [texts.number(text) for text in one["warnings"]],
                "error": texts.number(one["error"]),
                "evidence": [
                    [texts.number(passage.get(part, "")) for part in ("title", "text", "source")]
                    for passage in _mappings(output.get("evidence"))
                ],
                "votes": votes.get((one["method"], one["id"]), []),
            }
    return _fitted(
        [_cleaned(label) for label in labels.values()], list(samples.values()), texts, most
    )


def _fitted(
    runs: list[str], samples: list[dict[str, Any]], texts: "_Texts", most: int
) -> PackedSamples:
    """Cut texts, and at last samples, until they fit."""
    where = f"the whole is in {SAMPLES} of the directory"
    rest = len(_json(samples))
    lengths = texts.lengths()
    # A part tells how far the rest can be compressed, so that there is one try and seldom a second.
    part = _json(texts.cut(_LIMITS[0], _PROBED_TEXTS))[:_PROBED]
    most_unpacked = min(_MOST_UNPACKED, most * len(part) / len(_compressed(part)))
    for limit in _LIMITS:
        size = int(np.minimum(lengths, limit).sum()) + rest
        if size > most_unpacked:
            continue
        data = _compressed(_json({"runs": runs, "texts": texts.cut(limit), "samples": samples}))
        if len(data) <= most:
            longer = int((lengths > limit).sum())
            note = (
                f"{longer:,} texts are cut after {limit:,} characters; {where}." if longer else ""
            )
            return PackedSamples(data, len(samples), note)
        most_unpacked = size * most / len(data)
    data, kept = "", len(samples)
    while kept:
        kept //= 2
        used = set(_numbers(samples[:kept]))
        few = [text if number in used else "" for number, text in enumerate(texts.cut(_LIMITS[-1]))]
        data = _compressed(_json({"runs": runs, "texts": few, "samples": samples[:kept]}))
        if len(data) <= most:
            break
    return PackedSamples(
        data,
        kept,
        f"The first {kept:,} of {len(samples):,} samples are shown, with texts cut after {_LIMITS[-1]} characters; {where}.",
    )


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _compressed(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text, 4, mtime=0)).decode()


class _Texts:
    """Texts by number, each kept once: methods often find the same passages."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._cleaned: list[str] = []

    def number(self, text: object) -> int:
        given = str(text)
        number = self._numbers.get(given)
        if number is None:
            number = self._numbers[given] = len(self._cleaned)
            self._cleaned.append(_cleaned(given))
        return number

    def cut(self, limit: int, count: int | None = None) -> list[str]:
        return [
            text if len(text) <= limit else f"{text[:limit]}…" for text in self._cleaned[:count]
        ]

    def lengths(self) -> NDArray[np.int64]:
        return np.fromiter(map(len, self._cleaned), np.int64)


def _numbers(samples: Iterable[Mapping[str, Any]]) -> Iterator[int]:
    """The numbers of the texts of some samples."""
    for sample in samples:
        yield sample["question"]
        yield from sample["right"]
        for run in filter(None, sample["runs"]):
            yield from (run["answer"], run["error"], *run["warnings"])
            yield from (number for passage in run["evidence"] for number in passage)


def _votes(judgements: Iterable[Judgement]) -> dict[tuple[str, str], list[str]]:
    """What the judges say of each method's outputs, in words."""
    counts: dict[tuple[str, str, str, str], Counter[str]] = {}
    found: dict[tuple[str, str], list[str]] = {}
    for one in judgements:
        if one["kind"] == "vote" and "verdict" in one:
            pair = one["method"], one["id"], one["judge"], one["against"]
            counts.setdefault(pair, Counter())[one["verdict"]] += 1
        elif one["kind"] == "support" and (sentences := one.get("sentences")):
            flagged = one.get("unsupported")
            borne_out = (
                "no readable reply"
                if flagged is None
                else f"{len(set(sentences) - set(flagged))} of {len(sentences)} sentences are borne out"
            )
            found.setdefault((one["method"], one["id"]), []).append(
                f"{_cleaned(one['judge'])}: {borne_out}"
            )
    for (method, id_, judge, against), counted in counts.items():
        told = ", ".join(
            f"{counted[verdict]} {noun}"
            for verdict, noun in (("win", "for it"), ("loss", "against it"), ("tie", "for a tie"))
        )
        unreadable = f", {counted['unreadable']} unreadable" if counted["unreadable"] else ""
        found.setdefault((method, id_), []).append(
            f"{_cleaned(judge)}, votes beside {_cleaned(against)}: {told}{unreadable}"
        )
    return found


def _right(sample: Sample) -> list[str]:
    """What is known of a right answer, line by line."""
    steps = [f"{number}. {step}" for number, step in enumerate(sample.get("steps", []), 1)]
    contained = [f"contains {' or '.join(names)}" for names in sample.get("contains", [])]
    return [*sample.get("answers", []), *contained, *(["\n".join(steps)] if steps else [])]


def _answer(output: Mapping[str, Any]) -> str:
    return str(output.get("answer") or "\n".join(map(str, output.get("steps") or [])))


def _mappings(value: object) -> list[Mapping[str, Any]]:
    """The evidence of an output; graphs of one's own may have something else by that name."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def _cleaned(text: object) -> str:
    return clean(str(text)).strip()
