"""The samples on an evaluation's page, as compressed JSON that its script unpacks."""

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcraft.evals.directory import SAMPLES, Outcome, read_calls, read_outcomes
from stepcraft.evals.progress import total_tokens
from stepcraft.evals.samples import Sample
from stepcraft.evals.votes import Judgement, read_judgements
from stepcraft.text.clean import clean

_CHARACTERS = 4_000
_SAMPLES = 10_000


@dataclass(frozen=True)
class PackedSamples:
    """The samples as base64 of compressed JSON."""

    data: str
    count: int
    note: str
    """What was cut, "" where nothing was."""


class _Texts:
    """Texts by number, each once: methods often find the same passages."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.is_cut = False

    def number(self, text: object) -> int:
        cleaned = clean(str(text)).strip()
        if len(cleaned) > _CHARACTERS:
            cleaned, self.is_cut = f"{cleaned[:_CHARACTERS]}…", True
        return self.numbers.setdefault(cleaned, len(self.numbers))


def packed(directories: Mapping[str, Path], labels: Mapping[tuple[str, str], str]) -> PackedSamples:
    """Pack the samples of evaluations with all outputs; a sample of several evaluations is one.

    Args:
        directories: The directories by name.
        labels: What the page calls a method of a directory, in the order of the page.

    Raises:
        BadInput: A directory or a line in it is damaged.
    """
    texts, runs = _Texts(), {pair: number for number, pair in enumerate(labels)}
    samples: dict[tuple[str, str], dict[str, Any]] = {}
    for name, directory in directories.items():
        votes: dict[tuple[str, str], list[Judgement]] = {}
        for judgement in read_judgements(directory):
            votes.setdefault((judgement["method"], judgement["id"]), []).append(judgement)
        calls = read_calls(directory)
        for outcome in read_outcomes(directory):
            sample, method = outcome["sample"], (outcome["method"], outcome["id"])
            entry = samples.setdefault(
                (outcome["id"], sample["question"]),
                {
                    "id": clean(outcome["id"]),
                    "question": texts.number(sample["question"]),
                    "right": [texts.number(text) for text in _right(sample)],
                    "runs": [None] * len(runs),
                },
            )
            entry["runs"][runs[name, outcome["method"]]] = {
                **_run(outcome, texts),
                "votes": [texts.number(_vote(vote)) for vote in votes.get(method, ())],
                "calls": [
                    [
                        clean(" · ".join(filter(None, (call["node"], call["model"])))),
                        [[role, texts.number(text)] for role, text in call["prompt"]],
                        texts.number(call["error"] or call["reply"]),
                        total_tokens(call["tokens"]),
                        round(call["seconds"], 2),
                    ]
                    for call in calls.get(method, ())
                ],
            }
    notes = []
    if texts.is_cut:
        notes.append(f"Texts are cut after {_CHARACTERS:,} characters")
    if len(samples) > _SAMPLES:
        notes.append(f"The first {_SAMPLES:,} of {len(samples):,} samples are shown")
    shown = {
        "runs": [clean(label) for label in labels.values()],
        "texts": list(texts.numbers),
        "samples": list(samples.values())[:_SAMPLES],
    }
    data = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return PackedSamples(
        base64.b64encode(gzip.compress(data, 4, mtime=0)).decode(),
        len(shown["samples"]),
        f"{'; '.join(notes)}; the whole is in {SAMPLES} of the directory." if notes else "",
    )


def _run(outcome: Outcome, texts: _Texts) -> dict[str, Any]:
    output = outcome["output"]
    answer = output.get("answer") or "\n".join(map(str, output.get("steps") or []))
    return {
        "answer": texts.number(answer),
        "scores": {clean(name): round(score, 4) for name, score in outcome["scores"].items()},
        "cost": [
            outcome["usage"].get("calls", 0),
            total_tokens(outcome["usage"]),
            round(outcome["seconds"], 2),
        ],
        "warnings": [texts.number(text) for text in outcome["warnings"]],
        "error": texts.number(outcome["error"]),
        "evidence": [
            [texts.number(passage.get(part, "")) for part in ("title", "text", "source")]
            for passage in output.get("evidence") or ()
        ],
    }


def _vote(judgement: Judgement) -> str:
    if judgement["kind"] == "vote":
        verdict = judgement.get("verdict", "failed")
        return f"{judgement['judge']}, beside {judgement['against']}: {verdict}"
    counted, flagged = judgement.get("sentences") or [], judgement.get("unsupported")
    if flagged is None:
        return f"{judgement['judge']}: no readable reply"
    borne_out = len({*counted} - {*flagged})
    return f"{judgement['judge']}: {borne_out} of {len(counted)} sentences are borne out"


def _right(sample: Sample) -> list[str]:
    """Return what is known of a right answer, line by line."""
    steps = [f"{number}. {step}" for number, step in enumerate(sample.get("steps", []), 1)]
    names = [f"contains {' or '.join(names)}" for names in sample.get("contains", [])]
    answers = [*sample.get("answers", []), *sample.get("long_answers", [])]
    return [*answers, *names, *(["\n".join(steps)] if steps else [])]
