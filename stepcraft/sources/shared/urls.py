"""URLs of corpora on servers."""

import re
from urllib.parse import unquote

from stepcraft.errors import BadInput
from stepcraft.memory.urls import scheme_of

_FIELD = re.compile(r"\{\w+\}")


def is_shared(spec: str) -> bool:
    """Return whether a spec is the URL of a corpus on a server."""
    return scheme_of(spec) in ("weaviate", "weaviate+cloud", "postgresql")


def parted(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without its `where` options, and the filter that those options describe.

    Raises:
        BadInput: Two options give different values for one name, or one has a field like {user}.
    """
    base, _, query = url.partition("?")
    where: dict[str, str] = {}
    others: list[str] = []
    for option in query.split("&"):
        if option.startswith("where="):
            if _FIELD.search(option):
                raise BadInput(f"{option} is not filled in, only tenant= is; write %7B for a brace")
            name, _, value = unquote(option.removeprefix("where=")).partition("=")
            if where.setdefault(name, value) != value:
                raise BadInput(f"the filter {name!r} has two values in the URL; give one of them")
        else:
            others.append(option)
    rest = "&".join(others)
    return f"{base}?{rest}" if rest else base, where
