"""The page of commands: every command of the command line with its arguments and options."""

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_origin

from typer.main import get_command

from stepcraft.cli import app

Click: TypeAlias = Any
"""A command, a context or a parameter of the click that typer brings, which comes without types."""

_TYPES: dict[object, str] = {str: "TEXT", Path: "PATH", int: "NUMBER", float: "NUMBER"}


class Command(NamedTuple):
    """A command, as the objects of the command line describe it."""

    name: str
    """Its words: `stepcraft memory add`."""
    usage: str
    help: str
    parameters: list[Click]
    """Its arguments and options, without --help."""
    subcommands: list[str]


def page() -> str:
    """Return the Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def commands() -> list[Command]:
    """Return all commands, each group before its own."""

    def walk(command: Click, name: str, above: Click) -> Iterator[Command]:
        context = command.context_class(command, info_name=name, parent=above)
        within = dict(getattr(command, "commands", {}))
        words = context.command_path
        parameters = [
            each
            for each in command.params
            if each.name != "help" and not getattr(each, "hidden", False)
        ]
        pieces = (
            ["COMMAND [ARGS]..."]
            if within
            else [_argument(each) for each in parameters if not _is_option(each)]
        )
        usage = " ".join(
            [words, *(["[OPTIONS]"] if any(map(_is_option, parameters)) else []), *pieces]
        )
        yield Command(words, usage, inspect.cleandoc(command.help or ""), parameters, list(within))
        for word, inner in within.items():
            yield from walk(inner, word, context)

    return list(walk(get_command(app), "stepcraft", None))


def _lines() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "Each command prints its part of this page with `--help`. A command ends with status 0, with"
    yield "2 where its input cannot be used, with 130 after Ctrl-C, and with 1 after any other failure."
    yield ""
    for command in commands():
        yield from _section(command)


def _section(command: Command) -> Iterator[str]:
    is_group = bool(command.subcommands)
    marks = "##" if is_group or command.name.count(" ") == 1 else "###"
    yield f"{marks} {command.name} {{ #{command.name.replace(' ', '-')} }}"
    yield ""
    yield from (line.strip() for line in command.help.split("\f")[0].splitlines())
    yield ""
    yield "```text"
    yield command.usage
    yield "```"
    yield ""
    for name in command.subcommands:
        words = f"{command.name} {name}"
        yield f"- [`{words}`](#{words.replace(' ', '-')})"
    if command.subcommands:
        yield ""
    for kind, note in (
        ("argument", {False: " May be left out."}),
        ("option", {True: " Required."}),
    ):
        if shown := [each for each in command.parameters if each.param_type_name == kind]:
            yield f"| {kind} | |"
            yield "|---|---|"
            for each in shown:
                text = f"{_cell(each.help)}{note.get(each.required, '')}{_default(each)}"
                yield f"| {_names(each)} | {text} |"
            yield ""


def _names(parameter: Click) -> str:
    if not _is_option(parameter):
        return f"`{_metavar(parameter)}`"
    value = "" if parameter.is_flag else f" {_metavar(parameter)}"
    value = value.replace("|", "\\|")
    names = ", ".join(f"`{name}{value}`" for name in parameter.opts)
    return names + "".join(f", `{name}`" for name in parameter.secondary_opts)


def _is_option(parameter: Click) -> bool:
    return bool(parameter.param_type_name != "argument")


def _argument(argument: Click) -> str:
    """Return an argument in the usage of its command: in brackets where it may be left out."""
    name = _metavar(argument)
    shown = name if argument.required or name.startswith("[") else f"[{name}]"
    return (
        f"{shown.removesuffix('…')}..."
        if argument.nargs == -1 and not shown.endswith("...")
        else shown
    )


def _metavar(parameter: Click) -> str:
    if not _is_option(parameter):
        return str(parameter.metavar or parameter.name.upper())
    kind = _type(parameter)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(each.value) for each in kind)
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    return str(parameter.metavar or _TYPES.get(kind, "VALUE"))


def _type(parameter: Click) -> object:
    """Return the type of a value; of a list or of one that may be None, that of what it holds."""
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", str)
    inner = [each for each in get_args(annotation) if each is not type(None)]
    return annotation if get_origin(annotation) is Literal or not inner else inner[0]


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _default(parameter: Click) -> str:
    default = parameter.default
    if (
        callable(default)
        or default is None
        or default is False
        or default in ("", [], ())
        or parameter.required
    ):
        return ""
    if isinstance(default, list | tuple):
        default = " ".join(map(str, default))
    return f" Default: `{default}`."
