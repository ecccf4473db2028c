"""What texts an expression of the package's code can have, found by reading the code: the messages are found so.

A text that is known only at run time stands in braces, named after the expression that makes it: `{path}`.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef

_MOST = 8
"""The most texts that the parts of an expression are multiplied to; beyond it the part with most choices is a name."""
_DEEPEST = 6
_SAME_TEXT = {"one_line", "without_secrets", "clean", "str", "excerpt", "redacted", "unquoted"}
"""Functions whose result says what their argument says."""
_COUNTS = {"len", "sum", "counted"}


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: its module, its function and its class, where it has them."""

    module: "Module"
    function: Function | None = None
    owner: str = ""

    @property
    def parameters(self) -> list[str]:
        """The names of the function's parameters, without self and cls."""
        if self.function is None:
            return []
        given = self.function.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        return [name for name in names if name not in {"self", "cls"}]

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """What is assigned to each name in the function."""
        found: dict[str, list[ast.expr]] = defaultdict(list)
        for node in ast.walk(self.function) if self.function else ():
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found[name].append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found[name].append(value)
                case ast.NamedExpr(target=ast.Name(id=name), value=value):
                    found[name].append(value)
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    for one, value in zip(names, values, strict=False):
                        if isinstance(one, ast.Name):
                            found[one.id].append(value)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                    found[name].append(value)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]):
                    found[name].append(ast.List([value], ast.Load()))
                case _:
                    pass
        return found


@dataclass
class Module:
    """A module of the package."""

    name: str
    path: Path
    tree: ast.Module
    constants: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    imported: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """The names that it imports, each with its module and its name there."""


class Code:
    """The code of a package, and what its expressions can say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: dict[str, Module] = {}
        self.functions: dict[str, list[tuple[Function, Scope]]] = defaultdict(list)
        self.demanded: set[tuple[str, str]] = set()
        """The functions and parameters whose arguments became part of a text."""
        self.nodes: list[tuple[ast.AST, Scope]] = []
        """Everything in the code, with where it stands."""
        self.calls: dict[str, list[tuple[ast.Call, Scope]]] = defaultdict(list)
        self._returned: dict[int, list[str]] = {}
        for path in sorted(folder.rglob("*.py")):
            self._read(path)

    def _read(self, path: Path) -> None:  # noqa: C901 - what a module holds, kind by kind
        parts = path.relative_to(self.folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        module = Module(name, path, ast.parse(path.read_text("utf-8")))
        self.modules[name] = module
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for one in node.names:
                    module.imported[one.asname or one.name] = (node.module, one.name)
        for statement in module.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=value):
                    module.constants[target] = value
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                    module.constants[target] = value
                case _:
                    pass
        for node, scope in _scopes(module):
            self.nodes.append((node, scope))
            if scope.function is node and isinstance(node, Function):
                self.functions[node.name].append((node, scope))
                if node.name == "__init__":
                    self.functions[scope.owner].append((node, scope))
            elif isinstance(node, ast.Call):
                self.calls[last_name(node.func)].append((node, scope))

    def texts(self, expression: ast.expr, scope: Scope, depth: int = 0) -> list[str]:
        """The texts that an expression can be."""
        found = self._texts(expression, scope, depth) if depth <= _DEEPEST else [_placeholder(expression)]
        return list(dict.fromkeys(found))

    def _texts(self, expression: ast.expr, scope: Scope, depth: int) -> list[str]:  # noqa: C901, PLR0911, PLR0912 - one case a kind of expression
        deeper = depth + 1
        match expression:
            case ast.Constant(value=str() as text):
                return [text]
            case ast.Constant(value=None):
                return []
            case ast.JoinedStr(values=values):
                return self._joined([self.texts(value, scope, depth) for value in values], values)
            case ast.FormattedValue(value=ast.Constant(value=value)):
                return [str(value)]
            case ast.FormattedValue(value=value, format_spec=spec, conversion=conversion):
                texts = self.texts(value, scope, deeper)
                is_text = all("{" not in text for text in texts) and not (spec and len(texts) > 1)
                if isinstance(value, ast.Name | ast.IfExp | ast.Call | ast.BoolOp) and texts and is_text:
                    return [repr(text) for text in texts] if conversion == ord("r") else texts
                if (
                    isinstance(value, ast.IfExp | ast.Call | ast.BinOp | ast.BoolOp)
                    and texts
                    and conversion == -1
                ):
                    return texts
                return [_placeholder(value)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([self.texts(one, scope, deeper) for one in (left, right)], [left, right])
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.texts(body, scope, deeper), *self.texts(orelse, scope, deeper)]
            case ast.BoolOp(values=values):
                return [text for value in values for text in self.texts(value, scope, deeper)]
            case (
                ast.NamedExpr(value=value)
                | ast.Subscript(value=value, slice=ast.Slice())
                | ast.Await(value=value)
            ):
                return self.texts(value, scope, deeper)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [text for one in elements for text in self.texts(one, scope, deeper)]
            case ast.Starred(value=value):
                return self.texts(value, scope, deeper)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self.texts(element, scope, deeper)
            case ast.Name(id=name):
                return self._named(name, expression, scope, deeper)
            case ast.Call():
                return self._called(expression, scope, deeper)
            case _:
                return [_placeholder(expression)]

    def _joined(self, parts: Sequence[list[str]], values: Sequence[ast.expr]) -> list[str]:
        choices = [list(dict.fromkeys(part)) or [""] for part in parts]
        while len(list(product(*choices))) > _MOST:
            widest = max(range(len(choices)), key=lambda place: len(choices[place]))
            value = values[widest]
            choices[widest] = [_placeholder(value.value if isinstance(value, ast.FormattedValue) else value)]
        return ["".join(one) for one in product(*choices)]

    def _named(self, name: str, expression: ast.expr, scope: Scope, depth: int) -> list[str]:
        if scope.function is not None:
            if name in scope.parameters:
                label = scope.owner if scope.function.name == "__init__" else scope.function.name
                self.demanded.add((label, name))
                return [_placeholder(expression)]
            if values := scope.assigned.get(name):
                texts = [text for value in values for text in self.texts(value, scope, depth)]
                return [text for text in texts if text.strip()] or [""]
        found = self.constant(name, scope.module)
        return self.texts(found[0], Scope(found[1]), depth) if found else [_placeholder(expression)]

    def constant(self, name: str, module: Module) -> tuple[ast.expr, Module] | None:
        """The value of a module's constant, its own or an imported one, and the module that defines it."""
        if name in module.constants:
            return module.constants[name], module
        where, original = module.imported.get(name, ("", ""))
        return self.constant(original, self.modules[where]) if where in self.modules else None

    def _called(self, call: ast.Call, scope: Scope, depth: int) -> list[str]:
        match call.func:
            case ast.Attribute(value=ast.Constant(value=str()), attr="join"):
                return [_placeholder(call)]
            case ast.Attribute(value=format_, attr="format"):
                arguments = [_placeholder(one) for one in call.args]
                return [_filled(text, arguments) for text in self.texts(format_, scope, depth)]
            case ast.Attribute(value=value, attr="strip" | "rstrip" | "capitalize" | "replace" | "partition"):
                return self.texts(value, scope, depth)
            case ast.Name(id=name) if name in _SAME_TEXT and call.args:
                return self.texts(call.args[0], scope, depth)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                where, original = scope.module.imported.get(name, (scope.module.name, name))
                defined = [one for one in self.functions.get(original, []) if one[1].module.name == where]
                if isinstance(call.func, ast.Attribute):
                    defined = defined or self.functions.get(name, [])
                if len(defined) == 1 and _is_text(defined[0][0].returns):
                    texts = self._returns(*defined[0], depth)
                    if any(has_words(text) for text in texts):
                        return texts
            case _:
                pass
        return [_placeholder(call)]

    def _returns(self, function: Function, scope: Scope, depth: int) -> list[str]:
        if id(function) not in self._returned:
            self._returned[id(function)] = [_placeholder(ast.Name(function.name))]  # where it calls itself
            self._returned[id(function)] = [
                text
                for node in ast.walk(function)
                if isinstance(node, ast.Return | ast.Yield) and node.value
                for text in self.texts(node.value, scope, depth)
            ]
        return self._returned[id(function)]

    def argument(self, call: ast.Call, name: str, parameter: str) -> ast.expr | None:
        """What a call of a function gives for a parameter; None where it gives nothing or the name is ambiguous."""
        for keyword in call.keywords:
            if keyword.arg == parameter:
                return keyword.value
        defined = self.functions.get(name, [])
        if len(defined) != 1 or parameter not in defined[0][1].parameters:
            return None
        place = defined[0][1].parameters.index(parameter)
        given = call.args[place] if place < len(call.args) else None
        return None if isinstance(given, ast.Starred) else given


def last_name(expression: ast.expr) -> str:
    """The last name of an expression: of `self.report.warnings`, `warnings`."""
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value, slice=key):
            return str(key.value) if isinstance(key, ast.Constant) else last_name(value)
        case _:
            return ""


def _scopes(module: Module) -> Iterator[tuple[ast.AST, Scope]]:
    """Each node of a module with the innermost function that it stands in."""

    def walk(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
        if isinstance(node, Function):
            scope = Scope(module, node, scope.owner)
        elif isinstance(node, ast.ClassDef):
            scope = Scope(module, scope.function, node.name)
        yield node, scope
        for child in ast.iter_child_nodes(node):
            yield from walk(child, scope)

    yield from walk(module.tree, Scope(module))


def has_words(text: str) -> bool:
    """Whether a text says something itself, and not only what stands in its braces."""
    depth, said = 0, ""
    for character in text:
        depth += (character == "{") - (character == "}")
        said += character if not depth else " "
    return sum(any(map(str.isalpha, word)) for word in said.split()) > 1


def _is_text(returns: ast.expr | None) -> bool:
    return returns is not None and ast.unparse(returns).strip("\"'") in {
        "str",
        "str | None",
        "list[str]",
        "Iterator[str]",
    }


def _filled(text: str, arguments: Sequence[str]) -> str:
    for argument in arguments:
        text = text.replace("{}", argument, 1)
    return text


def _placeholder(expression: ast.expr) -> str:
    return f"{{{_label(expression)}}}"


def _label(expression: ast.expr) -> str:  # noqa: C901, PLR0911, PLR0912 - one case a kind of expression
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            if name == "__name__" and isinstance(expression, ast.Attribute):
                return "type" if "type(" in ast.unparse(expression) else _label(expression.value)
            return name.strip("_").lower() or "value"
        case ast.Call(func=ast.Name(id="len"), args=[argument, *_]):
            return "number" if isinstance(argument, ast.Call) else f"number of {_label(argument)}"
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[argument]):
            return _label(argument)
        case ast.Call(
            func=ast.Attribute(value=value, attr="get"), args=[ast.Constant(value=str() as key), *_]
        ):
            return key if isinstance(value, ast.expr) else "value"
        case ast.Call(func=ast.Attribute(value=value), args=[]):
            return _label(value)
        case ast.Call(args=[argument, *_]):
            return _label(argument)
        case ast.Call(func=function):
            return _label(function)
        case ast.Subscript(value=value, slice=ast.Constant(value=str() as key)):
            return key or _label(value)
        case ast.Subscript(value=value) | ast.Starred(value=value) | ast.Await(value=value):
            return _label(value)
        case ast.BinOp(left=left, right=right):
            return _label(right if isinstance(left, ast.Constant) else left)
        case ast.BoolOp(values=[first, *_]):
            return _label(first)
        case ast.IfExp(body=body, orelse=orelse):
            return _label(orelse if isinstance(body, ast.Constant) else body)
        case ast.GeneratorExp(generators=[one, *_]) | ast.ListComp(generators=[one, *_]):
            return _label(one.iter)
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
            return _label(first)
        case ast.FormattedValue(value=value):
            return _label(value)
        case _:
            return "value"
