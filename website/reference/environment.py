"""The page of environment variables: those that the code reads, with what `.env.example` says of each."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from website.reference.messages import PACKAGE, code
from website.reference.templates import Scope, last_name

EXAMPLE = Path(__file__).parents[2] / ".env.example"

_OTHERS = {
    "ANTHROPIC_API_KEY": "The key for the models named `anthropic:…`, which `langchain-anthropic` reads; `stepcraft doctor` "
    "says where it is set and no model is named. Every other provider has a variable of its own.",
    "EDITOR": "The editor in which `stepcraft aag --review` opens the steps, where `VISUAL` names none.",
    "LANGSMITH_OTEL_ENABLED": "Whether traces are sent by OpenTelemetry; LangSmith's client reads it.",
    "LANGSMITH_OTEL_ONLY": "Whether traces go to an OpenTelemetry collector alone. The command line does not ask LangSmith "
    "whether it is there then.",
    "LANGSMITH_TRACING_MODE": "With `otel` the same as `LANGSMITH_OTEL_ONLY=true`.",
    "LANGSMITH_TRACING_V2": "The older name of `LANGSMITH_TRACING`; it takes precedence.",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "Seconds that an OpenTelemetry collector has to take a trace. The command line sets it where "
    "it is not set, so that a command does not wait long at its end.",
    "PGPASSWORD": "The password for `store+postgresql://…`, whose URL takes none; `libpq` reads it, or `~/.pgpass`.",
    "VISUAL": "The editor in which `stepcraft aag --review` opens the steps.",
    "XDG_CACHE_HOME": "The folder of caches (Linux; `platformdirs` says where it is elsewhere): indexes of corpora, downloaded "
    "benchmarks, verdicts on duplicates.",
}
"""What `.env.example` does not name, because a server does not need it or another program reads it."""
_STAND_FOR = {
    "get_api_key": "LANGSMITH_API_KEY",
    "get_api_url": "LANGSMITH_ENDPOINT",
    "tracing_is_enabled": "LANGSMITH_TRACING",
    "user_cache_path": "XDG_CACHE_HOME",
}
"""Functions of other packages that read a variable."""
_NAME = re.compile(
    r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:API_KEY|BASE_URL)\b|\bLANGSMITH_[A-Z_]*[A-Z]\b|\bPGPASSWORD\b"
    r"|\bSTEPCRAFT_[A-Z_]*[A-Z]\b(?!_)"
)


class Variable(NamedTuple):
    """An environment variable."""

    name: str
    description: str
    example: str
    """A value; "" where none is shown."""
    files: tuple[str, ...]
    """The files of the package that read or name it."""


def page() -> str:
    """The Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def variables() -> list[Variable]:
    """The variables that the package reads.

    Raises:
        ValueError: Nothing says what a variable does.
    """
    documented, found = described(), []
    for name, files in sorted(read().items()):
        if name not in documented and name not in _OTHERS:
            raise ValueError(f"nothing says what {name} does: describe it in .env.example")
        description, example = documented.get(name, (_OTHERS.get(name, ""), ""))
        found.append(Variable(name, description, example, tuple(sorted(files))))
    return found


@cache
def read() -> Mapping[str, set[str]]:
    """The names of the variables that the code reads or tells its users to set, with the files that do."""
    found: dict[str, set[str]] = defaultdict(set)
    docstrings = {
        id(node.value)
        for node, _ in code().nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node, scope in code().nodes:
        for name in _names(node, scope) if id(node) not in docstrings else ():
            found[name].add(scope.module.path.relative_to(PACKAGE.parent).as_posix())
    return found


def _names(node: ast.AST, scope: Scope) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as text):
            yield from _NAME.findall(text)
        case ast.Call(func=function, args=arguments):
            name = last_name(function)
            if name in _STAND_FOR:
                yield _STAND_FOR[name]
            elif name in {"get_env_var", "is_env_var_truish"} and arguments:
                yield from (f"LANGSMITH_{text}" for text in code().texts(arguments[0], scope))
            elif arguments and (name == "getenv" or re.search(r"\benviron\.\w+$", ast.unparse(function))):
                yield from _texts(arguments[0], scope)
        case ast.Subscript(value=value, slice=key) if ast.unparse(value).endswith("environ"):
            yield from _texts(key, scope)
        case _:
            pass


def _texts(expression: ast.expr, scope: Scope) -> list[str]:
    return [text for text in code().texts(expression, scope) if not text.startswith("{")]


def described() -> dict[str, tuple[str, str]]:
    """What `.env.example` says of its variables: the comment above each, and the value that it shows."""
    found: dict[str, tuple[str, str]] = {}
    comment: list[str] = []
    for line in EXAMPLE.read_text("utf-8").splitlines():
        if variable := re.fullmatch(r"(?:# )?([A-Z][A-Z0-9_]*)=(.*)", line):
            if comment:
                found[variable[1]] = (_linked(" ".join(comment)), variable[2])
            comment = []
        else:
            comment.append(line.removeprefix("#").strip())
    return found


def _linked(text: str) -> str:
    return re.sub(r"docs/((\w+)\.md)", r"[\2](../\1)", text)


def _lines() -> Iterator[str]:
    groups: dict[str, list[Variable]] = {
        "Stepcraft": [],
        "Models, searches and servers": [],
        "LangSmith": [],
        "The machine": [],
    }
    for one in variables():
        if one.name.startswith("STEPCRAFT_"):
            group = "Stepcraft"
        elif one.name.startswith("LANGSMITH_"):
            group = "LangSmith"
        elif one.name.endswith(("_API_KEY", "_BASE_URL")):
            group = "Models, searches and servers"
        else:
            group = "The machine"
        groups[group].append(one)
    yield "# Environment variables"
    yield ""
    yield "This page lists the environment variables that the package reads, for those who set up a machine or a server."
    yield "`stepcraft doctor` says which of them are set and which names nothing reads. A server takes them from the file that"
    yield "`langgraph.json` names under `env`; the command line reads no file. LangSmith's variables may also begin with"
    yield "`LANGCHAIN_`, the older prefix."
    yield ""
    for title, members in groups.items():
        yield f"## {title}"
        yield ""
        for one in members:
            yield f"### `{one.name}` {{ #{one.name} }}"
            yield ""
            yield one.description
            yield ""
            if one.example:
                yield f"- Example: `{one.example}`"
            yield f"- Used in: {', '.join(f'`{file}`' for file in one.files)}"
            yield ""
