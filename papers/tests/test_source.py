"""The files of benchmarks from a local server that stands for their official sources."""

import gzip
import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from stepcraft import BadInput, SourceFailure
from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.derived import derived
from stepcraft.evals.benchmarks.source import Release, fetched, unpacked
from tests.servers.pages_server import PagesServer, Served, redirect

TEXT = b'{"question": "Who?", "answer": "Ada"}\n'


def zipped(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.jsonl", content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("data.jsonl", TEXT),
        ("data.jsonl.gz", gzip.compress(TEXT)),
        ("data.jsonl.zip", zipped(data=TEXT)),
    ],
    ids=["plain", "gz", "zip"],
)
def test_a_file_is_downloaded_once_and_unpacked(tmp_path: Path, name: str, body: bytes) -> None:
    with PagesServer({f"/{name}": Served(body), "/latest": redirect(f"/{name}")}) as server:
        release = Release(f"{server.url}/{name}", hashlib.sha256(body).hexdigest())
        for _ in range(2):
            file = fetched(release, tmp_path)
            assert (file.name, file.read_bytes()) == ("data.jsonl", TEXT)
        assert server.paths == [f"/{name}"]
        assert fetched(Release(f"{server.url}/latest"), tmp_path).exists()
    assert not list(tmp_path.rglob("partial-*"))


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    with PagesServer({"/data.jsonl": Served(TEXT)}) as server:
        release = Release(f"{server.url}/data.jsonl")
        file = fetched(release, tmp_path)
        file.write_bytes(TEXT.replace(b"Ada", b"Eve"))
        with pytest.raises(
            BadInput,
            match=r"has changed since it was downloaded from .*; delete .* to download it again",
        ):
            fetched(release, tmp_path)
        file.unlink()
        assert fetched(release, tmp_path).read_bytes() == TEXT


@pytest.mark.parametrize(
    ("name", "body"),
    [("data.jsonl.gz", gzip.compress(TEXT)), ("data.jsonl.zip", zipped(data=TEXT))],
    ids=["gz", "zip"],
)
def test_an_unpacked_file_that_was_changed_is_unpacked_again(
    tmp_path: Path, name: str, body: bytes
) -> None:
    packed = tmp_path / name
    packed.write_bytes(body)
    file = unpacked(packed, tmp_path / "cache")
    kept = file.stat().st_ino
    assert unpacked(packed, tmp_path / "cache").stat().st_ino == kept, "it is unpacked once"
    file.write_bytes(TEXT.replace(b"Ada", b"Eve"))
    assert unpacked(packed, tmp_path / "cache").read_bytes() == TEXT


def test_passages_in_the_cache_that_were_changed_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = derived("own", [{"title": "Una", "text": "A river."}])
    assert file
    kept, content = file.stat().st_ino, file.read_bytes()
    assert derived("own", [{"title": "Una", "text": "A river."}]) == file
    assert file.stat().st_ino == kept
    file.write_bytes(content.replace(b"river", b"tower"))
    assert derived("own", [{"title": "Una", "text": "A river."}]) == file
    assert file.read_bytes() == content


def test_a_source_that_serves_another_file_is_refused(tmp_path: Path) -> None:
    with PagesServer({"/data.jsonl": Served(TEXT)}) as server:
        address = f"{server.url}/data.jsonl"
        with pytest.raises(
            SourceFailure,
            match=r"sent another file than the one that is known.*name it with --data$",
        ):
            fetched(Release(address, "0" * 64), tmp_path)
        file = fetched(Release(address), tmp_path)
        file.unlink()
        server.routes["/data.jsonl"] = Served(TEXT + TEXT)
        with pytest.raises(SourceFailure, match=r"delete .* to take what is there now"):
            fetched(Release(address), tmp_path)
        assert not file.exists()


@pytest.mark.parametrize(
    ("served", "problem"),
    [
        (
            Served(b"", status=404),
            r"cannot be downloaded \(status 404\); get it in another way and name the file",
        ),
        (Served(b"abc", length=10), "cannot be downloaded .*; get it in another way"),
        (Served(chunks=iter([bytes(1 << 20)] * 300)), "is larger than 200,000,000 bytes"),
    ],
    ids=["missing", "cut off", "too large"],
)
def test_what_cannot_be_downloaded(tmp_path: Path, served: Served, problem: str) -> None:
    with (
        PagesServer({"/data.jsonl": served}) as server,
        pytest.raises(SourceFailure, match=problem),
    ):
        fetched(Release(f"{server.url}/data.jsonl"), tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_source_that_is_not_reached(tmp_path: Path) -> None:
    with pytest.raises(SourceFailure, match=r"cannot be downloaded .*name the file with --data"):
        fetched(Release("http://127.0.0.1:9/data.jsonl"), tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be used for a download"):
        fetched(Release("http://127.0.0.1:9/data.jsonl"), tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("data.jsonl.gz", b"no gzip", "is damaged: Not a gzipped file"),
        ("data.jsonl.gz", gzip.compress(TEXT)[:-9], "is damaged"),
        ("data.zip", b"no zip", "is damaged: File is not a zip file"),
        (
            "data.zip",
            zipped(one=TEXT, two=TEXT),
            "holds 2 files; unpack it and name one of them with --data",
        ),
    ],
    ids=["no gz", "cut gz", "no zip", "two files"],
)
def test_a_file_that_cannot_be_unpacked(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(BadInput, match=problem):
        unpacked(file, tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    with pytest.raises(BadInput, match="there is no file"):
        unpacked(tmp_path / "other.gz", tmp_path / "cache")


def test_the_configuration_tells_of_a_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "data.jsonl.gz"
    file.write_bytes(gzip.compress(TEXT))
    known = Benchmark(
        "who", "who it is", "MIT", "https://example.org", citation="Who, 2024, arXiv 1"
    )
    told = known.about(file)
    assert told == {
        "name": "who",
        "source": "https://example.org",
        "licence": "MIT",
        "citation": "Who, 2024, arXiv 1",
        "sha256": hashlib.sha256(TEXT).hexdigest(),
    }
    assert known.samples(file) == [{"id": "1", "question": "Who?", "answers": ["Ada"]}]
