"""A call in a process of its own, with the memory that it and its children took."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_RUN = """
import json, resource, sys
from stepcraft.errors import StepcraftError
from stepcraft.sources import isolated
from stepcraft.sources.corpus import retriever
from stepcraft.sources.web import pages
from tests.security import measured

name, *args = sys.argv[1:]

def call():
    try:
        return getattr(measured, name)(*args)
    except StepcraftError as error:
        return f"{type(error).__name__}: {error}"

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = call()
isolated.end()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([result, grown // 1024, child // 1024]))
"""


@dataclass(frozen=True)
class Measured:
    result: Any
    grown: int
    """By how many MB the process grew."""
    child: int
    """The MB of its largest child."""


def measured(name: str, *args: str | Path) -> Measured:
    """What a function of this module returns, or the message of what it raises."""
    command = [sys.executable, "-W", "error", "-c", _RUN, name, *map(str, args)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, cwd=root, check=False
    )
    assert done.returncode == 0, done.stderr
    return Measured(*json.loads(done.stdout))


def corpus(folder: str) -> dict[str, str]:
    """The problems of a corpus, after a search that must find what stands beside hostile files."""
    from stepcraft.sources import open_corpus  # noqa: PLC0415 - after what is measured

    opened = open_corpus([folder], index=":memory:", embeddings="none")
    assert any("beside" in document.page_content for document in opened.invoke("beside", k=50))
    return {Path(path).name: why for path, why in opened.problems.items()}


def page(path: str) -> int:
    """The length of the text of a page."""
    from stepcraft.sources.web.fetch import Fetched  # noqa: PLC0415 - after what is measured
    from stepcraft.sources.web.pages import ranked_passages, readable  # noqa: PLC0415 - the same

    body = Path(path).read_bytes()[:2_000_000]
    read = readable(Fetched("http://a.test/x", "text/html", "", body, cut=False))
    ranked_passages("tea", [read], 3, None)
    return len(read.text)
