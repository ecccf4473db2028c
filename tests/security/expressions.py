"""The regular expressions of the package, how each is used, and texts that are the worst case of each."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, cast

import pytest

import stepcraft

_ENGINE: Any = re  # its parser and compiler are not in the type stubs
_FLAGS = {
    "I": re.IGNORECASE,
    "IGNORECASE": re.IGNORECASE,
    "M": re.MULTILINE,
    "MULTILINE": re.MULTILINE,
    "S": re.DOTALL,
    "DOTALL": re.DOTALL,
}
_CHARACTERS = " \n\t#*_-=~`[](){}<>/\"'|.,:;!?&@%+\\x\x00aA1é中。\u0301\u200b\u201c\u2039"
_ENDLESS = 50
"""A repetition of fewer is not driven: its cost is bounded."""


def _whole(matches: Callable[[str], Iterator[Any]]) -> Callable[[str], object]:
    return lambda text: sum(1 for _ in matches(text))


USES: Mapping[str, Callable[[re.Pattern[str]], Callable[[str], object]]] = {
    "match": lambda pattern: pattern.match,
    "fullmatch": lambda pattern: pattern.fullmatch,
    "search": lambda pattern: pattern.search,
    **dict.fromkeys(
        ("finditer", "findall", "split", "sub", "subn"), lambda pattern: _whole(pattern.finditer)
    ),
}


@dataclass(frozen=True)
class Expression:
    """A regular expression, with the name of its module and, inline ones, its line."""

    name: str
    pattern: re.Pattern[str]
    methods: frozenset[str]


def modules() -> Iterator[ModuleType]:
    """All modules of the package."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("STEPCRAFT_ACCESS", str(Path(__file__).with_name("access.toml")))
        names = [found.name for found in walk_packages(stepcraft.__path__, "stepcraft.")]
        imported = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    yield from imported


def expressions() -> Iterator[Expression]:
    """Every expression that a module of the package holds, or writes where it uses it."""
    for module in modules():
        tree = ast.parse(Path(cast("str", module.__file__)).read_text("utf-8"))
        own = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        used = _methods(tree, own)
        for name, value in vars(module).items():
            for pattern in _patterns(value, module.__name__) if name in own else ():
                # One that is used under another name may be used as any such name is.
                methods = used.get(name) or used.get("") or set(USES)
                yield Expression(f"{module.__name__}.{name}", pattern, frozenset(methods))
        for call in _inline(tree):
            where = f"{module.__name__}:{call.lineno}"
            assert isinstance(call.args[0], ast.Constant), f"{where}: an expression that is not written out"
            flags = sum(
                _FLAGS[one.attr]
                for one in ast.walk(call)
                if isinstance(one, ast.Attribute) and one.attr in _FLAGS
            )
            pattern = re.compile(str(call.args[0].value), flags)
            yield Expression(where, pattern, frozenset({cast("ast.Attribute", call.func).attr}))


def _patterns(value: object, module: str, depth: int = 3) -> Iterator[re.Pattern[str]]:
    """The expressions that a value is or holds, also as a class of this module."""
    inner: Collection[object] = ()
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif inspect.isclass(value) and value.__module__ == module:
        inner = vars(value).values()
    if depth:
        yield from (one for item in inner for one in _patterns(item, module, depth - 1))


def _methods(tree: ast.Module, own: Collection[str]) -> dict[str, set[str]]:
    """The methods that are called on each name of the module in capitals; under "" those on all other values."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in USES:
            value = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            name = value.id if isinstance(value, ast.Name) else ""
            if name != "re":
                found.setdefault(name if name in own and name.isupper() else "", set()).add(node.attr)
    return found


def _inline(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls of `re.search` and the like, and of `re.compile` within functions."""
    in_functions = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if of_re and (
                node.func.attr in USES or (node.func.attr == "compile" and id(node) in in_functions)
            ):
                yield node


def worst_units(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """What precedes each endless repetition of an expression, and what may be repeated there."""
    tree = _ENGINE._parser.parse(pattern.pattern, pattern.flags)
    return list(dict.fromkeys(_Attack(tree, pattern.flags).units(tree, "")))


class _Attack:
    """Samples of the parts of an expression, by the tree that Python's parser makes of it."""

    def __init__(self, tree: Any, flags: int) -> None:
        self.tree, self.flags = tree, flags
        self.groups: dict[int, str] = {}

    def units(self, items: Any, head: str) -> Iterator[tuple[str, str]]:
        for operation, value in items:
            kind = str(operation)
            if kind.endswith("_REPEAT"):
                _, most, body = value
                yield from self.units(body, head)
                if most > _ENDLESS:
                    yield from ((head, unit) for unit in self.repeated(body))
            elif kind == "BRANCH":
                for branch in value[1]:
                    yield from self.units(branch, head)
            elif kind == "SUBPATTERN":
                yield from self.units(value[-1], head)
            elif kind in {"ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"}:
                yield from self.units(value if kind == "ATOMIC_GROUP" else value[1], head)
            head += self.sample([(operation, value)])

    def repeated(self, body: Any) -> list[str]:
        """Characters that a repeated class takes, or one sample of a longer body."""
        if len(body) == 1 and str(body[0][0]) in {"IN", "ANY", "NOT_LITERAL", "LITERAL"}:
            taken = self.taken(body)
            return [taken[0], *(one for one in taken[1:] if one in " \n\t<[.1x-\u0301")] if taken else []
        sample = self.sample(body)
        return [sample, sample + " "] if sample else []

    def taken(self, items: Any) -> list[str]:
        single = _ENGINE._parser.SubPattern(self.tree.state, list(items))
        compiled: re.Pattern[str] = _ENGINE._compiler.compile(single, self.flags & ~re.DEBUG)
        return [character for character in _CHARACTERS if compiled.fullmatch(character)]

    def sample(self, items: Any) -> str:
        """A text that the items take, without regard to what stands around it."""
        found = ""
        for operation, value in items:
            kind = str(operation)
            if kind == "LITERAL":
                found += chr(value)
            elif kind in {"IN", "ANY", "NOT_LITERAL"}:
                taken = self.taken([(operation, value)])
                letters = [one for one in taken if one.isalnum()]
                found += (letters or taken or [self.first(value)])[0]
            elif kind == "BRANCH":
                found += self.sample(value[1][0])
            elif kind == "SUBPATTERN":
                inner = self.sample(value[-1])
                self.groups[value[0]] = inner
                found += inner
            elif kind.endswith("_REPEAT"):
                found += self.sample(value[2]) * max(1 if value[1] > _ENDLESS else 0, value[0])
            elif kind == "ATOMIC_GROUP":
                found += self.sample(value)
            elif kind == "ASSERT" and value[0] < 0 and not found:
                found += self.sample(value[1])
            elif kind == "GROUPREF":
                found += self.groups.get(value, "")
        return found

    @staticmethod
    def first(members: Any) -> str:
        """The first character of a class that none of the usual ones is in."""
        operation, value = members[0]
        return chr(value if str(operation) == "LITERAL" else value[0])
