"""URLs of collections in Weaviate."""

import os
import re
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from stepcraft.errors import BadInput
from stepcraft.files import named_path

KEY_VARIABLE = "WEAVIATE_API_KEY"
"""The environment variable that holds the API key of a server that requires one."""

KEY_HOSTS = "STEPCRAFT_KEY_HOSTS"
"""The environment variable with the hosts, separated by commas, that are sent the key without TLS: those to which the
network is private, such as a container's neighbours."""

QUANTIZERS = ("rq", "pq", "bq", "sq")

_COLLECTION_OPTIONS = {"tenant", "quantizer", "ef", "ef_construction", "max_connections"}
_OPTIONS = {
    "weaviate": {"grpc", "tls", "replicas"} | _COLLECTION_OPTIONS,
    "weaviate+embedded": {"binary"} | _COLLECTION_OPTIONS,
    "weaviate+cloud": {"replicas"} | _COLLECTION_OPTIONS,
}
_EXAMPLES = {
    "weaviate": "weaviate://host:8080/Collection?grpc=50051",
    "weaviate+embedded": "weaviate+embedded:///folder/Collection",
    "weaviate+cloud": "weaviate+cloud://cluster/Collection",
}
_BOUNDS = {
    "grpc": (1, 65535),
    "replicas": (1, 65535),
    "ef": (1, 65535),
    "ef_construction": (4, 65535),
    "max_connections": (4, 2047),
}
_DIGITS = 10
"""Python refuses to convert some thousands of digits to a number."""


@dataclass(frozen=True)
class Server:
    """Host and ports of a Weaviate server."""

    host: str
    port: int
    grpc_host: str
    grpc_port: int
    tls: bool = False
    key: str = field(default="", repr=False)
    """The API key of an embedded server, which is made for it; "" for that in the environment."""

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent to the host stays on this machine."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def may_have_key(self) -> bool:
        """Whether a key may be sent there: over TLS, on this machine, or where the deployment says so."""
        named = [host.strip().lower() for host in os.environ.get(KEY_HOSTS, "").split(",")]
        return self.tls or self.is_loopback or self.host.lower() in named

    @property
    def api_key(self) -> str:
        """Its own key, else that in the environment; "" if there is none."""
        return self.key or os.environ.get(KEY_VARIABLE, "").strip()

    @property
    def http(self) -> str:
        """The base URL of HTTP."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True)
class IndexSettings:
    """The settings of a collection's HNSW index that its URL names; None where it names none."""

    ef: int | None = None
    """How many candidates a search keeps: higher is slower and finds more. Can be changed at any time."""
    ef_construction: int | None = None
    """The same while the index is built. Fixed when the collection is created."""
    max_connections: int | None = None
    """Edges of each vector in the graph. Fixed when the collection is created."""


@dataclass(frozen=True)
class Address:
    """A collection, and the server or the embedded server's folder that holds it."""

    name: str
    """The URL; it holds no secret."""
    collection: str
    server: Server | None
    """None for an embedded server, whose ports are chosen when it starts."""
    folder: Path | None = None
    """The embedded server's data."""
    binary: Path | None = None
    """The folder of the embedded server's program; None for the client's own, which downloads it."""
    tenant: str = ""
    replicas: int = 0
    """The replication factor of a new collection; 0 for the server's default."""
    quantizer: str = ""
    """Of a new collection; "" for none."""
    index: IndexSettings = IndexSettings()


def parse_url(url: str) -> Address:
    """Parse the URL of a collection.

    Raises:
        BadInput: the URL is malformed, names an unknown option, or holds a key.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"{url} is no URL; check its host and port") from error
    scheme = parts.scheme
    if scheme not in _EXAMPLES:
        raise BadInput(f"no memory goes by {scheme}: name {', '.join(_EXAMPLES.values())}")
    if parts.username is not None or parts.password is not None:
        raise BadInput(f"a key does not belong into the URL of a memory; set {KEY_VARIABLE} to it")
    options = _options(url, parts)
    numbers = {name: _number(url, name, options[name]) for name in _BOUNDS if name in options}
    folder, _, collection = unquote(parts.path).rpartition("/")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", collection):
        raise BadInput(
            f"{url} names no collection: end it with a name of letters, digits and _, as in {_EXAMPLES[scheme]}"
        )
    address = Address(
        name=url,
        collection=collection[0].upper() + collection[1:],
        server=None,
        tenant=options.get("tenant", ""),
        replicas=numbers.get("replicas", 0),
        quantizer=options.get("quantizer", ""),
        index=IndexSettings(
            numbers.get("ef"), numbers.get("ef_construction"), numbers.get("max_connections")
        ),
    )
    if scheme == "weaviate+embedded":
        if parts.netloc or not folder.strip("/"):
            raise BadInput(
                f"{url} is not understood; write {_EXAMPLES[scheme]}, with three slashes"
            )
        binary = Path(options["binary"]).expanduser() if "binary" in options else None
        return replace(address, folder=named_path(folder).resolve(), binary=binary)
    if not parts.hostname or folder.strip("/"):
        raise BadInput(f"{url} is not understood; write {_EXAMPLES[scheme]}")
    if scheme == "weaviate+cloud":
        return replace(address, server=_cloud(parts.hostname))
    tls = options.get("tls", "false")
    if tls not in ("true", "false"):
        raise BadInput(f"{url} has tls={tls}; write true or false")
    secure = tls == "true"
    grpc_port = numbers.get("grpc", 443 if secure else 50051)
    host = parts.hostname
    return replace(
        address, server=Server(host, port or (443 if secure else 8080), host, grpc_port, tls=secure)
    )


def _options(url: str, parts: SplitResult) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = _OPTIONS[parts.scheme]
    for name in options:
        if name not in known:
            shown = f"{parts.scheme}://…/{parts.path.rpartition('/')[2]}"
            raise BadInput(f"{shown} has no option {name!r}; there are {', '.join(sorted(known))}")
    if (quantizer := options.get("quantizer")) is not None and quantizer not in QUANTIZERS:
        raise BadInput(f"{url} names no quantizer {quantizer!r}; there are {', '.join(QUANTIZERS)}")
    return options


def _number(url: str, name: str, value: str) -> int:
    least, most = _BOUNDS[name]
    if not value.isdecimal() or len(value) > _DIGITS or not least <= int(value) <= most:
        raise BadInput(f"{url} has {name}={value}; it must be a number from {least} to {most}")
    return int(value)


def _cloud(host: str) -> Server:
    """Weaviate's cloud serves gRPC under another host name."""
    if host.endswith(".weaviate.network"):
        cluster, _, domain = host.partition(".")
        return Server(host, 443, f"{cluster}.grpc.{domain}", 443, tls=True)
    return Server(host, 443, f"grpc-{host}", 443, tls=True)
