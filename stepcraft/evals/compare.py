"""Two methods sample by sample: of one evaluation, or of two, before and after a change."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepcraft.errors import BadInput
from stepcraft.evals.directory import Outcome
from stepcraft.evals.samples import asked
from stepcraft.evals.summary import Comparison, Summary
from stepcraft.evals.votes import judged_outcomes

Pair = tuple[Outcome, Outcome]


@dataclass(frozen=True)
class PairedMethods:
    """Two methods on the samples that both have finished."""

    method: str
    against: str
    comparisons: Sequence[Comparison]
    """Each score of the first against that of the second, as in a report."""
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


def paired_methods(
    directories: Mapping[str, Path], summary: Summary, first: str, second: str
) -> PairedMethods:
    """Read what two methods made of the samples that both have.

    Args:
        directories: The directories by name.
        summary: What `summarise` returns of them.
        first: What the summary calls a method.
        second: The method to compare it with.

    Raises:
        BadInput: There are no such methods, or no sample is finished by both.
    """
    methods = {method.method: method for method in summary.methods}
    if first == second or not {first, second} <= methods.keys():
        raise BadInput(
            f"{first!r:.80} and {second!r:.80} cannot be compared; name two of the methods in "
            f"{' and '.join(directories)}: {', '.join(methods)}"
        )
    is_one = methods[first].directory == methods[second].directory
    ours, theirs = (
        {
            each["id"] if is_one else asked(each["sample"]): each
            for each in judged_outcomes(directories[method.directory])
            if each["method"] == method.name
        }
        for method in (methods[first], methods[second])
    )
    pairs = {each["id"]: (each, theirs[key]) for key, each in ours.items() if key in theirs}
    if not pairs:
        raise BadInput(
            f"no sample is finished by both {first} and {second}; go on with the evaluation"
        )
    comparisons = [it for it in summary.pairs if (it.method, it.against) == (first, second)]
    return PairedMethods(first, second, comparisons, pairs)
