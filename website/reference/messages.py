"""The page of messages: every sentence with which the package stops or warns, found in its code."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from website.reference.templates import Code, Scope, has_words, last_name

PACKAGE = Path(__file__).parents[2] / "stepcraft"

WARNING = "warning"
_BUILTIN = {"ValueError", "RuntimeError", "TypeError", "OSError", "NotImplementedError", "ImportError"}
_FOREIGN = {"ToolException": 0, "HTTPException": 1}
"""Errors of other packages with a message of ours, and its place among their arguments."""
_REASONS = {"Failed": (1, "reason"), "Record": (2, "reason"), "Refusal": (0, "sentence"), "Rejected": (9, "reason")}
"""Records that hold a message: its place among the arguments, and its name."""
_PRINTERS = {"say", "complain"}
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


def _found(package: Code) -> Iterator[tuple[str, str, Path]]:
    """Each text with the kind of message and the file that it is in."""
    known = errors(package)
    sinks: dict[tuple[str, str], str] = {}

    def texts(expression: ast.expr, scope: Scope, kind: str) -> list[str]:
        package.demanded.clear()
        found = package.texts(expression, scope)
        for demand in sorted(package.demanded):
            sinks.setdefault(demand, kind)
        return found

    for node, scope in package.nodes:
        for kind, expression in _said(node, known):
            for text in texts(expression, scope, kind):
                yield text, kind, scope.module.path
    done: set[tuple[str, str]] = set()
    while waiting := sorted(sinks.keys() - done):  # the arguments that functions make a message of
        for name, parameter in waiting:
            for call, scope in package.calls[name] if name not in _PRINTERS else ():
                if expression := package.argument(call, name, parameter):
                    for text in texts(expression, scope, sinks[name, parameter]):
                        yield text, sinks[name, parameter], scope.module.path
        done.update(waiting)


def _said(node: ast.AST, known: set[str]) -> Iterator[tuple[str, ast.expr]]:
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
            if name in {"append", "extend"} and isinstance(function, ast.Attribute) and last_name(function.value) in _LISTS:
                yield WARNING, arguments[0]
            yield from ((WARNING, one.value) for one in keywords if one.arg in _LISTS)
            if name == "update" and "budget" in ast.unparse(function).lower() and arguments:
                yield WARNING, arguments[0]
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value in _LISTS:
                    yield WARNING, value
        case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
            if last_name(target) in _LISTS:
                yield WARNING, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            if last_name(target) in _LISTS:
                yield WARNING, value
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if name in _LISTS or name.endswith("_warnings"):
                yield from ((WARNING, one.value) for one in ast.walk(node) if isinstance(one, ast.Return) and one.value)
        case _:
            pass


def _formatted(arguments: Sequence[ast.expr]) -> ast.expr:
    """The message of a log call, whose arguments take the place of `%s`."""
    if not isinstance(arguments[0], ast.Constant):
        return arguments[0]
    said = str(arguments[0].value).split("%s")
    values: list[ast.expr] = [ast.Constant(said[0])]
    for text, argument in zip(said[1:], arguments[1:], strict=False):
        values += [ast.FormattedValue(argument, -1), ast.Constant(text)]
    return ast.JoinedStr(values)
