"""A corpus: what it finds, what it leaves out, and how its index follows the files."""

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from stepcraft import open_memory
from stepcraft.errors import BadInput, MemoryFailure, SourceFailure
from stepcraft.evidence import NOTES
from stepcraft.index import GroupedIndex
from stepcraft.retrieval.opening import opened_source
from stepcraft.sources import CorpusRetriever, isolated, open_corpus, open_source
from stepcraft.sources.corpus.passages import FIELDS
from stepcraft.sources.corpus.update import Page, update
from tests.kitchen import PROCEDURES

TEA = "# Tea\n\n## Green\nSteep green tea for two minutes.\n\n## Black\nSteep black tea for four minutes.\n"
SOUP = "Peel the potatoes. Boil them until they are soft."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    (files / "kitchen").mkdir(parents=True)
    (files / "tea.md").write_text(TEA)
    (files / "kitchen" / "soup.txt").write_text(SOUP)
    return files


@pytest.fixture
def opened(tmp_path: Path, folder: Path):
    """Opens the folder with one index, by words alone."""
    corpora: list[CorpusRetriever] = []

    def open_(**options: Any) -> CorpusRetriever:
        corpora.append(
            open_corpus(
                [folder], **{"index": tmp_path / "index.db", "embeddings": "none"} | options
            )
        )
        return corpora[-1]

    yield open_
    for corpus in corpora:
        corpus.close()


def found(corpus: BaseRetriever, query: str, **options: Any) -> list[str]:
    return [document.metadata["source"] for document in corpus.invoke(query, **options)]


class TestStandard(RetrieversIntegrationTests):
    """The suite that LangChain has for retrievers."""

    @pytest.fixture(autouse=True)
    def _corpus(self, opened, folder):
        for number in range(5):
            (folder / f"{number}.txt").write_text(f"Tea number {number}.")
        self.corpus = opened()

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CorpusRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {name: getattr(self.corpus, name) for name in ("index", "roots")}

    @property
    def retriever_query_example(self) -> str:
        return "tea"


def test_a_document_says_what_it_is_and_where_it_stands(opened, folder: Path):
    first, *_ = opened().invoke("how long does green tea steep?")
    assert first.page_content == "Steep green tea for two minutes."
    assert first.metadata == {"title": "Tea › Green", "source": f"{folder}/tea.md:4", "score": 1}
    assert first.id == opened().invoke("green tea")[0].id


def test_the_passages_beside_one_are_the_one_before_and_the_one_after_it(opened, folder: Path):
    (folder / "tea.md").write_text("\n\n".join(f"# {n}\n\nInfusion {n}." for n in range(12)))
    corpus = opened(k=20)
    beside = {
        each.page_content: [other.page_content for other in corpus.beside(each.id)]
        for each in corpus.invoke("infusion")
    }
    assert beside == {
        f"Infusion {n}.": [f"Infusion {m}." for m in (n - 1, n + 1) if 0 <= m < 12]
        for n in range(12)
    }


def test_paths_are_shown_as_they_were_given(opened, folder: Path):
    with chdir(folder.parent):
        corpus = open_corpus(["files", "files/tea.md"], index=":memory:", embeddings="none")
    assert len(corpus.index.marks()) == 2
    assert found(corpus, "black tea", k=1) == ["files/tea.md:7"]
    assert found(corpus, "potatoes") == ["files/kitchen/soup.txt:1"]


def test_a_search_shows_as_a_retriever_run_and_takes_k(opened):
    queries: list[str] = []

    class Seen(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, **_):
            queries.append(query)

    corpus = opened(k=1)
    assert len(corpus.invoke("steep", {"callbacks": [Seen()]})) == 1
    assert len(corpus.invoke("steep", k=2)) == 2
    assert queries == ["steep"]
    with pytest.raises(BadInput, match="whole number from 1"):
        corpus.invoke("steep", k=0)


def test_a_beginning_run_takes_in_changes_without_a_second_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    corpus = opened_source(f"corpus:{folder}", age_s=0)
    index = corpus.index
    (folder / "milk.md").write_text("Milk is white.")
    assert opened_source(f"corpus:{folder}") is corpus
    assert found(corpus, "milk", k=1) != [f"{folder}/milk.md:1"], "it was looked at just now"
    assert opened_source(f"corpus:{folder}", age_s=0) is corpus
    assert (corpus.index, corpus.read) == (index, 1)
    assert found(corpus, "milk", k=1) == [f"{folder}/milk.md:1"]
    for file in [*folder.rglob("*.*")]:
        file.unlink()
    with pytest.raises(BadInput, match="holds no text to search"):
        opened_source(f"corpus:{folder}", age_s=0)


@pytest.mark.skipif(find_spec("markitdown") is not None, reason="it is installed")
def test_office_files_that_are_not_read_are_named(opened, folder: Path):
    for name in ("plan.docx", "talk.PPTX", "old.doc", "~$plan.docx"):
        (folder / name).write_bytes(b"PK\3\4\0")
    corpus = opened()
    names = ["old.doc", "plan.docx", "talk.PPTX"]
    assert sorted(Path(path).name for path in corpus.problems) == names
    assert corpus.problems[str(folder / "old.doc")] == "it is binary"
    assert 'pip install "stepcraft[office]"' in corpus.invoke("tea")[0].metadata[NOTES][0]


def zipped(text: str) -> bytes:
    """A file with one part."""
    file = io.BytesIO()
    with ZipFile(file, "w") as parts:
        parts.writestr("text", text)
    return file.getvalue()


def test_office_files_are_read_by_markitdown(opened, folder: Path, monkeypatch: pytest.MonkeyPatch):
    isolated.end()  # a process that waits has the path from before
    (folder.parent / "markitdown.py").write_text(MARKITDOWN)  # what we use of the real one
    monkeypatch.syspath_prepend(str(folder.parent))
    (folder / "plan.docx").write_bytes(zipped("Harvest in June."))
    with closing(opened()) as corpus:
        (first,) = corpus.invoke("harvest")
        assert (first.page_content, first.metadata["title"]) == ("Harvest in June.", "Plan")
        assert corpus.notes == []
    (folder / "talk.pptx").write_bytes(zipped("Plough in March."))
    with closing(opened()) as corpus:
        (first,) = corpus.invoke("plough")
        assert first.metadata["source"].endswith("talk.pptx slide 2")


MARKITDOWN = """
import sys
from types import SimpleNamespace
from zipfile import ZipFile

sys.modules["markitdown.converters"] = sys.modules[__name__]

def text_of(stream):
    return ZipFile(stream).read("text").decode()

class StreamInfo:
    def __init__(self, extension):
        self.extension = extension

class DocxConverter:
    def convert(self, stream, info):
        assert info.extension == ".docx"
        return SimpleNamespace(title=None, markdown=f"# Plan\\n\\n{text_of(stream)}")

class PptxConverter:
    def convert(self, stream, info):
        assert info.extension == ".pptx"
        slides = f"<!-- Slide number: 1 -->\\n# Plan\\n<!-- Slide number: 2 -->\\n{text_of(stream)}"
        return SimpleNamespace(title=None, markdown=slides)
"""


class Counting:
    """Notes what it embeds, and fails where it was to embed more."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.most, self.error = 1_000_000, BaseException

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        if len(self.texts) >= self.most:
            raise self.error
        self.texts += texts
        return [[1.0, len(text)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, len(text)]


def test_a_file_touched_but_not_changed_is_not_embedded_again(opened, folder: Path):
    model = Counting()
    opened(embeddings=model)
    assert len(model.texts) == 3
    os.utime(folder / "tea.md", (1, 1))
    opened(embeddings=model)
    assert len(model.texts) == 3
    (folder / "tea.md").write_text(f"New first line.\n{TEA}")
    assert opened(embeddings=model).read == 1
    assert len(model.texts) == 6, "the new line and what has a new title"


def test_what_is_left_out_of_folders(opened, folder: Path):
    for name in (".git/config", ".hidden.md", "node_modules/x/a.md", "env/lib/a.py", "logo.png"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("tea")
    (folder / "env" / "pyvenv.cfg").write_text("")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    os.mkfifo(folder / "pipe")
    assert len(opened().index.marks()) == 2
    assert opened().notes == []
    reasons = {Path(path).name: why for path, why in opened().left_out.items()}
    assert reasons == {
        **dict.fromkeys((".git", ".hidden.md"), "it is hidden"),
        **dict.fromkeys(("node_modules", "env"), "it holds installed packages"),
        "logo.png": "its name says that it holds no text of its own",
    }


def test_files_that_cannot_be_reached_are_noted(opened, folder: Path):
    opened()
    (folder / "tea.md").unlink()
    (folder / "tea.md").symlink_to("tea.md")  # a loop
    (folder / "policy.md").symlink_to("renamed.md")
    (folder / ".#soup.txt").symlink_to("ana@host.1234")  # a lock of Emacs
    (folder / "plan.png").symlink_to("renamed.png")
    (note,) = opened().notes
    assert "(2 problems)" in note
    assert f"{folder}/policy.md: it is a link to a file that does not exist" in note
    assert f"{folder}/tea.md: it cannot be read: Too many levels of symbolic links" in note


@pytest.mark.parametrize("name", ["a.md", "a.bin", "a.pdf", "a.csv", "a.jsonl"])
def test_a_file_that_cannot_be_opened_for_a_moment_is_read_by_the_next_update(
    tmp_path: Path, name: str
):
    path, index = tmp_path / name, GroupedIndex(":memory:", None)
    page = Page(str(path), name, "group", "state", "group", FIELDS)
    tried: set[str] = set()
    path.symlink_to(path)  # a loop
    assert "it cannot be read: " in update(index, [page], tried).problems[str(path)]
    path.unlink()
    text = {
        "a.bin": "\0\1",
        "a.pdf": "%PDF",
        "a.csv": "name,text\nTea,Hot",
        "a.jsonl": '{"text": "Hot"}',
    }
    path.write_text(text.get(name, "Hot"))
    assert update(index, [page], tried).read == 1
    assert update(index, [page], tried).read == 0


@pytest.mark.parametrize(
    ("name", "text"), [("tea.md", TEA), ("kitchen/soup.txt", SOUP), ("a.csv", "a,b\ntea,hot\n")]
)
def test_a_file_that_can_no_longer_be_opened_keeps_its_passages(
    opened, folder: Path, name: str, text: str
):
    (folder / name).write_text(text)
    before = entries(opened())
    (folder / name).unlink()
    (folder / name).symlink_to(folder / name)  # a loop
    for _ in range(2):
        corpus = opened()
        assert entries(corpus) == before
        assert f"{folder / name}: it cannot be read: " in corpus.notes[0]
        assert "any earlier version of it is still searched" in corpus.notes[0]
    (folder / name).unlink()
    (folder / name).write_bytes(b"\0\1")
    corpus = opened()
    assert len(entries(corpus)) < len(before), "what has become binary is not searched"
    (folder / name).unlink()
    assert opened().notes == []


def test_a_folder_that_cannot_be_listed_for_a_moment_keeps_its_passages(
    opened, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "kitchen-old").mkdir()
    (folder / "kitchen-old" / "rye.md").write_text("Rye.")
    corpus = opened()
    (folder / "kitchen-old" / "rye.md").unlink()
    (folder / "tea.md").unlink()

    def scandir(path: Any, scan: Any = os.scandir) -> Any:
        if str(path).endswith("kitchen"):
            raise OSError(5, "Input/output error", str(path))
        return scan(path)

    with monkeypatch.context() as fails:
        fails.setattr(os, "scandir", scandir)
        corpus.refresh()
    assert [entry.text for entry in corpus.index] == [f"soup.txt\n{SOUP}"]
    assert f"{folder}/kitchen: it cannot be read: Input/output error" in corpus.notes[0]
    (folder / "kitchen" / "soup.txt").write_text("Peel the carrots.")
    corpus.refresh()
    assert [entry.text for entry in corpus.index] == ["soup.txt\nPeel the carrots."]


def test_a_folder_beside_others_keeps_its_passages_if_it_is_empty(folder: Path, tmp_path: Path):
    share, new = tmp_path / "share", tmp_path / "new"
    share.mkdir()
    new.mkdir()
    (share / "rye.md").write_text("Rye.")
    with closing(open_corpus([folder, share, new], index=":memory:", embeddings="none")) as corpus:
        (share / "rye.md").unlink()  # as if it was no longer mounted
        corpus.refresh()
        assert found(corpus, "rye") == [f"{share}/rye.md:1"]
        (note,) = corpus.notes
        assert f"(1 problems): {share}: there is no file in it, so its earlier files stay" in note
        (share / "milk.md").write_text("Milk.")
        corpus.refresh()
        assert (found(corpus, "rye"), corpus.notes) == ([], [])


def test_what_cannot_be_read_is_noted_and_the_rest_found(opened, folder: Path):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    (folder / "data").write_bytes(b"\0\1")
    (folder / "rows.jsonl").write_text('{"text": "Milk is white."}\nbroken\n')
    for _ in range(2):
        first, *_ = opened().invoke("milk")
        (note,) = first.metadata[NOTES]
        assert note.startswith("not all of the corpus could be read as it is (3 problems): ")
        assert f"{folder}/data: it is binary" in note
        assert f"{folder}/broken.pdf: it cannot be read as pdf" in note
        assert f"{folder}/rows.jsonl: 1 of its records cannot be read, the first in line 2" in note


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_no_text_is_shown_as_far_as_it_is(opened, folder: Path):
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("Coffee.")
    (document,) = opened().invoke("coffee")
    assert document.metadata["title"] == "caf\ufffd.txt"
    assert document.metadata["source"] == f"{folder}/caf\ufffd.txt:1"


def test_nothing_to_search_is_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="holds no text to search"):
        open_corpus([tmp_path], index=":memory:")
    (tmp_path / "a.bin").write_bytes(b"\0")
    with pytest.raises(BadInput, match=r"a\.bin: it is binary"):
        open_corpus([tmp_path / "a.bin"], index=":memory:")
    with pytest.raises(BadInput, match=r"a\.bin was left out: its name"):
        open_corpus([tmp_path], index=":memory:")


def test_an_index_that_cannot_be_used_is_named(opened, tmp_path: Path, folder: Path):
    opened()
    with pytest.raises(
        SourceFailure, match=r"index\.db was made with embeddings 'none', not 'wordllama'"
    ):
        opened(embeddings="wordllama")
    (tmp_path / "text.db").write_text("this is no database, but quite a long text " * 50)
    with pytest.raises(SourceFailure, match="file is not a database"):
        open_corpus([folder], index=tmp_path / "text.db", embeddings="none")


def test_a_memory_and_the_index_of_a_corpus_are_told_apart(opened, folder: Path, tmp_path: Path):
    with open_memory(tmp_path / "memory.db", embeddings="none") as memory:
        memory.add(PROCEDURES)
    with pytest.raises(SourceFailure, match=r"memory\.db holds procedures, not passages"):
        opened(index=tmp_path / "memory.db")
    opened()
    with pytest.raises(MemoryFailure, match=r"index\.db holds passages, not procedures"):
        open_memory(tmp_path / "index.db", embeddings="none")


CODE = """
import sys
from stepcraft.sources import open_corpus
corpus = open_corpus([sys.argv[1]], embeddings=sys.argv[2])
print(corpus.index.path, corpus.read, len(corpus.invoke("tea", k=50)))
"""


def in_a_process(folder: Path, embeddings: str = "none") -> subprocess.Popen[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    command = [sys.executable, "-W", "error", "-c", CODE, str(folder), embeddings]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> list[str]:
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return told.split()


def test_the_index_is_in_the_cache_folder_one_for_each_choice_of_embeddings(folder: Path):
    path, read, _ = outcome(in_a_process(folder))
    assert Path(path).is_relative_to(folder.parent)
    assert read == "2"
    assert outcome(in_a_process(folder))[:2] == [path, "0"]
    assert outcome(in_a_process(folder, "wordllama"))[0] != path


def test_a_damaged_index_in_the_cache_is_made_anew_under_the_same_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    with closing(open_corpus([folder], embeddings="none")) as corpus:
        path = Path(corpus.index.path)
    path.write_bytes(b"damaged" * 1000)
    lock = path.with_name(f"{path.name}.lock")
    with lock.open("rb") as held:
        with closing(open_corpus([folder], embeddings="none")) as corpus:
            assert corpus.read == 2
        assert os.path.samestat(os.fstat(held.fileno()), lock.stat())


def test_several_processes_may_open_a_corpus_at_once(folder: Path):
    for number in range(200):
        (folder / f"{number}.md").write_text(f"# Tea {number}\n\nTea of kind {number}.\n")
    started = [in_a_process(folder) for _ in range(3)]
    assert len({tuple(outcome(process)[::2]) for process in started}) == 1
    assert outcome(in_a_process(folder))[1:] == ["0", "50"]


def test_killed_on_the_way_the_next_opening_goes_on(opened, folder: Path):
    for number in range(3):  # the second file is in the index in part when the process is killed
        lines = (f'{{"text": "Tea {number} of kind {line}."}}' for line in range(3000))
        (folder / f"{number}.jsonl").write_text("\n".join(lines))

    class Killed(BaseException):
        pass

    model = Counting()
    model.most, model.error = 4000, Killed
    with pytest.raises(Killed):
        opened(embeddings=model)
    (folder / "2.jsonl").unlink()
    model = Counting()
    whole = opened(embeddings=model)
    assert len(model.texts) < 6000, "what was stored is not embedded again"
    fresh = open_corpus([folder], index=":memory:", embeddings="none")
    assert entries(whole) == entries(fresh)


def entries(corpus: CorpusRetriever) -> list[tuple[str, str, str]]:
    return sorted((entry.id, entry.text, str(entry.payload)) for entry in corpus.index)


NAMES = st.sampled_from(["a.md", "b.txt", "sub/c.md", "sub/d.jsonl"])
TEXTS = st.lists(
    st.sampled_from(["# Tea", "## Green", "Steep tea.", "Boil water.", '{"text": "milk"}', ""]),
    max_size=6,
).map("\n".join)
STATES = st.lists(st.dictionaries(NAMES, TEXTS), min_size=1, max_size=4)


@settings(max_examples=30)
@given(STATES)
def test_incremental_updates_equal_a_fresh_index(tmp_path_factory: pytest.TempPathFactory, states):
    folder = tmp_path_factory.mktemp("changing") / "files"
    (folder / "sub").mkdir(parents=True)
    index = folder.parent / "index.db"
    for state in states:
        for file in folder.rglob("*.*"):
            file.unlink()
        for name, text in {**state, "always.md": "Always tea."}.items():
            (folder / name).write_text(text)
        with (
            closing(open_corpus([folder], index=index, embeddings="none")) as changed,
            closing(open_corpus([folder], index=":memory:", embeddings="none")) as fresh,
        ):
            assert entries(changed) == entries(fresh)
            assert scores(changed) == pytest.approx(scores(fresh))
            assert changed.notes == fresh.notes


def scores(corpus: CorpusRetriever) -> list[float]:
    return sorted(document.metadata["score"] for document in corpus.invoke("green tea", k=9))


READER = """
import os, sys, time
from pathlib import Path
from langchain_core.embeddings import DeterministicFakeEmbedding
from stepcraft.sources import open_corpus

began = Path(sys.argv[3])

class Counting(DeterministicFakeEmbedding):
    def embed_documents(self, texts):
        print("embedded", len(texts), flush=True)
        while len([*began.iterdir()]) < 2:
            time.sleep(0.01)
        return super().embed_documents(texts)

(began / str(os.getpid())).touch()
corpus = open_corpus([sys.argv[1]], embeddings=Counting(size=4), index=sys.argv[2])
print("passages", corpus.index.count())
"""


def test_processes_that_open_a_new_corpus_embed_it_once(folder: Path, tmp_path: Path):
    (tmp_path / "began").mkdir()
    paths = map(str, (folder, tmp_path / "index.db", tmp_path / "began"))
    command = [sys.executable, "-c", READER, *paths]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate()[0] for process in processes]
    assert sorted(output.count("embedded") for output in outputs) == [0, 1]
    assert len({output.splitlines()[-1] for output in outputs}) == 1


def test_fields_of_records_are_named_in_the_address(tmp_path: Path):
    (tmp_path / "faq.csv").write_text("Id,Frage,Answer\n7,How long?,Two minutes.\n")
    found = open_source(f"corpus:{tmp_path}/faq.csv?title=frage&text=answer", embeddings="none")
    [document] = found.invoke("minutes")
    assert (document.metadata["title"], document.page_content) == ("How long?", "Two minutes.")
    [document] = open_source(f"corpus:{tmp_path}", embeddings="none").invoke("minutes")
    assert document.page_content == "Id: 7\nFrage: How long?\nAnswer: Two minutes."
    for title, wanted in (("frage", "How long?"), ("ID", "7")):
        options = {"title": title, "index": tmp_path / "i.db", "embeddings": "none"}
        with closing(open_corpus([tmp_path / "faq.csv"], **options)) as corpus:
            assert corpus.invoke("minutes")[0].metadata["title"] == wanted
    odd = tmp_path / "what?title=x.txt"
    odd.write_text("Four minutes.")
    assert open_source(f"corpus:{odd}", embeddings="none").invoke("four")
