"""A memory in the store of a LangGraph server, over HTTP: `store+http://host:2024/name/space`."""

import asyncio
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp
from langgraph_sdk.client import SyncLangGraphClient

from stepcraft.errors import BadInput
from stepcraft.memory.base_store import StoreMemory
from stepcraft.secrets import excerpt

KEY = "LANGGRAPH_API_KEY"
"""The environment variable with the server's key, which is sent to the server that the URL names and to no other."""

_REQUESTS = 8
"""As many requests are under way at the same time: the server has no route for several items."""
_TIMEOUT = httpx.Timeout(60, connect=5)


class RemoteStoreMemory(StoreMemory):
    """Procedures in the store of a LangGraph server, where its graphs read them as `store:name/space`.

    Args:
        url: `store+http://host:2024/name/space`, or `store+https://…`.
        template: How a procedure is written as one text, which the store embeds; TEMPLATE if None.

    Raises:
        BadInput: The URL names no server, or the server's key would be sent over an open connection.
    """

    def __init__(self, url: str, *, template: str | None = None) -> None:
        self._address, namespace = _parts(url)
        self._remote = _RemoteStore(self._address)
        super().__init__(self._remote, namespace, template=template)

    @property
    def name(self) -> str:
        """The URL that opens it."""
        return f"store+{self._address}/{super().name.removeprefix('store:')}"

    def close(self) -> None:
        """Close the index for searches by words, and the connections."""
        super().close()
        self._remote.close()


class _RemoteStore(BaseStore):
    """The store of a LangGraph server."""

    __slots__ = ("_client", "_pool")

    def __init__(self, address: str) -> None:
        headers = {"x-api-key": key} if (key := os.environ.get(KEY)) else {}
        self._client = SyncLangGraphClient(
            httpx.Client(base_url=address, headers=headers, timeout=_TIMEOUT)
        )
        self._pool = ThreadPoolExecutor(_REQUESTS, thread_name_prefix="remote-store")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do these operations beside each other; the results are in their order."""
        return list(self._pool.map(self._do, ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown()
        self._client.close()

    def _do(self, operation: Op) -> Result:
        store = self._client.store
        if isinstance(operation, GetOp):
            sendable = operation.key.encode(errors="ignore").decode()
            if not sendable or sendable != operation.key:
                return None  # nothing can be kept under it
            item = store.get_item(operation.namespace, operation.key)
            return Item(**_fields(item)) if item else None
        if isinstance(operation, PutOp):
            if operation.value is None:
                store.delete_item(operation.namespace, operation.key)
            else:
                store.put_item(
                    operation.namespace, operation.key, operation.value, index=operation.index
                )
            return None
        if isinstance(operation, SearchOp):
            found = store.search_items(
                operation.namespace_prefix,
                filter=operation.filter,
                limit=operation.limit,
                offset=operation.offset,
                query=operation.query,
            )
            return [SearchItem(**_fields(item), score=item.get("score")) for item in found["items"]]
        raise NotImplementedError("the namespaces of another server's store are not listed")


def _parts(url: str) -> tuple[str, str]:
    """The server and the namespace of a URL."""
    try:
        parts = urlsplit(url[len("store+") :])
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadInput(f"{excerpt(url)} is no URL: {error}") from error
    if not host or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadInput(
            f"{excerpt(url)} names no server's store; write store+http://HOST:PORT/NAME/SPACE, and put the key of the "
            f"server into {KEY}"
        )
    if parts.scheme == "http" and os.environ.get(KEY) and not _is_loopback(host):
        raise BadInput(
            f"{KEY} would be sent to {host} over an open connection; name it as store+https://, or unset {KEY}"
        )
    return f"{parts.scheme}://{parts.netloc}", parts.path


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _fields(item: Any) -> dict[str, Any]:  # noqa: ANN401 - a TypedDict of the SDK
    return {name: item[name] for name in ("namespace", "key", "value", "created_at", "updated_at")}
