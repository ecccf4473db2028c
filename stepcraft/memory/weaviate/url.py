"""The URL of a memory in Weaviate."""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from stepcraft.errors import BadInput, without_secrets

KEY_VARIABLE = "WEAVIATE_API_KEY"
"""The environment variable that holds the key of a server that asks for one."""

QUANTIZERS = ("rq", "pq", "bq", "sq")
SCHEMES = ("weaviate", "weaviate+embedded", "weaviate+cloud")

_OPTIONS = {
    "weaviate": {"grpc", "tls", "tenant", "replicas", "quantizer"},
    "weaviate+embedded": {"tenant", "quantizer", "binary"},
    "weaviate+cloud": {"tenant", "replicas", "quantizer"},
}
_SHAPE = {
    "weaviate": "weaviate://host:8080/Collection?grpc=50051",
    "weaviate+embedded": "weaviate+embedded:///folder/Collection",
    "weaviate+cloud": "weaviate+cloud://cluster/Collection",
}


@dataclass(frozen=True)
class Server:
    """Where a Weaviate answers."""

    host: str
    port: int
    grpc_host: str
    grpc_port: int
    tls: bool = False

    @property
    def http(self) -> str:
        """The base URL of HTTP."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True)
class Place:
    """A collection, and the server or the embedded server's folder that it is in."""

    name: str
    """The URL without what is secret."""
    collection: str
    server: Server | None
    folder: Path | None = None
    """Of the embedded server's data."""
    binary: Path | None = None
    """The folder of the embedded server's program; None for the client's own, which it fills by downloading."""
    tenant: str = ""
    replicas: int = 0
    quantizer: str = ""


def place_of(where: str) -> Place:
    """What a URL speaks of.

    Raises:
        BadInput: it is not understood, or holds a key.
    """
    try:
        parts = urlsplit(where)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"{without_secrets(where)} is no URL: {error}") from error
    scheme = parts.scheme
    if scheme not in SCHEMES:
        raise BadInput(f"no memory goes by {scheme}: name {', '.join(_SHAPE.values())}")
    if parts.username is not None or parts.password is not None:
        raise BadInput(f"a key does not belong into the URL of a memory; set {KEY_VARIABLE} to it")
    options = _options(where, parts)
    folder, collection = _last(where, parts)
    place = Place(
        name=where,
        collection=collection,
        server=None,
        tenant=options.get("tenant", ""),
        replicas=_number(where, "replicas", options.get("replicas", "0")),
        quantizer=options.get("quantizer", ""),
    )
    if scheme == "weaviate+embedded":
        binary = Path(options["binary"]).expanduser() if "binary" in options else None
        return replace(place, folder=_embedded_folder(where, parts, folder), binary=binary)
    if not parts.hostname or folder.strip("/"):
        raise BadInput(f"{where} is not understood; write {_SHAPE[scheme]}")
    if scheme == "weaviate+cloud":
        return replace(place, server=_cloud(parts.hostname))
    return replace(place, server=_server(where, parts.hostname, port, options))


def api_key() -> str:
    """The key of the server; "" if there is none."""
    return os.environ.get(KEY_VARIABLE, "").strip()


def _options(where: str, parts: SplitResult) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = _OPTIONS[parts.scheme]
    for name in options:
        if name not in known:
            shown = f"{parts.scheme}://…/{parts.path.rpartition('/')[2]}"
            raise BadInput(f"{shown} has no option {name!r}; there are {', '.join(sorted(known))}")
    if (quantizer := options.get("quantizer")) is not None and quantizer not in QUANTIZERS:
        raise BadInput(f"{where} names no quantizer {quantizer!r}; there are {', '.join(QUANTIZERS)}")
    return options


def _last(where: str, parts: SplitResult) -> tuple[str, str]:
    """The folder and the collection of a path."""
    folder, _, collection = unquote(parts.path).rpartition("/")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", collection):
        raise BadInput(
            f"{where} names no collection: end it with a name of letters, digits and _, as in {_SHAPE[parts.scheme]}"
        )
    return folder, collection[0].upper() + collection[1:]


def _embedded_folder(where: str, parts: SplitResult, folder: str) -> Path:
    if parts.netloc or not folder.strip("/"):
        raise BadInput(f"{where} is not understood; write {_SHAPE['weaviate+embedded']}, with three slashes")
    return Path(folder).resolve()


def _server(where: str, host: str, port: int | None, options: dict[str, str]) -> Server:
    tls = _yes(where, options.get("tls", "false"))
    grpc = _number(where, "grpc", options.get("grpc", "443" if tls else "50051"))
    return Server(host, port or (443 if tls else 8080), host, grpc, tls)


def _cloud(host: str) -> Server:
    """Weaviate's cloud serves gRPC under a name of its own."""
    if host.endswith(".weaviate.network"):
        cluster, _, domain = host.partition(".")
        return Server(host, 443, f"{cluster}.grpc.{domain}", 443, tls=True)
    return Server(host, 443, f"grpc-{host}", 443, tls=True)


def _number(where: str, name: str, value: str) -> int:
    if not value.isdecimal() or not 0 <= int(value) <= 65535:
        raise BadInput(f"{where} has {name}={value}; it must be a number")
    return int(value)


def _yes(where: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise BadInput(f"{where} has tls={value}; write true or false")
    return value == "true"
