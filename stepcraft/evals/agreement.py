"""Compare human labels with the verdicts of judges or other scores for the same answers."""

from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, model_validator

from stepcraft.errors import BadInput
from stepcraft.evals.samples import fields_of
from stepcraft.evals.stats import Interval, kappa, share
from stepcraft.evals.summary import summarise
from stepcraft.evals.votes import ordered, verdicts
from stepcraft.records import records

_Answer = tuple[str, str, str]
"""The method, the method it is compared with (or "" if none), and the sample."""


class _Label(BaseModel):
    id: str
    method: str
    against: str = ""
    label: Literal["right", "wrong", "win", "loss", "tie"]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.against) == (self.label in {"right", "wrong"}):
            raise ValueError("win, loss and tie need `against`, right and wrong have none")
        return self


def agreements(directory: Path, labels: Path) -> Iterator[tuple[str, Interval, Interval]]:
    """Yield each judge or score with its rate of agreement with the labels and Cohen's kappa.

    Args:
        directory: The directory of the evaluation.
        labels: A CSV file with the columns `id`, `method`, `label` and, for votes, `against`. A
            score of at least 0.5 counts as right.

    Raises:
        BadInput: A label is not for an answer in the evaluation, or none can be compared.
        ValidationError: A row cannot be read.
    """
    answers = set[tuple[str, str]]()
    ratings: dict[str, dict[_Answer, str]] = {}
    methods = summarise(directory).methods
    for each in methods:
        for outcome in each.outcomes:
            answers.add((each.name, outcome["id"]))
            for name, value in outcome["scores"].items():
                key = each.name, "", outcome["id"]
                ratings.setdefault(name, {})[key] = "right" if value >= 0.5 else "wrong"
    votes = verdicts(judgement for each in methods for judgement in each.judgements)
    for (judge, *pair, id_), verdict in votes.items():
        ratings.setdefault(f"votes of {judge}", {})[pair[0], pair[1], id_] = verdict
    labelled = _labelled(labels, answers, directory)
    pairs_by_rater = {
        rater: pairs
        for rater, rated in ratings.items()
        if (pairs := [(label, rated[key]) for key, label in labelled.items() if key in rated])
    }
    if not pairs_by_rater:
        options = next((f" --only vote --against {it}" for _, it, _ in labelled if it), "")
        raise BadInput(
            f"no judge and no score in {directory} is of the answers that {labels} labels; have "
            f"them judged: `stepcraft eval judge {directory} --judge MODEL{options}`"
        )
    kinds = Counter(bool(against) for _, against, _ in labelled)
    for rater, pairs in pairs_by_rater.items():
        agreed = share(sum(ours == theirs for ours, theirs in pairs), len(pairs))
        total = kinds[any(against for _, against, _ in ratings[rater])]
        of_all = f" of {total:,}" if len(pairs) < total else ""
        yield f"{rater}, {len(pairs):,}{of_all} labels", agreed, kappa(pairs)


def _labelled(
    labels: Path, answers: Container[tuple[str, str]], directory: Path
) -> dict[_Answer, str]:
    """Return the labels; for votes, the two methods are in alphabetical order."""
    labelled: dict[_Answer, str] = {}
    for record in records(labels):
        row = _Label.model_validate(fields_of(record, labels))
        if (row.method, row.id) not in answers:
            raise BadInput(
                f"line {record.line} of the labels is of {row.method!r:.80} and {row.id!r:.80}, "
                f"which {directory} does not have; write a method and an id as its report does"
            )
        method, against, label = row.method, row.against, str(row.label)
        if against:
            method, against, label = ordered(method, against, label)
        if labelled.setdefault((method, against, row.id), label) != label:
            raise BadInput(f"line {record.line} of the labels contradicts an earlier one")
    return labelled
