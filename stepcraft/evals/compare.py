"""Compare methods on the same samples, in one evaluation or before and after a change."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.directory import read_calls
from stepcraft.evals.samples import asked
from stepcraft.evals.summary import Summary
from stepcraft.evals.votes import grouped, judged_outcomes, read_judgements

_OUTPUT = ("answer", "steps", "evidence")


def paired_samples(
    directories: Mapping[str, Path], summary: Summary, *pair: str
) -> list[dict[str, Any]]:
    """Return the samples that two methods have finished, each with the `runs` of both.

    Args:
        directories: The directories by name.
        summary: The result of `summarise` for these directories.
        pair: The names of two methods in the summary.

    Raises:
        BadInput: The methods do not exist, or no sample was finished by both.
    """
    names = [method.method for method in summary.methods]
    if len({*pair} & {*names}) < 2:
        raise BadInput(
            f"{' and '.join(map(repr, pair))} cannot be compared; name two of the methods in "
            f"{' and '.join(directories)}: {', '.join(names)}"
        )
    runs = [(each, [each["runs"][it] for it in pair]) for each in samples_of(directories, summary)]
    samples = [{**sample, "runs": both} for sample, both in runs if all(both)]
    if not samples:
        raise BadInput(
            f"no sample is finished by both {' and '.join(pair)}; go on with the evaluation"
        )
    return samples


def most_different(
    samples: Sequence[dict[str, Any]], score: str, count: int
) -> list[dict[str, Any]]:
    """Return at most `count` samples that differ in a score, largest difference first."""

    def difference(sample: Mapping[str, Any]) -> float:
        ours, theirs = (run["scores"].get(score) for run in sample["runs"])
        return 0.0 if ours is None or theirs is None else abs(ours - theirs)

    return sorted(filter(difference, samples), key=difference, reverse=True)[:count]


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
