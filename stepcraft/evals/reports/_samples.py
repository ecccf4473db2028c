"""The samples on an evaluation's page, as compressed JSON that its script unpacks."""

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepcraft.evals.directory import read_calls
from stepcraft.evals.samples import asked
from stepcraft.evals.votes import Judgement, judged_outcomes, read_judgements
from stepcraft.text.clean import clean

CHARACTERS = 4_000
"""Longer texts are cut on the page."""
SAMPLES = 5_000
"""More samples are left out of the page, so that a browser opens it at once."""
_OUTPUT = ("answer", "steps", "evidence")


def samples_of(
    directories: Mapping[str, Path], labels: Mapping[tuple[str, str], str]
) -> list[dict[str, Any]]:
    """Return the samples with the outputs of all methods; a sample of several evaluations is one.

    Args:
        directories: The directories by name.
        labels: What the page calls a method of a directory.

    Raises:
        BadInput: A directory or a line in it is damaged.
    """
    samples: dict[object, dict[str, Any]] = {}
    for name, directory in directories.items():
        calls = read_calls(directory)
        judged: dict[tuple[str, str], list[Judgement]] = {}
        for judgement in read_judgements(directory):
            key = judgement["method"], judgement["id"]
            judged.setdefault(key, []).append(judgement)
        for outcome in judged_outcomes(directory):
            key, sample = (outcome["method"], outcome["id"]), outcome["sample"]
            place = (asked(sample), "" if len(directories) > 1 else key[1])
            entry = samples.setdefault(place, {**sample, "runs": dict.fromkeys(labels.values())})
            entry["runs"][labels[name, key[0]]] = {
                **{part: outcome["output"].get(part) for part in _OUTPUT},
                **{part: outcome.get(part) for part in ("scores", "usage", "seconds", "warnings")},
                "error": outcome["error"],
                "judged": judged.get(key, []),
                "calls": calls.get(key, []),
            }
    return list(samples.values())


def packed(samples: list[dict[str, Any]]) -> str:
    """Return samples as base64 of compressed JSON, with their texts cut and cleaned."""
    data = json.dumps(_cut(samples[:SAMPLES]), ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(data.encode("utf-8", "replace"), mtime=0)).decode()


def _cut(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        text = clean(value).strip()
        return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}…"
    if isinstance(value, Mapping):
        return {clean(key): _cut(part) for key, part in value.items()}
    return [_cut(part) for part in value] if isinstance(value, list | tuple) else value
