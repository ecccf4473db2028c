"""Hostile files, folders and databases: one bad file costs one file and one sentence, never the memory or a traceback."""

from __future__ import annotations

import io
import json
import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from stepcraft.concurrency import in_thread
from stepcraft.errors import BadInput, MemoryFailure, SourceFailure, StepcraftError
from stepcraft.memory.files import read_all, read_procedures, write_jsonl
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.sources import CorpusRetriever, open_corpus
from tests.security.measured import measured

TEA = Procedure(output="make tea", input="leaves, water", steps=("Boil the water.", "Pour it on."))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    files.mkdir()
    (files / "ok.md").write_text("This stands beside it.")
    return files


def opened(folder: Path, **options: Any) -> CorpusRetriever:
    return open_corpus([folder], **{"index": ":memory:", "embeddings": "none"} | options)


def pdf(pages: int) -> bytes:
    writer, target = PdfWriter(), io.BytesIO()
    font = writer._add_object(
        DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
    )
    for _ in range(pages):
        page, text = writer.add_blank_page(200, 200), DecodedStreamObject()
        text.set_data(b"BT /F1 12 Tf 10 100 Td (A page of tea) Tj ET")
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Contents")] = writer._add_object(text)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    writer.write(target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("flat.html", lambda: b"<p>x</p>" * 100_000, "only its first 100,000 tags were read"),
        ("pages.pdf", lambda: pdf(3_100), ""),
        ("wide.ipynb", lambda: b'{"cells":[' + b"[]," * 10_000_000 + b"[]]}", "needs more than 15 s or 600 MB"),
        ("wide.json", lambda: b"[[" + b"[]," * 10_000_000 + b"[]]]", "it is larger than 20 MB"),
        ("line.jsonl", lambda: b"x" * 300_000_000, "it is longer than 4,000,000 characters"),
        ("lines.jsonl", lambda: b"x\n" * 1_000_000, "1,000,000 of its records cannot be read"),
        ("newlines.txt", lambda: b"\n" * 4_000_000 + b"tea", ""),
        ("words.txt", lambda: b"a " * 1_500_000, ""),
        ("lines.rst", lambda: b"a\n" * 1_000_000, ""),
        ("headings.md", lambda: b"# a\n" * 1_500_000, ""),
        ("large.txt", lambda: b"a" * 21_000_000, "it is larger than 20 MB"),
    ],
)  # fmt: skip
def test_a_bomb_costs_little_and_is_named(
    folder: Path, name: str, content: Callable[[], bytes], why: str
):
    (folder / name).write_bytes(content())
    found = measured("corpus", folder)
    assert (
        (found.result == [])
        if not why
        else (f"{name}: " in found.result[0] and why in found.result[0])
    )
    assert found.grown < 250
    assert found.child < 600


def test_a_sparse_file_is_not_read(folder: Path):
    with (folder / "sparse.jsonl").open("wb") as file:
        file.truncate(1 << 34)
    found = measured("corpus", folder)
    assert (
        "sparse.jsonl: it cannot be read: nearly all of it is a hole without data"
        in found.result[0]
    )
    assert found.grown < 100


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("marked.html", "<p>x</p><![foo"),
        ("declared.html", "<!DOCTYPE html [<!ENTITY a 'b'>]><![CDATA[x"),
        ("nested.json", "[" * 987 + "]" * 987),
        ("nested.jsonl", '{"text": ' + "[" * 100_000),
        ("nested.ipynb", '{"cells":' + "[" * 100_000),
        ("number.jsonl", '{"text": ' + "1" * 5000 + "}"),
        ("cells.ipynb", '{"cells": [{"source": 7, "cell_type": "code"}]}'),
        ("object.ipynb", '{"cells": {"a": 1}}'),
        ("metadata.ipynb", '{"metadata": [], "cells": []}'),
        (
            "bad.pdf",
            "%PDF-1.7\n1 0 obj\n<</Type /Catalog /Pages 1 0 R>>\nendobj\ntrailer <</Root 1 0 R>>",
        ),
        ("quotes.csv", 'text\n"' + "x" * 1_000_000),
    ],
)
def test_one_bad_file_costs_one_file(folder: Path, name: str, content: str):
    (folder / name).write_text(content)
    with closing(opened(folder)) as corpus:
        assert [document.page_content for document in corpus.invoke("beside")] == [
            "This stands beside it."
        ]
        assert set(corpus.problems) <= {str(folder / name)}


def in_time(call: Callable[[], object]) -> object:
    return in_thread(call).result(timeout=20)


@contextmanager
def odd_file(path: Path, kind: str) -> Iterator[None]:
    if kind == "pipe":
        os.mkfifo(path)
        yield
    else:
        with closing(socket.socket(socket.AF_UNIX)) as bound:
            bound.bind(str(path))
            yield


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
@pytest.mark.parametrize("kind", ["pipe", "socket"])
@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".md", ".pdf", ".db"])
def test_what_is_no_file_is_not_opened(
    kind: str, suffix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with odd_file(Path(f"x{suffix}"), kind):
        with pytest.raises(BadInput, match=f"there is no file or folder x{suffix}"):
            in_time(lambda: open_corpus([f"x{suffix}"], index=":memory:", embeddings="none"))
        if suffix not in {".md", ".pdf"}:
            with pytest.raises(BadInput, match=f"a {kind}, not a file"):
                in_time(lambda: open_memory(f"x{suffix}", embeddings="none"))


@pytest.mark.parametrize(
    "named", ["a\0b{}", "~nosuchuser/x{}", "x" * 300 + "{}", "y/" * 3000 + "{}"]
)
def test_a_path_that_cannot_be_is_one_sentence(named: str, tmp_path: Path):
    calls: list[Callable[[], object]] = [
        lambda: open_corpus([named.format(".md")], index=":memory:", embeddings="none"),
        lambda: open_corpus([tmp_path], index=named.format(".db"), embeddings="none"),
        lambda: open_memory(named.format(".db"), embeddings="none"),
        lambda: open_memory(named.format(".jsonl"), embeddings="none"),
        lambda: LocalMemory(named.format(".db"), embeddings="none"),
        lambda: read_all(named.format(".jsonl")),
        lambda: list(read_procedures(named.format(".csv"), [])),
        lambda: write_jsonl([TEA], named.format(".jsonl")),
    ]
    for call in calls:
        with pytest.raises(BadInput, match="cannot be used: "):
            call()


def test_a_name_that_leaves_no_room_for_a_draft_is_one_sentence(tmp_path: Path):
    with pytest.raises(MemoryFailure, match="cannot be written: File name too long"):
        write_jsonl([TEA], tmp_path / ("x" * 250))


def test_links_out_of_a_corpus_are_followed_only_where_their_target_is_named(folder: Path):
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("A secret of others.")
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "folder").symlink_to(outside, target_is_directory=True)
    (folder / "own.txt").symlink_to(folder / "ok.md")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "self").symlink_to(folder, target_is_directory=True)
    with closing(opened(folder)) as corpus:
        assert corpus.invoke("secret") == []
        assert len(corpus.index.marks()) == 2
        assert sorted(corpus.problems) == [str(folder / "file.md"), str(folder / "folder")]
        assert "it is a link out of the corpus" in corpus.notes[0]
    paths = [folder, outside]
    with closing(open_corpus(paths, index=":memory:", embeddings="none")) as corpus:
        assert str(folder / "file.md") + ":1" in {
            document.metadata["source"] for document in corpus.invoke("secret")
        }
        assert corpus.notes == []


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def cached(folder: Path) -> CorpusRetriever:
    return open_corpus([folder], embeddings="none")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def overwrite(path: Path) -> None:
    path.write_bytes(b"this is no database " * 1000)


@pytest.mark.parametrize("damage", [truncate, overwrite])
def test_a_damaged_cache_is_made_anew(folder: Path, cache: Path, damage: Callable[[Path], None]):
    corpus = cached(folder)
    path = Path(corpus.index.path)
    corpus.close()
    assert path.is_relative_to(cache)
    damage(path)
    with closing(cached(folder)) as corpus:
        assert [document.page_content for document in corpus.invoke("beside")] == [
            "This stands beside it."
        ]
    with closing(cached(folder)) as corpus:
        assert corpus.read == 0


def test_an_index_of_the_users_own_is_not_deleted(folder: Path, tmp_path: Path):
    opened(folder, index=tmp_path / "index.db").close()
    overwrite(tmp_path / "index.db")
    with pytest.raises(SourceFailure, match=r"damaged|no SQLite database"):
        opened(folder, index=tmp_path / "index.db").invoke("beside")
    assert (tmp_path / "index.db").exists()


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
def test_the_cache_is_readable_by_its_owner_alone(folder: Path, cache: Path):
    corpus = cached(folder)
    path = Path(corpus.index.path)
    corpus.close()
    assert path.parent.stat().st_mode & 0o077 == 0


def memory(path: Path, *statements: str, values: tuple[object, ...] = ()) -> LocalMemory:
    """A memory whose file was changed by somebody else."""
    with closing(LocalMemory(path, embeddings="none")) as made:
        made.add([TEA])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement, values if "?" in statement else ())
    return LocalMemory(path, embeddings="none")


@pytest.mark.parametrize(
    "payload",
    [
        "", "{", "[]", "7", "null", b"\xff\0", '{"input": 7}', '{"steps": "abc"}', "{}",
        json.dumps({**TEA.to_dict(), "steps": [1, 2]}), json.dumps({**TEA.to_dict(), "input": ["a"]}),
        json.dumps({**TEA.to_dict(), "metadata": 7}), json.dumps({**TEA.to_dict(), "id": 7}),
        '{"id": "x", "input": ' + "1" * 5000 + "}",
    ],
)  # fmt: skip
def test_a_damaged_payload_is_one_sentence(tmp_path: Path, payload: str | bytes):
    with closing(
        memory(tmp_path / "m.db", "UPDATE entries SET payload = ?", values=(payload,))
    ) as found:
        for call in (lambda: found.search("tea"), lambda: list(found), lambda: found.get(TEA.id)):
            with pytest.raises(StepcraftError) as raised:
                call()
            assert "\n" not in str(raised.value)
            assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "template",
    [
        "{output:>3000000000} {steps}", "{steps:>30}", "{steps!r}", "{steps.__class__}{steps}", "{steps[0]}{steps}",
        "{0}{steps}", "{}{steps}", "{steps", "{output:{input}}{steps}", "{steps}" * 100, "x" * 20_000 + "{steps}", "x",
    ],
)  # fmt: skip
def test_another_template_is_never_filled_in(tmp_path: Path, template: str):
    change = "UPDATE meta SET value = ? WHERE key = 'template'"
    with pytest.raises(MemoryFailure, match=r"m\.db was made with template "):
        memory(tmp_path / "m.db", change, values=(template,))


def test_a_large_file_is_no_memory_but_can_be_imported(tmp_path: Path):
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        file.write(json.dumps(TEA.to_dict()) + "\n")
        file.writelines(" " * 2_000_000 + "\n" for _ in range(101))
    with pytest.raises(BadInput, match=r"is larger than 200 MB.*import it into a \.db file"):
        open_memory(path, embeddings="none")
    with closing(LocalMemory(":memory:", embeddings="none")) as target:
        assert target.add(read_procedures(path, [])).added == 1


def test_the_database_of_something_else_is_not_written_to(tmp_path: Path) -> None:
    file = tmp_path / "customers.db"
    with closing(sqlite3.connect(file)) as customers:
        customers.execute("CREATE TABLE customers (name TEXT)")
    before = file.read_bytes()
    for create in (True, False):
        with pytest.raises(MemoryFailure, match="is a database of something else"):
            open_memory(file, create=create)
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (before, [file])


def test_an_empty_file_is_filled_only_where_a_database_may_be_made(tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    file.touch()
    with pytest.raises(BadInput, match=r"empty\.db is empty; import procedures into it first"):
        open_memory(file, create=False)
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"", [file])
    with open_memory(file) as memory:
        assert memory.count() == 0
