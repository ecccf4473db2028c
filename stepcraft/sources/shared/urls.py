"""URLs of corpora on servers."""

from urllib.parse import unquote

from stepcraft.errors import BadInput
from stepcraft.memory.urls import scheme_of


def is_shared(spec: str) -> bool:
    """Return whether a spec is the URL of a corpus on a server."""
    return scheme_of(spec) in ("weaviate", "weaviate+cloud", "postgresql")


def parted(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without its `where` options, and the filter that those options describe.

    Raises:
        BadInput: Two options give different values for one name.
    """
    base, _, query = url.partition("?")
    where: dict[str, str] = {}
    others: list[str] = []
    for option in query.split("&"):
        if option.startswith("where="):
            name, _, value = unquote(option.removeprefix("where=")).partition("=")
            if where.setdefault(name, value) != value:
                raise BadInput(f"the filter {name!r} has two values in the URL; give one of them")
        else:
            others.append(option)
    rest = "&".join(others)
    return f"{base}?{rest}" if rest else base, where
