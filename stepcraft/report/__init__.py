"""A run as one web page that stands alone: it asks no host for anything and runs no script."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.report import _aag, _rat, _rpg
from stepcraft.report._cost import StepTime, cost, elapsed, seconds
from stepcraft.report._html import Html, element, joined, listed, phrase
from stepcraft.report._parts import counted, warned
from stepcraft.text.clean import clean

__all__ = ["StepTime", "check_reported", "page"]

_METHODS = {"rat": _rat, "aag": _aag, "rpg": _rpg}


def check_reported(method: str) -> None:
    """Nothing, if there is a page for runs of this graph.

    Raises:
        BadInput: there is none.
    """
    if method not in _METHODS:
        raise BadInput(f"there is no report for {method!r}; there is one for {', '.join(_METHODS)}")


def page(method: str, given: Mapping[str, Any], result: Mapping[str, Any], steps: Sequence[StepTime]) -> str:
    """The page on a run: what the method was given, what came of it, and when its steps ran.

    Raises:
        BadInput: there is no report for this method.
    """
    check_reported(method)
    room = _METHODS[method]
    parts = [
        *([("warnings", "Warnings", warned(result["warnings"]))] if result["warnings"] else []),
        *room.sections(given, result),
        ("cost", "Time and tokens", cost(steps, result["usage"])),
    ]
    question = str(given["question"])
    facts = [*room.facts(result), counted(result["usage"]["calls"], "model call"), *_took(steps)]
    body = element("body", _header(room.TITLE, question, facts, parts), _main(parts), _footer())
    return f"<!doctype html>\n{element('html', _head(question), body, lang='en').source}\n"


def _took(steps: Sequence[StepTime]) -> list[str]:
    return [seconds(elapsed(steps))] if steps else []


def _head(question: str) -> Html:
    style = files("stepcraft.report").joinpath("page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    fixed = f"""
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
"""
    title = element("title", f"{' '.join(clean(question).split())[:100]} · Stepcraft")
    return element("head", Html(fixed), title, Html(f"\n<style>{style}</style>\n"))


def _header(method: str, question: str, facts: Sequence[str], parts: Sequence[tuple[str, str, Html]]) -> Html:
    leads = listed(element("a", title, href=f"#{name}") for name, title, _ in parts)
    return element(
        "header",
        element("p", f"Stepcraft · {method}", class_="method"),
        phrase(question, "h1"),
        listed(facts, class_="facts"),
        element("nav", leads, aria_label="Parts of this page"),
    )


def _main(parts: Sequence[tuple[str, str, Html]]) -> Html:
    return element("main", joined(part for _, _, part in parts))


def _footer() -> Html:
    return element("footer", element("p", f"Made by stepcraft {version('stepcraft')}."))
