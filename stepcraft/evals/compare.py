"""Two methods sample by sample: of one evaluation, or of two, before and after a change."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepcraft.errors import BadInput
from stepcraft.evals.directory import Outcome
from stepcraft.evals.samples import Sample, asked
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


def paired_methods(directory: Path, summary: Summary, first: str, second: str) -> PairedMethods:
    """Read what two methods made of the samples of an evaluation.

    Args:
        directory: The directory.
        summary: What `summarise` returns of it.
        first: The name of a method.
        second: The name of the method to compare it with.

    Raises:
        BadInput: It has no such methods, or no sample is finished by both.
    """
    names = [method.method for method in summary.methods]
    if first == second or not {first, second} <= {*names}:
        raise BadInput(
            f"{first!r:.80} and {second!r:.80} cannot be compared; name two of the methods in "
            f"{directory}: {', '.join(names)}"
        )
    return _paired(
        summary, (first, directory, first), (second, directory, second), lambda sample: sample["id"]
    )


def changed_methods(directories: Mapping[str, Path], summary: Summary) -> list[PairedMethods]:
    """Read what the methods of two evaluations made of the questions that both have.

    Args:
        directories: The directories, the one before the change first.
        summary: What `summarise` returns of them.

    Raises:
        BadInput: No method of the second can be compared with one of the first.
    """
    sides = {it.method: (it.method, directories[it.directory], it.name) for it in summary.methods}
    home = {it.method: it.directory for it in summary.methods}
    names = {
        (it.method, it.against): None
        for it in summary.comparisons
        if home[it.method] != home[it.against]
    }
    if not names:
        raise BadInput(
            f"{' and '.join(directories)} have no scores of the same questions; run the same "
            "questions into both"
        )
    return [_paired(summary, sides[ours], sides[theirs], asked) for ours, theirs in names]


def _paired(
    summary: Summary,
    ours: tuple[str, Path, str],
    theirs: tuple[str, Path, str],
    key_of: Callable[[Sample], object],
) -> PairedMethods:
    (label, directory, name), (other_label, other_directory, other) = ours, theirs
    others = {
        key_of(each["sample"]): each
        for each in judged_outcomes(other_directory)
        if each["method"] == other
    }
    pairs = {
        each["id"]: (each, others[key_of(each["sample"])])
        for each in judged_outcomes(directory)
        if each["method"] == name and key_of(each["sample"]) in others
    }
    if not pairs:
        raise BadInput(
            f"no sample is finished by both {label} and {other_label}; go on with the evaluation"
        )
    comparisons = [it for it in summary.pairs if (it.method, it.against) == (label, other_label)]
    return PairedMethods(label, other_label, comparisons, pairs)
