"""A corpus in Weaviate or Postgres: what it finds, and how it follows the files."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from psycopg.rows import dict_row
from typer.testing import CliRunner

from stepcraft import open_memory, open_source
from stepcraft.cli import app
from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.postgres import LOCK
from stepcraft.retrieval.opening import opened_source
from stepcraft.sources import SharedCorpus, build_corpus
from stepcraft.sources.shared import weaviate
from stepcraft.sources.shared.passages import SharedPassages
from stepcraft.sources.shared.postgres import PostgresPassages
from stepcraft.text import words
from tests.servers.pages_server import PagesServer, Served, html
from tests.servers.weaviate_server import WeaviateServer, collection_of

TEA = """# Tea

## Green
Steep green tea for two minutes.

## Black
Steep black tea for four minutes.

## Red
Steep rooibos as long as you like.
"""
SOUP = "Peel the potatoes. Boil them until they are soft."


@dataclass
class Place:
    """A new corpus in a server, and what can be read of it without us."""

    url: str
    again: Callable[[], "Place"]
    stored: Callable[[], dict[str, Any]]

    def with_option(self, option: str) -> str:
        return f"{self.url}{'&' if '?' in self.url else '?'}{option}"


@pytest.fixture(
    params=[
        pytest.param("weaviate", marks=pytest.mark.xdist_group("weaviate_url")),
        pytest.param("postgres", marks=pytest.mark.xdist_group("postgres_url")),
    ]
)
def place(request: pytest.FixtureRequest) -> Place:
    """A new corpus in a real server."""
    if request.param == "weaviate":
        make = request.getfixturevalue("new_collection")
        client = request.getfixturevalue("weaviate_client")

        def in_weaviate() -> Place:
            url = make()
            objects = client.collections.use(collection_of(url))
            return Place(
                url,
                in_weaviate,
                lambda: {
                    str(item.uuid): {name: value or None for name, value in item.properties.items()}
                    for item in objects.iterator()
                },
            )

        return in_weaviate()
    database = request.getfixturevalue("new_database")

    def in_postgres() -> Place:
        url = database()

        def stored() -> dict[str, Any]:
            with psycopg.connect(url, row_factory=dict_row) as connection:
                pages = connection.execute("SELECT * FROM stepcraft_docs_pages").fetchall()
                passages = connection.execute("SELECT * FROM stepcraft_docs").fetchall()
            return {row["path"]: row for row in pages} | {row["key"]: row for row in passages}

        return Place(f"{url}/docs", in_postgres, stored)

    return in_postgres()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files, named `docs` from where we are."""
    monkeypatch.chdir(tmp_path)
    files = Path("docs")
    (files / "kitchen").mkdir(parents=True)
    (files / "tea.md").write_text(TEA)
    (files / "kitchen" / "soup.txt").write_text(SOUP)
    return files


@pytest.fixture
def opened() -> Iterator[Callable[..., SharedCorpus]]:
    """Opens corpora, and closes them."""
    corpora: list[SharedCorpus] = []

    def open_(url: str, **options: Any) -> SharedCorpus:
        corpus = open_source(url, **options)
        assert isinstance(corpus, SharedCorpus)
        corpora.append(corpus)
        return corpus

    yield open_
    for corpus in corpora:
        corpus.close()


def origins(documents: Sequence[Document]) -> list[str]:
    return [document.metadata["source"] for document in documents]


class Counting:
    """An embedding model that notes what it embeds, and refuses one text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.forbidden = "poison"

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        if any(self.forbidden in text for text in texts):
            raise ValueError("a word is not allowed")
        self.texts += texts
        return [[1.0, len(text)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, len(text)]


async def test_a_passage_says_what_it_is_where_it_stands_and_what_is_beside_it(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    report = build_corpus([folder], place.url)
    assert (report.files, report.read, report.passages, report.problems) == (2, 2, 4, {})
    corpus = opened(place.url)
    first, *_ = corpus.invoke("how long does black tea steep?", k=2)
    assert first.page_content == "Steep black tea for four minutes."
    assert first.metadata["title"] == "Tea › Black"
    assert first.metadata["source"] == "docs/tea.md:7"
    assert origins(corpus.beside(str(first.id))) == ["docs/tea.md:4", "docs/tea.md:10"]
    assert corpus.beside("b3f1") == []
    assert (await corpus.ainvoke("black tea", k=1))[0].id == first.id
    assert origins(corpus.invoke("potatoes", k=1)) == ["docs/kitchen/soup.txt:1"]
    with pytest.raises(BadInput, match="whole number from 1"):
        corpus.invoke("tea", k=0)


def test_filters_are_tags_and_the_beginning_of_paths(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    (folder.parent / "notes.md").write_text("Black tea was drunk by all.")
    build_corpus([folder], place.url, tags={"team": "kitchen"})
    build_corpus(["notes.md"], place.url, tags={"team": "desk", "year": "2026"})
    found = {
        where: {*origins(opened(place.with_option(where)).invoke("black tea", k=9))}
        for where in ("where=team=desk", "where=team=kitchen&where=path=docs/kitchen/", "where=a=b")
    }
    assert found == {
        "where=team=desk": {"notes.md:1"},
        "where=team=kitchen&where=path=docs/kitchen/": {"docs/kitchen/soup.txt:1"},
        "where=a=b": set(),
    }
    assert len(opened(place.url).invoke("black tea", k=9)) == 5
    (folder / "tea.md").unlink()
    assert build_corpus([folder], place.url, tags={"team": "kitchen"}).removed == 1
    assert {*origins(opened(place.url).invoke("black tea", k=9))} == {
        "notes.md:1",
        "docs/kitchen/soup.txt:1",
    }
    with pytest.raises(BadInput, match="the tag path cannot be used"):
        build_corpus([folder], place.url, tags={"path": "x"})


@pytest.mark.parametrize("name", ["team", "path"])
def test_two_values_for_a_filter_are_refused(name: str):
    url = f"weaviate://localhost:8080/Docs?where={name}=desk&where={name}=kitchen"
    with pytest.raises(BadInput, match=f"the filter '{name}' has two values"):
        open_source(url)


@pytest.mark.parametrize(
    "options",
    ["where=owner={user}", "where=path={user}/", "tenant={user}&where=owner={user}"],
)
def test_a_field_in_a_filter_is_refused(options: str):
    def search(_: object) -> None:
        opened_source(f"weaviate://localhost:8080/Docs?{options}")

    with pytest.raises(BadInput, match=r"\{user\}/? is not filled in, only tenant= is"):
        RunnableLambda(search).invoke(None, {"configurable": {"user": "ada"}})


class ByTopic:
    """An embedding model for which all texts on soup are far from all others."""

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [-1.0 if "soup" in text else 1.0, sum(text.encode()) / 1e5]


@pytest.mark.parametrize("name", ["words", "memories"])
def test_a_corpus_cannot_have_the_name_of_a_table_of_a_memory(
    new_database: Callable[[], str], folder: Path, name: str
):
    with pytest.raises(BadInput, match="other than words and memories"):
        build_corpus([folder], f"{new_database()}/{name}", embeddings="none")


def test_a_filter_finds_what_is_far_from_the_query_where_an_index_is_approximate(
    new_database: Callable[[], str], folder: Path, opened: Callable[..., SharedCorpus]
):
    url, model = f"{new_database()}/docs", ByTopic()
    for team, count in (("desk", 600), ("soup", 30)):
        rows = (f"{team} {number},{number} of {team}" for number in range(count))
        (folder / "faq.csv").write_text("\n".join(["Title,Text", *rows]))
        build_corpus([folder / "faq.csv"], url, embeddings=model, tags={"team": team})  # type: ignore[arg-type]
    with psycopg.connect(url.removesuffix("/docs"), autocommit=True) as connection:
        # A large corpus without these settings is searched like this small one with them.
        connection.execute("SELECT '[1]'::vector")  # loads pgvector with its settings
        for setting in ("hnsw.max_scan_tuples = 1", "enable_sort = off"):
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {setting}".encode())

    def found(where: str, k: int) -> list[str]:
        corpus = opened(f"{url}?where=team={where}", embeddings=model)
        return [each.metadata["title"].split()[0] for each in corpus.invoke("anything", k=k)]

    assert found("soup", 20) == ["soup"] * 20
    assert found("soup", 40) == ["soup"] * 30
    assert found("desk", 5) == ["desk"] * 5
    assert found("nobody", 5) == []


def test_a_path_in_a_filter_is_no_pattern(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    for name in ("a*b", "axxb"):
        (folder / name).mkdir()
        (folder / name / "tea.md").write_text("Tea is hot.")
    build_corpus([folder], place.url, embeddings="none")

    def found(path: str) -> set[str]:
        documents = opened(place.with_option(f"where=path={path}")).invoke("tea hot", k=9)
        return {*origins(documents)}

    assert found("docs/a*b/") == {"docs/a*b/tea.md:1"}
    assert found("docs/a") == {"docs/a*b/tea.md:1", "docs/axxb/tea.md:1"}
    assert found("docs/?") == set()


@pytest.mark.parametrize("k", [-1, 10_001, 50_000])
def test_a_number_of_passages_that_is_refused(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus], k: int
):
    build_corpus([folder], place.url, embeddings="none")
    corpus = opened(place.url)
    with pytest.raises(BadInput, match=f"whole number from 1 to 10,000, .* not {k} and"):
        corpus.invoke("tea", k=k)
    assert len(corpus.invoke("steep", k=10_000)) == 3


def test_only_new_texts_are_embedded_and_what_is_gone_is_deleted(place: Place, folder: Path):
    model: Any = Counting()
    build_corpus([folder], place.url, embeddings=model)
    assert len(model.texts) == 4
    assert build_corpus([folder], place.url, embeddings=model).read == 0
    (folder / "tea.md").write_text(TEA.replace("two", "three"))
    (folder / "kitchen" / "soup.txt").rename(folder / "soup.txt")
    report = build_corpus([folder], place.url, embeddings=model)
    assert (report.read, report.removed) == (2, 1)
    assert model.texts[4:] == ["Tea › Green\nSteep green tea for three minutes."]
    other = place.again()
    build_corpus([folder], other.url, embeddings=model)
    assert place.stored() == other.stored()


def test_fields_of_records_are_named_and_other_ones_read_anew(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    (folder / "faq.csv").write_text("Id,Frage,Answer\n7,How long?,Two hours.\n")

    def built(options: str) -> tuple[int, str, str]:
        build = ["source", "build", f"corpus:docs/faq.csv{options}", "--into", place.url]
        done = CliRunner().invoke(app, [*build, "--embeddings", "none", "--json"])
        [passage] = opened(place.url).invoke("hours", k=9)
        return json.loads(done.stdout)["read"], passage.metadata["title"], passage.page_content

    whole = "Id: 7\nFrage: How long?\nAnswer: Two hours."
    assert built("?title=frage&text=answer") == (1, "How long?", "Two hours.")
    assert built("?title=Frage&text=Answer") == (0, "How long?", "Two hours.")
    assert built("?title=Frage") == (1, "How long?", whole)
    assert built("") == (1, "faq.csv", whole)


def test_a_build_of_an_earlier_version_of_words_is_made_anew(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus], monkeypatch: pytest.MonkeyPatch
):
    (folder / "cake.md").write_text("Apfelkuchen gehen auf.")
    with monkeypatch.context() as earlier:
        earlier.setattr(words, "VERSION", words.VERSION - 1)
        build_corpus([folder], place.url, embeddings="none")
    report = build_corpus([folder], place.url, embeddings="none")
    assert (report.read, report.passages, report.removed) == (3, 5, 0)
    assert origins(opened(place.url).invoke("Kuchen", k=9)) == ["docs/cake.md:1"]
    fresh = place.again()
    build_corpus([folder], fresh.url, embeddings="none")
    assert place.stored() == fresh.stored()


def test_a_folder_without_files_deletes_nothing(place: Place, folder: Path):
    build_corpus([folder], place.url, embeddings="none")
    before = place.stored()
    (folder.parent / "empty").mkdir()
    with pytest.raises(BadInput, match="there is no file to read in empty; nothing was changed"):
        build_corpus(["empty"], place.url, embeddings="none")
    assert place.stored() == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_files_whose_names_look_alike_do_not_replace_each_other(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    texts = {
        b"\xc3\xeb\xe0\xe2\xe0.md": "Chapter.",  # in an encoding of Windows
        b"\xca\xed\xe8\xe3\xe0.md": "Book.",
        b"\xd0\xa7\xd0\xb0\xd0\xb9.md": "Kettle.",  # in UTF-8
        "caf\u00e9.md".encode(): "Coffee.",
        "cafe\u0301.md".encode(): "Espresso.",
    }
    for name, text in texts.items():
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text(text)
    report = build_corpus([folder], place.url, embeddings="none")
    assert (report.read, report.passages, report.problems) == (6, 8, {})
    assert [*report.left_out.values()] == ["another file is also called docs/caf\u00e9.md"]
    corpus = opened(place.url, k=9)
    assert origins(corpus.invoke("chapter")) == [r"docs/\udcc3\udceb\udce0\udce2\udce0.md:1"]
    assert len(corpus.invoke("book")) == len(corpus.invoke("coffee")) + len(
        corpus.invoke("espresso")
    )
    assert origins(corpus.invoke("kettle")) == ["docs/\u0427\u0430\u0439.md:1"]
    report = build_corpus([folder], place.url, embeddings="none")
    assert (report.read, report.removed) == (0, 0)


def test_a_title_may_hold_escaped_characters(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    for name, title in {
        "rocket": r"\ud83d\ude80 Caf\u00e9",
        "half": r"\ud83d Half",
        "nothing": r"a\0b",
    }.items():
        (folder / f"{name}.md").write_text(f'---\ntitle: "{title}"\n---\nThe {name} flies.')
    assert build_corpus([folder], place.url, embeddings="wordllama").problems == {}
    titles = {each.metadata["title"] for each in opened(place.url, k=9).invoke("flies")}
    assert titles >= {"\U0001f680 Caf\u00e9", "\ufffd Half", "ab"}


def test_only_what_is_known_to_be_gone_is_deleted(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus], monkeypatch: pytest.MonkeyPatch
):
    files = [folder / "kitchen-old" / "rye.md", Path("notes/milk.md"), Path("desk/pens.md")]
    for file in files:
        file.parent.mkdir()
        file.write_text(f"The recipe of {file.stem}.")
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        roots = ["docs", "notes", "desk", f"{server.url}/sitemap.xml"]
        offered = {
            f"/{name}": html(f"The recipe of {name} is told in this long sentence. " * 3)
            for name in ("cake", "bread")
        }

        def built(number: int, *pages: str, **served: Served) -> tuple[set[str], set[str]]:
            """What is named after a build with an empty cache, and what is found."""
            listed = "".join(f"<url><loc>{server.url}{page}</loc></url>" for page in pages)
            sitemap = Served(f"<urlset>{listed}</urlset>".encode(), type="application/xml")
            server.routes = {"/sitemap.xml": sitemap, **offered} | served
            monkeypatch.setenv("XDG_CACHE_HOME", str(folder.absolute().parent / f"cache{number}"))
            report = build_corpus(roots, place.url, embeddings="none")
            reasons = {why.partition(",")[0].partition(":")[0] for why in report.problems.values()}
            documents = opened(place.url, k=9).invoke("recipe, steep, potatoes")
            names = (re.sub(r":\d+$", "", path) for path in origins(documents))
            return reasons, {name.rpartition("/")[2] for name in names}

        every = {"tea.md", "soup.txt", "rye.md", "milk.md", "pens.md", "cake", "bread"}
        assert built(1, *offered) == (set(), every)

        def scandir(path: Any, scan: Callable[..., Any] = os.scandir) -> Any:
            if str(path).endswith("kitchen"):
                raise OSError(5, "Input/output error", path)
            return scan(path)

        with monkeypatch.context() as fails:
            fails.setattr(os, "scandir", scandir)
            files[0].unlink()
            files[1].unlink()
            reasons, found = built(2, **{"/sitemap.xml": Served(status=503)})
        assert found == every - {"rye.md"}, "it was in a folder that could be listed"
        assert reasons == {"it cannot be read", "it cannot be listed", "there is no file in it"}
        files[1].write_text("The recipe of milk.")
        assert built(3, "/cake", **{"/cake": Served(status=503)}) == (
            {"it cannot be copied"},
            every - {"rye.md", "bread"},
        )
        files[2].unlink()
        (files[2].parent / "note.md").write_text("Nothing.")
        assert built(4, "/cake") == (set(), every - {"rye.md", "bread", "pens.md"})


@pytest.mark.parametrize("above", ["/tea", "/"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_page_that_is_read_in_part_or_not_again_keeps_no_deleted_page_below_it(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch, above: str, *, fails: bool
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.absolute().parent / "cache"))
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)

        def built(*pages: str) -> Any:
            day = len(pages)  # so that they are fetched again
            listed = "".join(
                f"<url><loc>{server.url}{page}</loc><lastmod>2026-01-0{day}</lastmod></url>"
                for page in pages
            )
            sitemap = Served(f"<urlset>{listed}</urlset>".encode(), type="application/xml")
            server.routes["/sitemap.xml"] = sitemap
            return build_corpus([f"{server.url}/sitemap.xml"], place.url, embeddings="none")

        tea = b"Tea is steeped for two minutes.\n\n" * (10 if fails else 65_000)
        server.routes |= {
            above: Served(tea, type="text/plain"),
            "/tea/old": html("The recipe of old tea is told in this long sentence. " * 3),
        }
        assert len(built(above, "/tea/old").problems) == (not fails)
        if fails:
            server.routes[above] = Served(status=503)
        report = built(above)
        assert report.removed == 1
        [reason] = report.problems.values()
        assert ("cannot be copied" if fails else "only its beginning was fetched") in reason


def test_what_cannot_be_read_or_embedded_is_named_and_costs_itself(place: Place, folder: Path):
    (folder / "data.txt").write_bytes(b"\0\1")
    (folder / "bad.md").write_text("# A\n\npoison\n\n# B\n\nMilk.")
    for _ in range(2):
        report = build_corpus([folder], place.url, embeddings=Counting())  # type: ignore[arg-type]
        problems = {Path(path).name: why for path, why in report.problems.items()}
        assert problems["data.txt"] == "it is binary"
        assert "a word is not allowed" in problems["bad.md"]
    assert (report.read, report.passages) == (0, 0)
    with closing(open_source(place.url, embeddings=Counting())) as corpus:  # type: ignore[arg-type,type-var]
        assert origins(corpus.invoke("milk", k=1)) == ["docs/bad.md:7"]


def test_the_embedding_model_is_recorded_and_another_refused(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    class Other(DeterministicFakeEmbedding):
        pass

    build_corpus([folder], place.url, embeddings="wordllama")
    said = r"with embeddings 'wordllama', not 'Other': .*`stepcraft source build corpus:PATH --into"
    with pytest.raises(MemoryFailure, match=said):
        opened(place.url, embeddings=Other(size=8))
    with pytest.raises(MemoryFailure, match=said):
        build_corpus([folder], place.url, embeddings=Other(size=8))
    assert opened(place.url, embeddings="none").invoke("potatoes", k=1)
    with pytest.raises(MemoryFailure, match="made with embeddings 'wordllama': name them to build"):
        build_corpus([folder], place.url, embeddings="none")


def test_what_is_no_corpus_is_refused(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus]
):
    with pytest.raises(BadInput, match="check the name, or fill it with `stepcraft source build"):
        opened(place.url)
    if place.url.startswith("weaviate"):
        open_memory(place.url, embeddings="none").close()
        with pytest.raises(MemoryFailure, match="holds procedures, not passages"):
            build_corpus([folder], place.url)
        other = place.again().url
        build_corpus([folder], other, embeddings="none")
        with pytest.raises(MemoryFailure, match="holds passages, not procedures"):
            open_memory(other)


def many(folder: Path, version: int = 0) -> None:
    """Files of several passages, some of which change with the version."""
    for number in range(24):
        of = version if number % 4 == 0 else 0
        sections = (f"## Part {n}\nTea {number} of version {of}, part {n}.\n" for n in range(6))
        (folder / f"{number}.md").write_text(f"# Tea {number}\n\n" + "\n".join(sections))


class Builder:
    """A process that builds a corpus in processes of their own."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sources.builder"],
            env={**os.environ, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, folder: Path, url: str) -> None:
        """Begin to build."""
        assert self._process.stdin
        self._process.stdin.write(f"{folder} {url}\n")
        self._process.stdin.flush()

    def lines(self) -> Iterator[str]:
        """What a build says: the number of its process, the files that are done, and whether it was built."""
        assert self._process.stdout
        return iter(lambda: self._process.stdout.readline().strip(), "ended")  # type: ignore[union-attr]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@pytest.fixture
def builders(request: pytest.FixtureRequest) -> Iterator[list[Builder]]:
    """Two processes that build."""
    started = [Builder(request.config.rootpath) for _ in range(2)]
    yield started
    for each in started:
        each.close()


def test_a_build_that_is_killed_ten_times_ends_as_one_that_was_not(
    place: Place, folder: Path, builders: list[Builder]
):
    chance, builder = random.Random(4), builders[0]
    for turn in range(10):
        many(folder, turn // 3)
        builder.start(folder, place.url)
        lines = builder.lines()
        process = int(next(lines))
        for _ in range(chance.randint(1, 24)):
            next(lines, None)
        with suppress(ProcessLookupError):  # it has ended
            os.kill(process, signal.SIGKILL)
        deque(lines, 0)
    builder.start(folder, place.url)
    assert [*builder.lines()][-1] == "built"
    fresh = place.again()
    build_corpus([folder], fresh.url, embeddings="wordllama")
    assert place.stored() == fresh.stored()


def test_what_an_unfinished_build_has_stored_is_not_found(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus], monkeypatch: pytest.MonkeyPatch
):
    build_corpus([folder], place.url, embeddings="none")
    monkeypatch.setattr(SharedPassages, "batch", 2)  # a page is stored in several batches
    sections = (f"## Tea {number}\n\nElderflower {number}." for number in range(9))
    (folder / "tea.md").write_text("\n\n".join(sections))

    def fail(report: Any, _: int) -> None:
        if report.passages >= 9:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        build_corpus([folder], place.url, embeddings="none", on_progress=fail)
    assert any("Elderflower" in str(each) for each in place.stored().values())
    unfinished = opened(place.url, k=9)
    assert unfinished.invoke("elderflower") == []
    assert len(unfinished.invoke("steep")) == 3
    build_corpus([folder], place.url, embeddings="none")
    finished = opened(place.url, k=9)
    assert (len(finished.invoke("elderflower")), finished.invoke("steep")) == (9, [])
    fresh = place.again()
    build_corpus([folder], fresh.url, embeddings="none")
    assert place.stored() == fresh.stored()


def test_a_page_is_found_behind_many_better_passages_of_an_unfinished_build(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus], monkeypatch: pytest.MonkeyPatch
):
    (folder / "kitchen" / "soup.txt").write_text(f"{SOUP} Elderflower goes well with it.")
    build_corpus([folder], place.url, embeddings="none")
    monkeypatch.setattr(SharedPassages, "batch", 50)
    sections = (f"## Elderflower {number}\n\nElderflower." for number in range(210))
    (folder / "tea.md").write_text("\n\n".join(sections))

    def fail(report: Any, _: int) -> None:
        if report.passages >= 210:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        build_corpus([folder], place.url, embeddings="none", on_progress=fail)
    assert origins(opened(place.url).invoke("elderflower", k=2)) == ["docs/kitchen/soup.txt:1"]
    assert opened(place.with_option("where=path=docs/tea")).invoke("elderflower", k=2) == []


def test_a_build_that_ends_lets_searches_know_about_another_one(
    place: Place, folder: Path, opened: Callable[..., SharedCorpus], monkeypatch: pytest.MonkeyPatch
):
    if place.url.startswith("postgresql"):
        pytest.skip("only one builder at a time")
    build_corpus([folder], place.url, embeddings="none")
    monkeypatch.setattr(SharedPassages, "batch", 2)  # a page is stored in several batches
    (folder / "a.md").write_text("A short note.")
    found = []

    def then(report: Any, _: int) -> None:
        if report.files == 1:
            build_corpus([folder], place.url, embeddings="none")
            sections = (f"## Tea {number}\n\nElderflower {number}." for number in range(9))
            (folder / "tea.md").write_text("\n\n".join(sections))
        elif report.files == 2:
            found.append(opened(place.url, k=9).invoke("elderflower"))

    build_corpus([folder], place.url, embeddings="none", on_progress=then)
    assert found == [[]]
    assert len(opened(place.url, k=9).invoke("elderflower")) == 9


def test_a_text_stored_for_many_pages_is_not_embedded_again(
    new_collection: Callable[[], str], folder: Path, monkeypatch: pytest.MonkeyPatch
):
    url, model = new_collection(), Counting()
    monkeypatch.setattr(weaviate, "BATCH", 20)
    sections = [f"## Tea {number}\n\nElderflower {number}." for number in range(60)]
    (folder / "tea.md").write_text("\n\n".join(sections))
    for version in range(6):
        tags = {"version": str(version)}
        build_corpus([folder / "tea.md"], url, embeddings=model, tags=tags)  # type: ignore[arg-type]
    assert len(model.texts) == 60
    (folder / "tea.md").write_text("\n\n".join([*sections, "## Milk\n\nMilk."]))
    build_corpus([folder / "tea.md"], url, embeddings=model, tags=tags)  # type: ignore[arg-type]
    build_corpus([folder / "tea.md"], url, embeddings=model)  # type: ignore[arg-type]
    assert model.texts[60:] == ["tea.md \u203a Milk\nMilk."]


def test_two_builders_at_once_end_as_one(place: Place, folder: Path, builders: list[Builder]):
    for version in (1, 2):
        many(folder, version)
        for builder in builders:
            builder.start(folder, place.url)
        assert [[*builder.lines()][-1] for builder in builders] == ["built", "built"]
    fresh = place.again()
    build_corpus([folder], fresh.url, embeddings="wordllama")
    assert place.stored() == fresh.stored()


def test_a_build_leaves_what_a_builder_with_other_tags_is_storing(
    new_collection: Callable[[], str],
    weaviate_client: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    url = new_collection()
    monkeypatch.setattr(SharedPassages, "batch", 1)  # passages are stored before their page is done
    others = folder / "kitchen"
    build_corpus([others], url, embeddings="none", tags={"team": "a"})

    def interrupt(*_: object) -> None:
        raise InterruptedError

    def build_others(report: Any, _: int) -> None:
        if report.files == 1:
            (others / "soup.txt").write_text(f"{SOUP}\n\n{'Salt it. ' * 120}")
            with pytest.raises(InterruptedError):
                build_corpus(
                    [others], url, embeddings="none", tags={"team": "a"}, on_progress=interrupt
                )
            (others / "soup.txt").write_text(SOUP)
            build_corpus([others], url, embeddings="none", tags={"team": "a"})

    report = build_corpus(
        [folder / "tea.md"], url, embeddings="none", tags={"team": "b"}, on_progress=build_others
    )
    assert report.passages == 3, "what was stored is not read again"
    objects = weaviate_client.collections.use(collection_of(url))
    texts = [item.properties["text"] or "" for item in objects.iterator()]
    assert not any("Salt" in text for text in texts), "what an interrupted builder left is deleted"
    with closing(open_source(url, k=9)) as corpus:  # type: ignore[type-var]
        assert len(corpus.invoke("steep")) == 3
        assert len(corpus.invoke("potatoes")) == 1


def test_searches_see_each_page_in_one_state_while_it_is_built(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(SharedPassages, "batch", 20)  # a page is stored in several batches
    many(folder)
    build_corpus([folder], place.url, embeddings="wordllama")
    is_over = Event()

    def search(number: int) -> int:
        searches = 0
        with closing(open_source(place.url)) as corpus:  # type: ignore[type-var]
            while not is_over.is_set():
                documents = corpus.invoke(f"tea {4 * number} of version", k=6)
                assert len(documents) == 6
                states = {
                    (each.metadata["source"].partition(":")[0], each.page_content.split(",")[0])
                    for each in documents
                }
                assert len({path for path, _ in states}) == len(states), states
                searches += 1
        return searches

    with ThreadPoolExecutor(4) as pool:
        searchers = [pool.submit(search, number) for number in range(4)]
        try:
            for version in range(1, 5):
                many(folder, version)
                build_corpus([folder], place.url, embeddings="wordllama")
        finally:
            is_over.set()
        assert min(searcher.result() for searcher in searchers) > 3


def test_a_builder_waits_for_another_one_whatever_limits_the_database_sets(
    new_database: Callable[[], str], folder: Path
):
    database = new_database()
    with psycopg.connect(database, autocommit=True) as other:
        name = other.info.dbname
        other.execute(f'ALTER DATABASE "{name}" SET statement_timeout = 300')
        other.execute(f'ALTER DATABASE "{name}" SET lock_timeout = 300')
        build_corpus([folder], f"{database}/docs", embeddings="none")
        other.execute(LOCK, ("stepcraft_docs",))
        (folder / "tea.md").unlink()
        with ThreadPoolExecutor(1) as pool:
            build = pool.submit(build_corpus, [folder], f"{database}/docs", embeddings="none")
            time.sleep(1)
            assert not build.done()
            other.execute("SELECT pg_advisory_unlock_all()")
            assert build.result().removed == 1

            other.execute(LOCK, ("stepcraft_docs",))
            build = pool.submit(build_corpus, [folder], f"{database}/docs", embeddings="none")
            waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while not (rows := other.execute(waiting).fetchall()):
                time.sleep(0.01)
            other.execute("SELECT pg_terminate_backend(%s)", rows[0])
            with pytest.raises(MemoryFailure, match=r"docs failed: .*terminating connection"):
                build.result()


def test_a_builder_stores_and_deletes_for_longer_than_the_database_lets_a_statement_take(
    new_database: Callable[[], str], folder: Path
):
    database = new_database()
    build_corpus([folder], f"{database}/docs", embeddings="none")
    (folder / "kitchen" / "soup.txt").unlink()
    (folder / "tea.md").write_text(TEA.replace("two", "three"))
    with psycopg.connect(database, autocommit=True) as other:
        other.execute(
            "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql"
            " AS 'BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END'"
        )
        other.execute(
            "CREATE TRIGGER pause AFTER INSERT OR DELETE ON stepcraft_docs"
            " FOR EACH STATEMENT EXECUTE FUNCTION pause()"
        )
        other.execute(f"ALTER DATABASE {other.info.dbname} SET statement_timeout = 1000".encode())
    report = build_corpus([folder], f"{database}/docs", embeddings="none")
    assert (report.read, report.removed, report.problems) == (1, 1, {})


def test_the_connection_with_the_lock_is_kept_alive_while_texts_are_embedded(
    new_database: Callable[[], str], folder: Path
):
    index = PostgresPassages(f"{new_database()}/docs", embeddings="none", create=True)
    with closing(index), index.building():
        assert index._lock.info.get_parameters()["keepalives_idle"] == "30"


def test_a_builder_that_has_lost_its_lock_stores_no_more(
    new_database: Callable[[], str], folder: Path
):
    database = new_database()

    def lose(report: Any, _: int) -> None:
        with psycopg.connect(database, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks JOIN pg_database ON database ="
                " pg_database.oid WHERE locktype = 'advisory' AND datname = current_database()"
            )

    with pytest.raises(MemoryFailure, match="docs failed: "):
        build_corpus([folder], f"{database}/docs", embeddings="none", on_progress=lose)


def test_a_server_that_is_killed_while_it_is_filled(own_weaviate: WeaviateServer, folder: Path):
    many(folder)
    url, fresh = own_weaviate.url("Killed"), own_weaviate.url("Fresh")

    def kill_at(report: Any, _: int) -> None:
        if report.files == 20:
            own_weaviate.kill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SharedPassages, "batch", 20)
        with pytest.raises(MemoryFailure, match=r"cannot be reached|failed"):
            build_corpus([folder], url, on_progress=kill_at)
    own_weaviate.start()
    build_corpus([folder], url)
    build_corpus([folder], fresh)
    for query in ("tea 7 of version 0, part 3", "tea 23, part 5"):
        found = [open_source(each).invoke(query, k=1)[0].page_content for each in (url, fresh)]
        assert found[0] == found[1]


def test_passages_that_a_server_lost_are_stored_again(
    new_collection: Callable[[], str], weaviate_client: Any, folder: Path
):
    url = new_collection()
    build_corpus([folder], url, embeddings="none")
    objects = weaviate_client.collections.use(collection_of(url))
    before = {str(item.uuid) for item in objects.iterator()}
    lost = next(item for item in objects.iterator() if "rooibos" in (item.properties["text"] or ""))
    objects.data.delete_by_id(lost.uuid)
    assert build_corpus([folder], url, embeddings="none").passages == 3
    assert {str(item.uuid) for item in objects.iterator()} == before


def test_a_lost_passage_that_is_refused_now_is_named(
    new_collection: Callable[[], str], weaviate_client: Any, folder: Path
):
    url, model = new_collection(), Counting()
    (folder / "bad.md").write_text("A safe text.")
    build_corpus([folder], url, embeddings=model)  # type: ignore[arg-type]
    objects = weaviate_client.collections.use(collection_of(url))
    lost = next(item for item in objects.iterator() if "safe" in (item.properties["text"] or ""))
    objects.data.delete_by_id(lost.uuid)
    model.forbidden = "safe"
    report = build_corpus([folder], url, embeddings=model)  # type: ignore[arg-type]
    assert "a word is not allowed" in report.problems[str(folder.absolute() / "bad.md")]


def test_a_corpus_of_several_tenants(new_collection: Callable[..., str], folder: Path):
    url = new_collection()
    build_corpus([folder], f"{url}&tenant=ada_", embeddings="none")
    build_corpus([folder / "tea.md"], f"{url}&tenant=bob_", embeddings="none")

    def found(user: str) -> list[str]:
        return RunnableLambda(
            lambda _: origins(opened_source(f"{url}&tenant={{user}}").invoke("potatoes"))
        ).invoke(None, {"configurable": {"user": user}})

    assert found("ada") == ["docs/kitchen/soup.txt:1"]
    assert found("bob") == []


def test_the_command_line(place: Place, folder: Path):
    (folder / "data.txt").write_bytes(b"\0\1")
    (folder / ".notes").touch()
    run = CliRunner().invoke
    build = ["source", "build", "corpus:docs/", "--into", place.url, "--tag", "team=kitchen"]
    done = run(app, build)
    assert (done.exit_code, done.stdout) == (
        1,
        "3 files, 3 read, 4 passages, 0 removed, 1 failed, 1 left out\n",
    )
    assert "docs/data.txt: it is binary" in done.stderr
    found = run(app, ["source", "check", place.with_option("where=team=kitchen"), "potatoes"])
    assert "(docs/kitchen/soup.txt:1)" in found.stdout


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "docs.db",
            "is no corpus in a server; write weaviate://host:8080/Collection or postgresql",
        ),
        ("postgresql://db", r"postgresql://db names no database; write postgresql://host:5432/"),
        ("postgresql://db/kitchen", "names no corpus; write postgresql://host:5432/database/name"),
        ("postgresql://db/kitchen/a-b", "names no corpus"),
        ("postgresql://127.0.0.1:9/kitchen/words_2", "words_2 failed: .*refused"),
        ("postgresql://ann:hunter22@db/kitchen/docs", "a password does not belong into a URL"),
        ("weaviate://hunter22@db/Docs", "a key does not belong into a URL"),
        ("weaviate://127.0.0.1:9/Docs", "cannot be reached"),
        ("postgresql://127.0.0.1:9/kitchen/docs", "docs failed: .*refused"),
    ],
)
def test_a_url_that_cannot_be_used_is_named(url: str, sentence: str, folder: Path):
    with pytest.raises((BadInput, MemoryFailure), match=sentence) as refused:
        build_corpus([folder], url)
    assert "hunter22" not in str(refused.value)
