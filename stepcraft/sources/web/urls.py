"""The URLs that the fetcher takes, and how they are shown."""

from collections.abc import Iterable

import httpx

from stepcraft.errors import BadInput, FetchRefused

_SCHEMES = {"http", "https"}


def checked_url(url: str) -> httpx.URL:
    """A URL that may be asked for, as far as the URL alone can tell.

    Raises:
        FetchRefused: it is no URL, or no plain http or https one.
    """
    try:
        found = httpx.URL(url.strip()).copy_with(fragment=None)
        named = bool(found.host)  # here httpx finds out that an "xn--" name is none
    except (httpx.InvalidURL, ValueError) as error:
        raise FetchRefused(f"{shown(url)} is no URL: {error}") from error
    if found.scheme not in _SCHEMES:
        raise FetchRefused(f"{shown(url)} is neither http nor https, and nothing else is fetched")
    if found.userinfo:
        raise FetchRefused(f"{shown(found)} carries a user name or password, and none are sent")
    if not named or not (found.port is None or 0 < found.port < 65536):
        raise FetchRefused(f"{shown(url)} names no host, or a port that there is not")
    return found


def shown(url: httpx.URL | str) -> str:
    """A URL as messages show it: without user, password, query and fragment, which may hold secrets."""
    text = str(url)
    scheme, separator, rest = text.partition("://")
    ends = min((place for place in map(rest.find, "?#") if place >= 0), default=len(rest))
    host, slash, path = rest[:ends].partition("/")
    plain = f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"
    return ascii(plain)[1:-1][:200] + ("?…" if ends < len(rest) else "")


class AllowedHosts:
    """Hosts whose addresses are not checked, by name (`wiki.example`) or name and port (`127.0.0.1:8080`).

    Raises:
        BadInput: an entry is no such name.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = {_canonical(host) for host in hosts}

    def __contains__(self, place: tuple[str, int]) -> bool:
        host, port = place
        return (host, None) in self._hosts or (host, port) in self._hosts


def _canonical(named: str) -> tuple[str, int | None]:
    bare = named.count(":") > 1 and not named.startswith("[")
    try:
        # No known scheme: httpx drops a port that is the scheme's own.
        url = httpx.URL(f"any://[{named}]" if bare else f"any://{named}")
    except httpx.InvalidURL as error:
        raise BadInput(
            f"{named!r} is no host: allow a name or name:port, such as wiki.example:8080"
        ) from error
    host = url.raw_host.decode("ascii")
    if not host or "%" in host or url.userinfo or url.path not in {"", "/"}:
        raise BadInput(f"{named!r} is no host: allow a name or name:port, such as wiki.example:8080")
    return host, url.port
