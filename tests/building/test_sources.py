"""The documents of sources: files, pages, collections and loaders."""

from pathlib import Path

import pytest
from langchain_core.documents import Document as LangChainDocument

from stepcraft import BadInput, FetchFailed, SourceFailure
from stepcraft.building import list_documents
from stepcraft.building.documents import digest_of
from stepcraft.building.sources import Source
from tests.servers.pages_server import PagesServer, Served, html

OWN = "tests.building.own"


def texts(*sources: Source) -> dict[str, str]:
    return {one.source: one.read().text for one in list_documents(sources).documents}


def test_files_of_prose_in_folders_and_named_files(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "sub").mkdir(parents=True)
    for name in (
        "b.md",
        "a.txt",
        "code.py",
        "data.json",
        "picture.png",
        "sub/c.html",
        ".hidden.md",
    ):
        (docs / name).write_text(
            "<p>Some text here.</p>" if name.endswith("html") else "Some text here."
        )
    listing = list_documents([f"corpus:{docs}"])
    assert [one.source for one in listing.documents] == [
        f"{docs}/{name}" for name in ("a.txt", "b.md", "sub/c.html")
    ]
    assert listing.documents[2].read().text.strip() == "Some text here."
    assert list(texts(str(docs / "code.py"), str(docs))) == [
        f"{docs}/{name}" for name in ("code.py", "a.txt", "b.md", "sub/c.html")
    ]


def test_prose_in_folders_is_read_whatever_its_suffix(tmp_path: Path) -> None:
    prose = ["INSTALL", "README", "a.mbox", "b.srt", "c.text", "d.textile", "e.vtt", "sub/readme"]
    skipped = ["LICENSE", "Makefile", "a.csv", "b.xml", "c.build.html", "f.READMES", "notreadme"]
    for name in (*prose, *skipped):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Some text here.")
    listed = [Path(one.source).name for one in list_documents([str(tmp_path)]).documents]
    assert listed == [Path(name).name for name in prose]


def test_titles_and_headings_of_formats(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: Front\n---\n# First\n\nText.\n")
    (tmp_path / "b.md").write_text("# First\n\nText.\n")
    (tmp_path / "c.rst").write_text("First\n=====\n\nText.\n\nSecond\n------\n\nMore.\n")
    (tmp_path / "d.ipynb").write_text(
        '{"metadata": {}, "cells": [{"cell_type": "markdown", "source": ["# First"]},'
        ' {"cell_type": "code", "source": ["print(1)"]}]}'
    )
    (tmp_path / "e.txt").write_text("No heading.")
    read = [one.read() for one in list_documents([str(tmp_path)]).documents]
    assert [one.title for one in read] == ["Front", "First", "First", "First", "e.txt"]
    assert "print(1)" in read[3].text


def test_headings_and_lists_of_other_markup_are_written_as_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text("Keys\n====\n\nRotate\n------\n\n#. Stop it.\n#. Start it.\n")
    (tmp_path / "b.md").write_text("Keys\n====\n\n## Rotate ##\n\n1. Stop it.\n")
    rst, md = [one.read().text for one in list_documents([str(tmp_path)]).documents]
    assert [line for line in rst.splitlines() if line] == [
        "# Keys",
        "## Rotate",
        "1. Stop it.",
        "1. Start it.",
    ]
    assert [line for line in md.splitlines() if line] == ["# Keys", "## Rotate ##", "1. Stop it."]


def test_overlined_titles_are_headings_and_code_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text("####\nPart\n####\n\nRotate\n======\n\n#. Stop ``#. it``.\n")
    code = "# Names\n\n```po\n#. Translators: name of the app\n```\n\n#.\n"
    (tmp_path / "b.md").write_text(code)
    rst, md = [one.read().text for one in list_documents([str(tmp_path)]).documents]
    assert [*filter(None, rst.splitlines())] == ["# Part", "## Rotate", "1. Stop ``#. it``."]
    assert md == code


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "torn.pdf").write_bytes(b"%PDF-1.4 torn")
    (tmp_path / "torn.ipynb").write_text("{")
    (tmp_path / "link.md").symlink_to("/etc/hostname")
    listing = list_documents([str(tmp_path)])
    assert [(one.where, one.reason[:24]) for one in listing.failed] == [
        (f"{tmp_path}/link.md", "it is a link out of the ")
    ]
    for listed, reason in zip(listing.documents, ("notebook", "pdf"), strict=True):
        with pytest.raises(SourceFailure, match=reason):
            listed.read()


def test_pages_of_the_web(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Steep the leaves of green tea for two minutes in water of eighty degrees. " * 3
    routes = {"/tea": html(text, title="Tea"), "/gone": Served(b"", status=404)}
    with PagesServer(routes) as server:
        base = server.url.rstrip("/")
        refused = list_documents([f"{base}/tea"]).documents[0]
        with pytest.raises(FetchFailed, match="not public"):
            refused.read()
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", base.removeprefix("http://"))
        tea, gone = list_documents([f"{base}/tea#part", f"{base}/gone", f"{base}/tea"]).documents
        assert (tea.source, tea.read().title) == (f"{base}/tea", "Tea")
        assert "two minutes" in tea.read().text
        with pytest.raises(FetchFailed, match="404"):
            gone.read()


def test_loaders_and_iterables() -> None:
    whole = {
        "a.pdf": "a.pdf page 1\n\na.pdf page 2\n\na.pdf page 3",
        "b.pdf": "b.pdf page 1",
    }
    assert texts(f"{OWN}:pages") == texts(f"{OWN}:made") == whole
    assert texts(f"{OWN}:documents") == {
        f"{OWN}:documents#{digest_of('first')}": "first",
        "https://tea.example": "second",
    }


@pytest.mark.parametrize(
    ("name", "problem"),
    [("breaking", "ConnectionError: the server is gone"), ("number", "'int' object is not")],
)
def test_a_loader_that_fails_is_named(name: str, problem: str) -> None:
    with pytest.raises(SourceFailure, match=f"{OWN}:{name} failed: .*{problem}"):
        list_documents([f"{OWN}:{name}"])


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("nowhere", "there is no file or folder nowhere; check the name"),
        ("corpus:", "a corpus needs a file or folder"),
        ("", "'' is no source of documents; name corpus:PATH"),
        ("web:ddgs", "web:ddgs"),
        ("memory:m.db", "memory:m.db"),
        ("ftp://tea.example", "is no source of documents; name corpus:PATH"),
        (f"{OWN}:none", "holds no document"),
        (f"{OWN}:texts", "gives a str, not a document of LangChain"),
        (f"{OWN}:absent", "has no attribute 'absent'"),
        ("tests.sources.own:fixed", "gives a tuple, not a document of LangChain"),
    ],
)
def test_what_is_no_source_of_documents(source: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        list_documents([source])


def test_a_folder_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no document; name other files"):
        list_documents([str(tmp_path)])


def test_documents_of_several_loaders_may_have_the_same_name() -> None:
    teams = [
        [LangChainDocument(f"Of {team}.", metadata={"source": "handbook.md"})] for team in "abc"
    ]
    listing = list_documents([*teams, teams[0], f"{OWN}:documents", f"{OWN}:documents"])
    texts = [each.read().text for each in listing.documents]
    assert texts == ["Of a.", "Of b.", "Of c.", "first", "second"]
    assert len({each.key for each in listing.documents}) == 5
    assert listing.documents[0].key == "handbook.md"


def test_a_loader_may_name_its_documents_as_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# File\n\nOf a file.\n")
    document = LangChainDocument("Of a loader.", metadata={"source": "a.md"})
    listing = list_documents([str(tmp_path), [document]])
    assert {each.read().text.split()[-2] for each in listing.documents} == {"a"}
    assert len({each.key for each in listing.documents}) == 2


def test_a_page_of_a_sitemap_that_is_read_in_part_has_a_note_and_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with PagesServer({}) as server:
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", server.host)
        listed = f"<urlset><url><loc>{server.url}/rye</loc></url></urlset>"
        server.routes |= {
            "/sitemap.xml": Served(listed.encode(), type="application/xml"),
            "/rye": Served(b"Rye bread keeps for a week.\n\n" * 80_000, type="text/plain"),
        }
        for _ in range(2):
            listing = list_documents([f"corpus:{server.url}/sitemap.xml"])
            [rye] = listing.documents
            assert "only its beginning was fetched" in rye.read().note
            assert listing.failed == []
