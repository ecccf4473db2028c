"""URLs of corpora on servers."""

from urllib.parse import unquote

from stepcraft.memory.urls import scheme_of


def is_shared(spec: str) -> bool:
    """Return whether a spec is the URL of a corpus on a server."""
    return scheme_of(spec) in ("weaviate", "weaviate+cloud", "postgresql")


def parted(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without its `where` options, and the filter that those options describe."""
    base, _, query = url.partition("?")
    where: dict[str, str] = {}
    others: list[str] = []
    for option in query.split("&"):
        if option.startswith("where="):
            name, _, value = unquote(option.removeprefix("where=")).partition("=")
            where[name] = value
        else:
            others.append(option)
    rest = "&".join(others)
    return f"{base}?{rest}" if rest else base, where
