"""Graphs and methods of other distributions, and of one that is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stepcraft import BadInput, get_graph
from stepcraft.evals.methods import Method, method_names, method_of, read_methods
from stepcraft.graphs.registry import GraphInfo, context_of, graph_names
from tests.cli.shell import run
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION

PLAIN = GraphInfo(
    "stepcraft.graphs.baselines:build_direct",
    "stepcraft.contexts.baselines:DirectContext",
    "For a plain reply",
)
NONE = "no graph"


def warm(name: str, settings: dict[str, str], fields: dict[str, str]) -> Method:
    return method_of("plain", name, {"temperature": "1", **settings}, fields)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with graphs and a method stands on the path."""
    info = tmp_path / "site/some_graphs-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-graphs\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[stepcraft.graphs]\nplain = {__name__}:PLAIN\nwrong = {__name__}:NONE\n"
        f"[stepcraft.methods]\nwarm = {__name__}:warm\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")


@pytest.mark.usefixtures("installed")
def test_a_graph_of_another_distribution_is_built_by_its_name() -> None:
    graph = get_graph("plain", model=ScriptedModel(["Haldruvin."]))
    assert graph.invoke(QUESTION)["answer"] == "Haldruvin."
    assert context_of("plain").__name__ == "DirectContext"
    assert "plain" in graph_names()
    assert "begin" in run("draw plain").stdout
    with pytest.raises(BadInput, match="NONE of 'wrong' is no GraphInfo"):
        get_graph("wrong")


@pytest.mark.usefixtures("installed")
def test_a_method_of_another_distribution_is_read_by_its_name() -> None:
    [method] = read_methods("warm:seed=3", {"model": "openai:x"})
    assert (method.graph, method.settings) == ("plain", {"temperature": "1", "seed": "3"})
    assert {"plain", "warm"} <= {*method_names()}


@pytest.mark.parametrize("name", ["rat_paper", "cot", "self_refinement"])
def test_a_graph_of_the_papers_that_are_not_installed_says_how_to_install_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])  # where nothing is installed, entry points are not found
    message = f"{name} is part of stepcraft-papers, .*: pip install stepcraft-papers"
    with pytest.raises(BadInput, match=message):
        get_graph(name)
    with pytest.raises(BadInput, match=message):
        read_methods(name, {})
