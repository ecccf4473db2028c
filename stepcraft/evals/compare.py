"""Two methods of an evaluation, sample by sample."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepcraft.errors import BadInput
from stepcraft.evals.directory import Outcome, read_configuration, read_outcomes
from stepcraft.evals.summary import Comparison, compare


@dataclass(frozen=True)
class Pair:
    """What two methods made of a sample."""

    first: Outcome
    second: Outcome

    def difference(self, score: str) -> float | None:
        """How much better the first is; None where one of them has no such score."""
        ours, theirs = (one["scores"].get(score) for one in (self.first, self.second))
        return None if ours is None or theirs is None else ours - theirs


@dataclass(frozen=True)
class PairedMethods:
    """Two methods on the samples that both have finished."""

    comparisons: Sequence[Comparison]
    """Each score of the first against that of the second."""
    pairs: Mapping[str, Pair]
    """The outcomes by the id of the sample; those of failed samples, too."""

    def most_different(self, score: str, count: int) -> list[Pair]:
        """The pairs that differ in a score, those that differ most first."""
        differing = [pair for pair in self.pairs.values() if pair.difference(score)]
        return sorted(differing, key=lambda pair: -abs(pair.difference(score) or 0))[:count]

    def pair(self, id_: str) -> Pair:
        """The pair of a sample.

        Raises:
            BadInput: Not both methods have finished a sample with this id.
        """
        if id_ not in self.pairs:
            near = difflib.get_close_matches(id_, self.pairs, 3) or list(self.pairs)[:3]
            raise BadInput(
                f"there is no sample {id_!r:.80} that both methods have finished; there is {', '.join(near)}"
            )
        return self.pairs[id_]


def paired_methods(directory: Path, first: str, second: str) -> PairedMethods:
    """Read what two methods made of the samples of an evaluation.

    Args:
        directory: The directory of the evaluation.
        first: The name of a method, as the evaluation was started with it.
        second: The name of another.

    Raises:
        BadInput: It is no directory of an evaluation, it has no such methods, or no sample is finished by both.
    """
    names = list(read_configuration(directory)["methods"])
    for name in (first, second):
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}"
            raise BadInput(f"the evaluation in {directory} has no method {name!r:.80}; {hint}")
    if first == second:
        raise BadInput(f"{first!r} cannot be compared with itself; name two of {', '.join(names)}")
    outcomes = [one for one in read_outcomes(directory) if one["method"] in {first, second}]
    ours, theirs = (
        {one["id"]: one for one in outcomes if one["method"] == name} for name in (first, second)
    )
    pairs = {id_: Pair(one, theirs[id_]) for id_, one in ours.items() if id_ in theirs}
    if not pairs:
        raise BadInput(
            f"no sample in {directory} is finished by both {first} and {second}; go on with the evaluation"
        )
    return PairedMethods(
        compare(
            [([pair.first for pair in pairs.values()], [pair.second for pair in pairs.values()])]
        ),
        pairs,
    )
