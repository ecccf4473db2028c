"""The code on the pages of the documentation runs, block by block, as a reader would run it."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.servers.openai_server import OpenAIServer
from website.blocks import ROOT, Runner, blocks, is_current, runner

HAS_WORDLLAMA = find_spec("wordllama") is not None
PAGES = [
    page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "examples/README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if any(block.is_run for block in blocks(page.read_text("utf-8")))
]


@pytest.fixture(scope="module")
def pages(model_server: OpenAIServer) -> Iterator[Runner]:
    with runner(model_server.base_url) as pages:
        yield pages


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page: Path, pages: Runner) -> None:
    ran = pages.run(page)
    assert ran.failure == ""
    if HAS_WORDLLAMA:  # without it searches find the same in another order
        assert is_current(page.read_text("utf-8"), ran), f"python -m website.blocks --write {page}"


PAGE = """\
# Bread

<!-- run: mkdir kitchen -->
<!-- exit: 3 -->
```sh
ls -d kitchen
exit 3
```
<!-- output -->

1. A step:

    ```python
    loaf = "rye"
    ```

```python
print(loaf, await bake()) if False else print(loaf)
```

<!-- not run: it needs an oven -->
```sh
bake bread
```

```text
plain
```
"""


def test_blocks_run_in_order_in_one_folder(tmp_path: Path, pages: Runner) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    ran = pages.run(tmp_path / "page.md")
    assert (ran.failure, list(ran.outputs.values())) == ("", ["kitchen\n", "", "rye\n"])


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("```sh\nls nowhere\n```", "ls nowhere"),
        ("```sh\nstepcraft graphs --nonsense\n```", "status 2 instead of 0"),
        ("```python\nraise ValueError('no oven')\n```", "ValueError: no oven"),
        ("<!-- exit: 1 -->\n```sh\ntrue\n```", "status 0 instead of 1"),
        ("<!-- run: cd nowhere -->\n```sh\ntrue\n```", "`cd nowhere` ended with status 1"),
    ],
)
def test_a_block_that_fails_is_named(tmp_path: Path, code: str, part: str, pages: Runner) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Bread\n\n{code}\n\n```sh\ntouch {tmp_path}/after\n```\n")
    failure = pages.run(page).failure
    assert f"{page}:" in failure
    assert part in failure
    assert not (tmp_path / "after").exists()
