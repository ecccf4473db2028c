"""Memories in SQLite files and the opening of memories by URL."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.memory import InMemoryStore

from stepcraft.errors import BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.memory.files import import_file, write_jsonl
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.store import open_memory, shared_memory

RECIPES = Path(__file__).parents[3] / "shared" / "data" / "recipes" / "recipes.jsonl"
LGSTEP = RECIPES.parents[1] / "lgstep"
needs_recipes = pytest.mark.skipif(not RECIPES.exists(), reason=f"the recipes are not at {RECIPES}")


def procedure(number: int, **fields) -> Procedure:
    content = {"output": f"dish {number}", "input": "flour, water", "steps": [f"Mix {number}.", "Bake."]}
    return Procedure(**content | fields)


@pytest.fixture
def memory(tmp_path: Path):
    with open_memory(tmp_path / "m.db", embeddings="none") as memory:
        yield memory


def test_adding_twice_is_adding_once(memory):
    report = memory.add([procedure(1), procedure(2)])
    assert (report.added, report.present, report.updated, report.failed) == (2, 0, 0, [])
    again = memory.add([procedure(1), procedure(3), procedure(2, source="a book")])
    assert (again.added, again.present, again.updated) == (1, 1, 1)
    assert memory.count() == 3
    assert memory.get(procedure(2).id).source == "a book"
    assert [item.output for item in memory] == ["dish 1", "dish 2", "dish 3"]


def test_an_id_of_ones_own_changes_a_procedure_in_place(memory):
    first = procedure(1)
    memory.add([first])
    memory.add([procedure(9, id=first.id)])
    assert memory.get(first.id).output == "dish 9"
    assert [found.procedure.output for found in memory.search("dish 9")] == ["dish 9"]
    assert memory.count() == 1


def test_delete_says_how_many_there_were(memory):
    memory.add([procedure(1), procedure(2)])
    assert memory.delete([procedure(1).id, procedure(7).id, "no id"]) == 1
    assert memory.get(procedure(1).id) is None
    assert memory.count() == 1


def test_progress_is_told_and_any_iterable_is_taken(memory):
    told: list[int] = []
    assert memory.add((procedure(number) for number in range(2500)), progress=told.append).added == 2500
    assert told[-1] == 2500
    assert told == sorted(told)


def test_what_was_kept_is_there_when_opened_again(tmp_path: Path):
    whole = procedure(1, source="s", metadata={"a": [1, {"b": None}], "ä": "长"})
    with open_memory(tmp_path / "m.db") as memory:
        memory.add([whole])
    with open_memory(f"file://{tmp_path}/m.db", create=False) as memory:
        assert list(memory) == [whole]


def test_an_embedding_that_is_not_finite_costs_its_procedure():
    class Sick(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            return [[float("nan")] * 4 if "dish 2" in text else [1.0, 2, 3, 4] for text in texts]

    with LocalMemory(":memory:", embeddings=Sick(size=4)) as memory:
        report = memory.add([procedure(1), procedure(2), procedure(3)])
        assert report.added == 2
        assert [failed.where for failed in report.failed] == [procedure(2).id]
        assert "Sick" in report.failed[0].reason
        assert memory.count() == 2


def test_an_embedding_model_that_fails_says_what_was_kept(tmp_path: Path):
    class Failing(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            if any("dish 1500" in text for text in texts):
                raise ConnectionError("no route")
            return super().embed_documents(texts)

    with open_memory(tmp_path / "m.db", embeddings=Failing(size=4)) as memory:
        with pytest.raises(
            MemoryFailure, match=r"Failing failed: ConnectionError: no route.*1,000 procedures"
        ):
            memory.add(procedure(number) for number in range(2000))
        assert memory.count() == 1000


def test_a_database_keeps_to_its_embeddings(tmp_path: Path):
    path = tmp_path / "m.db"
    with open_memory(path, embeddings="none") as memory:
        memory.add([procedure(1)])
    with open_memory(path) as memory:
        assert len(memory.search("dish")) == 1, "what it was made with counts, when nothing is named"
    with pytest.raises(MemoryFailure, match=r"made with embeddings 'none', not 'DeterministicFakeEmbedding'"):
        open_memory(path, embeddings=DeterministicFakeEmbedding(size=4))
    with open_memory(tmp_path / "f.db", embeddings=DeterministicFakeEmbedding(size=4)) as memory:
        memory.add([procedure(1)])
    with pytest.raises(
        MemoryFailure, match=r"made with embeddings 'DeterministicFakeEmbedding'.*give them as"
    ):
        open_memory(tmp_path / "f.db")


def test_a_database_keeps_to_its_template(tmp_path: Path):
    path, recipe = tmp_path / "m.db", "{output}: take {input}\n{steps}"
    with open_memory(path, embeddings="none", template=recipe) as memory:
        memory.add([procedure(1)])
        assert memory.as_retriever().invoke("dish")[0].page_content.startswith("dish 1: take flour")
    with open_memory(path) as memory:
        assert memory.template == recipe
    with pytest.raises(MemoryFailure, match="template"):
        open_memory(path, template="{steps}")
    with pytest.raises(BadInput, match="template"):
        open_memory(tmp_path / "n.db", template="{nothing}")


def test_the_bundled_procedures_are_the_memory_when_none_is_named():
    with open_memory(embeddings="none") as memory:
        assert memory.count() == 212
        assert memory.read_only
        with pytest.raises(ReadOnlyMemory, match=r"import procedures into a .db"):
            memory.add([procedure(1)])
        with pytest.raises(ReadOnlyMemory):
            memory.delete([])


@pytest.mark.skipif(not LGSTEP.exists(), reason=f"the evaluation procedures are not at {LGSTEP}")
def test_no_evaluation_procedure_is_in_the_bundled_memory():
    with open_memory(embeddings="none") as memory:
        goals = {item.output for item in memory}
    for name in ("val", "test"):
        lines = (LGSTEP / f"{name}.jsonl").read_text().splitlines()
        assert not goals & {json.loads(line)["output"] for line in lines}


def test_the_environment_names_a_memory(tmp_path: Path, monkeypatch):
    write_jsonl([procedure(1)], tmp_path / "p.jsonl")
    monkeypatch.setenv("STEPCRAFT_MEMORY", str(tmp_path / "p.jsonl"))
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    with open_memory() as memory:
        assert [item.output for item in memory] == ["dish 1"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://here", "no memory goes by redis:"),
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


@needs_recipes
def test_recipes_are_found_in_a_database_as_by_reading_the_file(tmp_path: Path):
    with open_memory(tmp_path / "r.db") as database, open_memory(RECIPES) as text:
        first = import_file(database, RECIPES)
        assert (first.added, first.present, first.failed) == (333, 0, [])
        again = import_file(database, RECIPES)
        assert (again.added, again.present, again.updated) == (0, 333, 0)
        for query in (
            "potato soup",
            "bread without yeast",
            "something with fish and lemon",
            "a sweet dessert",
        ):
            for alpha in (0, 0.4, 1):
                assert database.search(query, 5, alpha=alpha) == text.search(query, 5, alpha=alpha)


def test_a_shared_memory_is_opened_once_and_anew_when_its_file_changed(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    write_jsonl([procedure(1)], path)
    first = shared_memory(str(path), embeddings="none")
    assert shared_memory(str(path), embeddings="none") is first
    write_jsonl([procedure(1), procedure(2)], path)
    assert shared_memory(str(path), embeddings="none").count() == 2
    assert first.count() == 1, "a run that has begun goes on with what it has"
    store = InMemoryStore()
    assert shared_memory("store:", store=store) is shared_memory("store:", store=store)
    assert shared_memory("store:", store=InMemoryStore()) is not shared_memory("store:", store=store)


def test_a_shared_database_that_is_missing_is_not_made(tmp_path: Path):
    path = tmp_path / "m.db"
    with pytest.raises(BadInput, match="does not exist"):
        shared_memory(str(path))
    assert not path.exists()
    open_memory(path, embeddings="none").close()
    shared = shared_memory(str(path))
    with open_memory(path) as other:
        other.add([procedure(1)])
    assert shared.count() == 1
    assert shared_memory(str(path)) is shared


WRITER = """
import sys
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.store import open_memory
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
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def test_two_processes_make_and_fill_one_database_at_once(tmp_path: Path):
    path = tmp_path / "m.db"
    first, second = writer(path, "a", 4000), writer(path, "b", 4000)
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


def test_importing_the_memory_loads_nothing_heavy():
    code = (
        "import sys, stepcraft.memory.store, stepcraft.memory.files, stepcraft.memory.procedure\n"
        "print([name for name in ('numpy', 'langchain_core', 'langgraph', 'wordllama', 'weaviate') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert run.stdout.strip() == "[]"
