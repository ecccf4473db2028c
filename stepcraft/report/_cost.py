"""What a run took: time step by step, model calls and tokens by node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepcraft.llm.budget import NodeUsage, Usage
from stepcraft.report._html import NOTHING, Html, element, section

_ROWS_SHOWN = 24
"""A longer timeline is folded away."""


@dataclass(frozen=True)
class StepTime:
    """When one step of a run began and ended, in seconds from the start of the run."""

    node: str
    began: float
    ended: float


def elapsed(steps: Sequence[StepTime]) -> float:
    """Until the last step ended."""
    return max((step.ended for step in steps), default=0.0)


def seconds(given: float) -> str:
    """Seconds, exact enough to compare."""
    return f"{given:.2f} s" if given < 10 else f"{given:,.1f} s"


def cost(steps: Sequence[StepTime], usage: Usage) -> Html:
    """The table by node, and the timeline."""
    return section("cost", "Time and tokens", _scrolled(_table(steps, usage)), _timeline(steps))


def _scrolled(table: Html) -> Html:
    return element("div", table, class_="wide", role="region", aria_label="Time and tokens", tabindex="0")


def _table(steps: Sequence[StepTime], usage: Usage) -> Html:
    nodes = list(dict.fromkeys([*(step.node for step in steps), *usage["nodes"]]))
    titles = ("Node", "Runs", "Time", "Model calls", "Tokens read", "Tokens written")
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    rows = [
        _row(node, [step for step in steps if step.node == node], usage["nodes"].get(node)) for node in nodes
    ]
    total = _cells("In all", len(steps), elapsed(steps), usage)
    thrown = [_cells("of it thrown away", None, None, usage["discarded"])] if "discarded" in usage else []
    caption = element(
        "caption",
        "Steps that ran side by side all count at their node; the time in all is that of the clock.",
    )
    return element(
        "table", caption, element("thead", head), element("tbody", *rows), element("tfoot", total, *thrown)
    )


def _row(node: str, steps: Sequence[StepTime], used: NodeUsage | None) -> Html:
    busy = sum(step.ended - step.began for step in steps)
    return _cells(node, len(steps) or None, busy if steps else None, used)


def _cells(
    name: str, runs: int | None, busy: float | None, used: Mapping[str, object] | NodeUsage | None
) -> Html:
    counts = [runs, *(used[key] if used else None for key in ("calls", "input_tokens", "output_tokens"))]
    shown = ["" if count is None else f"{count:,}" for count in counts]
    shown.insert(1, "" if busy is None else seconds(busy))
    return element("tr", element("th", name, scope="row"), *(element("td", text) for text in shown))


def _timeline(steps: Sequence[StepTime]) -> Html:
    if not steps:
        return NOTHING
    whole = elapsed(steps) or 1.0
    rows = [_bar(step, whole) for step in steps]
    titles = (element("th", title, scope="col") for title in ("Node", "From", "To", "Course"))
    table = element(
        "table", element("thead", element("tr", *titles)), element("tbody", *rows), class_="timeline"
    )
    unfolded = {"open": ""} if len(steps) <= _ROWS_SHOWN else {}
    return element("details", element("summary", "Step by step"), table, **unfolded)


def _bar(step: StepTime, whole: float) -> Html:
    start, width = 100 * step.began / whole, 100 * (step.ended - step.began) / whole
    bar = element("rect", x=f"{start:.2f}", y="0", width=f"{max(width, 0.5):.2f}", height="8")
    drawn = element("svg", bar, viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")
    times = (element("td", seconds(given)) for given in (step.began, step.ended))
    return element("tr", element("th", step.node, scope="row"), *times, element("td", drawn, class_="course"))
