"""URLs of collections in Weaviate."""

import os
import re
from dataclasses import dataclass
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

EMBEDDED_PORTS = (8079, 8074)
"""Those of the client's embedded server, for HTTP and gRPC; it takes those between them, too."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EXAMPLES = (
    "weaviate://host:8080/Collection, weaviate+embedded:///folder/Collection or "
    "weaviate+cloud://cluster/Collection"
)


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
    binary: str
    """The folder of an embedded server's program; the client downloads one if it is empty."""

    def key(self) -> str:
        """Return the API key for the server, "" if there is none.

        Raises:
            BadInput: It would be sent in clear over a network that nobody calls private.
        """
        key = os.environ.get(KEY_VARIABLE, "").strip()
        private = os.environ.get(KEY_HOSTS, "").lower().replace(" ", "").split(",")
        if key and not (self.tls or self.host in (*_LOOPBACK, *private)):
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
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        port, grpc_port = parts.port, int(options.pop("grpc", 0))
    except ValueError as error:
        raise BadInput(f"{url} is no URL; check its host and ports") from error
    if parts.username is not None:
        raise BadInput(f"a key does not belong into the URL of a memory; set {KEY_VARIABLE} to it")
    path, _, collection = unquote(parts.path).rpartition("/")
    host, folder = parts.hostname or "", path.strip("/")
    is_cloud, is_embedded = (parts.scheme.endswith(kind) for kind in ("+cloud", "+embedded"))
    tls, binary = options.pop("tls", str(is_cloud).lower()), options.pop("binary", "")
    is_understood = (
        parts.scheme in ("weaviate", "weaviate+embedded", "weaviate+cloud")
        and bool(folder) == is_embedded != bool(host)
        and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", collection)
        and tls in ("true", "false")
        and not options
    )
    if not is_understood:
        raise BadInput(
            f"{url} is not understood; write {_EXAMPLES}, with a collection of "
            "letters, digits and _, and no options but grpc=PORT, tls=true and binary=FOLDER"
        )
    if is_embedded:
        host, (port, grpc_port) = _LOOPBACK[1], EMBEDDED_PORTS
    return Address(
        name=url,
        collection=collection[0].upper() + collection[1:],
        host=host,
        port=port or (443 if tls == "true" else 8080),
        # The cloud serves gRPC under another host name.
        grpc_host=f"grpc-{host}" if is_cloud else host,
        grpc_port=grpc_port or (443 if tls == "true" else 50051),
        tls=tls == "true",
        folder=named_path(path).resolve() if is_embedded else None,
        binary=binary,
    )
