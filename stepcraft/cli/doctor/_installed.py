"""What is installed: Python, the packages and the versions that they need of each other, the server and its graphs."""

import importlib
import importlib.util
import json
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from stepcraft.cli.doctor._finding import Finding, described

CONFIG = Path("langgraph.json")
_SHOWN = ("langgraph", "langchain", "langchain-core", "langchain-openai", "langsmith", "weaviate-client", "grpcio", "pydantic", "numpy")  # fmt: skip
_EMBEDDINGS = ("wordllama", "tokenizers")
_SERVER = ("langgraph-api", "langgraph-cli")
_GRPC = "1.81."
"""The grpcio on which the newest server and a weaviate-client that asks for an older one are tested together."""
_GRPC_ADVICE = 'pip install "grpcio>=1.81,<1.82"; with uv, override-dependencies as in docs/serving.md'


def check_python() -> list[Finding]:
    where = Path(__file__).parents[2]
    found = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return [Finding("python", "ok", f"{found}, stepcraft {_version('stepcraft') or '?'} in {where}")]


def check_packages() -> list[Finding]:
    problems = [_unmet("packages", "stepcraft", one) for one in _unmet_requirements("stepcraft")]
    known = {*_SHOWN, *_SERVER}
    for name in sorted(known):
        for requirement in _unmet_requirements(name):
            tested = requirement.name == "grpcio" and (_version("grpcio") or "").startswith(_GRPC)
            if requirement.name in known and not (name == "weaviate-client" and tested):
                problems.append(_unmet("packages", name, requirement))
    shown = ", ".join(f"{name} {found}" for name in _SHOWN if (found := _version(name)))
    return problems or [Finding("packages", "ok", shown)]


def _unmet(check: str, name: str, requirement: Requirement) -> Finding:
    found = _version(requirement.name)
    advice = f'pip install "{requirement.name}{requirement.specifier}"'
    return Finding(
        check,
        "wrong",
        f"{name} {_version(name) or ''} needs {requirement.name}{requirement.specifier}, "
        f"and {f'{found} is installed' if found else 'it is not installed'}",
        _GRPC_ADVICE if requirement.name == "grpcio" else advice,
    )


def _unmet_requirements(name: str, extra: str = "") -> Iterator[Requirement]:
    """What a package asks for, or one of its extras in addition, and what is not installed or has another version."""
    try:
        listed = requires(name) or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, listed):
        of_extra = "extra" in str(requirement.marker)
        if of_extra != bool(extra) or (
            requirement.marker and not requirement.marker.evaluate({"extra": extra})
        ):
            continue
        found = _version(requirement.name)
        if found is None and requirement.name in _EMBEDDINGS:
            continue  # the check of the embeddings says what follows
        if found is None or not requirement.specifier.contains(found, prereleases=True):
            yield requirement


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_server() -> list[Finding]:
    found: list[Finding] = []
    if not _version("langgraph-api"):
        advice = 'pip install "stepcraft[server]"'
        found.append(Finding("server", "missing", "the LangGraph server is not installed", advice))
    else:
        # The image of the server has no langgraph-cli, and needs none.
        old = [one for one in _unmet_requirements("stepcraft", "server") if _version(one.name)]
        shown = ", ".join(f"{name} {found_version}" for name in _SERVER if (found_version := _version(name)))
        found += [_unmet("server", "stepcraft[server]", one) for one in old] or [
            Finding("server", "ok", shown)
        ]
    if not CONFIG.is_file():
        here = f"there is no {CONFIG} in {Path.cwd()}"
        return [*found, Finding("server", "missing", here, "see docs/serving.md for one")]
    try:
        config = json.loads(CONFIG.read_text("utf-8"))
        graphs: Mapping[str, Any] = config["graphs"]
        named = {f"graph {name}": _path_of(graph) for name, graph in graphs.items()}
        named |= {
            f"{kind} {path}": path for kind in ("auth", "http", "store") for path in _parts(config, kind)
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = described(error)
        return [
            *found,
            Finding("server", "wrong", f"{CONFIG} cannot be read: {reason}", "see docs/serving.md"),
        ]
    problems = [
        Finding("server", "wrong", f"{CONFIG}: the {what} cannot be served: {problem}", f"check {path}")
        for what, path in named.items()
        if (problem := _problem_of(path, is_graph=what.startswith("graph ")))
    ]
    return [*found, *(problems or [Finding("server", "ok", f"{CONFIG}: {', '.join(graphs)}")])]


def _path_of(graph: object) -> str:
    path = graph["path"] if isinstance(graph, Mapping) else graph  # pyright: ignore[reportUnknownVariableType] - JSON
    if not isinstance(path, str):
        raise TypeError(f"a graph is module:attribute, not {path!r:.80}")
    return path


def _parts(config: Mapping[str, Any], kind: str) -> list[str]:
    """What of ours the configuration of a server names besides graphs: `auth.path`, `http.app`, `store.index.embed`."""
    section = config.get(kind) or {}
    named = {"auth": section.get("path"), "http": section.get("app")}.get(kind)
    if kind == "store":
        embed = (section.get("index") or {}).get("embed")
        named = embed if isinstance(embed, str) and _is_import(embed) else None
    return [named] if named else []


def _is_import(name: str) -> bool:
    """Whether this names an object of a module, and not a model as `openai:text-embedding-3-small`."""
    module = name.partition(":")[0]
    return "." in module or "/" in module


def _problem_of(path: str, *, is_graph: bool) -> str:
    """Why the server cannot load this; "" if it can."""
    module, colon, attribute = path.rpartition(":")
    if not colon or module.endswith((".js", ".ts", ".mjs", ".tsx", ".jsx")):
        return "" if colon else f"{path} is no module:attribute"
    try:
        found = getattr(_module(module), attribute)
    except BaseException as error:  # what a module raises when it is imported, SystemExit too
        return described(error)
    if not is_graph or (callable(found) and not hasattr(found, "get_graph")):
        return ""  # a function that makes the graph
    if not hasattr(found, "get_graph"):
        return f"{attribute} is a {type(found).__name__} and no compiled graph"
    own = getattr(found, "checkpointer", None)
    return "it is compiled with a checkpointer; the server brings its own" if own else ""


def _module(name: str) -> Any:  # noqa: ANN401 - a module
    if "/" not in name and not name.endswith(".py"):
        return importlib.import_module(name)
    file = Path(name).resolve()
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if not spec or not spec.loader:
        raise ImportError(f"{name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
