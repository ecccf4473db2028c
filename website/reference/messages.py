"""The page of messages: every sentence with which the package stops or warns, found in its code."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import stepcraft
from website.reference.templates import Code, Scope, has_words, last_name

PACKAGE = Path(__file__).parents[2] / "stepcraft"

WARNING = "warning"
_BUILTIN = {
    "AttributeError",
    "ValueError",
    "RuntimeError",
    "TypeError",
    "OSError",
    "NotImplementedError",
    "ImportError",
}
_FOREIGN = {"ToolException": 0, "HTTPException": 1}
"""Errors of other packages with a message of ours, and its place among their arguments."""
_REASONS = {
    "Failed": (1, "reason"),
    "Record": (2, "reason"),
    "Refusal": (0, "sentence"),
    "Rejected": (9, "reason"),
}
"""Records that hold a message: its place among the arguments, and its name."""
_PRINTERS = {"say", "complain"}
_FROM_MODELS = {"Refused"}
"""Errors with the text of a model, which are not followed to where it came from."""
_ENDS = {"_probe", "_probe_grpc", "_http_fault", "_refusal", "_problem_of", "unreachable"}
"""Functions that return the end of a message, whose beginning their callers write."""
_TABLES = {"_REASONS"}
"""Constants that hold ends of messages by their cause."""
_LISTS = {"warnings", "notes", "problems"}
"""The names of lists of warnings."""


class Message(NamedTuple):
    """What the package may say."""

    area: str
    """The folder or the module of the package."""
    text: str
    """Its template: what is known only at run time is in braces."""
    kinds: tuple[str, ...]
    """The classes of the error; "warning" for one in a result or on stderr."""
    files: tuple[str, ...]
    """The files it comes from."""


@cache
def code() -> Code:
    """The code of the package."""
    return Code(PACKAGE)


@cache
def messages() -> tuple[Message, ...]:
    """Every message of the package, by area."""
    kinds: dict[tuple[str, str], list[str]] = defaultdict(list)
    files: dict[tuple[str, str], list[str]] = defaultdict(list)
    for text, kind, where in _found(code()):
        said = " ".join(text.split())
        if not has_words(said):
            continue
        path = where.relative_to(PACKAGE)
        key = (path.parts[0].removesuffix(".py"), said)
        kinds[key].append(kind)
        files[key].append(path.as_posix())
    return tuple(
        Message(area, text, tuple(dict.fromkeys(kinds[area, text])), tuple(dict.fromkeys(files[area, text])))
        for area, text in sorted(kinds, key=lambda key: (key[0], key[1].lower()))
    )


def page() -> str:
    """The Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield "# Messages"
    yield ""
    yield "This page lists every message with which the package stops or warns, for those who search for one. What stands in"
    yield "braces is put in when the message is made: `{path}`. The messages are grouped by the part of the package that they"
    yield "come from. [Troubleshooting](../how-to/troubleshooting.md) explains the most common ones; the classes of errors are"
    yield "in the [Python API](python.md#errors)."
    yield ""
    yield "Behind each message stands where it is seen: in an error of a class; in a *warning*, which is in the `warnings` of a"
    yield "result, in a report or on the standard error; in what `stepcraft doctor` finds; or *inside* another message that says"
    yield "which file, page, step or reply it is about. A message of a model's reply is one for the model first: it is handed back"
    yield "once, and becomes a warning if the second reply is no better."
    yield ""
    by_area: dict[str, list[Message]] = defaultdict(list)
    for one in messages():
        by_area[one.area].append(one)
    for area, members in by_area.items():
        yield f"## {area}"
        yield ""
        yield f"{_AREAS[area]}."
        yield ""
        for one in members:
            yield f"- {_as_code(one.text)} — {', '.join(dict.fromkeys(map(_where_seen, one.kinds)))}"
        yield ""


_AREAS = {
    "access": "Users and groups of a server: the file that `STEPCRAFT_ACCESS` names",
    "building": "Filling memories from documents and traces: `stepcraft memory build`, `build_memory`",
    "cli": "Commands, their options and their files; `stepcraft doctor`",
    "contexts": "The settings of a run",
    "evals": "Evaluations: questions, methods, benchmarks, judges, sandboxes, prices",
    "errors": "Errors of several parts",
    "files": "Paths",
    "graphs": "Building, embedding and calling graphs",
    "index": "Files of texts and vectors: memories in `.db` files, indexes of corpora",
    "journal": "The directories of evaluations and builds",
    "limits": "Limits of users",
    "llm": "Calls of the chat model",
    "memory": "Memories, procedures, skills",
    "models": "Names of chat models and embedding models",
    "nodes": "Steps of a run, its input and its review",
    "policy": "What a run may name",
    "records": "JSONL, JSON, CSV and TSV files",
    "report": "Pages of runs",
    "rerank": "Rerankers of RPG",
    "retrieval": "What a run searches",
    "server": "A LangGraph server with the package's parts",
    "sources": "Corpora, the web and other sources of evidence",
    "text": "Replies of models: patches and lists",
}


def _where_seen(kind: str) -> str:
    if kind in dir(stepcraft) and kind != "UnreadableReply":
        return f"[`{kind}`](python.md#stepcraft.{kind})"
    if kind in _BUILTIN | {*_FOREIGN}:
        return f"`{kind}`"
    return {WARNING: "*warning*", "doctor": "`stepcraft doctor`", "UnreadableReply": "a model's reply"}.get(
        kind, "*inside*"
    )


def _as_code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def errors(package: Code) -> set[str]:
    """The names of the exceptions that the package defines."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for module in package.modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {"Exception", "BaseException", "ConnectionError", *_BUILTIN}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known


def _found(package: Code) -> Iterator[tuple[str, str, Path]]:  # noqa: C901 - two passes over the code
    """Each text with the kind of message and the file that it is in."""
    known = errors(package)
    sinks: dict[tuple[str, str], str] = {}

    def texts(expression: ast.expr, scope: Scope, kind: str) -> list[str]:
        package.demanded.clear()
        found = package.texts(expression, scope)
        for demand in sorted(package.demanded) if kind not in _FROM_MODELS else ():
            sinks.setdefault(demand, kind)
        return found

    for node, scope in package.nodes:
        for kind, expression in [*_said(node, known), *_inherited(node, scope.owner, known)]:
            for text in texts(expression, scope, kind):
                yield text, kind, scope.module.path
    done: set[tuple[str, str]] = set()
    while waiting := sorted(sinks.keys() - done):  # the arguments that functions make a message of
        for name, parameter in waiting:
            for call, scope in package.calls[name] if name not in _PRINTERS else ():
                if given := package.argument(call, name, parameter):
                    for text in texts(given, scope, sinks[name, parameter]):
                        yield text, sinks[name, parameter], scope.module.path
        done.update(waiting)


def _said(node: ast.AST, known: set[str]) -> Iterator[tuple[str, ast.expr]]:  # noqa: C901, PLR0912 - one case a kind of message
    """The messages that one node of a tree makes: their kind and their expression."""
    match node:
        case ast.Call(func=function, args=arguments, keywords=keywords):
            name = last_name(function)
            if name in known and arguments:
                yield name, arguments[0]
            elif name in _FOREIGN and len(arguments) > _FOREIGN[name]:
                yield name, arguments[_FOREIGN[name]]
            elif name in _REASONS:
                place, keyword = _REASONS[name]
                if len(arguments) > place:
                    yield WARNING, arguments[place]
                yield from ((WARNING, one.value) for one in keywords if one.arg == keyword)
            elif name in {"complain", "_warn"} and arguments:
                yield WARNING, arguments[-1]
            elif name in {"warning", "error"} and "log" in ast.unparse(function).lower():
                yield WARNING, _formatted(arguments)
            elif name == "say" and any(one.arg == "err" for one in keywords):
                yield WARNING, arguments[0]
            elif name == "Finding":
                yield from (("doctor", one) for one in arguments[2:])
            if (
                name in {"append", "extend"}
                and isinstance(function, ast.Attribute)
                and last_name(function.value) in _LISTS
            ):
                yield WARNING, arguments[0]
            yield from ((WARNING, one.value) for one in keywords if one.arg in _LISTS)
            yield from ((name, one.value) for one in keywords if one.arg == "detail" and name in _FOREIGN)
            if name == "update" and "budget" in ast.unparse(function).lower() and arguments:
                yield WARNING, arguments[0]
        case ast.Raise(exc=ast.Call(func=function, args=[first, *_])) if not _is_known(function, known):
            yield last_name(function), first
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value in _LISTS:
                    yield WARNING, value
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(values=values)) if name in _TABLES:
            yield from (("end", value) for value in values)
        case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
            if last_name(target) in _LISTS:
                yield WARNING, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            if last_name(target) in _LISTS:
                yield WARNING, value
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if name in _ENDS:
                yield from (
                    ("end", one.value) for one in ast.walk(node) if isinstance(one, ast.Return) and one.value
                )
            if node.returns and ast.unparse(node.returns).endswith(", list[str]]"):
                for one in ast.walk(node):
                    if isinstance(one, ast.Return) and isinstance(one.value, ast.Tuple):
                        yield WARNING, one.value.elts[-1]
            if name in _LISTS or name.endswith("_warnings"):
                yield from (
                    (WARNING, one.value)
                    for one in ast.walk(node)
                    if isinstance(one, ast.Return) and one.value
                )
        case _:
            pass


def _inherited(node: ast.AST, owner: str, known: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """The message that an error makes of its arguments in its constructor."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"), args=[first, *_]
        ):
            if owner in known:
                yield owner, first
        case _:
            pass


def _is_known(function: ast.expr, known: set[str]) -> bool:
    return last_name(function) in known or last_name(function) in _FOREIGN


def _formatted(arguments: Sequence[ast.expr]) -> ast.expr:
    """The message of a log call, whose arguments take the place of `%s`."""
    if not isinstance(arguments[0], ast.Constant):
        return arguments[0]
    said = str(arguments[0].value).split("%s")
    values: list[ast.expr] = [ast.Constant(said[0])]
    for text, argument in zip(said[1:], arguments[1:], strict=False):
        values += [ast.FormattedValue(argument, -1), ast.Constant(text)]
    return ast.JoinedStr(values)
