"""Compare human labels with the verdicts of judges or other scores for the same answers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.stats import Interval, kappa, share
from stepcraft.evals.votes import judged_outcomes, read_judgements, verdicts
from stepcraft.records import records

_LABELS = {
    **dict.fromkeys(("right", "1", "yes", "true"), "right"),
    **dict.fromkeys(("wrong", "0", "no", "false"), "wrong"),
    **{verdict: verdict for verdict in ("win", "loss", "tie")},
}
_Answer = tuple[str, str, str]
"""The method, the method it is compared with (or "" if none), and the sample."""


def agreements(
    directory: Path, labels: Path, score: str | None = None
) -> Iterator[tuple[str, Interval, Interval]]:
    """Yield each judge or score with its rate of agreement with the labels and Cohen's kappa.

    Args:
        directory: The directory of the evaluation.
        labels: A CSV file with the columns `id`, `method`, `label`, and for votes `against`.
        score: The score to compare, or None for all. A score of at least 0.5 counts as right.

    Raises:
        BadInput: The file cannot be read, or none of its labels match an answer in the evaluation.
    """
    outcomes = {(each["method"], each["id"]) for each in judged_outcomes(directory)}
    labelled: dict[_Answer, str] = {}
    for record in records(labels):
        key, label = _label(record)
        if (key[0], key[2]) not in outcomes:
            raise BadInput(
                f"line {record.line} of the labels is of {key[0]!r:.80} and {key[2]!r:.80}, which "
                f"{directory} does not have; write a method and an id as its report does"
            )
        labelled[key] = label
    is_labelled = False
    for rater, ratings in _ratings(directory, score).items():
        pairs = [(label, ratings[key]) for key, label in labelled.items() if key in ratings]
        if pairs:
            is_labelled = True
            equal = sum(ours == theirs for ours, theirs in pairs)
            yield f"{rater}, {len(pairs):,} labels", share(equal, len(pairs)), kappa(pairs)
    if not is_labelled:
        raise BadInput(
            f"no judge and no score in {directory} is of the answers that {labels} labels; check "
            "its columns id, method and against"
        )


def _label(record: Any) -> tuple[_Answer, str]:  # noqa: ANN401 - a record of any file
    fields: Mapping[str, Any] = record.values or {}
    label = _LABELS.get(str(fields.get("label", "")).strip().casefold())
    if not label or not fields.get("id") or not fields.get("method"):
        raise BadInput(
            f"line {record.line} of the labels cannot be used; write id, method and label, which "
            "is right, wrong, win, loss or tie"
        )
    return (str(fields["method"]), str(fields.get("against") or ""), str(fields["id"])), label


def _ratings(directory: Path, score: str | None) -> dict[str, dict[_Answer, str]]:
    ratings: dict[str, dict[_Answer, str]] = {}
    for outcome in judged_outcomes(directory):
        for name, value in outcome["scores"].items():
            if score in (None, name):
                key = outcome["method"], "", outcome["id"]
                ratings.setdefault(name, {})[key] = "right" if value >= 0.5 else "wrong"
    if not score:
        for (judge, *key), verdict in verdicts(read_judgements(directory)).items():
            method, against, id_ = key
            ratings.setdefault(f"votes of {judge}", {})[method, against, id_] = verdict
    return ratings
