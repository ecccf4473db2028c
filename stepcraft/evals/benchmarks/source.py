"""The files of benchmarks from their official sources: downloaded once, unpacked, and checked at every use."""

import gzip
import hashlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import urlsplit

from platformdirs import user_cache_path

from stepcraft.errors import BadInput, SourceFailure
from stepcraft.files import named_path, open_regular

MOST_BYTES = 200_000_000
"""The most bytes of a download."""
MOST_UNPACKED = 1_000_000_000
"""The most bytes of what a packed file holds."""
_TIMEOUT_S = 30
"""How long a server may be silent, in seconds."""
_CHUNK = 1 << 20
_BY_HAND = "get it in another way and name the file with --data"
_PACKED = {".gz", ".zip"}


@dataclass(frozen=True)
class Release:
    """A file that the makers of a benchmark publish."""

    address: str
    """Its address; a file that ends in .gz or .zip is unpacked."""
    sha256: str = ""
    """The digest of what is downloaded, where it is known; else that of the first download counts."""


def cache_folder() -> Path:
    """The folder of the user's cache that holds the files of benchmarks."""
    return user_cache_path("stepcraft", appauthor=False) / "benchmarks"


def fetched(release: Release, cache: Path | None = None) -> Path:
    """Return the file of a release, unpacked; it is downloaded if it is not in the cache.

    Args:
        release: What is published.
        cache: The folder of downloads; None for that of the user.

    Raises:
        SourceFailure: It cannot be downloaded, or what arrives is not what was published.
        BadInput: The file in the cache was changed, cannot be unpacked, or the cache cannot be written.
    """
    cache = cache or cache_folder()
    name = PurePosixPath(urlsplit(release.address).path).name
    folder = cache / hashlib.sha256(release.address.encode()).hexdigest()[:16]
    file, record = folder / name, folder / f"{name}.sha256"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = release.sha256 or (record.read_text("ascii").strip() if record.exists() else "")
        if file.exists():
            found = digest(file)
            if found != known:
                raise BadInput(
                    f"{file} has changed since it was downloaded from {release.address} (its SHA-256 is {found} instead "
                    f"of {known or 'a recorded one'}); delete {folder} to download it again"
                )
        else:
            with _written(file) as partial:
                remedy = "" if release.sha256 else f", or delete {record} to take what is there now"
                downloaded = _checked_download(release.address, partial, known, remedy)
                # The record comes first: a process that is killed in between leaves no file that
                # nothing vouches for.
                with _written(record) as noted:
                    noted.write(f"{downloaded}\n".encode("ascii"))
    except SourceFailure:  # an OSError, too
        raise
    except OSError as error:
        raise BadInput(
            f"{folder} cannot be used for a download: {error.strerror}; get {release.address} and name the file with --data"
        ) from error
    return unpacked(file, cache)


def unpacked(path: Path, cache: Path | None = None) -> Path:
    """Return a file that can be read: the file itself, or what a .gz or .zip file holds, unpacked into the cache.

    Where what was unpacked has changed since, it is unpacked again.

    Raises:
        BadInput: It is not there, cannot be unpacked, holds too much, or holds several files (.zip).
    """
    path = named_path(path)
    if path.suffix.lower() not in _PACKED:
        return path
    try:
        folder = (cache or cache_folder()) / "unpacked" / digest(path)[:16]
        file, record = folder / path.stem, folder / f"{path.stem}.sha256"
        if not (file.exists() and record.exists() and record.read_bytes() == digest(file).encode()):
            folder.mkdir(parents=True, exist_ok=True)
            with _written(file) as partial, _opened(path) as packed:
                _copy(packed, partial, path)
            with _written(record) as noted:
                noted.write(digest(file).encode())
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {path}; check the name") from error
    except (EOFError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{path} is damaged: {error}; get it again") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be unpacked: {error.strerror or error}") from error
    return file


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: It cannot be read.
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked_download(address: str, to: BinaryIO, known: str, remedy: str) -> str:
    """Write what an address serves into a file, and return its SHA-256, which has to be `known`.

    Raises:
        SourceFailure: It cannot be downloaded, is too large, or is another file.
    """
    downloaded = _download(address, to)
    if known and downloaded != known:
        raise SourceFailure(
            f"{address} sent another file than the one that is known (its SHA-256 is {downloaded} "
            f"instead of {known}); get the right one and name it with --data{remedy}"
        )
    return downloaded


def _download(address: str, to: BinaryIO) -> str:
    """Write what an address serves into a file, and return its SHA-256.

    Raises:
        SourceFailure: It cannot be downloaded, or is too large.
    """
    import httpx  # noqa: PLC0415 - slow to import

    hashed, size = hashlib.sha256(), 0
    try:
        # The digest is that of the file, so the server is asked not to pack it on the way.
        headers = {"Accept-Encoding": "identity"}
        with httpx.stream(
            "GET", address, headers=headers, follow_redirects=True, timeout=_TIMEOUT_S
        ) as response:
            response.raise_for_status()
            if urlsplit(address).scheme == "https" and response.url.scheme != "https":
                raise SourceFailure(
                    f"{address} leads to an address without TLS, {response.url}; {_BY_HAND}"
                )
            for chunk in response.iter_raw(_CHUNK):
                size += len(chunk)
                if size > MOST_BYTES:
                    raise SourceFailure(
                        f"{address} is larger than {MOST_BYTES:,} bytes; {_BY_HAND}"
                    )
                hashed.update(chunk)
                to.write(chunk)
    except httpx.HTTPStatusError as error:
        raise SourceFailure(
            f"{address} cannot be downloaded (status {error.response.status_code}); {_BY_HAND}"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise SourceFailure(f"{address} cannot be downloaded ({reason}); {_BY_HAND}") from error
    return hashed.hexdigest()


@contextmanager
def _written(path: Path) -> Generator[BinaryIO]:
    """A file to write, which gets its name when all of it is there, so that no process reads a part of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="partial-")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _opened(path: Path) -> Generator[BinaryIO]:
    """What a packed file holds.

    Raises:
        BadInput: It is a .zip file of none or several files.
    """
    with open_regular(path) as file:
        if path.suffix.lower() == ".gz":
            with gzip.open(file) as content:
                yield content  # type: ignore[misc]
            return
        with zipfile.ZipFile(file) as archive:
            inside = [one for one in archive.infolist() if not one.is_dir()]
            if len(inside) != 1:
                raise BadInput(
                    f"{path} holds {len(inside)} files; unpack it and name one of them with --data"
                )
            with archive.open(inside[0]) as content:
                yield content  # type: ignore[misc]


def _copy(packed: BinaryIO, to: BinaryIO, path: Path) -> None:
    size = 0
    while chunk := packed.read(_CHUNK):
        size += len(chunk)
        if size > MOST_UNPACKED:
            raise BadInput(
                f"{path} holds more than {MOST_UNPACKED:,} bytes; unpack it and name the file with --data"
            )
        to.write(chunk)
