"""The pages in docs/ and beside it: their links lead somewhere, and what they name is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from stepcraft.cli import app
from stepcraft.graphs.registry import GRAPHS, context_of

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples/README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_files" not in page.parts),
]


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if not target.startswith("https://"):
            path, _, anchor = target.partition("#")
            if "reference" in Path(path).parts:  # written when the site is built, which checks these links
                continue
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked), target


def test_choosing_names_every_graph_and_only_settings_that_there_are() -> None:
    text = (ROOT / "docs/choosing.md").read_text("utf-8")
    assert list(dict.fromkeys(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))) == list(GRAPHS)
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)=(\w+)`", text, re.MULTILINE)
    assert rows
    for graph, setting, value in rows:
        context_of(graph)(**{setting: value})


@pytest.mark.parametrize("graph", ["aag", "rat", "rpg", "chat"])
def test_the_settings_of_a_page_are_those_of_its_graph(graph: str) -> None:
    table = (ROOT / f"docs/{graph}.md").read_text("utf-8").partition("## Settings")[2]
    fields = context_of(graph).__dataclass_fields__
    named = [name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]  # fmt: skip
    assert len(named) > 8
    assert set(named) <= set(fields)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_commands_take_the_options_that_are_shown(page: Path) -> None:
    helps: dict[str, str] = {}
    for command, rest in re.findall(r"stepcraft (aag|rat|rpg|run|draw) ([^\n`]*)", page.read_text("utf-8")):
        helps[command] = helps.get(command) or CliRunner().invoke(app, [command, "--help"]).output
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in helps[command], f"stepcraft {command} {rest}"
        for setting in re.findall(r"--set (\w+)=", rest):
            assert setting in context_of(command).__dataclass_fields__, f"stepcraft {command} {rest}"


def test_the_citation_names_the_version_of_the_package_and_the_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (
        cited["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    )
    papers = [one["value"].partition(":")[2] for paper in cited["references"] for one in paper["identifiers"]]
    assert len(papers) == 3
    readme = (ROOT / "README.md").read_text("utf-8")
    assert all(f"https://arxiv.org/abs/{paper}" in readme for paper in papers)
