"""Two methods of an evaluation, sample by sample."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepcraft.errors import BadInput
from stepcraft.evals.directory import Outcome, read_configuration, read_outcomes
from stepcraft.evals.summary import Comparison, compare

Pair = tuple[Outcome, Outcome]


@dataclass(frozen=True)
class PairedMethods:
    """Two methods on the samples that both have finished."""

    comparisons: Sequence[Comparison]
    """Each score of the first against that of the second."""
    pairs: Mapping[str, Pair]
    """The outcomes by the id of the sample; those of failed samples, too."""

    def most_different(self, score: str, count: int) -> list[Pair]:
        """Return the pairs that differ in a score, those that differ most first."""
        differences = {
            id_: abs(first["scores"][score] - second["scores"][score])
            for id_, (first, second) in self.pairs.items()
            if score in first["scores"] and score in second["scores"]
        }
        ids = sorted(filter(differences.get, differences), key=lambda id_: -differences[id_])
        return [self.pairs[id_] for id_ in ids[:count]]

    def pair(self, id_: str) -> Pair:
        """Return the pair of a sample.

        Raises:
            BadInput: Not both methods have finished a sample with this id.
        """
        if id_ not in self.pairs:
            near = difflib.get_close_matches(id_, self.pairs, 3) or list(self.pairs)[:3]
            raise BadInput(
                f"there is no sample {id_!r:.80} that both methods have finished; there is "
                f"{', '.join(near)}"
            )
        return self.pairs[id_]


def paired_methods(directory: Path, first: str, second: str) -> PairedMethods:
    """Read what two methods made of the samples of an evaluation.

    Raises:
        BadInput: It is no directory of an evaluation, it has no such methods, or no sample is
            finished by both.
    """
    names = list(read_configuration(directory)["methods"])
    for name in (first, second):
        if name not in names or first == second:
            raise BadInput(
                f"{first!r:.80} and {second!r:.80} cannot be compared; name two of the methods in "
                f"{directory}: {', '.join(names)}"
            )
    outcomes = {(each["method"], each["id"]): each for each in read_outcomes(directory)}
    pairs = {
        id_: (outcome, outcomes[second, id_])
        for (method, id_), outcome in outcomes.items()
        if method == first and (second, id_) in outcomes
    }
    if not pairs:
        raise BadInput(
            f"no sample in {directory} is finished by both {first} and {second}; go on with the "
            "evaluation"
        )
    ours, theirs = zip(*pairs.values(), strict=True)
    return PairedMethods(compare([(ours, theirs)]), pairs)
