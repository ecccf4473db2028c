"""URLs of corpora on servers."""

from urllib.parse import unquote

from stepcraft.memory.urls import scheme_of


def is_shared(spec: str) -> bool:
    """Return whether a spec is the URL of a corpus on a server."""
    return scheme_of(spec) in ("weaviate", "weaviate+cloud", "postgresql")


def parted(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without its `where` options, and the filter that those options describe."""
    base, _, query = url.partition("?")
    options = query.split("&") if query else []
    wanted = [unquote(each.removeprefix("where=")) for each in options if each.startswith("where=")]
    others = "&".join(each for each in options if not each.startswith("where="))
    pairs = [each.partition("=") for each in wanted]
    return f"{base}?{others}" if others else base, {name: value for name, _, value in pairs}
