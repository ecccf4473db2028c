"""The files of benchmarks from a local server that stands for their official sources."""

import gzip
import hashlib
from pathlib import Path

import pytest

from stepcraft.errors import BadInput, SourceFailure
from stepcraft_papers.source import Release, fetched, unpacked
from tests.servers.pages_server import PagesServer, Served, redirect

TEXT = b'{"question": "Who?", "answer": "Ada"}\n'


@pytest.mark.parametrize(
    ("name", "body"),
    [("data.jsonl", TEXT), ("data.jsonl.gz", gzip.compress(TEXT))],
    ids=["plain", "gz"],
)
def test_a_file_is_downloaded_once_and_unpacked(tmp_path: Path, name: str, body: bytes) -> None:
    with PagesServer({f"/{name}": Served(body), "/latest": redirect(f"/{name}")}) as server:
        release = Release(f"{server.url}/{name}", hashlib.sha256(body).hexdigest())
        for _ in range(2):
            file = fetched(release, tmp_path)
            assert (file.name, file.read_bytes()) == ("data.jsonl", TEXT)
        assert server.paths == [f"/{name}"]
        assert fetched(Release(f"{server.url}/latest"), tmp_path).exists()


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    with PagesServer({"/data.jsonl": Served(TEXT)}) as server:
        release = Release(f"{server.url}/data.jsonl", hashlib.sha256(TEXT).hexdigest())
        file = fetched(release, tmp_path)
        file.write_bytes(TEXT.replace(b"Ada", b"Eve"))
        with pytest.raises(
            BadInput, match=r"has changed since it was downloaded from .*; delete it"
        ):
            fetched(release, tmp_path)
        file.unlink()
        assert fetched(release, tmp_path).read_bytes() == TEXT


@pytest.mark.parametrize(
    ("served", "problem"),
    [
        (Served(TEXT), r"sent another file than the published one .*name the file with --data"),
        (
            Served(b"", status=404),
            r"cannot be downloaded \(status 404\).*name the file with --data",
        ),
        (Served(b"abc", length=10), "cannot be downloaded .*name the file with --data"),
        (Served(chunks=iter([bytes(1 << 20)] * 300)), "is over 200,000,000 bytes"),
    ],
    ids=["another", "missing", "cut off", "too large"],
)
def test_what_cannot_be_downloaded(tmp_path: Path, served: Served, problem: str) -> None:
    with (
        PagesServer({"/data.jsonl": served}) as server,
        pytest.raises(SourceFailure, match=problem),
    ):
        fetched(Release(f"{server.url}/data.jsonl", "0" * 64), tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_source_or_a_cache_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(SourceFailure, match=r"cannot be downloaded .*name the file with --data"):
        fetched(Release("http://127.0.0.1:9/data.jsonl"), tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written"):
        fetched(Release("http://127.0.0.1:9/data.jsonl"), tmp_path / "file")


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(TEXT)[:-9]], ids=["no gz", "cut"])
def test_a_file_that_cannot_be_unpacked(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "data.jsonl.gz"
    file.write_bytes(content)
    with pytest.raises(BadInput, match="is damaged"):
        unpacked(file, tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    with pytest.raises(BadInput, match=r"there is no file .*other\.gz"):
        unpacked(tmp_path / "other.gz", tmp_path / "cache")
