"""The page of environment variables: those that the code reads, with what `.env.example` says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_OTHERS = {
    "EDITOR": "The editor in which `stepcraft aag --review` opens the steps.",
    "PGPASSWORD": "The password for `store+postgresql://…`, whose URL takes none; libpq reads it, or "
    "`~/.pgpass`.",
    "VISUAL": "The editor in which `stepcraft aag --review` opens the steps.",
    "XDG_CACHE_HOME": "The folder of caches on Linux: indexes of corpora, benchmarks, verdicts on "
    "duplicates. `platformdirs` says where it is elsewhere.",
}
"""What `.env.example` does not name: a server needs none of it, or another program reads it."""
_VARIABLE = re.compile(r"STEPCRAFT_[A-Z_]+|[A-Z]+_API_KEY|EDITOR|VISUAL")


class Variable(NamedTuple):
    """An environment variable."""

    name: str
    description: str
    example: str
    """A value; "" where none is shown."""


def page() -> str:
    """Return the Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def variables() -> list[Variable]:
    """Return the variables that the documentation describes."""
    others = [Variable(name, text, "") for name, text in _OTHERS.items()]
    return sorted([*_described(), *others])


def read_by_the_code() -> set[str]:
    """Return the names of variables that stand as texts in the code of the package."""
    return {
        str(node.value)
        for file in (ROOT / "stepcraft").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and _VARIABLE.fullmatch(str(node.value))
    }


def _described() -> Iterator[Variable]:
    """Yield the variables of `.env.example`, with the comment above each and the value shown."""
    comment: list[str] = []
    for line in (ROOT / ".env.example").read_text("utf-8").splitlines():
        if variable := re.fullmatch(r"(?:# )?([A-Z][A-Z0-9_]*)=(.*)", line):
            text = re.sub(r"docs/((\w+)\.md)", r"[\2](../\1)", " ".join(comment))
            yield Variable(variable[1], text, variable[2])
            comment = []
        else:
            comment.append(line.removeprefix("#").strip())


def _lines() -> Iterator[str]:
    yield "# Environment variables"
    yield ""
    yield "`stepcraft doctor` prints those that are set. A server takes them from the file that"
    yield "`langgraph.json` names under `env`; the command line reads no file."
    yield ""
    for variable in variables():
        yield f"## `{variable.name}` {{ #{variable.name} }}"
        yield ""
        yield variable.description
        yield ""
        if variable.example:
            yield f"- Example: `{variable.example}`"
            yield ""
