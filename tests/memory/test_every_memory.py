"""What every memory does, whatever it is kept in."""

import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from stepcraft import Procedure, open_memory
from stepcraft.errors import BadInput, Conflict, MemoryFailure, ReadOnlyMemory
from stepcraft.memory.files import write_jsonl
from stepcraft.memory.history import reason, undone, with_text
from stepcraft.memory.outcomes import with_outcome
from stepcraft.memory.procedure import id_of_key
from stepcraft.memory.protocol import ProcedureMemory, by_short_id
from stepcraft.models.embeddings import resolve_embeddings
from tests.kitchen import PROCEDURES, dish

RECORDING = ["database", "weaviate"]
"""Memories that record what they were made with."""

WRITABLE = [
    "database by words",
    "database",
    "store by words",
    "store",
    "weaviate by words",
    "weaviate",
    "postgres by words",
    "postgres",
]
SEARCHED = ["file by words", "file", *WRITABLE]
EGGS = Procedure(
    input="西红柿，鸡蛋", output="西红柿炒鸡蛋", steps=["把鸡蛋打散。", "翻炒西红柿。"]
)
WRONG_ID = "00000000-0000-5000-8000-000000000000"


@dataclass
class Place:
    """Where a memory is kept, so that it can be opened again."""

    url: str
    embeddings: str
    store: BaseStore | None = None

    def open(self, **options) -> ProcedureMemory:
        return open_memory(self.url, store=self.store, **{"embeddings": self.embeddings} | options)


@pytest.fixture(scope="module")
def databases(new_database: Callable[[], str]) -> Callable[[str], str]:
    """A database for each embedding model: it has one index for all namespaces."""
    return functools.cache(lambda _embeddings: f"store+{new_database()}")


@pytest.fixture
def made(request, tmp_path: Path) -> Callable[[str], Place]:
    return lambda kind: place_of(kind, request, tmp_path, "new_collection")


def place_of(kind: str, request, folder: Path, new_collection: str) -> Place:
    name, _, by_words = kind.partition(" ")
    embeddings = "none" if by_words else "wordllama"
    match name:
        case "database":
            return Place(str(folder / "m.db"), embeddings)
        case "file":
            write_jsonl(PROCEDURES, folder / "m.jsonl")
            return Place(str(folder / "m.jsonl"), embeddings)
        case "store":
            return Place("store:kitchen/dishes", embeddings, store(embeddings))
        case "postgres":
            database = request.getfixturevalue("databases")(embeddings)
            return Place(f"{database}/{folder.name}/dishes", embeddings)
        case _:
            return Place(request.getfixturevalue(new_collection)(), embeddings)


def store(embeddings: str) -> InMemoryStore:
    embedder = resolve_embeddings(embeddings)
    if not embedder:
        return InMemoryStore()
    embed = lambda texts: embedder.embed_documents(texts).tolist()  # noqa: E731
    return InMemoryStore(index={"dims": 256, "embed": embed, "fields": ["text"]})


@pytest.fixture(params=WRITABLE)
def place(request, made) -> Place:
    return made(request.param)


@pytest.fixture(params=RECORDING)
def recording(request, made) -> Place:
    return made(request.param)


@pytest.fixture
def memory(place: Place) -> Iterator[ProcedureMemory]:
    with place.open() as memory:
        yield memory


@pytest.fixture(scope="module", params=SEARCHED)
def kitchen(request, tmp_path_factory) -> Iterator[ProcedureMemory]:
    """The procedures of the kitchen, which tests only read."""
    folder = tmp_path_factory.mktemp("kitchen")
    with place_of(request.param, request, folder, "new_module_collection").open() as memory:
        if not memory.read_only:
            memory.add(PROCEDURES)
        yield memory


def outputs(found) -> list[str]:
    return [hit.procedure.output for hit in found]


def test_adding_twice_is_adding_once(memory):
    report = memory.add([dish(1), dish(2)])
    assert (report.added, report.present, report.updated, report.failed) == (2, 0, 0, [])
    again = memory.add([dish(1), dish(3), dish(2, source="a book"), dish(3)])
    assert (again.added, again.present, again.updated, again.failed) == (1, 2, 1, [])
    assert memory.count() == 3
    assert not memory.is_empty()
    assert memory.get(dish(2).id) == dish(2, source="a book")
    assert {item.output for item in memory} == {"dish 1", "dish 2", "dish 3"}
    assert memory.add([]).added == 0


def test_votes_stay_when_a_procedure_is_added_again_or_changed(memory):
    first = dish(1, source="a book", metadata={"page": 7, "approved": {"by": "ana"}})
    memory.add([first, dish(2)])
    rated = memory.update(first.id, lambda stored: with_outcome(stored, succeeded=False))
    assert (memory.get(first.id), rated.outcomes[:2]) == (rated, (0, 1))
    assert memory.add([first, dish(2)]).present == 2, (
        "what a file does not know of is no difference"
    )
    assert memory.add([dish(9, id=first.id)]).updated == 1
    assert memory.add([dish(9, id=first.id)]).present == 1
    stored = memory.get(first.id)
    assert (stored.output, stored.source, stored.outcomes[:2]) == ("dish 9", "", (0, 1))
    assert not stored.metadata, "an approval is of one text"
    assert stored.versions
    assert outputs(memory.search("dish 9", 1)) == ["dish 9"]
    assert memory.add([rated]).updated == 1, "an export is imported again"
    assert memory.get(first.id).outcomes[:2] == (0, 1)
    assert memory.count() == 2


def test_the_same_text_keeps_what_the_added_one_leaves_out(memory):
    facts = {"source": "wiki", "tags": {"kitchen": "a"}, "expires": "2999-12-31"}
    full = dish(1, metadata={"owner": "ana"}, **facts)
    memory.add([full])
    assert memory.add([dish(1)]).present == 1
    assert memory.get(full.id) == full
    report = memory.add([dish(1, metadata={"page": 7}), dish(1, tags={"town": "b"}), dish(1)])
    assert (report.updated, report.present) == (2, 1)
    changed = memory.get(full.id)
    assert (changed.source, changed.expires) == ("wiki", "2999-12-31")
    assert (changed.tags, changed.metadata) == ({"town": "b"}, {"owner": "ana", "page": 7})
    memory.update(full.id, lambda kept: replace(kept, expires="2020-12-31"))
    memory.add([dish(1)])
    assert memory.get(full.id).expires == "", "what is added again has not expired"
    memory.update(full.id, lambda kept: replace(kept, tags={}, metadata={}))
    emptied = memory.get(full.id)
    assert (emptied.tags, emptied.expires, emptied.metadata) == ({}, "", {})
    memory.add([dish(1, id=full.id, steps=["Fry."])])
    assert memory.get(full.id).source == "", "another text has its own"
    keyed = replace(full, id="", key="page/1")
    memory.add([keyed, dish(1, key="page/1")])
    replaced = memory.get(keyed.id)
    assert (replaced.tags, replaced.source) == ({}, ""), "a key stands for a whole record"


def test_what_a_caller_does_to_a_procedure_changes_nothing_in_the_memory(memory):
    memory.add([added := dish(1, metadata={"pages": [7]}, tags={"kitchen": "a"})])
    for procedure in (added, memory.get(added.id), *memory):
        procedure.metadata["pages"].append(8)
        procedure.tags["kitchen"] = "b"
    assert memory.get(added.id).metadata == {"pages": [7]}
    assert outputs(memory.search("dish", where={"kitchen": "a"})) == ["dish 1"]
    assert memory.get(added.id).tags == {"kitchen": "a"}


def test_an_update_of_nothing_or_to_another_id_is_refused(memory):
    memory.add([dish(1)])
    for unknown in (WRONG_ID, "no id", ""):
        with pytest.raises(BadInput, match="no procedure has the id"):
            memory.update(unknown, lambda kept: kept)
    with pytest.raises(BadInput, match="made a procedure with the id"):
        memory.update(dish(1).id, lambda _kept: dish(2))
    assert list(memory) == [dish(1)]


def test_no_vote_of_another_thread_is_lost(place):
    with place.open() as memory:
        memory.add([dish(1)])
    numbers = itertools.count(10)

    def vote_and_change() -> None:
        with place.open() as memory:
            memory.update(dish(1).id, lambda kept: with_outcome(kept, succeeded=True))
            memory.add([dish(next(numbers), id=dish(1).id)])
            memory.update(dish(1).id, lambda kept: with_outcome(kept, succeeded=False))

    together(vote_and_change, 4)
    with place.open() as memory:
        kept = memory.get(dish(1).id)
    assert kept.outcomes[:2] == (4, 4)
    assert kept.output in {"dish 10", "dish 11", "dish 12", "dish 13"}


@pytest.mark.parametrize("form", [str.upper, lambda id_: id_.replace("-", "")])
def test_an_id_is_found_in_any_form_of_a_uuid(memory, form):
    memory.add([procedure := dish(1, id=form(dish(1).id))])
    id_ = form(procedure.id)
    assert memory.get(id_) == procedure
    assert memory.update(id_, lambda kept: replace(kept, source="x")).source == "x"
    assert by_short_id(memory, id_).source == "x"
    assert (memory.delete([id_]), memory.count()) == (1, 0)


def test_delete_says_how_many_there_were(memory):
    memory.add([dish(1), dish(2)])
    assert memory.delete([dish(1).id, dish(1).id, dish(7).id, "no id"]) == 1
    assert memory.delete([dish(1).id]) == memory.delete([]) == 0
    assert memory.get(dish(1).id) is None
    assert [item.output for item in memory] == outputs(memory.search("dish")) == ["dish 2"]
    assert memory.count() == 1


def test_every_field_is_kept_when_opened_again(place):
    odd = {
        item.id: item
        for text in ("⁂", "🍞 naïve", "شوربة", "a\tb\nc", "'; DROP TABLE --", "x" * 30_000)
        for item in [Procedure(text, text, [text], "", text, {text: [1, {"b": None}], "c": {}})]
    }
    memory = place.open()
    assert (memory.name, memory.read_only, memory.is_empty()) == (place.url, False, True)
    assert memory.search("bread") == list(memory) == []
    assert memory.add(odd.values()).failed == []
    for _ in range(2):
        memory.close()
    with place.open(create=False) as memory:
        assert {item.id: item for item in memory} == odd
        assert memory.as_retriever(1).invoke("naïve")[0].page_content
        for unknown in (WRONG_ID, "no id", "", "\x00\ud800"):
            assert memory.get(unknown) is None


def test_progress_is_told_and_the_same_id_far_apart_ends_as_the_last(memory):
    told: list[int] = []
    last = dish(5, source="the last")
    report = memory.add((*(dish(number) for number in range(4500)), last), progress=told.append)
    assert (report.added, report.updated, report.failed) == (4500, 1, [])
    assert told[-1] == 4501
    assert told == sorted(set(told))
    assert memory.get(last.id) == last
    ids = [item.id for item in memory]
    assert len(ids) == len(set(ids)) == memory.count() == 4500


@pytest.mark.parametrize("alpha", [0, None, 1])
def test_the_best_comes_first_and_no_more_than_there_are(kitchen, alpha):
    found = kitchen.search("bake a white bread of wheat flour", 50, alpha=alpha)
    assert found[0].procedure.output == "bake a white bread"
    assert found[0].procedure in PROCEDURES
    assert len({hit.procedure.id for hit in found}) == len(found) <= len(PROCEDURES)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert kitchen.search("bake a white bread of wheat flour", 1, alpha=alpha) == found[:1]


def test_words_alone_find_only_what_shares_one(kitchen):
    assert outputs(kitchen.search("YOGHURT!", 4, alpha=0)) == ["make yoghurt"]
    assert kitchen.search("zeppelin", 4, alpha=0) == []
    assert kitchen.search("?!", 4, alpha=0) == kitchen.search("", 4, alpha=0) == []


@pytest.mark.parametrize("alpha", [0, None, 1])
@pytest.mark.parametrize(
    "query", ["", " ", "?!", "the of and", "\x00 \ud800 \u202e", "bread " * 5000, '"AND (*']
)
def test_any_query_is_answered(kitchen, query, alpha):
    assert {hit.procedure.id for hit in kitchen.search(query, 9, alpha=alpha)} <= {
        item.id for item in PROCEDURES
    }


@pytest.mark.parametrize(("k", "alpha"), [(0, None), (3, 7), (3, -1), (3, float("nan"))])
def test_k_and_alpha_out_of_bounds_are_refused(kitchen, k, alpha):
    with pytest.raises(BadInput):
        kitchen.search("bread", k, alpha=alpha)


def test_chinese_is_found_by_words(memory):
    memory.add([EGGS, *PROCEDURES])
    for query in ("鸡蛋", "怎么炒西红柿？", "蛋", "eggs 鸡蛋"):
        assert outputs(memory.search(query, 3, alpha=0)) == [EGGS.output]
    assert memory.search("蛋鸡", 3, alpha=0) == []
    assert memory.get(EGGS.id) == EGGS


def test_threads_share_a_memory(memory):
    everyone = [*PROCEDURES, *(dish(number) for number in range(50))]
    for _ in together(lambda: memory.add(everyone)):
        assert memory.count() == len(everyone)
    expected = memory.search("make yoghurt", 2)
    for found in together(lambda: [memory.search("make yoghurt", 2) for _ in range(10)]):
        assert found == [expected] * 10
    for ids in together(lambda: sorted(item.id for item in memory)):
        assert ids == sorted(item.id for item in everyone)


def together(call, count: int = 8) -> list[object]:
    """What each thread got."""
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.append(call())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == len(threads)
    return answers


def test_what_was_made_with_embeddings_can_be_read_by_words(recording):
    with recording.open() as memory:
        memory.add(PROCEDURES)
    with recording.open(embeddings="none") as by_words:
        assert outputs(by_words.search("yoghurt", 4, alpha=1)) == ["make yoghurt"]
        with pytest.raises(
            MemoryFailure, match="made with embeddings 'wordllama': open it with them to add"
        ):
            by_words.add([dish(1)])


def test_embeddings_are_kept_to(recording):
    fake = DeterministicFakeEmbedding(size=4)
    with recording.open(embeddings=fake) as memory:
        memory.add([dish(1)])
    with pytest.raises(
        MemoryFailure, match="made with embeddings 'DeterministicFakeEmbedding', not 'wordllama'"
    ):
        recording.open()
    with pytest.raises(
        MemoryFailure, match=r"made with embeddings 'DeterministicFakeEmbedding'.*give them as"
    ):
        recording.open(embeddings=None)
    with recording.open(embeddings=DeterministicFakeEmbedding(size=8)) as longer:
        with pytest.raises(MemoryFailure, match=r"\b4\b.*\b8\b|\b8\b.*\b4\b"):
            longer.search("dish")
        with pytest.raises(MemoryFailure, match=r"\b4\b.*\b8\b|\b8\b.*\b4\b"):
            longer.add([dish(2)])
    with recording.open(embeddings=fake) as memory:
        assert list(memory) == [dish(1)]


def test_made_by_words_it_stays_so(recording):
    with recording.open(embeddings="none") as memory:
        memory.add([dish(1)])
    with recording.open(embeddings=None) as memory:
        assert len(memory.search("dish")) == 1, (
            "what it was made with counts, when nothing is named"
        )
    with pytest.raises(MemoryFailure, match="made with embeddings 'none', not 'wordllama'"):
        recording.open()


def test_an_embedding_model_that_fails_says_what_was_kept(recording):
    class Failing(DeterministicFakeEmbedding):
        is_gone: bool = False

        def embed_documents(self, texts):
            self.is_gone |= any("dish 4999" in text for text in texts)
            if self.is_gone:
                raise ConnectionError("no route")
            return super().embed_documents(texts)

    with recording.open(embeddings=Failing(size=4)) as memory:
        with pytest.raises(MemoryFailure, match=r"Failing failed: .*no route.*4,000 procedures"):
            memory.add(dish(number) for number in range(5000))
        assert memory.count() == 4000


@pytest.mark.parametrize("kind", [*RECORDING, "postgres"])
def test_a_text_that_the_embedding_model_refuses_costs_itself_alone(made, kind):
    class Refusing(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            if any("dish 7 " in text for text in texts):
                raise ValueError("400: input too long")
            return [
                [math.nan] * 256 if "dish 8 " in text else vector
                for text, vector in zip(texts, super().embed_documents(texts), strict=True)
            ]

    known = [dish(number) for number in range(40)]
    with made(kind).open(embeddings=Refusing(size=256)) as memory:
        report = memory.add(known)
        reasons = {each.where: each.reason for each in report.failed}
        assert reasons.keys() == {dish(7).id, dish(8).id}
        assert "400: input too long" in reasons[dish(7).id]
        assert "is zero or no number" in reasons[dish(8).id]
        assert (report.added, memory.count()) == (38, 38)
        assert memory.add(known).present == 38


@pytest.fixture
def tagged(request, made, kind) -> Iterator[ProcedureMemory]:
    """Dishes of two kitchens and two years."""
    with made(kind).open() as memory:
        memory.add(
            dish(number, tags={"kitchen": "abc"[number % 3], "year": str(2020 + number % 2)})
            for number in range(300)
        )
        memory.add([dish(300), *PROCEDURES])
        yield memory


@pytest.mark.parametrize("kind", WRITABLE)
def test_a_search_finds_only_what_has_the_tags(tagged, kind):
    for alpha in (None, 0, 1):
        found = tagged.search("dish 7", 400, alpha=alpha, where={"kitchen": "b"})
        assert {hit.procedure.tags["kitchen"] for hit in found} == {"b"}
        assert len(found) == 100
    both = {"kitchen": "a", "year": "2021"}
    [best, *_] = tagged.search("dish 9", 3, where=both)
    assert best.procedure.tags == both
    assert tagged.search("dish", 3, where={"kitchen": "z"}) == []
    assert tagged.search("dish", 3, where={"town": "b"}) == []
    retriever = tagged.as_retriever(2, where=both)
    assert len(retriever.invoke("dish")) == 2
    for wrong in ({"kitchen": 1}, "kitchen", {"": "a"}, {'a"b': "c"}):
        with pytest.raises(BadInput, match="tag"):
            tagged.search("dish", where=wrong)


@pytest.mark.parametrize("kind", WRITABLE)
def test_tags_may_have_names_and_values_in_any_script(made, kind):
    tags = [
        {"größe": "groß"},
        {"產品": "開關"},
        {"🍞": "it's"},
        {"the oven": "100 %"},
        {"a'b": "[1]"},
    ]
    with made(kind).open() as memory:
        memory.add(dish(number, tags=each) for number, each in enumerate(tags))
        for number, each in enumerate(tags):
            assert outputs(memory.search("dish", 9, where=each)) == [f"dish {number}"]


@pytest.mark.parametrize("kind", WRITABLE)
def test_a_procedure_with_the_key_of_another_takes_its_place(made, kind):
    with made(kind).open() as memory:
        memory.add([dish(1, key="page/1", tags={"kitchen": "a"}), dish(2)])
        [first] = [item for item in memory if item.key]
        memory.update(first.id, lambda kept: with_outcome(kept, succeeded=True))
        assert memory.add([dish(3, key="page/1", tags={"kitchen": "b"})]).updated == 1
        assert memory.count() == 2
        stored = by_short_id(memory, "page/1")
        assert (stored.output, stored.tags, stored.key) == ("dish 3", {"kitchen": "b"}, "page/1")
        assert stored.outcomes[:2] == (1, 0)
        assert memory.search("dish", 5, where={"kitchen": "a"}) == []
        assert memory.delete([id_of_key("page/1")]) == 1
        memory.add([dish(4, key="page/2"), dish(5, key="page/2")])
        stored = by_short_id(memory, "page/2")
        assert (stored.output, [each["output"] for each in stored.versions]) == (
            "dish 5",
            ["dish 4"],
        )


@pytest.mark.parametrize("kind", WRITABLE)
def test_no_two_procedures_have_the_same_key(made, kind):
    with made(kind).open() as memory:
        memory.add([keyed := dish(1, key="page/1"), other := dish(2)])
        for procedure, key in ((other, "page/1"), (other, "page/2"), (keyed, "page/2")):
            with pytest.raises(BadInput, match=f"key '{key}' has the id {id_of_key(key)}, not"):
                memory.update(procedure.id, lambda kept, key=key: replace(kept, key=key))
        with pytest.raises(BadInput, match="changed its key from 'page/1' to ''"):
            memory.update(keyed.id, lambda kept: replace(kept, key=""))
        with pytest.raises(BadInput, match="not 00000000-"):
            dish(3, id=WRONG_ID, key="page/1")
        memory.add([dish(4, id=keyed.id)])
        assert memory.get(keyed.id).key == "page/1"
        assert memory.add([replace(other, id="", key="page/1")]).updated == 1
        assert sorted((item.output, item.key) for item in memory) == [
            ("dish 2", ""),
            ("dish 2", "page/1"),
        ]


@pytest.mark.parametrize("kind", WRITABLE)
def test_earlier_versions_are_kept_and_can_be_restored(made, kind):
    with made(kind).open() as memory:
        first = dish(1)
        memory.add([first])
        memory.update(first.id, lambda kept: with_outcome(kept, succeeded=True))
        assert memory.get(first.id).versions == ()
        with reason("the oven is new", by="ada"):
            memory.update(first.id, lambda kept: replace(kept, steps=("Grill.",)))
        memory.add([dish(1, id=first.id, steps=["Fry."])])
        latest, oldest = memory.get(first.id).versions
        assert (latest["steps"], latest["why"]) == (["Grill."], "")
        assert (oldest["steps"], oldest["why"], oldest["by"]) == (
            ["Mix 1.", "Bake."],
            "the oven is new",
            "ada",
        )
        memory.update(first.id, lambda kept: undone(kept, 2))
        restored = memory.get(first.id)
        assert (restored.steps, restored.outcomes[:2]) == (first.steps, (1, 0))
        assert [each["steps"] for each in restored.versions] == [
            ["Fry."],
            ["Grill."],
            ["Mix 1.", "Bake."],
        ]
        with pytest.raises(BadInput, match="3 earlier versions, and no version 4"):
            memory.update(first.id, lambda kept: undone(kept, 4))


@pytest.mark.parametrize("kind", WRITABLE)
def test_changes_of_tags_and_expiry_are_versions_too(made, kind):
    with made(kind).open() as memory:
        memory.add([first := dish(1, tags={"kitchen": "a"}, expires="2999-12-31")])
        with reason("moved", by="ada"):
            memory.update(first.id, lambda kept: replace(kept, tags={"kitchen": "b"}))
        memory.update(first.id, lambda kept: replace(kept, expires=""))
        assert [(each["why"], each["by"]) for each in memory.get(first.id).versions] == [
            ("", ""),
            ("moved", "ada"),
        ]
        memory.update(first.id, lambda kept: undone(kept, 2))
        restored = memory.get(first.id)
        assert (restored.tags, restored.expires) == (first.tags, first.expires)
        assert outputs(memory.search("dish", where={"kitchen": "a"})) == ["dish 1"]
        assert len(restored.versions) == 3


def test_a_version_that_was_stored_without_tags_leaves_those_of_now():
    older = {"output": "tea", "input": "leaves", "steps": ["Boil."], "at": "", "why": "", "by": ""}
    kept = dish(1, tags={"kitchen": "a"}, versions=[older])
    assert (undone(kept).output, undone(kept).tags) == ("tea", {"kitchen": "a"})


def test_an_approval_and_a_stale_mark_are_of_one_text(made):
    marks = {"approved": {"by": "ana"}, "stale": "the page is gone"}
    with made("database").open() as memory:
        memory.add([first := dish(1, metadata={"owner": "bea", **marks})])
        memory.update(first.id, lambda kept: with_text(kept, dish(2)))
        assert memory.get(first.id).metadata == {"owner": "bea"}
        memory.update(first.id, undone)
        assert memory.get(first.id).metadata == first.metadata
        memory.update(first.id, lambda kept: replace(kept, tags={"kitchen": "a"}))
        memory.update(first.id, undone)
        assert memory.get(first.id).metadata == first.metadata


@pytest.mark.parametrize("kind", WRITABLE)
def test_an_older_export_that_is_imported_again_drops_no_version(made, kind):
    with made(kind).open() as memory:
        memory.add([dish(1)])
        for step in ("Grill.", "Fry.", "Boil."):
            exported = memory.get(dish(1).id)
            memory.update(dish(1).id, lambda kept, step=step: replace(kept, steps=(step,)))
        for _ in range(2):
            memory.add([exported])
            stored = memory.get(dish(1).id)
            assert stored.steps == ("Fry.",)
            assert [each["steps"] for each in stored.versions] == [
                ["Boil."],
                ["Fry."],
                ["Grill."],
                ["Mix 1.", "Bake."],
            ]


@pytest.mark.parametrize("kind", WRITABLE)
def test_a_change_of_a_version_that_is_no_more_is_a_conflict_with_both_texts(made, kind):
    with made(kind).open() as memory:
        memory.add([before := dish(1)])
        memory.update(before.id, lambda kept: with_outcome(kept, succeeded=True), made_from=before)
        memory.update(before.id, lambda kept: replace(kept, steps=("Grill.",)), made_from=before)
        with pytest.raises(Conflict, match=r"(?s)says now:.*Grill\..*not made says:.*Fry\."):
            memory.update(before.id, lambda kept: replace(kept, steps=("Fry.",)), made_from=before)
        assert memory.get(before.id).steps == ("Grill.",)


def test_a_file_is_read_only(made):
    with made("file").open() as memory:
        assert (memory.read_only, list(memory)) == (True, PROCEDURES)
        for change in (
            lambda: memory.add([dish(1)]),
            lambda: memory.delete([PROCEDURES[0].id]),
            lambda: memory.update(
                PROCEDURES[0].id, lambda kept: with_outcome(kept, succeeded=True)
            ),
        ):
            with pytest.raises(ReadOnlyMemory, match=r"import procedures into a .db"):
                change()
