"""Several sources as one, and what is opened once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from stepcraft.retrieval.shared import is_open, shared_source
from tests.shelf import Shelf


class Plain(BaseRetriever):
    """Knows nothing of k, as most retrievers."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(f"{query} {number}", metadata={"url": "https://x.example"}) for number in range(9)]


class WithK(BaseRetriever):
    """Takes k with a call, and only where nothing is awaited."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any, k: int = 1) -> list[Document]:
        return [Document(f"{query} {number}") for number in range(k)]


def test_k_with_a_call_whatever_the_retriever_takes() -> None:
    for retriever in (Plain(), WithK(), Shelf()):
        source = shared_source([retriever])
        assert len(source.invoke("bread", k=3)) == 3
        assert len(asyncio.run(source.ainvoke("bread", k=3))) == 3


def test_several_take_turns() -> None:
    source = shared_source([Plain(), Shelf()])
    for found in (source.invoke("rye", k=2), asyncio.run(source.ainvoke("rye", k=2))):
        texts = [document.page_content for document in found]
        assert texts == ["rye 0", "Passage 0 on rye.", "rye 1", "Passage 1 on rye."]


def test_a_spec_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Bread\n\nRye bread needs a sourdough.\n")
    spec = f"corpus:{folder}"
    assert not is_open([spec])
    source = shared_source([spec])
    assert is_open([spec, Plain()])
    assert shared_source([spec]) is source
    assert shared_source([spec], begins=True) is source, "a minute has not passed"
    assert [hit.metadata["title"] for hit in source.invoke("sourdough", k=1)] == ["Bread"]
