"""Which addresses the fetcher may connect to: those of the public internet, in no disguise."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

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
    """Whether an address, as a resolver gives it, is one of the public internet.

    An IPv6 address that stands for an IPv4 one (mapped, 6to4, NAT64) counts as that. The networks that some
    releases of Python wrongly take for global are listed here.
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
