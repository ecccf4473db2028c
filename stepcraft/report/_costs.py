"""The time and tokens used by each node in a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepcraft.llm.usage import NodeUsage, Usage
from stepcraft.report.rendering import seconds


@dataclass(frozen=True)
class StepTime:
    """The start and end of a step, in seconds from the start of the run."""

    node: str
    began: float
    ended: float


def rows(steps: Sequence[StepTime], usage: Usage) -> list[list[str]]:
    """Return a row of cells for each node, followed by one for the whole run.

    A row has the node's name, the number of times it ran, its total time, its model calls, and its
    input and output tokens.
    """
    return [
        *(
            _row(
                node,
                [step for step in steps if step.node == node],
                sum(step.ended - step.began for step in steps if step.node == node),
                usage["nodes"].get(node),
            )
            for node in dict.fromkeys([*(step.node for step in steps), *usage["nodes"]])
        ),
        _row("Total", steps, _end(steps), usage),
    ]


def _row(
    name: str, steps: Sequence[StepTime], time: float, usage: NodeUsage | Usage | None
) -> list[str]:
    times = [f"{len(steps):,}", seconds(time)] if steps else ["", ""]
    counts = [usage["calls"], usage["input_tokens"], usage["output_tokens"]] if usage else [""] * 3
    return [name, *times, *(f"{count:,}" if isinstance(count, int) else "" for count in counts)]


def bars(steps: Sequence[StepTime]) -> list[Mapping[str, str]]:
    """Return the bar for each step in the timeline, with position and width in percent."""
    percent = 100 / (_end(steps) or 1)
    return [
        {
            "node": step.node,
            "began": seconds(step.began),
            "ended": seconds(step.ended),
            "x": f"{percent * step.began:.2f}",
            "width": f"{max(percent * (step.ended - step.began), 0.5):.2f}",
        }
        for step in steps
    ]


def _end(steps: Sequence[StepTime]) -> float:
    return max((step.ended for step in steps), default=0.0)
