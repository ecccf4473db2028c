"""Compare methods on the same samples, in one evaluation or before and after a change."""

from operator import itemgetter
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.directory import read_calls
from stepcraft.evals.samples import asked
from stepcraft.evals.summary import Summary
from stepcraft.evals.votes import grouped

_OUTPUT = ("answer", "steps", "evidence")
_OUTCOME = ("scores", "usage", "seconds", "warnings", "error")


def paired_samples(summary: Summary, *pair: str) -> list[dict[str, Any]]:
    """Return the samples that two methods have finished, each with the `runs` of both.

    Raises:
        BadInput: The methods do not exist.
    """
    names = [method.method for method in summary.methods]
    if len({*pair} & {*names}) < 2:
        raise BadInput(
            f"{' and '.join(map(repr, pair))} cannot be compared; name two of {', '.join(names)}"
        )
    samples = samples_of(summary)
    for sample in samples:
        sample["runs"] = [sample["runs"][name] for name in pair]
    return [sample for sample in samples if all(sample["runs"])]


def samples_of(summary: Summary) -> list[dict[str, Any]]:
    """Return each sample with the outputs of all methods, merged across evaluations.

    Raises:
        BadInput: A line of the calls is damaged.
    """
    calls = {name: read_calls(directory) for name, directory in summary.directories.items()}
    names = [method.method for method in summary.methods]
    samples: dict[object, dict[str, Any]] = {}
    for method in summary.methods:
        judged = grouped(method.judgements, itemgetter("id"))
        for outcome in method.outcomes:
            sample, id_ = outcome["sample"], outcome["id"]
            place = (asked(sample), "" if len(calls) > 1 else id_)
            entry = samples.setdefault(place, {**sample, "runs": dict.fromkeys(names)})
            entry["runs"][method.method] = {
                **{part: outcome["output"].get(part) for part in _OUTPUT},
                **{part: outcome.get(part) for part in _OUTCOME},
                "judged": judged.get(id_, []),
                "calls": calls[method.directory].get((method.name, id_), []),
            }
    return list(samples.values())
