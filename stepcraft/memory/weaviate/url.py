"""URLs of collections in Weaviate."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from stepcraft.errors import BadInput
from stepcraft.files import named_path

VERSION = "1.39.1"
"""The version of the embedded server, and of the one that the tests run on."""

KEY_VARIABLE = "WEAVIATE_API_KEY"
"""The environment variable that holds the API key of a server that requires one."""

KEY_HOSTS = "STEPCRAFT_KEY_HOSTS"
"""The environment variable with the hosts, separated by commas, that are sent the key without TLS.

Those are hosts to which the network is private, such as a container's neighbours.
"""

QUANTIZERS = ("rq", "pq", "bq", "sq")

EMBEDDED_PORTS = (8079, 50050)
"""Those of the client's embedded server, for HTTP and gRPC."""

_EXAMPLES = {
    "weaviate": "weaviate://host:8080/Collection?grpc=50051",
    "weaviate+embedded": "weaviate+embedded:///folder/Collection",
    "weaviate+cloud": "weaviate+cloud://cluster/Collection",
}
_OPTIONS = {
    "weaviate": {"grpc", "tls", "replicas"},
    "weaviate+embedded": {"binary"},
    "weaviate+cloud": {"replicas"},
}
_BOUNDS = {
    "grpc": (1, 65535),
    "replicas": (1, 65535),
    "ef": (1, 65535),
    "ef_construction": (4, 65535),
    "max_connections": (4, 2047),
}
_INDEX = ("ef", "ef_construction", "max_connections")


@dataclass(frozen=True)
class Address:
    """A collection, and the server that holds it."""

    name: str
    """The URL; it holds no secret."""
    collection: str
    host: str
    port: int
    grpc_host: str
    grpc_port: int
    tls: bool
    folder: Path | None
    """The data of an embedded server; None for any other."""
    options: Mapping[str, str]
    index: Mapping[str, int]
    """The settings of the HNSW index that the URL names, as Weaviate calls them."""

    @property
    def http(self) -> str:
        """The base URL of the server's HTTP API."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    def key(self) -> str:
        """Return the API key for the server, "" if there is none.

        Raises:
            BadInput: It would be sent in clear over a network that nobody calls private.
        """
        key = os.environ.get(KEY_VARIABLE, "").strip()
        private = [host.strip().lower() for host in os.environ.get(KEY_HOSTS, "").split(",")]
        if key and not (self.tls or self.host.lower() in private or _is_loopback(self.host)):
            raise BadInput(
                f"{self.name}: the key in {KEY_VARIABLE} would be sent in clear to {self.host}; "
                f"name a server with tls=true, or unset the key, or add the host to {KEY_HOSTS} "
                "if the network to it is private"
            )
        return key


def parse_url(url: str) -> Address:
    """Parse the URL of a collection.

    Raises:
        BadInput: The URL is malformed, names an unknown option, or holds a key.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"{url} is no URL; check its host and port") from error
    scheme, host = parts.scheme, parts.hostname or ""
    if scheme not in _EXAMPLES:
        raise BadInput(f"no memory goes by {scheme}: name {', '.join(_EXAMPLES.values())}")
    if parts.username is not None:
        raise BadInput(f"a key does not belong into the URL of a memory; set {KEY_VARIABLE} to it")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    allowed = {"tenant", "quantizer", *_INDEX, *_OPTIONS[scheme]}
    if unknown := options.keys() - allowed:
        shown = f"{scheme}://…/{parts.path.rpartition('/')[2]}"
        raise BadInput(
            f"{shown} has no option {min(unknown)!r}; there are {', '.join(sorted(allowed))}"
        )
    numbers = {name: _number(url, name, options[name]) for name in _BOUNDS if name in options}
    if options.get("quantizer", "rq") not in QUANTIZERS:
        raise BadInput(
            f"{url} names no quantizer {options['quantizer']!r}; there are {', '.join(QUANTIZERS)}"
        )
    if options.get("tls", "true") not in ("true", "false"):
        raise BadInput(f"{url} has tls={options['tls']}; write true or false")
    path, _, collection = unquote(parts.path).rpartition("/")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", collection):
        raise BadInput(
            f"{url} names no collection: end it with a name of letters, digits and _, as in "
            f"{_EXAMPLES[scheme]}"
        )
    embedded = scheme == "weaviate+embedded"
    if bool(host) == embedded or bool(path.strip("/")) != embedded:
        slashes = ", with three slashes" if embedded else ""
        raise BadInput(f"{url} is not understood; write {_EXAMPLES[scheme]}{slashes}")
    tls = scheme == "weaviate+cloud" or options.get("tls") == "true"
    grpc_host = host
    if embedded:
        host = grpc_host = "127.0.0.1"
        port, grpc_port = EMBEDDED_PORTS
    elif scheme == "weaviate+cloud":
        # Weaviate's cloud serves gRPC under another host name.
        cluster, _, domain = host.partition(".")
        old = domain == "weaviate.network"
        grpc_host = f"{cluster}.grpc.{domain}" if old else f"grpc-{host}"
        grpc_port = 443
    else:
        grpc_port = numbers.get("grpc", 443 if tls else 50051)
    return Address(
        name=url,
        collection=collection[0].upper() + collection[1:],
        host=host,
        port=port or (443 if tls else 8080),
        grpc_host=grpc_host,
        grpc_port=grpc_port,
        tls=tls,
        folder=named_path(path).resolve() if embedded else None,
        options=options,
        index={name: numbers[name] for name in _INDEX if name in numbers},
    )


def _number(url: str, name: str, text: str) -> int:
    least, most = _BOUNDS[name]
    if not re.fullmatch("[0-9]{1,10}", text) or not least <= int(text) <= most:
        raise BadInput(f"{url} has {name}={text}; it must be a number from {least} to {most}")
    return int(text)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
