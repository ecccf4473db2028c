"""LocalIndex: what is kept, how it is ranked, and what happens to files that are not as they should be."""

import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.errors import BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.index import (
    Complete,
    Entry,
    GroupedIndex,
    LocalIndex,
    in_group,
)
from stepcraft.text.words import query_words


class Letters:
    """Vectors that count letters, so that a test can reckon them itself."""

    def __init__(self, name: str = "letters", alphabet: str = "abcdefgh") -> None:
        self.name = name
        self.alphabet = alphabet
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += texts
        rows = [self.embed_query(text) for text in texts]
        if len({len(row) for row in rows}) > 1:
            raise MemoryFailure("the rows have several lengths")
        return np.array(rows, np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        if "nan" in text:
            return np.full(len(self.alphabet), np.nan, np.float32)
        if text == "long":
            return np.ones(9, np.float32)
        return np.array([text.lower().count(letter) for letter in self.alphabet], np.float32)


class Wide(Letters):
    """Vectors that take memory."""

    def embed_query(self, text: str) -> np.ndarray:
        return np.full(2000, len(text), np.float32)


def entries(*texts: str) -> list[Entry]:
    return [Entry(f"id{number}", text, {"number": number}) for number, text in enumerate(texts)]


def ids(index: LocalIndex, query: str, k: int = 10, alpha: float = 0.4) -> list[str]:
    return [hit.entry.id for hit in index.search(query, k, alpha=alpha)]


@pytest.fixture
def index():
    index = LocalIndex(":memory:", Letters())
    yield index
    index.close()


def test_an_index_in_memory_is_not_replaced_by_a_file_of_that_name(index, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index.put(entries("tea"))
    (tmp_path / ":memory:").write_text("notes")
    assert ids(index, "tea") == ["id0"]


def brute_force(index: LocalIndex, query: str, alpha: float) -> list[tuple[str, float]]:
    """All entries scored one by one; the words by a query of their own."""
    listed = list(index)
    texts = [entry.text for entry in listed]
    expression = " OR ".join(f'"{word}"' for word in query_words(query))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize='porter unicode61')")
    connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(texts))
    sql = "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ?"
    by_words = dict(connection.execute(sql, (expression,))) if expression and alpha < 1 else {}
    connection.close()
    best = max(by_words.values(), default=1)
    asked = Letters().embed_query(query).astype(float)
    scored = []
    for number, text in enumerate(texts):
        vector = Letters().embed_query(text).astype(float)
        lengths = np.linalg.norm(vector) * np.linalg.norm(asked)
        cosine = float(vector @ asked / lengths) if lengths else 0.0
        scored.append(
            (listed[number].id, alpha * cosine + (1 - alpha) * by_words.get(number, 0) / best)
        )
    return sorted(scored, key=lambda pair: -round(pair[1], 5))


WORDS = st.sampled_from(
    [
        "bad",
        "cab",
        "dead",
        "face",
        "bead",
        "head",
        "egg",
        "fed",
        "ace",
        "babe",
        "cafe",
        "deaf",
        "edge",
        "high",
        "jazz",
    ]
)
TEXT = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


def check_ranking(index: LocalIndex, query: str, alpha: float) -> None:
    """Compare the first results and all results of a search with the brute force."""
    scores = brute_force(index, query, alpha)
    hits = index.search(query, len(scores) + 1, alpha=alpha)
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in scores], abs=1e-5)
    wanted = dict(scores)
    assert [hit.score for hit in hits] == pytest.approx(
        [wanted[hit.entry.id] for hit in hits], abs=1e-5
    )
    assert ids(index, query, 3, alpha) == [hit.entry.id for hit in hits[:3]]


QUERY = st.lists(WORDS.filter(lambda word: word != "jazz"), min_size=1, max_size=3).map(" ".join)


@given(st.lists(TEXT, min_size=1, max_size=40), QUERY, st.sampled_from([0.2, 0.4, 1]))
def test_ranking_equals_brute_force_over_all_rows(texts, query, alpha):
    with closing(LocalIndex(":memory:", Letters())) as index:
        index.put(entries(*texts))
        check_ranking(index, query, alpha)


STEP = st.tuples(st.lists(st.integers(0, 9), max_size=4), st.lists(st.integers(0, 9), max_size=4))


@given(st.lists(st.tuples(STEP, TEXT), min_size=1, max_size=6), QUERY)
def test_ranking_stays_exact_while_entries_come_go_and_change(steps, query):
    with closing(LocalIndex(":memory:", Letters())) as index:
        for (written, deleted), text in steps:
            index.put([Entry(f"id{number}", f"{text} {number}", {}) for number in written])
            index.delete([f"id{number}" for number in deleted])
            check_ranking(index, query, 0.4)


def test_of_words_that_stand_in_many_rows_the_rarest_choose_what_is_ranked():
    with closing(LocalIndex(":memory:")) as index:
        texts = ["common" + " often" * (number % 3 == 0) for number in range(48_000)]
        index.put(entries(*texts, "common other seldom", "common often seldom"))
        assert set(ids(index, "common often seldom")) == {"id48001", "id48000"}
        assert ids(index, "common often seldom")[0] == "id48001"
        assert ids(index, "common absent", 1) == ["id1"]
        assert ids(index, "often absent", 2) == ["id0", "id3"]
        index.put([Entry("new", "absent", {})])
        assert ids(index, "common absent") == ["new"]


def test_equal_scores_stand_in_the_order_in_which_they_were_added(index):
    index.put(entries(*["bad cab"] * 50))
    assert ids(index, "bad cab", 50) == [f"id{n}" for n in range(50)]
    assert ids(index, "bad cab", 3, alpha=0) == ["id0", "id1", "id2"]


def test_alpha_weighs_vectors_against_words(index):
    index.put(entries("bead", "abed"))
    assert ids(index, "bead", 1, alpha=0) == ["id0"]
    assert len(ids(index, "bead", alpha=0)) == 1, "only what shares a word"
    assert ids(index, "abed", 2, alpha=0.4) == ["id1", "id0"]
    assert {round(hit.score, 5) for hit in index.search("bead", 2, alpha=1)} == {1}


def test_without_vectors_only_words_count():
    index = LocalIndex(":memory:")
    index.put(entries("cook potatoes", "bake bread"))
    assert ids(index, "cooking a potato", alpha=1) == ["id0"], (
        "words are stemmed; alpha has nothing to weigh"
    )
    assert ids(index, "bread", alpha=0.4) == ["id1"]
    assert ids(index, "", alpha=0.4) == []
    index.put(entries("to be or not to be"))
    assert ids(index, "to be") == ["id0"], "a query of stop words alone"
    index.close()


def test_chinese_is_found_by_pairs_of_characters():
    index = LocalIndex(":memory:")
    index.put(entries("为聊天代理添加长期记忆", "部署一个图", "长的图"))
    assert ids(index, "长期记忆") == ["id0"]
    assert ids(index, "图") == ["id1", "id2"] or ids(index, "图") == ["id2", "id1"]
    assert ids(index, "LangGraph的部署") == ["id1"]
    index.put([Entry("id0", "另一个", {})])
    assert ids(index, "长期记忆") == [], "the old words are gone"
    index.close()


@pytest.mark.parametrize(
    ("k", "alpha"), [(0, 0.4), (-1, 0.4), (3, -0.1), (3, 1.5), (3, float("nan"))]
)
def test_k_and_alpha_out_of_bounds_are_refused(index, k, alpha):
    with pytest.raises(BadInput):
        index.search("bad", k, alpha=alpha)


def test_put_counts_what_was_added_present_and_updated(index):
    assert index.put(entries("bad", "cab")).added == 2
    again = index.put(entries("bad", "face"))
    assert (again.added, again.present, again.updated) == (0, 1, 1)
    assert [entry.text for entry in index] == ["bad", "face"], "updated in place"
    assert ids(index, "cab", alpha=0) == []
    assert ids(index, "face", 1) == ["id1"]
    twice = index.put([Entry("x", "egg", {}), Entry("x", "egg", {}), Entry("x", "fed", {})])
    assert (twice.added, twice.present, twice.updated) == (1, 1, 1)
    assert index.get("x").text == "fed"


def test_each_text_is_embedded_once():
    letters = Letters()
    index = LocalIndex(":memory:", letters)
    index.put([Entry("1", "bad", {}), Entry("2", "bad", {}), Entry("3", "cab", {})])
    index.put([Entry("1", "bad", {}), Entry("3", "cab", {"other": "payload"})])
    assert sorted(letters.embedded) == ["bad", "cab"]
    index.close()


def test_delete_forgets_words_and_vectors(index):
    index.put(entries("bad", "cab", "face"))
    assert index.search("cab", 1, alpha=0.4)[0].entry.id == "id1"
    assert index.delete(["id1", "id1", "nobody"]) == 1
    assert index.count() == 2
    assert index.get("id1") is None
    assert "id1" not in ids(index, "cab")
    index.put(entries("bad", "cab"))
    assert [entry.id for entry in index] == ["id0", "id2", "id1"]
    assert ids(index, "cab", 1) == ["id1"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("xyz", "is zero or no number"), ("nan", "is zero or no number"), ("long", "of 9 numbers")],
)
def test_a_text_without_a_usable_vector_is_refused_with_its_reason(index, text, reason):
    index.put(entries("bad"))
    report = index.put(entries("bad", text, "cab"))
    assert [failed.where for failed in report.failed] == ["id1"]
    assert reason in report.failed[0].reason
    assert (report.added, report.present) == (1, 1)
    assert ids(index, "bad cab") == ["id0", "id2"]
    with pytest.raises(MemoryFailure, match=r"id0 was not changed|holds vectors of \d dimensions"):
        index.update("id0", lambda _: Entry("id0", text, {}))


@pytest.mark.parametrize("alpha", [0, 0.4, 1])
def test_two_connections_see_what_the_other_wrote(tmp_path: Path, alpha):
    ours, theirs = (LocalIndex(tmp_path / "i.db", Letters()) for _ in range(2))
    ours.put(entries("bad"))
    assert ids(theirs, "bad", alpha=alpha) == ["id0"]
    ours.put([Entry("new", "gghh", {})])
    assert ids(theirs, "gghh", 1, alpha=alpha) == ["new"]
    theirs.put([Entry("id0", "cccc", {})])
    assert ids(ours, "cccc", 1, alpha=alpha) == ["id0"]
    theirs.delete(["id0"])
    assert ids(ours, "gghh cccc", alpha=alpha) == ["new"]
    ours.close()
    theirs.close()


class Interrupting(Letters):
    """Letters; a call that comes in between is made while the next texts are embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.between: list[Callable[[], object]] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if self.between:
            self.between.pop()()
        return super().embed_documents(texts)


@pytest.mark.parametrize("where", [":memory:", "i.db"])
def test_nobody_waits_for_the_embedding_of_an_update_and_no_change_is_lost(tmp_path: Path, where):
    path = where if where == ":memory:" else tmp_path / where
    letters = Interrupting()
    with (
        closing(LocalIndex(path, letters)) as ours,
        closing(LocalIndex(path, Letters())) as another,
    ):
        theirs = ours if where == ":memory:" else another
        ours.put(entries("bad"))

        def longer(entry: Entry | None) -> Entry:
            return Entry("id0", f"{entry.text if entry else 'gone'} cab", {})

        letters.between = [lambda: theirs.put(entries("egg"))]
        assert ours.update("id0", longer).text == "egg cab"
        assert theirs.get("id0").text == "egg cab"
        assert ids(ours, "cab", 1) == ["id0"]
        letters.between = [lambda: theirs.delete(["id0"])]
        assert ours.update("id0", longer).text == "gone cab"


def test_indexes_of_one_file_hold_its_vectors_once(tmp_path: Path):
    path = tmp_path / "i.db"
    with closing(LocalIndex(path, Wide())) as first, closing(LocalIndex(path, Wide())) as second:
        first.put(entries(*(f"bad {number}" for number in range(500))))
        tracemalloc.start()
        try:
            assert ids(first, "bad", 1, alpha=1)
            once = tracemalloc.get_traced_memory()[0]
            assert ids(second, "bad", 1, alpha=1)
            assert tracemalloc.get_traced_memory()[0] < once + 1_000_000 < 5_000_000 + once
        finally:
            tracemalloc.stop()


def test_a_group_is_filled_and_forgotten_as_a_whole(tmp_path: Path):
    def passages(group: str, *texts: str) -> list[Entry]:
        return [Entry(in_group(group, text), text, {}) for text in texts]

    with closing(GroupedIndex(tmp_path / "i.db", Letters())) as index:
        whole = Complete("1", {in_group("a", "bad"), in_group("a", "cab")})
        index.fill(passages("a", "bad", "cab") + passages("b", "egg"), {"a": whole})
        assert index.marks() == {"a": "1", "b": ""}
        index.fill(passages("a", "face"), {"a": Complete("2", {in_group("a", "face")})})
        assert sorted(entry.text for entry in index) == ["egg", "face"]
        assert ids(index, "bad cab face egg", 2, alpha=0) == ["b:egg", "a:face"]
        index.forget(["a", "nobody"])
        assert index.marks() == {"b": ""}
        assert ids(index, "bad cab face egg") == ["b:egg"]


def test_a_file_is_filled_by_one_at_a_time_and_without_a_lock_if_none_can_be_made(tmp_path: Path):
    path = tmp_path / "i.db"
    with closing(GroupedIndex(path)) as ours, closing(GroupedIndex(path)) as theirs:
        with ours.filling(), theirs.filling(wait=False) as is_theirs:
            assert not is_theirs
        with theirs.filling(wait=False) as is_theirs:
            assert is_theirs
        (tmp_path / "i.db.lock").unlink()
        (tmp_path / "i.db.lock").mkdir()  # as in a folder that is not writable
        with ours.filling() as is_ours:
            assert is_ours
        with pytest.raises(sqlite3.OperationalError, match="of a reader"), ours.filling():
            raise sqlite3.OperationalError("of a reader")


def test_another_model_is_refused_and_words_alone_may_read(tmp_path: Path):
    path = tmp_path / "i.db"
    index = LocalIndex(path, Letters())
    index.put(entries("bad"))
    index.close()
    with pytest.raises(MemoryFailure, match="'letters', not 'other'"):
        LocalIndex(path, Letters("other"))
    wider = LocalIndex(path, Letters(alphabet="abcdefghijkl"))
    with pytest.raises(MemoryFailure, match=r"8 dimensions.*12"):
        wider.put(entries("bad", "cab"))
    with pytest.raises(MemoryFailure, match=r"8 dimensions.*12"):
        wider.search("bad", 1, alpha=0.4)
    wider.close()
    words = LocalIndex(path)
    assert ids(words, "bad") == ["id0"]
    with pytest.raises(MemoryFailure, match="letters"):
        words.put(entries("bad", "cab"))
    words.close()


def written(path: Path) -> Path:
    index = LocalIndex(path, Letters())
    index.put([Entry(str(number), f"bad {number}" * 50, {}) for number in range(300)])
    index.close()
    return path


def test_a_locked_database_is_named(tmp_path: Path):
    path = written(tmp_path / "i.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    index = LocalIndex(path, Letters())
    assert ids(index, "bad", 1), "reading goes on"
    with pytest.raises(
        MemoryFailure, match=r"i\.db cannot be used: database is locked; another process"
    ):
        index.put(entries("cab"))
    index.close()
    other.close()


def test_a_damaged_database_is_named(tmp_path: Path):
    path = written(tmp_path / "i.db")
    content = path.read_bytes()
    path.write_bytes(content[:5000] + b"\xff" * (len(content) - 5000))
    with pytest.raises(
        MemoryFailure, match=r"i\.db (is damaged|cannot be used: database disk image is malformed)"
    ):
        read_all(path)


def read_all(path: Path) -> list[Entry]:
    with closing(LocalIndex(path, Letters())) as index:
        return list(index)


def test_what_is_no_index_is_refused(tmp_path: Path):
    (tmp_path / "text.db").write_text("this is no database, but quite a long text " * 50)
    with pytest.raises(MemoryFailure, match="file is not a database; restore"):
        LocalIndex(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    with pytest.raises(MemoryFailure, match="something else"):
        LocalIndex(tmp_path / "other.db")
    with pytest.raises(BadInput, match="folder"):
        LocalIndex(tmp_path)
    with pytest.raises(BadInput, match="no folder"):
        LocalIndex(tmp_path / "missing" / "i.db")
    with pytest.raises(BadInput, match="does not exist"):
        LocalIndex(tmp_path / "i.db", create=False)
    assert not (tmp_path / "i.db").exists()


def test_another_version_is_refused(tmp_path: Path):
    path = written(tmp_path / "i.db")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(MemoryFailure, match=r"another version.*99"):
        LocalIndex(path, Letters())


LAYOUT_2 = """
DROP TRIGGER added;
DROP TRIGGER reworded;
DROP TRIGGER deleted;
DROP TABLE words;
ALTER TABLE entries DROP COLUMN parts;
ALTER TABLE entries RENAME COLUMN folded TO spaced;
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='porter unicode61');
INSERT INTO words (rowid, text) SELECT seq, text FROM entries;
CREATE TRIGGER added AFTER INSERT ON entries BEGIN SELECT 1; END;
CREATE TRIGGER reworded AFTER UPDATE OF text ON entries BEGIN SELECT 1; END;
CREATE TRIGGER deleted AFTER DELETE ON entries BEGIN SELECT 1; END;
PRAGMA user_version = 2;
"""
"""Makes a file that of an earlier version."""


def test_the_words_of_a_file_of_an_earlier_version_are_made_anew_once(tmp_path: Path):
    path = tmp_path / "i.db"
    with closing(LocalIndex(path, Letters())) as index:
        index.put(entries("bad cab", "Apfelkuchen backen", "पत्र लिखना और bead"))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(LAYOUT_2)
    embedder = Letters()
    together = [LocalIndex(path, embedder) for _ in range(2)]
    for index in together:
        assert ids(index, "kuchen", alpha=0) == ["id1"]
        assert ids(index, "पत्र", alpha=0) == ["id2"]
        assert [entry.payload["number"] for entry in index] == [0, 1, 2]
        assert index.search("bad cab", 1, alpha=1)[0].score == pytest.approx(1)
    together[0].put([Entry("id1", "bread", {})])
    together[1].delete(["id2"])
    assert ids(together[0], "kuchen", alpha=0) == ids(together[0], "पत्र", alpha=0) == []
    assert embedder.embedded == ["bread"]
    for index in together:
        index.close()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write read-only files"
)
def test_a_read_only_file_can_be_searched(tmp_path: Path):
    path = written(tmp_path / "i.db")
    path.chmod(0o444)
    index = LocalIndex(path, Letters())
    assert index.read_only
    assert ids(index, "bad", 1)
    with pytest.raises(ReadOnlyMemory, match="readonly database; check the permissions"):
        index.put(entries("cab"))
    index.close()


@pytest.mark.parametrize("has_written", [False, True])
def test_a_file_that_takes_the_place_of_an_open_one_is_read_and_written(
    tmp_path: Path, has_written: bool
):
    path, backup = tmp_path / "i.db", tmp_path / "backup.db"
    for text, file in (("bad", backup), ("head", path)):
        with closing(LocalIndex(file, Letters())) as index:
            index.put(entries(text))
    with closing(LocalIndex(path, Letters())) as index:
        assert ids(index, "head", 1) == ["id0"]
        if has_written:
            index.delete(["none"])
        backup.replace(path)
        assert [entry.text for entry in index] == ["bad"]
        assert index.search("bad", 1, alpha=1)[0].score == pytest.approx(1)
        index.update("id0", lambda _: Entry("id0", "bead", {}))
        assert index.search("bead", 1, alpha=1)[0].score == pytest.approx(1)
        path.unlink()
        assert index.get("id0"), "what is open can be read, as before"


def test_a_write_that_others_always_overtake_ends(tmp_path: Path):
    with closing(LocalIndex(tmp_path / "i.db")) as index:
        index.put(entries("tea"))

        def change(kept: Entry | None) -> Entry:
            count = int((index.get("id0") or Entry("", "", {})).payload["number"])
            index.put([Entry("id0", "tea", {"number": count + 1})])
            return Entry("id0", "coffee", {})

        with pytest.raises(MemoryFailure, match="others keep changing"):
            index.update("id0", change)


READER = """
import os, sys
os.access = lambda path, mode: mode != os.W_OK  # a user who may write neither file nor folder
from stepcraft.index import LocalIndex
index = LocalIndex(sys.argv[1])
print(index.count(), flush=True)
sys.stdin.readline()
print(index.count(), len(index.search("new", 100, alpha=0)), len(list(index)))
"""


def test_a_reader_who_may_not_write_sees_what_the_owner_writes_later(tmp_path: Path):
    path = tmp_path / "i.db"
    index = LocalIndex(path)
    index.put(entries(*(f"old {number}" for number in range(300))))
    index.close()
    command = [sys.executable, "-c", READER, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout
        assert reader.stdin
        assert reader.stdout.readline() == "300\n"
        index = LocalIndex(path)
        index.delete(f"id{number}" for number in range(250))
        index.put([Entry(f"new{number}", "new", {}) for number in range(20)])
        index.close()
        reader.stdin.write("go\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == "70 20 70\n"


def test_a_search_waits_neither_for_another_process_that_writes_nor_for_a_writer_that_waits(
    tmp_path: Path,
):
    index = LocalIndex(tmp_path / "i.db", Letters())
    index.put(entries("bad"))
    other = sqlite3.connect(tmp_path / "i.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer = threading.Thread(target=lambda: index.put([Entry("new", "cab", {})]))
    writer.start()
    found = [ids(index, "bad") for _ in range(200)]
    assert writer.is_alive()
    other.execute("COMMIT")
    other.close()
    writer.join()
    assert found == [["id0"]] * 200
    assert ids(index, "cab", 1) == ["new"]
    index.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("place", ["i.db", ":memory:"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_that_was_forked_during_searches_can_search_and_write(tmp_path: Path, place):
    index = LocalIndex(place if place == ":memory:" else tmp_path / place, Letters())
    index.put(entries("bad", "cab"))
    is_over = threading.Event()

    def search() -> None:
        while not is_over.is_set():
            ids(index, "bad")

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(5):
            child = os.fork()
            if not child:
                signal.alarm(20)
                index.put([Entry(f"new{number}", "gg", {})])
                os._exit(f"new{number}" not in ids(index, "gg"))
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert index.count() == (2 if place == ":memory:" else 7)
    index.close()


FORKING = """
import os, threading, time
from stepcraft.index import Entry, LocalIndex
index = LocalIndex(":memory:")

def fork():
    if not (child := os.fork()):
        os._exit(index.count() != 1)
    assert os.waitpid(child, 0)[1] == 0

def start_forks(*_):
    for thread in threads:
        thread.start()
    time.sleep(0.5)  # all of them wait for the end of this transaction

threads = [threading.Thread(target=fork) for _ in range(3)]
index.put([Entry("id", "text", {})], then=start_forks)
for thread in threads:
    thread.join()
print(index.count())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_threads_can_fork_at_once():
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "1\n"


def test_an_index_that_nobody_uses_is_closed_at_once(tmp_path: Path):
    index = LocalIndex(tmp_path / "index.db")
    index.put(entries("bad"))
    gc.disable()
    try:
        del index
        assert [file.name for file in tmp_path.iterdir()] == ["index.db"], "there is no log"
    finally:
        gc.enable()


def test_a_closed_index_holds_neither_vectors_nor_files(tmp_path: Path):
    index = LocalIndex(tmp_path / "i.db", Wide())
    index.put(entries(*(f"bad {number}" for number in range(500))))
    tracemalloc.start()
    try:
        assert ids(index, "bad", 1, alpha=1)
        opened = tracemalloc.get_traced_memory()[0]
        for _ in range(2):
            index.close()
        assert tracemalloc.get_traced_memory()[0] < opened - 3_000_000
    finally:
        tracemalloc.stop()
    assert [file.name for file in tmp_path.iterdir()] == ["i.db"], "there is no log"
    with pytest.raises(MemoryFailure, match="closed"):
        index.count()
