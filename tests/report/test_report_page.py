"""The page of a run in a browser: it runs and fetches nothing, and fits a small screen."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from stepcraft.report import page
from tests.report.reports import HOSTILE, QUESTION, RUNS, STEPS, poisoned, rat
from tests.servers.chromium import Shown, listener, shown

pytestmark = pytest.mark.usefixtures("browser")


def opened(tmp_path: Path, text: str) -> Shown:
    file = tmp_path / "page.html"
    file.write_text(text, "utf-8")
    return shown(file, tmp_path / "profile")


@pytest.mark.parametrize(("graph", "inputs", "run"), RUNS)
def test_nothing_runs_and_nothing_is_fetched(
    tmp_path: Path, graph: str, inputs: Any, run: Any
) -> None:
    with listener() as (port, asked):
        poison = HOSTILE.replace("PORT", str(port))
        loaded = opened(
            tmp_path, page(graph, poisoned(inputs, poison), poisoned(run(), poison), STEPS)
        )
    assert (asked, loaded.console) == ([], [])
    assert "<title>owned" not in loaded.dom
    assert "&lt;script&gt;console.error(document.title='owned')&lt;/script&gt;" in loaded.dom


def raw(port: int) -> str:
    """Return the poison as it would stand in a page without escaping."""
    return HOSTILE.replace("PORT", str(port)).encode(errors="replace").decode()


def test_the_poison_works_where_it_is_not_escaped(tmp_path: Path) -> None:
    with listener() as (port, asked):
        loaded = opened(tmp_path, f"<!doctype html><p>{raw(port)}")
    assert {"/image", "/sheet", "/frame", "/style"} <= set(asked)
    assert len(loaded.console) == 1
    assert "<title>owned" in loaded.dom


def test_even_what_is_not_escaped_runs_and_fetches_nothing(tmp_path: Path) -> None:
    text = page("rat", QUESTION, rat(), STEPS)
    with listener() as (port, asked):
        loaded = opened(tmp_path, text.replace("<main>", f"<main>{raw(port)}"))
    assert asked == []
    assert "<title>owned" not in loaded.dom
    assert "Content Security Policy" in "".join(loaded.console)


@pytest.mark.parametrize(("graph", "inputs", "run"), RUNS)
def test_it_fits_a_small_screen(tmp_path: Path, graph: str, inputs: Any, run: Any) -> None:
    long = "https://example.org/" + "x" * 300
    inner = page(graph, poisoned(inputs, long), poisoned(run(), long), STEPS).replace(
        "<details", "<details open"
    )
    document = "document.querySelector('iframe').contentDocument"
    frame = (
        f'<iframe width="400" height="800" srcdoc="{html.escape(inner)}"'
        f' onload="document.title = {document}.documentElement.scrollWidth"></iframe>'
    )
    loaded = opened(tmp_path, f"<!doctype html><title>?</title>{frame}")
    assert int(re.findall(r"<title>(\d+)", loaded.dom)[0]) <= 400
