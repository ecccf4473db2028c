"""One HTML page about one run of a graph.

The page is self-contained: it fetches nothing and runs no script, and a content security policy enforces both. The
markup stands in `templates/`; autoescaping makes all text of the run inert.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from stepcraft.errors import BadInput
from stepcraft.report._views import VIEWS, StepTime, cost_tables, counted, seconds
from stepcraft.secrets import redacted
from stepcraft.text.clean import clean
from stepcraft.text.markdown import outside_code

__all__ = ["StepTime", "page"]


def page(method: str, given: Mapping[str, Any], result: Mapping[str, Any], steps: Sequence[StepTime]) -> str:
    """Return the HTML page of a run, without secrets.

    Args:
        method: the name of the graph, as `get_graph` takes it.
        given: the input of the run; settings of its context may stand beside it.
        result: the output of the run.
        steps: when each step began and ended; may be empty.

    Raises:
        BadInput: there is no page for this graph.
    """
    if method not in VIEWS:
        raise BadInput(f"there is no report for {method!r}; there is one for {', '.join(VIEWS)}")
    given, result = redacted(given), redacted(result)
    view = VIEWS[method](given, result)
    style = files(__name__).joinpath("page.css").read_text("utf-8")
    facts = [*view.facts, counted(result["usage"]["calls"], "model call")]
    if steps:
        facts.append(seconds(max(step.ended for step in steps)))
    return _TEMPLATES.get_template(view.template).render(
        title=view.title,
        question=str(given["question"]),
        facts=facts,
        sections=[
            *([("warnings", "Warnings")] if result["warnings"] else []),
            *view.sections,
            ("cost", "Time and tokens"),
        ],
        result=result,
        view=view.data,
        cost=cost_tables(steps, result["usage"]),
        style=Markup(style),  # noqa: S704 - a file of this package
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        version=version("stepcraft"),
    )


def _source(name: str) -> str:
    """Read a template without line breaks and indentation, which would show up between inline elements."""
    text = files(__name__).joinpath("templates", name).read_text("utf-8")
    return "".join(map(str.strip, text.splitlines()))


def _cleaned(value: object) -> object:
    """Remove control characters from text of the run; markup that a template made is left as it is."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _with_code(text: str) -> list[tuple[str, str]]:
    """Split a text into prose, spans and blocks of code, without backticks and fences."""
    pieces: list[tuple[str, str]] = []
    end = 0
    for start, stop in [*outside_code(text), (len(text), len(text))]:
        code = text[end:start]
        if "\n" in code:
            lines = code.splitlines()
            is_closed = lines[-1].strip().startswith(("```", "~~~"))
            pieces.append(("block", "\n".join(lines[1:-1] if is_closed else lines[1:])))
        elif code:
            pieces.append(("span", code.strip("`").strip()))
        pieces.append(("prose", text[start:stop]))
        end = stop
    return pieces


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not re.search(r"[\s\\]", text)


_TEMPLATES = Environment(
    loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, finalize=_cleaned
)
_FILTERS: dict[str, Callable[..., Any]] = {
    "clean": clean,
    "counted": counted,
    "one_line": _one_line,
    "score": "{:.2f}".format,
    "with_code": _with_code,
}
_TESTS: dict[str, Callable[..., bool]] = {"web_address": _is_web_address}
_TEMPLATES.filters.update(_FILTERS)
_TEMPLATES.tests.update(_TESTS)
