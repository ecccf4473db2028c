"""Memories in SQLite files and the opening of memories by URL."""

import json
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Entry, LocalIndex
from stepcraft.memory.files import write_jsonl
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.open import open_memory
from tests.kitchen import dish

LGSTEP = Path(__file__).parents[3] / "shared" / "data" / "lgstep"


def test_an_index_of_something_else_is_no_memory_and_what_has_the_fields_of_a_procedure_is(
    tmp_path: Path,
):
    bread = {"input": "rye", "output": "a bread", "steps": ["Bake."]}
    for name, payload in (("bread.db", bread), ("book.db", {"text": "A book on bread."})):
        with closing(LocalIndex(tmp_path / name)) as index:
            index.put([Entry("1", "a bread", payload)])
    with open_memory(tmp_path / "bread.db") as memory:
        assert memory.search("bread", 1)[0].procedure.steps == ("Bake.",)
    refused = pytest.raises(BadInput, match="the procedure has no 'output' and no 'input'")
    with open_memory(tmp_path / "book.db") as memory, refused:
        memory.search("bread", 1)


def test_the_bundled_procedures_are_the_memory_when_none_is_named():
    with open_memory(embeddings="none") as memory:
        assert memory.count() == 212
        assert memory.read_only


@pytest.mark.skipif(not LGSTEP.exists(), reason=f"the evaluation procedures are not at {LGSTEP}")
def test_no_evaluation_procedure_is_in_the_bundled_memory():
    with open_memory(embeddings="none") as memory:
        goals = {item.output for item in memory}
    for name in ("val", "test"):
        lines = (LGSTEP / f"{name}.jsonl").read_text().splitlines()
        assert not goals & {json.loads(line)["output"] for line in lines}


def test_the_environment_names_a_memory(tmp_path: Path, monkeypatch):
    write_jsonl([dish(1)], tmp_path / "p.jsonl")
    monkeypatch.setenv("STEPCRAFT_MEMORY", f"file://{tmp_path}/p.jsonl")
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    with open_memory() as memory:
        assert [item.output for item in memory] == ["dish 1"]


def test_a_database_is_opened_with_its_own_embeddings_whatever_the_environment_names(
    tmp_path: Path, monkeypatch
):
    for own, other in (("none", "wordllama"), ("wordllama", "none")):
        with open_memory(tmp_path / f"{own}.db", embeddings=own) as memory:
            memory.add([dish(1)])
        monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", other)
        with open_memory(tmp_path / f"{own}.db") as memory:
            assert memory.add([dish(2)]).added == 1
            assert len(memory.search("dish")) == 2


def test_a_large_memory_names_weaviate_once_when_it_is_opened(tmp_path: Path, caplog):
    class Small(LocalMemory):
        large = 2

    for number in (1, 2):
        with Small(tmp_path / "m.db", embeddings="none") as memory:
            memory.add([dish(number)])
    assert not caplog.messages
    Small(tmp_path / "m.db").close()
    [warning] = caplog.messages
    assert "m.db holds 2 procedures" in warning
    assert "kept in this process; Weaviate (weaviate://" in warning


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://here", "does not say what kind"),
        ("procedures.parquet", "does not say what kind"),
        ("procedures", "does not say what kind"),
        ("store:", "pass store="),
        ("missing.jsonl", "there is no file missing.jsonl"),
    ],
)
def test_what_cannot_be_opened_is_named(url, reason):
    with pytest.raises(BadInput, match=reason):
        open_memory(url)


@pytest.mark.parametrize("url", ["store:a.b", "store:langgraph/x"])
def test_a_namespace_that_a_store_refuses_is_named(url):
    with pytest.raises(BadInput, match="cannot be used"):
        open_memory(url, store=InMemoryStore())


def test_what_was_made_with_wordllama_is_searched_by_words_where_that_is_missing(
    tmp_path: Path, monkeypatch, caplog
):
    path = tmp_path / "m.db"
    with open_memory(path, embeddings="wordllama") as memory:
        memory.add([dish(1), dish(2)])
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with open_memory(path) as memory:
        assert memory.search("dish 2", 1)[0].procedure == dish(2)
        with pytest.raises(MemoryFailure, match="made with embeddings 'wordllama'"):
            memory.add([dish(3)])
    assert "wordllama, which is not installed here" in caplog.text
    with open_memory(tmp_path / "new.db") as memory:
        assert memory.add([dish(3)]).added == 1


WRITER = """
import sys
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.open import open_memory
path, name, count = sys.argv[1:]
memory = open_memory(path, embeddings="none")
print("ready", flush=True)
sys.stdin.readline()
done = memory.add(
    (Procedure(output=f"dish {name} {number}", input="flour", steps=["Mix well. " * 20]) for number in range(int(count))),
    progress=lambda done: print(done, flush=True),
)
print("end", done.added, flush=True)
memory.close()
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def test_two_processes_make_and_fill_one_database_at_once(tmp_path: Path):
    path = tmp_path / "m.db"
    with writer(path, "a", 4000) as first, writer(path, "b", 4000) as second:
        for process in (first, second):
            assert process.stdout.readline() == "ready\n"
        for process in (first, second):
            process.stdin.write("go\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert all("end 4000" in output for output in outputs), outputs
    with open_memory(path, create=False) as memory:
        assert memory.count() == 8000
        assert len({item.id for item in memory}) == 8000
        assert {found.procedure.output for found in memory.search("3999", 9)} == {
            "dish a 3999",
            "dish b 3999",
        }


def test_threads_that_make_one_file_at_once_wait_for_each_other(tmp_path: Path):
    start = threading.Barrier(8)

    def make(path: Path) -> None:
        start.wait()
        open_memory(path, embeddings="none").close()

    with ThreadPoolExecutor(8) as pool:
        for number in range(60):
            list(pool.map(make, [tmp_path / f"{number}.db"] * 8))


def test_a_file_that_another_process_has_just_made_is_laid_out(tmp_path: Path):
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size
    with pytest.raises(BadInput, match="is empty; import procedures into it first"):
        open_memory(path, create=False)
    with open_memory(path) as memory:
        assert memory.add([dish(1)]).added == 1


def test_what_was_reported_as_done_survives_kill_9(tmp_path: Path):
    path = tmp_path / "m.db"
    process = writer(path, "a", 1_000_000)
    with process:
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        done = [int(process.stdout.readline()) for _ in range(3)][-1]
        process.kill()
        rest = [int(line) for line in process.stdout.read().split() if line.isdigit()]
    done = max([done, *rest])
    with open_memory(path, create=False) as memory:
        kept = memory.count()
        assert kept >= done
        outputs = {item.output for item in memory}
        assert {f"dish a {number}" for number in range(done)} <= outputs
    again = writer(path, "a", kept + 500)
    assert f"end {500}" in again.communicate("go\n", timeout=60)[0]
    with open_memory(path) as memory:
        assert memory.count() == kept + 500 == len({item.output for item in memory})
