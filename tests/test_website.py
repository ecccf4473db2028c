"""What the site is made of: pages with outputs, recorded runs, pictures and links."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from website.blocks import PICTURE, ROOT, Ran
from website.build import Unbuilt, with_links, with_outputs, with_recorded
from website.reference import pages

DOCS = [page for page in (ROOT / "docs").rglob("*.md") if "_files" not in page.parts]


def named(nav: object) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for inner in nav.values():
            yield from named(inner)
    elif isinstance(nav, list):
        for inner in nav:
            yield from named(inner)


def test_the_navigation_has_every_page_once() -> None:
    nav = tomllib.loads((ROOT / "website/zensical.toml").read_text("utf-8"))["project"]["nav"]
    authored = {str(page.relative_to(ROOT / "docs")) for page in DOCS}
    assert sorted(named(nav)) == sorted(authored | {f"reference/{name}" for name in pages()})


def test_every_recorded_run_is_there() -> None:
    found = [(page, re.findall("<!-- recorded: (.*) -->", page.read_text("utf-8"))) for page in DOCS]
    marks = [(page, mark) for page, named in found for mark in named]
    assert len(marks) >= 5
    for page, mark in marks:
        with_recorded(f"<!-- recorded: {mark} -->", page.parent / "recorded")


def test_a_recording_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unbuilt, match=r"bread\.sh is missing: record the run"):
        with_recorded("<!-- recorded: bread -->", tmp_path)


def test_a_recorded_run_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "bread.sh").write_text("stepcraft aag 'bake a bread'\n")
    (tmp_path / "bread.txt").write_text("Recorded on a Monday.\n1. Bake.\n\n2. Cool.\n")
    assert with_recorded("Look:\n\n<!-- recorded: bread -->\n\nDone.", tmp_path) == (
        'Look:\n\n??? example "A recorded run of a real model"\n\n    Recorded on a Monday.\n\n    ```sh\n'
        "    stepcraft aag 'bake a bread'\n    ```\n\n    ````text\n    1. Bake.\n\n    2. Cool.\n    ````\n\nDone."
    )


PAGE = """\
1. Bake:

    <!-- run: heat oven -->
    ```sh
    bake
    ```
    <!-- output -->

<!-- not run: needs an oven -->
```sh
bake
```
"""


def test_outputs_stand_where_their_marks_are_and_are_cut() -> None:
    shown = with_outputs(PAGE, Ran(outputs={4: "\x1b[32mloaf\x1b[0m\n```\n" + "crumb\n" * 50}))
    assert shown.startswith(
        '1. Bake:\n\n    ```sh\n    bake\n    ```\n\n    ````text title="Output"\n    loaf\n'
    )
    assert shown.count("crumb") == 38
    assert shown.endswith("    \N{HORIZONTAL ELLIPSIS}\n    ````\n\n```sh\nbake\n```\n")


def test_links_out_of_the_documentation_lead_to_the_repository() -> None:
    page = "[a](memory.md#add) [b](../examples/client.py) [c](../examples) [d](https://x.org/a) [e](#here)"
    assert with_links(page, ROOT / "docs/aag.md", "https://host/us") == (
        "[a](memory.md#add) [b](https://host/us/blob/main/examples/client.py) "
        "[c](https://host/us/tree/main/examples) [d](https://x.org/a) [e](#here)"
    )


def test_pictures_are_of_files_that_the_page_writes() -> None:
    for page in DOCS:
        text = page.read_text("utf-8")
        for file, words in PICTURE.findall(text):
            assert file in text.replace(f"<!-- picture: {file}", ""), page
            assert len(words.split()) > 3, page
