"""`open_source`: every kind of source by its name."""

import json
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from stepcraft import open_source
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.retrieval.opening import opened_source

OWN = "tests.sources.own"


@pytest.fixture
def folder(tmp_path: Path):
    """A folder with files in it, worked in; the index goes to a cache folder beside it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.md").write_text("# Tea\n\nSteep for two minutes.\n")
    (tmp_path / "a,b.txt").write_text("Milk, then sugar.")
    (tmp_path / "c.txt").write_text("Boil potatoes.")
    with chdir(tmp_path):
        yield tmp_path


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")


def sources(spec: str, query: str, **options) -> list[str]:
    return [document.metadata["source"] for document in open_source(spec).invoke(query, **options)]


def test_a_corpus(folder: Path):
    assert sources("corpus:docs", "steep") == ["docs/tea.md:3"]
    assert sources("corpus:docs, c.txt", "potatoes") == ["c.txt:1"]
    assert sources("corpus:a,b.txt", "sugar") == ["a,b.txt:1"]
    with pytest.raises(BadInput, match="there is no file or folder nowhere"):
        open_source("corpus:docs,nowhere")
    with pytest.raises(BadInput, match="needs a file or folder"):
        open_source("corpus:")


@pytest.mark.parametrize("paths", ["a.csv?text=Answer,c.txt", "a.csv?text=Answer,c.csv?text=Reply"])
def test_fields_are_named_once_after_all_paths(folder: Path, paths: str):
    for name in ("a.csv", "c.csv"):
        (folder / name).write_text('Id,"Answer, if any"\n1,Steep.\n')
    with pytest.raises(BadInput, match="name the fields once, after all paths"):
        open_source(f"corpus:{paths}")
    [found] = open_source("corpus:a.csv?text=Answer%2C if any").invoke("steep")
    assert found.page_content == "Steep."


def test_memories(folder: Path):
    assert len(open_source("memory", k=2).invoke("stream tokens")) == 2
    with pytest.raises(BadInput, match="does not exist"):
        open_source("memory:new.db")
    assert not Path("new.db").exists()


@pytest.mark.parametrize("spec", ["", "nothing", "redis://host", "ftp:x/y", "a b:c"])
def test_an_unknown_kind_lists_the_kinds(spec):
    with pytest.raises(
        BadInput, match=r"no source of evidence; name corpus:PATH .*memory.*package"
    ):
        open_source(spec)


def test_k_below_one_is_refused():
    with pytest.raises(BadInput, match="k must be at least 1, not 0"):
        open_source("memory", k=0)


@pytest.mark.parametrize(
    "name", ["fixed", "with_field", "over_store", "made", "Fixed", "rooms.inner", "search"]
)
async def test_retrievers_of_ones_own_give_as_many_as_are_asked_for(name):
    source = open_source(f"{OWN}:{name}", k=3)
    assert len(source.invoke("tea", k=7)) == 7
    assert len(source.invoke("tea", k=1)) == 1
    assert len(await source.ainvoke("tea", k=7)) == 7
    assert len(source.invoke("tea")) == 3


def test_what_is_missing_in_their_documents_is_filled_in():
    first, second = open_source(f"{OWN}:fixed", k=2).invoke("tea")
    assert first.metadata == {"title": "Tea of kind 0.", "source": "", "score": 1.0}
    assert first.metadata["score"] > second.metadata["score"]
    (known,) = open_source(f"{OWN}:with_field", k=1).invoke("tea")
    assert known.id == "Tea of kind 0."
    assert (known.metadata["source"], known.metadata["score"]) == ("https://tea.example", 0.5)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (f"{OWN}:nothing", "cannot be made: .*has no attribute 'nothing'"),
        (f"{OWN}:number", "is a int; name a retriever"),
        (f"{OWN}:makes_none", "is a str; name a retriever"),
        (f"{OWN}:breaks", r"cannot be made: RuntimeError\('no key'\)"),
        (f"{OWN}:compare", "compare is no source: .* needs one, other"),
        ("nowhere.at_all:x", "No module named 'nowhere'"),
    ],
)
def test_a_wrong_name_is_one_sentence(name, why):
    with pytest.raises(BadInput, match=why) as raised:
        open_source(name)
    assert "\n" not in str(raised.value)


async def test_a_retriever_that_fails_is_a_failure_of_the_source():
    source = open_source(f"{OWN}:failing")
    with pytest.raises(
        SourceFailure, match=r"own:failing failed: ConnectionError\('Bearer \*\*\* refused'\)"
    ):
        source.invoke("tea")
    with pytest.raises(SourceFailure, match="ConnectionError"):
        await source.ainvoke("tea")
    with pytest.raises(SourceFailure, match=r"the tool search failed: .*Bearer \*\*\* refused"):
        open_source(f"{OWN}:search").invoke("gone")


def test_opening_by_name_loads_only_what_is_needed():
    code = (
        "import sys, stepcraft.sources.open, stepcraft.sources\n"
        "print([name for name in ('numpy', 'langchain_core', 'weaviate', 'httpx', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("spec", ["corpus:docs", "corpus:.", "corpus:docs,more.md"])
def test_a_relative_path_is_read_in_the_current_folder(folder: Path, spec: str):
    for project in ("old", "new", "old"):
        (folder / project / "docs").mkdir(parents=True, exist_ok=True)
        for name in ("docs/a.md", "more.md"):
            (folder / project / name).write_text(f"# Port\n\nThe {project} port.\n")
        with chdir(folder / project):
            source = opened_source(spec)
            first, *_ = source.invoke("port")
            assert first.page_content == f"The {project} port."
            assert first.metadata["source"] in {"docs/a.md:3", "more.md:3"}
            assert opened_source(spec) is source


def test_a_link_that_leads_elsewhere_is_followed_again(folder: Path):
    for version in ("1", "2"):
        (folder / version).mkdir()
        (folder / version / "a.md").write_text(f"Version {version}.")
        (folder / "current").unlink(missing_ok=True)
        (folder / "current").symlink_to(version)
        [found] = opened_source("corpus:current").invoke("version")
        assert (found.page_content, found.metadata["source"]) == (
            f"Version {version}.",
            "current/a.md:1",
        )


@pytest.mark.parametrize("spec", ["memory:mine.jsonl", " memory:mine.jsonl", "memory"])
def test_a_memory_as_a_source_is_read_again_once_its_file_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spec: str
):
    for goal in ("bake bread", "bake rye bread"):
        file = folder / ("mine.jsonl" if ":" in spec else f"{goal}.jsonl")
        file.write_text(json.dumps({"output": goal, "input": "flour", "steps": ["Bake."]}))
        monkeypatch.setenv("STEPCRAFT_MEMORY", str(file))
        [found] = opened_source(spec).invoke("bread", k=5)
        assert found.metadata["title"] == goal


def test_a_source_without_files_stays_open_in_another_folder(folder: Path):
    source = opened_source(f"{OWN}:made")
    with chdir(folder / "docs"):
        assert opened_source(f"{OWN}:made") is source
