"""One HTML page about one run of a graph.

The page is self-contained: it fetches nothing and runs no script, and a content security policy enforces both. The
markup stands in `templates/`; autoescaping makes all text of the run inert.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.report._views import VIEWS, StepTime, cost_tables
from stepcraft.report.rendering import counted, rendered, seconds
from stepcraft.secrets import redacted

__all__ = ["StepTime", "page"]


def page(
    method: str,
    given: Mapping[str, Any],
    result: Mapping[str, Any],
    steps: Sequence[StepTime],
    *,
    trace_id: str = "",
) -> str:
    """Return the HTML page of a run, without secrets.

    Args:
        method: the name of the graph, as `get_graph` takes it.
        given: the input of the run; settings of its context may stand beside it.
        result: the output of the run.
        steps: when each step began and ended; may be empty.
        trace_id: the id of its trace in LangSmith; "" for none.

    Raises:
        BadInput: there is no page for this graph.
    """
    if method not in VIEWS:
        raise BadInput(f"there is no report for {method!r}; there is one for {', '.join(VIEWS)}")
    given, result = redacted(given), redacted(result)
    view = VIEWS[method](given, result)
    facts = [*view.facts, counted(result["usage"]["calls"], "model call")]
    if steps:
        facts.append(seconds(max(step.ended for step in steps)))
    if trace_id:
        facts.append(f"trace {trace_id}")
    return rendered(
        view.template,
        title=view.title,
        heading=str(given["question"]),
        facts=facts,
        sections=[
            *([("warnings", "Warnings")] if result["warnings"] else []),
            *view.sections,
            ("cost", "Time and tokens"),
        ],
        warnings=result["warnings"],
        result=result,
        view=view.data,
        cost=cost_tables(steps, result["usage"]),
    )
