"""What the site is made of: pages with outputs, pictures and links."""

import re

from website.blocks import PICTURE, ROOT, Ran, is_current, with_outputs
from website.build import with_links

DOCS = [page for page in (ROOT / "docs").rglob("*.md") if "_files" not in page.parts]


def test_the_navigation_has_every_page_once() -> None:
    navigation = (ROOT / "website/zensical.toml").read_text("utf-8")
    pages = [str(page.relative_to(ROOT / "docs")) for page in DOCS]
    assert sorted(re.findall(r'= "(.+\.md)"', navigation)) == sorted(pages)


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


def test_outputs_are_written_where_their_marks_are_and_are_cut() -> None:
    printed = "\x1b[32mloaf\x1b[0m\n```\n" + "crumb\n" * 50
    page = with_outputs(PAGE, Ran(outputs={4: printed}))
    assert '    <!-- output -->\n    ````text title="Output"\n    loaf\n' in page
    assert page.count("crumb") == 38
    assert "    \N{HORIZONTAL ELLIPSIS}\n    ````\n\n<!-- not run" in page


def test_outputs_take_the_place_of_earlier_ones() -> None:
    page = with_outputs(PAGE, Ran(outputs={4: "a loaf in 3.2 s"}))
    assert is_current(page, Ran(outputs={4: "a loaf in 11.04 s"}))
    assert not is_current(page, Ran(outputs={4: "a roll in 3.2 s"}))
    assert with_outputs(page, Ran(outputs={4: "a roll"})).count("Output") == 1
    page = page.replace("output -->", "output of one run -->")
    assert is_current(page, Ran(outputs={4: "a roll"}))


def test_links_out_of_the_documentation_lead_to_the_repository() -> None:
    page = "[a](memory.md#add) [b](../examples/client.py) [c](../examples) [d](https://x.org/a) [e](#here)"
    assert with_links(page, ROOT / "docs/aag.md", "https://host/us") == (
        "[a](memory.md#add) [b](https://host/us/blob/main/examples/client.py) "
        "[c](https://host/us/tree/main/examples) [d](https://x.org/a) [e](#here)"
    )


def test_pictures_are_of_files_that_the_page_writes() -> None:
    for page in DOCS:
        text = page.read_text("utf-8")
        for file, _ in PICTURE.findall(text):
            assert file in text.replace(f"<!-- picture: {file}", ""), page
