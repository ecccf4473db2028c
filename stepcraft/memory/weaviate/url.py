"""URLs of collections in Weaviate."""

import os
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from stepcraft.errors import BadInput

VERSION = "1.39.1"
"""The server version that the tests run against."""

KEY_VARIABLE = "WEAVIATE_API_KEY"
"""The environment variable with the API key for servers that require one."""

KEY_HOSTS = "STEPCRAFT_KEY_HOSTS"
"""The environment variable with a comma-separated list of hosts to which the key is sent even
without TLS.

These are hosts on a private network, such as neighbouring containers.
"""

QUANTIZATIONS = ("rq", "bq", "pq", "sq")
"""How Weaviate can compress vectors: rotational, binary, product and scalar quantization."""

_KEY = re.compile(r"[?&][^=&]*(?:key|token|secret|password)[^=&]*=", re.IGNORECASE)
"""The name of an option that holds a secret."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EXAMPLES = "weaviate://host:8080/Collection or weaviate+cloud://cluster/Collection"


@dataclass(frozen=True)
class Address:
    """A collection and the server that hosts it."""

    name: str
    """The URL, which contains no secrets."""
    collection: str
    host: str
    """The name or address; an IPv6 address is in brackets."""
    port: int
    grpc_host: str
    grpc_port: int
    tls: bool
    tenant: str
    """The tenant in a multi-tenant collection, or "" for one without tenants."""
    replicas: int
    """The replication factor used when creating the collection."""
    quantization: str
    """The vector compression used when creating the collection: rq, bq, pq, sq, or ""."""

    @property
    def url(self) -> str:
        """The URL of the server's HTTP API."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def key(self) -> str:
        """Return the API key for the server, or "" if there is none.

        Raises:
            BadInput: The key would be sent in plain text over a network that is not declared
                private.
        """
        key = os.environ.get(KEY_VARIABLE, "").strip()
        private = re.sub(r"[\[\] ]", "", os.environ.get(KEY_HOSTS, "").lower()).split(",")
        if key and not (self.tls or self.host.strip("[]") in (*_LOOPBACK, *private)):
            raise BadInput(
                f"{self.name}: the key in {KEY_VARIABLE} would be sent in the clear to "
                f"{self.host}; name a server with tls=true, or unset the key, or add the "
                f"host to {KEY_HOSTS} if the network to it is private"
            )
        return key


def parse_url(url: str) -> Address:
    """Parse the URL of a collection.

    Raises:
        BadInput: The URL is malformed, names an unknown option, or contains a key.
    """
    if "@" in url.partition("?")[0] or _KEY.search(url):  # before a message shows the URL
        raise BadInput(f"a key does not belong into a URL; set {KEY_VARIABLE} to it")
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        options = dict(pairs)
        is_clear = len(options) == len(pairs) and not parts.fragment
        port, grpc_port = parts.port, int(options.pop("grpc", 0))
    except ValueError as error:
        raise BadInput(f"{url} is no URL; check its host and ports") from error
    folder, _, collection = unquote(parts.path).rpartition("/")
    host, is_cloud = parts.hostname or "", parts.scheme == "weaviate+cloud"
    if ":" in host:
        host = f"[{host}]"
    tls = options.pop("tls", str(is_cloud).lower())
    tenant, replicas = options.pop("tenant", ""), options.pop("replicas", "1")
    quantization = options.pop("quantization", "")
    is_understood = (
        parts.scheme in ("weaviate", "weaviate+cloud")
        and host
        and is_clear
        and port != 0
        and 0 <= grpc_port < 65_536
        and not folder.strip("/")
        and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", collection)
        and tls in ("true", "false")
        and re.fullmatch(r"[\w-]{0,64}", tenant, re.ASCII)
        and re.fullmatch(r"[1-9]\d?", replicas)
        and quantization in ("", *QUANTIZATIONS)
        and not options
    )
    if not is_understood:
        raise BadInput(
            f"{url} is not understood; write {_EXAMPLES}, with a collection of "
            "letters, digits and _, and no options but grpc=PORT, tls=true, tenant=NAME (letters, "
            f"digits, _ and -), replicas=NUMBER and quantization={'|'.join(QUANTIZATIONS)}"
        )
    return Address(
        name=url,
        collection=collection[0].upper() + collection[1:],
        host=host,
        port=port or (443 if tls == "true" else 8080),
        # The cloud serves gRPC under another host name.
        grpc_host=f"grpc-{host}" if is_cloud else host,
        grpc_port=grpc_port or (443 if tls == "true" else 50051),
        tls=tls == "true",
        tenant=tenant,
        replicas=int(replicas),
        quantization=quantization,
    )
