"""Names registered by a deployment and by installed distributions.

The context of a run may only use the names registered by the deployment.
"""

import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import TypeVar

from stepcraft.errors import BadInput
from stepcraft.secrets import excerpt

T = TypeVar("T")

SOURCES = "STEPCRAFT_SOURCES"
MEMORIES = "STEPCRAFT_MEMORIES"
MODELS = "STEPCRAFT_MODELS"
"""The environment variables that map names to specs: `docs=corpus:/srv/docs; web=web`."""

_NAME = re.compile(r"[A-Za-z][\w.-]{0,99}")


def registered(variable: str) -> dict[str, str]:
    """Return the names in an environment variable with their specs.

    An entry without a name uses its spec as the name.

    Raises:
        BadInput: An entry does not have the form `name=spec`.
    """
    names: dict[str, str] = {}
    for entry in filter(None, map(str.strip, re.split(r"[;\n]", os.environ.get(variable, "")))):
        name, equals, spec = (part.strip() for part in entry.partition("="))
        if not equals:
            name, spec = entry, entry
        elif not (_NAME.fullmatch(name) and spec):
            raise BadInput(
                f"{variable} has the entry {excerpt(entry)}; "
                "write each as name=spec, with ; between"
            )
        names[name] = spec
    return names


def chosen(kind: str, name: str, names: Mapping[str, T], how: str) -> T:
    """Return the object that a name in a run's context stands for.

    Args:
        kind: The kind of object, for the error message: "source", "memory", "model".
        name: The name.
        names: The registered names with their objects.
        how: How to register more names, for the error message.

    Raises:
        BadInput: The name is not registered.
    """
    if name not in names:
        listed = f"registered are {', '.join(names)}" if names else "none is registered"
        raise BadInput(
            f"a run may not name the {kind} {excerpt(name)}: {listed} ({how} registers more)"
        )
    return names[name]


def did_you_mean(name: str, names: Iterable[str], otherwise: str) -> str:
    """Return a question for an error message that suggests the known name most like an unknown one.

    Args:
        name: The unknown name.
        names: The known names.
        otherwise: What to return if no known name is similar.
    """
    near = get_close_matches(name, [*names], 1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def installed_names(group: str) -> list[str]:
    """Return the names that installed distributions register as entry points in a group."""
    return sorted(entry_points(group=group).names)


def installed(group: str, name: str, kind: type[T]) -> T | None:
    """Return the object that an installed distribution registers under a name, or None.

    Raises:
        BadInput: It has the wrong type.
    """
    for entry in entry_points(group=group, name=name):
        loaded = entry.load()
        if not isinstance(loaded, kind):
            raise BadInput(f"the entry point {entry.value} of {name!r:.80} is no {kind.__name__}")
        return loaded
    return None
