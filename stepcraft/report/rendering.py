"""The parts shared by all HTML pages: the frame with its security policy, styles and filters.

A page is self-contained. Its policy allows only the style and, if there is one, the script, both
identified by their hashes, so that nothing is fetched and no external code runs.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from stepcraft import __version__
from stepcraft.progress import counted
from stepcraft.text.clean import clean, one_line
from stepcraft.text.markdown import outside_code

__all__ = ["counted", "rendered", "seconds"]

_HERE = files("stepcraft.report")


def rendered(
    template: str,
    *,
    folder: Traversable = _HERE,
    style: str = "",
    script: str = "",
    **values: object,
) -> str:
    """Return a page made from a template that extends `frame.html.j2`.

    Args:
        template: Its file name.
        folder: The folder that contains `templates`; templates in this package are always found.
        style: CSS to add to the CSS shared by all pages.
        script: The page's JavaScript. Without it, the page's content security policy blocks
            all scripts.
        values: The values that the template shows; the frame uses `title`, `heading`, `facts`,
            `sections` and `warnings`.
    """
    style = (_HERE / "page.css").read_text("utf-8") + style
    policy = ["default-src 'none'", f"style-src '{_hash(style)}'"]
    if script:
        policy += [f"script-src '{_hash(script)}'", "require-trusted-types-for 'script'"]
    policy += ["base-uri 'none'", "form-action 'none'"]
    return (
        _environment(folder)
        .get_template(template)
        .render(
            policy="; ".join(policy),
            style=Markup(style),  # noqa: S704 - a file of the package
            script=Markup(script),  # noqa: S704 - a file of the package
            version=__version__,
            **values,
        )
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _environment(folder: Traversable) -> Environment:
    def source(name: str) -> str:
        # Line breaks and indentation would show up as spaces between inline elements.
        file = folder / "templates" / name
        text = (file if file.is_file() else _HERE / "templates" / name).read_text("utf-8")
        return "".join(map(str.strip, text.splitlines()))

    environment = Environment(
        loader=FunctionLoader(source), autoescape=True, undefined=StrictUndefined, finalize=_cleaned
    )
    environment.filters.update(_FILTERS)
    environment.tests.update(_TESTS)
    return environment


def seconds(value: float) -> str:
    """Format a time in seconds, with enough digits for comparison."""
    return f"{value:.2f} s" if value < 10 else f"{value:,.1f} s"


def _cleaned(value: object) -> object:
    """Remove control characters from the run's text, but keep markup created by a template."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_STRONG = re.compile(r"\*\*(?=\S)([^*\n]{1,200})(?<=\S)\*\*|^#{1,6}[ \t]+([^\n]+)", re.MULTILINE)


def _with_code(text: str) -> list[tuple[str, str]]:
    """Split a text into prose, code, and bold text or headings, without their Markdown."""
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
        plain = start
        for strong in _STRONG.finditer(text, start, stop):
            pieces += [("prose", text[plain : strong.start()]), ("strong", strong[1] or strong[2])]
            plain = strong.end()
        pieces.append(("prose", text[plain:stop]))
        end = stop
    return pieces


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and not re.search(r"[\s\\]", text)
    )


_FILTERS: dict[str, Callable[..., Any]] = {
    "clean": clean,
    "counted": counted,
    "one_line": one_line,
    "score": "{:.2f}".format,
    "with_code": _with_code,
}
_TESTS: dict[str, Callable[..., bool]] = {"web_address": _is_web_address}
