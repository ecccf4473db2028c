"""Copy files from object stores, archives and websites into the user's cache folder.

Object stores and archives are read by fsspec, using its URLs (`s3://bucket/docs`). The URL of a
sitemap (`https://host/sitemap.xml`) stands for its pages, which are fetched from public addresses.
"""

import json
import re
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit
from uuid import uuid4
from xml.etree import ElementTree as ET

from stepcraft.concurrency import shared_lock
from stepcraft.errors import BadInput, FetchFailed
from stepcraft.files import cache_folder
from stepcraft.secrets import excerpt, masked_line
from stepcraft.sources.corpus.content import PAGE
from stepcraft.sources.corpus.update import digest
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from stepcraft.sources.web.fetch import Fetched

_URL = re.compile(r"(?:[a-z][a-z0-9+.-]+::)*[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_SITEMAP = re.compile(r"https?://[^?#]+\.xml(?:\.gz)?(?:[?#].*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[\x00-\x1f\x7f%?\\:*\"<>|]")
"""Characters that some systems forbid in file names, or that have a meaning in URLs."""
_GZIP = b"\x1f\x8b"
_SITEMAP_OPTIONS: Mapping[str, Any] = {
    "types": (
        "application/xml",
        "text/xml",
        "text/plain",
        "application/gzip",
        "application/x-gzip",
        "application/octet-stream",
    ),
    "most_bytes": 50 << 20,  # as the protocol of sitemaps allows
    "total_s": 30,
}
_MOST_SITEMAPS = 100
_PART_S = 24 * 60 * 60
"""The age in seconds after which no process is still writing a partial copy."""
_AT_ONCE = 8
_STATES = re.compile(
    r"size|sha\d*|hex|blob_id"
    r"|.*(?:etag|modif(?:y|ied|ication)|mtime|created|md5|crc|generation|updated|date_time|hash).*",
    re.IGNORECASE,
)
"""The metadata fields by which storage systems show that a file has changed."""


class Copied(NamedTuple):
    """What could not be copied, or not as a whole."""

    problems: dict[str, str]
    """By path, the reasons why files could not be copied."""
    notes: dict[str, str]
    """By path, what copies lack."""


_copied: dict[str, tuple[float, Copied]] = {}
"""When this process copied the files of each URL, and what it could not copy."""


class _File(NamedTuple):
    """A file to copy."""

    state: str
    """A value that changes whenever the file does."""
    copy: Callable[[Path], str]
    """Copies the file to a path, and returns a note on what the copy lacks, or "" if nothing."""


def is_url(name: str) -> bool:
    """Return whether the name of a file or folder is a URL."""
    return _URL.match(name) is not None


def url_below(url: str, path: str) -> str:
    """Return a file's URL, given the URL of its folder or site and the path of its copy."""
    if path.endswith(PAGE):
        return f"{_site(url)}/{unquote(path.removesuffix(PAGE))}"
    url = url.rstrip("/")
    return url if path == "." or url.endswith(f"/{path}") else f"{url}/{path}"


def start_of(name: str) -> str:
    """Return what the shown paths of all files begin with, given a path or URL of a corpus."""
    return _site(name) if _SITEMAP.fullmatch(name) else name


def folder_of(url: str) -> Path:
    """Create and return the folder for copies of the files at a URL.

    Raises:
        BadInput: The URL has a password.
    """
    if any(urlsplit(each).password for each in url.split("::")):
        raise BadInput(
            f"{excerpt(url)} has a password in it; leave it out, and set the storage's credentials "
            "in the environment"
        )
    return cache_folder("copies", digest(url)).resolve()


def copy_files(url: str, folder: Path, left_out: Callable[[str], str], after_s: float) -> Copied:
    """Update the copies in a folder, and return what could not be copied.

    Only changed files are copied, and a file that cannot be copied keeps its earlier copy. For a
    file that is left out, an empty one is created.

    Args:
        url: The URL of a folder, a file, an archive or a sitemap.
        folder: The folder for the copies.
        left_out: Takes a relative path and returns why that file is left out, or "".
        after_s: Do nothing if this process has copied the files within this many seconds.

    Raises:
        BadInput: A package that the URL needs is missing.
    """
    with shared_lock(("copies", url)):
        copied_at, copied = _copied.get(url, (float("-inf"), Copied({}, {})))
        if time.monotonic() - copied_at >= after_s:
            copied = _update(url, folder, left_out)
            _copied[url] = time.monotonic(), copied
        return copied


def _update(url: str, folder: Path, left_out: Callable[[str], str]) -> Copied:
    problems: dict[str, str] = {}
    try:
        files = dict(_pages(url, problems) if _SITEMAP.fullmatch(url) else _stored(url))
    except BadInput:
        raise
    except Exception as error:
        why = f"it cannot be listed, so earlier copies are searched: {_why(error)}"
        return Copied({str(folder): why}, {})
    manifest = folder.with_suffix(".json")
    suffix = f".{uuid4().hex}.part"  # another process or container may copy the same files
    copied: dict[str, str] = {}
    with suppress(OSError, ValueError):
        copied = json.loads(manifest.read_text("utf-8"))
    copied = {name: mark for name, mark in copied.items() if name in files}
    _delete_others(folder, {folder / name for name in files})
    for part in folder.parent.glob(f"{folder.name}.*.part"):
        _delete_part(part)

    def copy(name: str) -> None:
        target = folder / name
        if copied.get(name, "").partition("\n")[0] == files[name].state and target.exists():
            return
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            problems[str(target)] = "its path leads out of the folder"
            return
        part = target.with_name(f".{digest(name)}{suffix}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            note = ""
            if left_out(name):
                part.touch()
            else:
                note = files[name].copy(part)
            part.replace(target)
        except Exception as error:
            problems[str(target)] = f"it cannot be copied: {_why(error)}"
            with suppress(OSError):  # a file may stand where its folder should be
                part.unlink()
        else:
            copied[name] = f"{files[name].state}\n{note}"

    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(copy, files))
    finally:
        part = manifest.with_suffix(suffix)
        part.write_text(json.dumps(copied), encoding="utf-8")
        part.replace(manifest)
    notes = {str(folder / name): mark.partition("\n")[2] for name, mark in copied.items()}
    return Copied(problems, {path: note for path, note in notes.items() if note})


def _delete_others(folder: Path, kept: Collection[Path]) -> None:
    """Delete all copies except some, including those that a killed process could not list.

    Files that another process is copying are left alone.
    """
    for path in [*folder.rglob("*")]:
        if path.name.startswith(".") and path.suffix == ".part":
            _delete_part(path)
        elif path not in kept and path.is_file():
            path.unlink(missing_ok=True)


def _delete_part(path: Path) -> None:
    """Delete a partial copy that a killed process has left."""
    with suppress(FileNotFoundError):  # its process has just finished it
        if time.time() - path.stat().st_mtime > _PART_S:
            path.unlink()


def _stored(url: str) -> Iterator[tuple[str, _File]]:
    """Yield the files at a storage URL, each with its path relative to that URL.

    Raises:
        BadInput: fsspec or the storage system's package is missing, or there is no such system.
    """
    try:
        from fsspec import url_to_fs

        storage, root = url_to_fs(url, skip_instance_cache=True, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise BadInput(
            f"{excerpt(url)} cannot be read: {_why(error)}; install fsspec with the "
            'package of the storage, such as pip install "stepcraft[s3]"'
        ) from error
    files: Mapping[str, Mapping[str, Any]] = storage.find(root, detail=True)
    if not files:
        raise FileNotFoundError("there is no file")
    # Where its code is not async, a storage may read all files through one connection or archive.
    turn: AbstractContextManager[object] = Lock()
    if storage.async_impl:
        turn = nullcontext()

    def copy(path: str, to: Path) -> str:
        with turn:
            storage.get_file(path, to)
        return ""

    for path, facts in files.items():
        if path.endswith("/"):  # an object that stands for a folder
            continue
        name = path.removeprefix(root).strip("/") or PurePosixPath(path).name
        state = {
            key: str(value)
            for key, value in sorted(facts.items())
            if value and _STATES.fullmatch(key)
        }
        if not state.keys() - {"size"}:
            state["copied"] = _today()
        yield name, _File(json.dumps(state), partial(copy, path))


def _pages(url: str, problems: dict[str, str]) -> Iterator[tuple[str, _File]]:
    """Yield the pages in a sitemap and its nested sitemaps, except pages on other sites.

    Too many nested sitemaps are noted in `problems`.

    Raises:
        BadInput: A package is missing.
        FetchFailed: The sitemap, or one that it names, cannot be fetched, or there is no page.
    """
    from stepcraft.sources.web.retriever import fetcher, open_pages

    reader, fetch = open_pages(url), fetcher(**_SITEMAP_OPTIONS).fetch
    sitemaps, count = [url], 0
    for sitemap in islice(sitemaps, _MOST_SITEMAPS):
        pages, more = _locations(_unpacked(fetch(sitemap)))
        sitemaps[:] = [*dict.fromkeys([*sitemaps, *more])][: _MOST_SITEMAPS + 1]
        for page, changed in pages:
            if _site(page) == _site(url):
                parts = urlsplit(page)
                path = unquote(parts.path).strip("/") + f"?{parts.query}" * bool(parts.query)

                def copy(to: Path, page: str = page) -> str:
                    read = reader.get(page).result()
                    title = json.dumps(clean(read.title), ensure_ascii=False)
                    to.write_text(f"---\ntitle: {title}\n---\n\n{read.text}", encoding="utf-8")
                    return read.note

                count += 1
                name = _UNSAFE.sub(lambda sign: f"%{ord(sign[0]):02X}", path) or "%2E"
                yield f"{name}{PAGE}", _File(changed or _today(), copy)
    if not count:
        raise FetchFailed(f"it lists no page whose URL begins with {_site(url)}")
    if len(sitemaps) > _MOST_SITEMAPS:
        problems[url] = f"only {_MOST_SITEMAPS} sitemaps are read; give the URLs of the others too"


def _unpacked(fetched: "Fetched") -> bytes:
    """Return a sitemap, which may be a gzip file.

    Raises:
        FetchFailed: It is too long.
    """
    body, most = fetched.body, _SITEMAP_OPTIONS["most_bytes"]
    if body.startswith(_GZIP):
        body = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, most + 1)
    if fetched.cut or len(body) > most:
        raise FetchFailed(f"{fetched.url} is longer than {most:,} bytes")
    return body


def _locations(data: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """Return a sitemap's pages with the dates of their last changes, and its nested sitemaps."""
    root = ET.fromstring(data)  # noqa: S314 - expat limits how entities expand

    def words(parent: ET.Element, name: str) -> str:
        return parent.findtext(f"{{*}}{name}", "").strip()

    pages = [
        (urldefrag(words(each, "loc")).url, words(each, "lastmod"))
        for each in root.iterfind("{*}url")
    ]
    return pages, [words(each, "loc") for each in root.iterfind("{*}sitemap")]


def _why(error: Exception) -> str:
    return masked_line(f"{type(error).__name__}: {error}")


def _site(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _today() -> str:
    """Return today's date, for files whose changes cannot be detected."""
    return datetime.now(UTC).date().isoformat()
