"""Procedures as a benchmark of AAG: the longest are to be written, and the rest is the memory (AAG §4.1)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evals.benchmarks.derived import derived
from stepcraft.evals.samples import Sample

Split = Literal["val", "test"]
SPLITS: tuple[tuple[Split, str], ...] = (
    ("val", "tenth of middle length"),
    ("test", "longest fifth"),
)
"""The splits whose procedures are asked for, each with what it is in words."""


class Read(TypedDict):
    """A procedure of a benchmark's file."""

    id: str
    output: str
    input: str
    steps: list[str]
    answer: NotRequired[str]
    """The result that its last step gives."""


@dataclass(frozen=True)
class Splits:
    """The splits of a file of procedures, sorted by the length of their steps, as the paper splits its three sets.

    The longest fifth is the test set, the tenth before it the validation set, and the rest the memory: 56, 27 and 193
    procedures of LCStep, 2,000, 1,000 and 7,000 of RecipeNLG, 54, 27 and 189 of CHAMP.
    """

    name: str
    """The benchmark, for messages."""
    read: Callable[[Path], Iterable[Read]]

    def samples(self, split: Split, file: Path) -> list[Sample]:
        """The procedures of a split as questions for their outputs.

        Raises:
            BadInput: The file cannot be read, or has fewer than ten procedures.
        """
        _, val, test = self._split(file)
        samples: list[Sample] = []
        for one in {"val": val, "test": test}[split]:
            sample = Sample(
                id=one["id"], question=one["output"], resources=one["input"], steps=one["steps"]
            )
            if "answer" in one:
                sample["answers"] = [one["answer"]]
            samples.append(sample)
        return samples

    def memory(self, file: Path) -> dict[str, Any]:
        """The setting by which methods use the rest as their memory.

        Raises:
            BadInput: As for `samples`, or the cache cannot be written.
        """
        rest = [
            {name: one[name] for name in ("output", "input", "steps")}
            for one in self._split(file)[0]
        ]
        return {"memory": str(derived(f"{file.stem}-memory", rest))}

    def _split(self, file: Path) -> tuple[list[Read], list[Read], list[Read]]:
        found = sorted(self.read(file), key=lambda one: sum(map(len, one["steps"])))
        if len(found) < 10:
            raise BadInput(
                f"{file} has {len(found)} procedures, and {self.name} is split into a memory, a validation and a test "
                "set; name a file with at least 10"
            )
        count = len(found)
        test, val = round(count * 0.2), round(count * 0.1)
        return (
            found[: count - test - val],
            found[count - test - val : count - test],
            found[count - test :],
        )
