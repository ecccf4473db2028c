"""The body of a response, decompressed no further than a limit."""

import zlib
from collections.abc import Iterable, Iterator

from stepcraft.errors import FetchFailed

ENCODING = "gzip"
"""What is asked for: the standard library decompresses it to a limit, and one layer of it only.

A body that was compressed several times multiplies with each layer; other encodings multiply a thousandfold more.
"""


def read_body(chunks: Iterable[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of a body, and whether there are more.

    Raises:
        FetchFailed: it is encoded in another way, or not as it says.
    """
    name = encoding.strip().lower()
    if name in {"gzip", "x-gzip"}:
        chunks = _inflated(chunks, limit + 1)
    elif name not in {"", "identity"}:
        raise FetchFailed(f"its encoding {name[:40]!r} was not asked for")
    body = bytearray()
    for chunk in chunks:
        body += chunk[: limit + 1 - len(body)]
        if len(body) > limit:
            return bytes(body[:limit]), True
    return bytes(body), False


def _inflated(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """What the chunks hold, none longer than the limit; what follows the end of the compressed data is left."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    for chunk in chunks:
        if inflater.eof:
            return
        try:
            yield inflater.decompress(chunk, limit)
        except zlib.error as error:
            raise FetchFailed(f"its compression is broken ({error})") from error
