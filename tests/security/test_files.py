"""Hostile files, folders and databases: one bad file costs one file and one sentence."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

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


def beside(corpus: CorpusRetriever) -> list[str]:
    return [document.page_content for document in corpus.invoke("beside")]


BOMBS: dict[str, Callable[[], bytes]] = {
    "flat.html": lambda: b"<p>x</p>" * 60_000,
    "wide.ipynb": lambda: b'{"cells":[' + b"[]," * 10_000_000 + b"[]]}",
    "line.jsonl": lambda: b"x" * 300_000_000,
    "lines.jsonl": lambda: b"x\n" * 200_000,
    "newlines.txt": lambda: b"\n" * 4_000_000 + b"tea",
    "large.txt": lambda: b"a" * 21_000_000,
}
NAMED = {
    "flat.html": "only its first 100,000 tags were read",
    "wide.ipynb": "needs more than 15 s or 600 MB",
    "line.jsonl": "it is longer than 4,000,000 characters",
    "lines.jsonl": "200,000 of its records cannot be read",
    "large.txt": "it is larger than 20 MB",
    "sparse.jsonl": "it cannot be read: nearly all of it is a hole without data",
}


def test_bombs_cost_little_and_are_named(folder: Path):
    for name, content in BOMBS.items():
        (folder / name).write_bytes(content())
    with (folder / "sparse.jsonl").open("wb") as file:
        file.truncate(1 << 34)
    read = measured("corpus", folder)
    assert read.result.keys() == NAMED.keys()
    assert [name for name, why in NAMED.items() if why not in read.result[name]] == []
    assert read.grown < 250
    assert read.child < 600


BAD_FILES = {
    "marked.html": "<p>x</p><![foo",
    "declared.html": "<!DOCTYPE html [<!ENTITY a 'b'>]><![CDATA[x",
    "nested.json": "[" * 987 + "]" * 987,
    "nested.jsonl": '{"text": ' + "[" * 100_000,
    "nested.ipynb": '{"cells":' + "[" * 100_000,
    "number.jsonl": '{"text": ' + "1" * 5000 + "}",
    "cells.ipynb": '{"cells": [{"source": 7, "cell_type": "code"}]}',
    "metadata.ipynb": '{"metadata": [], "cells": []}',
    "bad.pdf": "%PDF-1.7\n1 0 obj\n<</Pages 1 0 R>>\nendobj\ntrailer <</Root 1 0 R>>",
    "quotes.csv": 'text\n"' + "x" * 1_000_000,
}


def test_bad_files_cost_themselves_alone(folder: Path):
    for name, content in BAD_FILES.items():
        (folder / name).write_text(content)
    with closing(opened(folder)) as corpus:
        assert beside(corpus) == ["This stands beside it."]
        assert {Path(path).name for path in corpus.problems} <= BAD_FILES.keys()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
@pytest.mark.parametrize("suffix", [".jsonl", ".db"])
def test_a_pipe_is_not_opened(suffix: str, tmp_path: Path):
    path = tmp_path / f"x{suffix}"
    os.mkfifo(path)
    for call, why in (
        (lambda: opened(path), f"there is no file or folder {path}"),
        (lambda: open_memory(path, embeddings="none"), "a pipe, not a file"),
    ):
        with pytest.raises(BadInput, match=why):
            in_thread(call).result(timeout=20)


@pytest.mark.parametrize(
    "named", ["a\0b{}", "~nosuchuser/x{}", "x" * 300 + "{}", "y/" * 3000 + "{}"]
)
def test_a_path_that_cannot_be_is_one_sentence(named: str, tmp_path: Path):
    calls: list[Callable[[], object]] = [
        lambda: open_corpus([named.format(".md")], index=":memory:", embeddings="none"),
        lambda: open_corpus([tmp_path], index=named.format(".db"), embeddings="none"),
        lambda: open_memory(named.format(".db"), embeddings="none"),
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
    links = {"file.md": outside / "secret.md", "folder": outside, "loop": folder / "loop"}
    for name, target in {**links, "own.txt": folder / "ok.md", "self": folder}.items():
        (folder / name).symlink_to(target)
    with closing(opened(folder)) as corpus:
        assert corpus.invoke("secret") == []
        assert len(corpus.index.marks()) == 2
        assert sorted(corpus.problems) == [str(folder / name) for name in links]
        assert "it is a link out of the corpus" in corpus.notes[0]
    with closing(open_corpus([folder, outside], index=":memory:", embeddings="none")) as corpus:
        sources = {document.metadata["source"] for document in corpus.invoke("secret")}
        assert f"{folder / 'file.md'}:1" in sources
        assert [*corpus.problems] == [str(folder / "loop")]


@pytest.fixture
def cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], CorpusRetriever]:
    """Opens the folder with its index in a new cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    monkeypatch.setenv("HOME", str(folder.parent / "home"))
    return lambda: open_corpus([folder], embeddings="none")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def overwrite(path: Path) -> None:
    path.write_bytes(b"this is no database " * 1000)


@pytest.mark.parametrize("damage", [truncate, overwrite])
def test_a_damaged_cache_is_made_anew(
    cached: Callable[[], CorpusRetriever], damage: Callable[[Path], None]
):
    with closing(cached()) as corpus:
        path = Path(corpus.index.path)
    if os.name == "posix":
        assert path.parent.stat().st_mode & 0o077 == 0, "it is readable by its owner alone"
    damage(path)
    with closing(cached()) as corpus:
        assert beside(corpus) == ["This stands beside it."]
    with closing(cached()) as corpus:
        assert corpus.read == 0


def test_an_index_of_the_users_own_is_not_deleted(folder: Path, tmp_path: Path):
    opened(folder, index=tmp_path / "index.db").close()
    overwrite(tmp_path / "index.db")
    with pytest.raises(SourceFailure, match=r"damaged|malformed|not a database"):
        opened(folder, index=tmp_path / "index.db").invoke("beside")
    assert (tmp_path / "index.db").exists()


def memory(path: Path, change: str, value: object) -> LocalMemory:
    """A memory whose file was changed by somebody else."""
    with closing(LocalMemory(path, embeddings="none")) as made:
        made.add([TEA])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(change, (value,))
    return LocalMemory(path, embeddings="none")


@pytest.mark.parametrize(
    "payload",
    [
        "", "{", "[]", "7", b"\xff\0", "{}", '{"input": 7}', '{"steps": "abc"}',
        json.dumps({**TEA.to_dict(), "steps": [1, 2]}),
        json.dumps({**TEA.to_dict(), "metadata": 7}),
        '{"id": "x", "input": ' + "1" * 5000 + "}",
    ],
)  # fmt: skip
def test_a_damaged_payload_is_one_sentence(tmp_path: Path, payload: str | bytes):
    change = "UPDATE entries SET payload = ?"
    with closing(memory(tmp_path / "m.db", change, payload)) as damaged:
        for call in (
            lambda: damaged.search("tea"),
            lambda: [*damaged],
            lambda: damaged.get(TEA.id),
        ):
            with pytest.raises(StepcraftError) as raised:
                call()
            assert "\n" not in str(raised.value)
            assert len(str(raised.value)) < 500


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
