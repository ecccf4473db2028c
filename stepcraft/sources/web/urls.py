"""Decide which URLs and addresses may be fetched: http and https, on the public internet."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, ip_address, ip_network

import httpx

from stepcraft.errors import BadInput, FetchRefused

_PUBLIC_V6 = ip_network("2000::/3")
_REFUSED = [
    ip_network(network)
    for network in (  # some Python releases treat these as global
        "100.64.0.0/10",  # shared by the customers of a carrier; also a cloud's metadata
        "168.63.129.16/32",  # a cloud's metadata at a public address
        "192.0.0.0/24",  # protocol assignments, and a cloud's metadata
        "192.88.99.0/24",  # 6to4 relays
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",  # 6to4, which embeds any IPv4 address
        "3fff::/20",
    )
]
_HOST = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(:\d+)?", re.IGNORECASE)
_NAT64 = ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether an address, as returned by a resolver, belongs to the public internet."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if ip in _NAT64:  # how a network without IPv4 reaches an IPv4 address
        ip = IPv4Address(ip.packed[-4:])
    if ip.version == 6 and ip not in _PUBLIC_V6:
        return False
    is_odd = ip.is_multicast or ip.is_reserved or any(ip in network for network in _REFUSED)
    return ip.is_global and not is_odd


def checked_url(url: str) -> httpx.URL:
    """Parse a URL, refusing one that must never be fetched, whatever its host resolves to.

    Raises:
        FetchRefused: It is not a valid http or https URL, or carries credentials.
    """
    try:
        target = httpx.URL(url.strip()).copy_with(fragment=None)
        has_host = bool(target.host)  # raises for an invalid "xn--" name
    except (httpx.InvalidURL, ValueError) as error:
        raise FetchRefused(f"{shown_url(url)} is no URL; check its host and port") from error
    has_port = target.port is None or 0 < target.port < 65536
    if target.scheme not in {"http", "https"} or target.userinfo or not (has_host and has_port):
        raise FetchRefused(
            f"{shown_url(url)} is no http or https URL of a host, without user and password"
        )
    return target


def shown_url(url: httpx.URL | str) -> str:
    """Return a URL for use in messages, without user, password, query or fragment."""
    plain = ascii(re.sub(r"^(\w+://)[^/?#]*@", r"\1", str(url)))[1:-1]
    return re.sub(r"[?#].*", "?…", plain[:200])


def allowed_hosts(names: Iterable[str]) -> set[str]:
    """Return hosts (`wiki.example`, `wiki.example:8080`, `[::1]:80`) in the form used in URLs.

    Raises:
        BadInput: A name is not a valid host.
    """
    hosts = list(names)
    if wrong := [name for name in hosts if not _HOST.fullmatch(name)]:
        raise BadInput(f"{wrong[0]!r} is no host: allow a name or name:port, such as [::1]:8080")
    try:  # httpx drops the default port of schemes that it knows.
        return {httpx.URL(f"any://{name}").netloc.decode("ascii") for name in hosts}
    except httpx.InvalidURL as error:
        raise BadInput(f"{', '.join(hosts)}: {error}; allow names, or valid addresses") from error
