"""Which URLs and addresses the fetcher may use: http and https, on the public internet."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx

from stepcraft.errors import BadInput, FetchRefused

_SCHEMES = {"http", "https"}
# Networks that some releases of Python wrongly take for global.
_V4_REFUSED = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",  # shared by the customers of a carrier; a cloud's metadata too
            "168.63.129.16/32",  # the metadata of a cloud under a public address
            "192.0.0.0/24",  # protocol assignments, and a cloud's metadata
            "192.88.99.0/24",  # 6to4 relays
        ),
    )
)
_V6_PUBLIC = ip_network("2000::/3")
_V6_REFUSED = tuple(map(ip_network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_NAT64 = ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an IP address, as a resolver returns it, belongs to the public internet.

    An IPv6 address that embeds an IPv4 one (mapped, 6to4, NAT64) is judged by the embedded one.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return _is_public_v4(found) if isinstance(found, IPv4Address) else _is_public_v6(found)


def _is_public_v4(address: IPv4Address) -> bool:
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address in network for network in _V4_REFUSED)


def _is_public_v6(address: IPv6Address) -> bool:
    embedded = address.ipv4_mapped or address.sixtofour
    if address in _NAT64:
        embedded = IPv4Address(int(address) & 0xFFFFFFFF)
    if embedded:
        return _is_public_v4(embedded)
    if address.scope_id or address not in _V6_PUBLIC or not address.is_global:
        return False
    return not any(address in network for network in _V6_REFUSED)


def checked_url(url: str) -> httpx.URL:
    """Parse a URL that may be fetched, as far as the URL alone can tell.

    Raises:
        FetchRefused: it is not a valid http or https URL, or carries credentials.
    """
    try:
        found = httpx.URL(url.strip()).copy_with(fragment=None)
        has_host = bool(found.host)  # raises for an invalid "xn--" name
    except (httpx.InvalidURL, ValueError) as error:
        raise FetchRefused(f"{shown(url)} is no URL; check its host and port") from error
    if found.scheme not in _SCHEMES:
        raise FetchRefused(f"{shown(url)} is neither http nor https, and nothing else is fetched")
    if found.userinfo:
        raise FetchRefused(f"{shown(found)} carries a user name or password, and none are sent")
    if not has_host or not (found.port is None or 0 < found.port < 65536):
        raise FetchRefused(f"{shown(url)} names no host, or a port that there is not")
    return found


def shown(url: httpx.URL | str) -> str:
    """A URL for messages: without user, password, query and fragment, which may hold secrets."""
    text = str(url)
    scheme, separator, rest = text.partition("://")
    ends = min((place for place in map(rest.find, "?#") if place >= 0), default=len(rest))
    host, slash, path = rest[:ends].partition("/")
    plain = f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"
    return ascii(plain)[1:-1][:200] + ("?…" if ends < len(rest) else "")


class AllowedHosts:
    """Hosts that may have any address, by name (`wiki.example`) or name and port (`127.0.0.1:8080`).

    Raises:
        BadInput: an entry is not of this form.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = {_canonical(host) for host in hosts}

    def __contains__(self, place: tuple[str, int]) -> bool:
        host, port = place
        return (host, None) in self._hosts or (host, port) in self._hosts


def _canonical(named: str) -> tuple[str, int | None]:
    bare_v6 = named.count(":") > 1 and not named.startswith("[")
    refused = BadInput(
        f"{named!r} is no host: allow a name or name:port, such as wiki.example:8080"
    )
    try:
        # An unknown scheme, as httpx drops the default port of a known one.
        url = httpx.URL(f"any://[{named}]" if bare_v6 else f"any://{named}")
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise refused from error
    host = url.raw_host.decode("ascii")
    if not host or "%" in host or url.userinfo or url.path not in {"", "/"}:
        raise refused
    return host, url.port
