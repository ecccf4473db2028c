"""Corpora of files kept elsewhere: in storages that fsspec reads, and on websites with a sitemap."""

import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote
from zipfile import ZipFile

import pytest
from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem

from stepcraft.building.sources import list_documents
from stepcraft.errors import BadInput
from stepcraft.evidence import NOTES
from stepcraft.retrieval.opening import opened_source
from stepcraft.sources import CorpusRetriever, open_corpus, open_source
from tests.servers.pages_server import PagesServer, Served, html

TEA = b"# Tea\n\n## Green\nSteep green tea for two minutes.\n"
SOUP = b"Peel the potatoes. Boil them until they are soft."


class Bucket(MemoryFileSystem):
    """A storage that refuses some paths, and can read one file at a time, as an archive does."""

    protocol = "bucket"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    refused: ClassVar[set[str]] = set()
    state: ClassVar[str] = "created"
    at = ""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("bucket://", "memory://"))

    def find(self, path: str, *args: Any, **options: Any) -> Any:
        if "list" in self.refused:
            raise PermissionError("not allowed to list")
        files = super().find(path, *args, **options)
        if not options.get("detail"):
            return files
        return {
            name: {self.state if key == "created" else key: facts[key] for key in facts}
            for name, facts in files.items()
        }

    def get_file(self, rpath: str, lpath: Any, **options: Any) -> None:
        if any(rpath.endswith(each) for each in self.refused):
            raise PermissionError(f"not allowed to read {rpath}")
        self.at = rpath
        time.sleep(0.01)
        super().get_file(self.at, lpath, **options)


register_implementation("bucket", Bucket)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    storage = Bucket()
    storage.pipe({"/docs/tea.md": TEA, "/docs/kitchen/soup.txt": SOUP})
    yield storage
    storage.store.clear()
    storage.refused.clear()


def opened(*urls: str) -> CorpusRetriever:
    return open_corpus(urls or ["bucket://docs"], embeddings="none")


def found(corpus: Any, query: str) -> list[str]:
    return [document.metadata["source"] for document in corpus.invoke(query)]


def test_files_in_a_storage_are_found_by_their_urls(bucket: Bucket) -> None:
    assert found(opened(), "green tea") == ["bucket://docs/tea.md:4"]
    assert found(opened(), "potatoes") == ["bucket://docs/kitchen/soup.txt:1"]
    assert found(opened("bucket://docs/tea.md"), "green") == ["bucket://docs/tea.md:4"]


def test_each_file_has_its_own_text_if_a_storage_reads_one_at_a_time(bucket: Bucket) -> None:
    texts = {f"bucket://docs/{number}.md:1": f"Loaf number {number}." for number in range(20)}
    bucket.pipe({f"/docs/{number}.md": text.encode() for number, text in enumerate(texts.values())})
    documents = opened().invoke("loaf", k=50)
    assert {each.metadata["source"]: each.page_content for each in documents} == texts
    assert len(documents) == 20


def test_only_what_has_changed_is_copied_and_what_is_gone_goes(bucket: Bucket) -> None:
    corpus = opened()
    assert corpus.read == 2
    bucket.pipe("/docs/tea.md", TEA.replace(b"two", b"three"))
    bucket.rm("/docs/kitchen/soup.txt")
    corpus.refresh()
    assert corpus.read == 1
    assert "three minutes" in corpus.invoke("green tea")[0].page_content
    assert found(corpus, "potatoes") == []


@pytest.mark.parametrize("name", ["sha", "hex", "blob_id", "modify", "modificationTime"])
def test_a_change_is_seen_by_whatever_name_a_storage_shows_it(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Bucket, "state", name)
    corpus = opened()
    bucket.pipe("/docs/tea.md", TEA.replace(b"two", b"ten"))
    corpus.refresh()
    assert corpus.read == 1
    assert "ten minutes" in corpus.invoke("green tea")[0].page_content


def test_what_a_killed_process_has_copied_goes_once_it_is_gone(
    bucket: Bucket, tmp_path: Path
) -> None:
    corpus = opened()
    [listed] = tmp_path.rglob("copies/*.json")  # which is written at the end
    listed.unlink()
    bucket.rm("/docs/kitchen/soup.txt")
    corpus.refresh()
    assert (found(corpus, "potatoes"), found(corpus, "green")) == ([], ["bucket://docs/tea.md:4"])


def test_partial_copies_of_killed_processes_go_after_a_day(bucket: Bucket, tmp_path: Path) -> None:
    corpus = opened()
    [manifest] = tmp_path.rglob("copies/*.json")
    folder = manifest.with_suffix("")
    parts = [folder / f".{age}.7.part" for age in ("old", "new")]
    parts += [folder.with_suffix(f".{age}.part") for age in ("old", "new")]
    for part in parts:
        part.write_text("Peel")
    for old in parts[::2]:
        os.utime(old, (time.time() - 90_000,) * 2)
    corpus.refresh()
    assert [part.exists() for part in parts] == [False, True] * 2


def test_two_containers_with_the_same_process_id_share_no_partial_copy(
    bucket: Bucket, tmp_path: Path
) -> None:
    opened()
    [manifest] = tmp_path.rglob("copies/*.json")
    names: list[set[Path]] = []
    for _ in range(2):
        manifest.unlink()
        with pytest.MonkeyPatch.context() as patch:
            written: set[Path] = set()

            def get_file(_: Bucket, path: str, to: Path, seen: set[Path] = written) -> None:
                seen.add(to)
                to.write_bytes(bucket.cat_file(path))

            patch.setattr(Bucket, "get_file", get_file)
            opened()
        names.append(written)
    assert [len(each) for each in names] == [2, 2]
    assert not names[0] & names[1]


def test_a_server_looks_at_a_storage_every_few_minutes(bucket: Bucket) -> None:
    corpus = opened()
    bucket.pipe("/docs/new.md", b"Rye needs time.")
    corpus.refresh(after_s=1e-9)
    assert found(corpus, "rye") == []
    corpus.refresh()
    assert found(corpus, "rye") == ["bucket://docs/new.md:1"]


def test_a_file_that_cannot_be_copied_is_named_and_keeps_its_copy(bucket: Bucket) -> None:
    corpus = opened()
    bucket.refused.update(["tea.md", "new.md"])
    bucket.pipe({"/docs/tea.md": b"Nobody reads this.", "/docs/new.md": b"Nor this."})
    corpus.refresh()
    assert found(corpus, "green tea") == ["bucket://docs/tea.md:4"]
    [note] = corpus.notes
    assert "bucket://docs/tea.md: it cannot be copied: PermissionError: not allowed" in note
    assert "bucket://docs/new.md: it cannot be copied" in note
    bucket.refused.clear()
    corpus.refresh()
    assert (corpus.notes, found(corpus, "nobody reads")) == ([], ["bucket://docs/tea.md:1"])


def test_a_storage_that_does_not_answer_is_named_and_its_copies_are_searched(
    bucket: Bucket,
) -> None:
    corpus = opened()
    bucket.refused.add("list")
    corpus.refresh()
    assert found(corpus, "green tea") == ["bucket://docs/tea.md:4"]
    assert "bucket://docs: it cannot be listed, so earlier copies are searched" in corpus.notes[0]
    with pytest.raises(BadInput, match=r"bucket://other: it cannot be listed.*not allowed to list"):
        opened("bucket://other")


def test_a_run_searches_what_was_read_if_changes_cannot_be_read(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    corpus = opened_source("corpus:bucket://docs", age_s=0)
    [listed] = tmp_path.rglob("copies/*.json")
    listed.unlink()
    listed.mkdir()  # so that it cannot be written
    corpus._looked = float("-inf")  # long ago
    assert opened_source("corpus:bucket://docs", age_s=0) is corpus
    [tea] = corpus.invoke("green tea")
    assert tea.metadata["source"] == "bucket://docs/tea.md:4"
    assert "its changes cannot be read, so what was read before" in tea.metadata[NOTES][0]
    listed.rmdir()
    assert opened_source("corpus:bucket://docs", age_s=3600) is corpus
    assert NOTES in corpus.invoke("green tea")[0].metadata
    assert opened_source("corpus:bucket://docs", age_s=0) is corpus
    assert NOTES not in corpus.invoke("green tea")[0].metadata


def test_what_a_folder_scan_leaves_out_is_not_copied_but_listed(bucket: Bucket) -> None:
    bucket.refused.update([".git/config", "film.mp4"])
    bucket.pipe({"/docs/.git/config": b"x", "/docs/kitchen/film.mp4": b"x"})
    corpus = opened()
    assert corpus.notes == []
    assert [Path(path).name for path in corpus.left_out] == [".git", "film.mp4"]


def test_a_file_below_a_path_that_is_a_file_is_named(bucket: Bucket, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "docs.zip", "w") as archive:
        archive.writestr("tea.md", TEA)
    corpus = opened(f"zip://::file://{tmp_path}/docs.zip")
    with ZipFile(tmp_path / "docs.zip", "a") as archive:
        archive.writestr("tea.md/more.md", "More.")
    corpus.refresh()
    assert found(corpus, "green tea") == [f"zip://::file://{tmp_path}/docs.zip/tea.md:4"]
    assert ["/tea.md/more.md: it cannot be copied" in note for note in corpus.notes] == [True]


@pytest.mark.parametrize("name", ["../../out.md", "a/../../../out.md"])
def test_a_path_out_of_the_folder_is_refused(bucket: Bucket, tmp_path: Path, name: str) -> None:
    with ZipFile(tmp_path / "docs.zip", "w") as archive:
        archive.writestr("tea.md", TEA)
        archive.writestr(name, "Out.")
    corpus = opened(f"zip://::file://{tmp_path}/docs.zip")
    assert found(corpus, "green tea") == [f"zip://::file://{tmp_path}/docs.zip/tea.md:4"]
    assert not [*tmp_path.rglob("out.md")]
    assert ["leads out of the folder" in note for note in corpus.notes] == [True]


def test_a_memory_is_built_from_a_storage(bucket: Bucket) -> None:
    documents = list_documents(["corpus:bucket://docs"]).documents
    assert sorted((each.source, each.key) for each in documents) == [
        ("bucket://docs/kitchen/soup.txt", "kitchen/soup.txt"),
        ("bucket://docs/tea.md", "tea.md"),
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nowhere://docs", r"Protocol not known: nowhere"),
        ("bucket://ana:secret@docs", "has a password in it"),
        ("zip://::bucket://ana:secret@docs.zip", "has a password in it"),
    ],
)
def test_a_url_that_cannot_be_used(bucket: Bucket, url: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as failure:
        open_source(f"corpus:{url}")
    assert "secret" not in str(failure.value)


SITEMAP = '<?xml version="1.0"?><{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{1}</{0}>'


def sitemap(*entries: str, kind: str = "url") -> Served:
    listed = "".join(f"<{kind}>{entry}</{kind}>" for entry in entries)
    text = SITEMAP.format("urlset" if kind == "url" else "sitemapindex", listed)
    return Served(text.encode(), type="application/xml")


def page(text: str, title: str = "Kitchen: a page") -> Served:
    return html(text, "It has been so since the house was built, as everybody knows.", title=title)


def test_a_sitemap_stands_for_its_pages(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    with PagesServer({}) as server:
        host = server.url.removesuffix("/")
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", host.partition("//")[2])
        server.routes |= {
            "/sitemap.xml": sitemap(f"<loc>{host}/more.xml</loc>", kind="sitemap"),
            "/more.xml": sitemap(
                f"<loc>{host}/</loc>",
                f"<loc>{host}/tea#green</loc><lastmod>2026-01-01</lastmod>",
                f"<loc>{host}/tea/old?page=2</loc>",
                f"<loc>{host}/gone</loc>",
                "<loc>http://elsewhere.example/</loc>",
            ),
            "/": page("Rye bread is baked on Fridays in this kitchen."),
            "/tea": page("Green tea is steeped for two minutes here.", title="Tea"),
            "/tea/old": page("Potatoes are boiled until they are soft here."),
        }
        corpus = opened(f"{host}/sitemap.xml")
        assert found(corpus, "rye") == [f"{host}/."]
        [tea] = corpus.invoke("green tea")
        assert (tea.metadata["title"], tea.metadata["source"]) == ("Tea", f"{host}/tea")
        assert found(corpus, "potatoes") == [f"{host}/tea/old?page=2"]
        [note] = corpus.notes
        assert f"{host}/gone: it cannot be copied" in note
        asked = len(server.asked)
        corpus.refresh()
        again = [each.path for each in server.asked[asked:]]
        assert sorted(again) == ["/gone", "/more.xml", "/sitemap.xml"]


def test_a_page_with_a_long_name_in_any_script_is_copied(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        name = "\u8336" * 70 + ": 100%"
        server.routes |= {
            "/sitemap.xml": sitemap(f"<loc>{server.url}/{quote(name)}</loc>"),
            f"/{quote(name)}": page("Green tea is steeped for two minutes here."),
        }
        corpus = opened(f"{server.url}/sitemap.xml")
        assert (found(corpus, "green tea"), corpus.notes) == ([f"{server.url}/{name}"], [])


def test_the_title_of_a_page_is_kept_as_it_is(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        title = 'Caf\u00e9: "Th\u00e9" \U0001f375'
        server.routes |= {
            "/sitemap.xml": sitemap(f"<loc>{server.url}/tea</loc>"),
            "/tea": page("Green tea is steeped for two minutes here.", title=title),
        }
        [tea] = opened(f"{server.url}/sitemap.xml").invoke("green tea")
        assert tea.metadata["title"] == title
        assert tea.page_content.startswith("title: ")
        assert title.split(":", maxsplit=1)[0] in tea.page_content


def test_sitemaps_may_be_long_or_compressed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        tea, rye = f"<loc>{server.url}/tea</loc>", f"<loc>{server.url}/rye</loc>"
        others = ["<loc>http://elsewhere.example/a-page-of-another-site</loc>"] * 40_000
        packed = Served(gzip.compress(sitemap(rye).body), type="application/x-gzip")
        names = [f"<loc>{server.url}/{name}</loc>" for name in ("long.xml", "posts.xml.gz")]
        server.routes |= {
            "/sitemap.xml": sitemap(*names, kind="sitemap"),
            "/long.xml": sitemap(*others, tea),
            "/posts.xml.gz": packed,
            "/tea": page("Green tea is steeped for two minutes here."),
            "/rye": page("Rye bread is baked on Fridays in this kitchen."),
        }
        corpus = opened(f"{server.url}/sitemap.xml")
        assert found(corpus, "green tea") == [f"{server.url}/tea"]
        assert found(corpus, "rye") == [f"{server.url}/rye"]
        assert corpus.notes == []
        assert found(opened(f"{server.url}/posts.xml.gz"), "rye") == [f"{server.url}/rye"]


def test_a_sitemap_may_be_as_long_as_the_protocol_allows(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        body = sitemap(f"<loc>{server.url}/tea</loc>").body.ljust(52_428_800)
        server.routes |= {
            "/sitemap.xml.gz": Served(gzip.compress(body, 1), type="application/gzip"),
            "/tea": page("Green tea is steeped for two minutes here."),
        }
        assert found(opened(f"{server.url}/sitemap.xml.gz"), "tea") == [f"{server.url}/tea"]


def test_a_sitemap_without_pages_of_its_site_is_named_and_deletes_nothing(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        url = f"{server.url}/sitemap.xml"
        server.routes["/sitemap.xml"] = sitemap("<loc>http://www.elsewhere.example/</loc>")
        with pytest.raises(BadInput, match=f"no page whose URL begins with {server.url}"):
            opened(url)
        server.routes |= {
            "/sitemap.xml": sitemap(f"<loc>{server.url}/tea</loc>"),
            "/tea": page("Green tea is steeped for two minutes here."),
        }
        corpus = opened(url)
        server.routes["/sitemap.xml"] = sitemap()
        corpus.refresh()
        assert found(corpus, "green tea") == [f"{server.url}/tea"]
        assert "it cannot be listed, so earlier copies are searched" in corpus.notes[0]


def test_a_page_that_is_too_long_is_noted_whenever_files_are_looked_at(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        server.routes |= {
            "/sitemap.xml": sitemap(f"<loc>{server.url}/rye</loc><lastmod>2026-01-01</lastmod>"),
            "/rye": Served(b"Rye bread keeps for a week.\n\n" * 80_000, type="text/plain"),
        }
        corpus = opened(f"{server.url}/sitemap.xml")
        for _ in range(2):
            [note] = corpus.notes
            assert f"{server.url}/rye: only its beginning was fetched" in note
            corpus.refresh()
        assert server.paths.count("/rye") == 1


def test_more_sitemaps_than_are_read_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    with PagesServer({}) as server:
        host = server.url.removesuffix("/")
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", host.partition("//")[2])
        names = [f"{host}/{number}.xml" for number in range(101)]
        listed = [f"<loc>{name}</loc>" for name in (*names, names[0])]
        server.routes |= {
            "/sitemap.xml": sitemap(*listed, kind="sitemap"),
            **{f"/{number}.xml": sitemap() for number in range(101)},
            "/0.xml": sitemap(f"<loc>{host}/tea</loc>"),
            "/tea": page("Green tea is steeped for two minutes here."),
        }
        corpus = opened(f"{host}/sitemap.xml")
        assert found(corpus, "green tea") == [f"{host}/tea"]
        [note] = corpus.notes
        assert "only 100 sitemaps are read" in note
