"""URLs of collections in Weaviate."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

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
_EXAMPLES = {
    "weaviate": "weaviate://host:8080/Collection?grpc=50051",
    "weaviate+embedded": "weaviate+embedded:///folder/Collection",
    "weaviate+cloud": "weaviate+cloud://cluster/Collection",
}


class Options(BaseModel):
    """The options of a URL; those that are not named are Weaviate's or ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    grpc: int = Field(default=0, ge=1, le=65535)
    tls: bool = False
    tenant: str = ""
    replicas: PositiveInt = 0
    quantizer: Literal["", "rq", "pq", "bq", "sq"] = ""
    ef: PositiveInt = 0
    ef_construction: PositiveInt = 256
    max_connections: PositiveInt = 64
    binary: str | None = None
    """The folder of an embedded server's program; the client downloads one by default."""


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
    options: Options

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
        port = parts.port
    except ValueError as error:
        raise BadInput(f"{url} is no URL; check its host and port") from error
    example = _EXAMPLES.get(parts.scheme)
    if not example:
        raise BadInput(f"no memory goes by {parts.scheme}: name {', '.join(_EXAMPLES.values())}")
    if parts.username is not None:
        raise BadInput(f"a key does not belong into the URL of a memory; set {KEY_VARIABLE} to it")
    try:
        options = Options.model_validate(dict(parse_qsl(parts.query, keep_blank_values=True)))
    except ValidationError as error:
        fault = error.errors()[0]
        raise BadInput(
            f"{url} has {fault['loc'][0]}={fault['input']}, which cannot be used "
            f"({fault['msg']}); the options are {', '.join(Options.model_fields)}"
        ) from error
    path, _, collection = unquote(parts.path).rpartition("/")
    host, folder = parts.hostname or "", path.strip("/")
    is_embedded = parts.scheme == "weaviate+embedded"
    is_named = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", collection)
    if not is_named or bool(host) == is_embedded or bool(folder) != is_embedded:
        raise BadInput(
            f"{url} is not understood; write {example}, with a collection of letters, digits and _"
        )
    tls = options.tls or parts.scheme == "weaviate+cloud"
    port, grpc_port = port or (443 if tls else 8080), options.grpc or (443 if tls else 50051)
    if port == grpc_port and not tls:
        raise BadInput(f"{url} names one port for HTTP and gRPC; name that of gRPC as ?grpc=PORT")
    if is_embedded:
        host, (port, grpc_port) = "127.0.0.1", EMBEDDED_PORTS
    return Address(
        name=url,
        collection=collection[0].upper() + collection[1:],
        host=host,
        port=port,
        # The cloud serves gRPC under another host name.
        grpc_host=f"grpc-{host}" if parts.scheme == "weaviate+cloud" else host,
        grpc_port=grpc_port,
        tls=tls,
        folder=named_path(path).resolve() if is_embedded else None,
        options=options,
    )
