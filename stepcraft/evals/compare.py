"""Compare methods on the same samples, in one evaluation or before and after a change."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.directory import read_calls
from stepcraft.evals.samples import asked
from stepcraft.evals.summary import Comparison, Summary
from stepcraft.evals.votes import grouped, judged_outcomes, read_judgements

_OUTPUT = ("answer", "steps", "evidence")


@dataclass(frozen=True)
class PairedMethods:
    """A pair of methods, with the samples that both have finished."""

    method: str
    against: str
    comparisons: Sequence[Comparison]
    """The comparison of the two methods on each score, as in a report."""
    samples: Sequence[dict[str, Any]]
    """The samples, including failed ones, each with the `runs` of both methods."""

    def most_different(self, score: str, count: int) -> list[dict[str, Any]]:
        """Return at most `count` samples that differ in a score, largest difference first."""

        def difference(sample: Mapping[str, Any]) -> float:
            ours, theirs = (run["scores"].get(score) for run in sample["runs"])
            return 0.0 if ours is None or theirs is None else abs(ours - theirs)

        return sorted(filter(difference, self.samples), key=difference, reverse=True)[:count]

    def sample(self, id_: str) -> dict[str, Any]:
        """Return the sample with the given id.

        Raises:
            BadInput: There is no sample with this id that both methods have finished.
        """
        by_id = {sample["id"]: sample for sample in self.samples}
        if id_ not in by_id:
            near = difflib.get_close_matches(id_, by_id, 3) or list(by_id)[:3]
            raise BadInput(
                f"there is no sample {id_!r:.80} that both methods have finished; there is "
                f"{', '.join(near)}"
            )
        return by_id[id_]


def paired_methods(
    directories: Mapping[str, Path], summary: Summary, first: str, second: str
) -> PairedMethods:
    """Read two methods' results on the samples that both have finished.

    Args:
        directories: The directories by name.
        summary: The result of `summarise` for these directories.
        first: The name of a method in the summary.
        second: The method to compare it with.

    Raises:
        BadInput: The methods do not exist, or no sample was finished by both.
    """
    names = [method.method for method in summary.methods]
    if first == second or not {first, second} <= {*names}:
        raise BadInput(
            f"{first!r:.80} and {second!r:.80} cannot be compared; name two of the methods in "
            f"{' and '.join(directories)}: {', '.join(names)}"
        )
    comparisons = [it for it in summary.pairs if (it.method, it.against) == (first, second)]
    samples = [
        {**sample, "runs": [ours, theirs]}
        for sample in samples_of(directories, summary)
        if (ours := sample["runs"][first]) and (theirs := sample["runs"][second])
    ]
    if not samples:
        raise BadInput(
            f"no sample is finished by both {first} and {second}; go on with the evaluation"
        )
    return PairedMethods(first, second, comparisons, samples)


def samples_of(directories: Mapping[str, Path], summary: Summary) -> list[dict[str, Any]]:
    """Return each sample with the outputs of all methods, merged across evaluations.

    Args:
        directories: The directories by name.
        summary: The result of `summarise` for these directories.

    Raises:
        BadInput: A directory, or a line in it, is damaged.
    """
    labels = {(each.directory, each.name): each.method for each in summary.methods}
    samples: dict[object, dict[str, Any]] = {}
    for name, directory in directories.items():
        calls = read_calls(directory)
        judged = grouped(read_judgements(directory), itemgetter("method", "id"))
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
