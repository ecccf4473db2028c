"""Download benchmark files from their official sources once, and check them at every use."""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import httpx
from platformdirs import user_cache_path

from stepcraft.errors import BadInput, SourceFailure
from stepcraft.files import named_path, open_regular

MOST_BYTES = 200_000_000
"""The maximum size of a download in bytes."""
MOST_UNPACKED = 1_000_000_000
"""The maximum size of an unpacked file in bytes."""
_TIMEOUT_S = 30
_CHUNK = 1 << 20
_BY_HAND = "get it in another way and name the file with --data"


@dataclass(frozen=True)
class Release:
    """A file published by the authors of a benchmark."""

    address: str
    """The URL of the file, which is unpacked if its name ends in .gz."""
    sha256: str = ""
    """The digest of the downloaded file, or "" if it is not known."""


def cache_folder() -> Path:
    """Return the folder for benchmark files in the user's cache."""
    return user_cache_path("stepcraft", appauthor=False) / "benchmarks"


def fetched(release: Release, cache: Path | None = None) -> Path:
    """Return the unpacked file of a release, downloading it if it is not in the cache.

    Raises:
        SourceFailure: The download fails, or the file differs from the published one.
        BadInput: The file in the cache has changed or cannot be unpacked, or the cache cannot be
            written to.
    """
    cache = cache or cache_folder()
    name = PurePosixPath(urlsplit(release.address).path).name
    file = cache / hashlib.sha256(release.address.encode()).hexdigest()[:16] / name
    if not file.exists():
        _write(file, _download(release))
    elif release.sha256 not in {"", digest(file)}:
        raise BadInput(
            f"{file} has changed since it was downloaded from {release.address}; delete it to "
            "download it again"
        )
    return unpacked(file, cache)


def unpacked(path: Path, cache: Path | None = None) -> Path:
    """Return a readable file: the file itself, or the unpacked contents of a .gz file.

    Raises:
        BadInput: The file does not exist, cannot be unpacked, or is too large when unpacked.
    """
    path = named_path(path)
    if path.suffix.lower() != ".gz":
        return path
    try:
        file = (cache or cache_folder()) / "unpacked" / digest(path)[:16] / path.stem
        if not file.exists():
            with open_regular(path) as packed, gzip.open(packed) as content:
                _write(file, _limited(content, path))
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {path}; check the name") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{path} is damaged: {error}; get it again") from error
    return file


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: It cannot be read.
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _limited(content: gzip.GzipFile, path: Path) -> Iterator[bytes]:
    size = 0
    while chunk := content.read(_CHUNK):
        size += len(chunk)
        if size > MOST_UNPACKED:
            raise BadInput(f"{path} holds more than {MOST_UNPACKED:,} bytes; unpack it yourself")
        yield chunk


def _download(release: Release) -> Iterator[bytes]:
    address, hashed, size = release.address, hashlib.sha256(), 0
    # The digest is that of the file, so the server is asked not to pack it on the way.
    headers = {"Accept-Encoding": "identity"}
    try:
        with httpx.stream(
            "GET", address, headers=headers, follow_redirects=True, timeout=_TIMEOUT_S
        ) as response:
            response.raise_for_status()
            if urlsplit(address).scheme == "https" and response.url.scheme != "https":
                raise SourceFailure(f"{address} leads to {response.url}, without TLS; {_BY_HAND}")
            for chunk in response.iter_raw(_CHUNK):
                size += len(chunk)
                if size > MOST_BYTES:
                    raise SourceFailure(f"{address} is over {MOST_BYTES:,} bytes; {_BY_HAND}")
                hashed.update(chunk)
                yield chunk
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.HTTPStatusError):  # whose message has a second line
            reason = f"status {error.response.status_code}"
        raise SourceFailure(f"{address} cannot be downloaded ({reason}); {_BY_HAND}") from error
    if release.sha256 not in {"", hashed.hexdigest()}:
        raise SourceFailure(
            f"{address} sent another file than the published one (its SHA-256 is "
            f"{hashed.hexdigest()} instead of {release.sha256}); {_BY_HAND}"
        )


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file and only then give it its name, so that it is never read while incomplete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        partial = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(chunks)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except (SourceFailure, gzip.BadGzipFile):  # errors of the system to Python
        raise
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error
