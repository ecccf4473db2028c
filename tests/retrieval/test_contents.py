"""The digests by which an evaluation notices that what it searches has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcraft.retrieval.contents import source_digest


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, named `docs` from where we are."""
    monkeypatch.chdir(tmp_path)
    docs = Path("docs")
    docs.mkdir()
    (docs / "tea.md").write_text("Tea is hot.")
    return docs


@pytest.mark.parametrize("spec", ["mine.jsonl", "memory:mine.jsonl", "memory"])
def test_a_text_file_of_a_memory_is_seen_to_change(
    docs: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    monkeypatch.setenv("STEPCRAFT_MEMORY", "mine.jsonl")
    digests = set[str]()
    for text in ("Bake.", "Boil."):
        Path("mine.jsonl").write_text(text)
        digests.add(source_digest(spec))
    assert len(digests - {""}) == 2


def test_a_corpus_is_seen_to_change_whatever_its_files_are_called(docs: Path) -> None:
    digests = [source_digest("corpus:docs")]
    (docs / "configuration.json").write_text("{}")
    digests.append(source_digest("corpus:docs"))
    (docs / "tea.md").write_text("Tea is cold.")
    digests.append(source_digest("corpus:docs"))
    (docs / "tea.md").rename(docs / "tee.md")
    digests.append(source_digest("corpus:docs"))
    assert len(set(digests)) == 4


def test_an_evaluation_in_a_corpus_is_no_change_of_it(docs: Path) -> None:
    before = source_digest("corpus:docs")
    (docs / "run").mkdir()
    for name in ("configuration.json", "samples.jsonl"):
        (docs / "run" / name).write_text("{}")
    assert source_digest("corpus:docs") == before
