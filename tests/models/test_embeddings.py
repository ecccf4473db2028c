"""Embedding models by name."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_openai import OpenAIEmbeddings

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Entry, LocalIndex
from stepcraft.models.embeddings import default_embeddings, resolve_embeddings

needs_wordllama = pytest.mark.skipif(
    not find_spec("wordllama"), reason="wordllama has no wheel here"
)


@needs_wordllama
def test_wordllama_finds_paraphrases_without_shared_words():
    index = LocalIndex(":memory:", resolve_embeddings("wordllama"))
    index.put([Entry("car", "repair an automobile", {}), Entry("soup", "cook a potato soup", {})])
    assert index.search("fix my car", 1, alpha=1)[0].entry.id == "car"
    index.close()


@needs_wordllama
@pytest.mark.parametrize("text", ["", " ", "\u200b", "\ud800", "👾", "x" * 100_000])
def test_wordllama_gives_finite_vectors_whatever_the_text(text):
    embedder = resolve_embeddings("wordllama")
    assert embedder.embed_query(text.encode("utf-8", "replace").decode()).shape == (256,)
    assert np.isfinite(
        embedder.embed_documents([text.encode("utf-8", "replace").decode(), "tea"])
    ).all()


@needs_wordllama
def test_the_vectors_are_those_of_wordllama_itself():
    wordllama = import_module("wordllama")
    own = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = [
        "tea",
        "",
        "煮一壶茶",
        "Boil the water, pour it over the leaves, and wait. " * 50,
        "tea " * 5000,
    ]
    assert np.allclose(
        resolve_embeddings("wordllama").embed_documents(texts), own.embed(texts), atol=1e-6
    )


def test_the_default_needs_no_key(monkeypatch):
    assert default_embeddings() == ("wordllama" if find_spec("wordllama") else "none")
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    assert resolve_embeddings() is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nonsense", "there is no embedding model 'nonsense'"),
        ("nobody:model", "there is no embedding model 'nobody:model'.*name 'wordllama'"),
        ("openai:", "there is no embedding model 'openai:'"),
        ("", "there is no embedding model ''"),
        ("openai:text-embedding-3-small", "set OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_resolved_is_named(name, reason):
    with pytest.raises(BadInput, match=reason):
        resolve_embeddings(name)


@pytest.mark.skipif(
    find_spec("langchain_cohere") is not None, reason="langchain-cohere is installed"
)
def test_a_missing_package_is_named():
    with pytest.raises(BadInput, match="pip install langchain-cohere"):
        resolve_embeddings("cohere:embed-english-v3.0")


def test_a_name_resolves_with_its_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    from_name = resolve_embeddings("openai:text-embedding-3-small")
    assert (
        from_name.name == resolve_embeddings(OpenAIEmbeddings(model="text-embedding-3-small")).name
    )


def test_an_object_is_taken_and_named():
    embedder = resolve_embeddings(DeterministicFakeEmbedding(size=5))
    assert embedder.name == "DeterministicFakeEmbedding"
    assert embedder.embed_documents(["a", "b"]).shape == (2, 5)
    assert embedder.embed_query("a").dtype == np.float32
    with pytest.raises(BadInput, match="not int"):
        resolve_embeddings(5)


@pytest.mark.parametrize("vectors", [[[1.0, 2], [3.0]], [[1.0, 2]], "no vectors", [], [[], []]])
def test_vectors_of_a_wrong_shape_are_refused(vectors):
    class Odd(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            return vectors

    index = LocalIndex(":memory:", resolve_embeddings(Odd(size=2)))
    with pytest.raises(MemoryFailure, match="Odd"):
        index.put([Entry("1", "a", {}), Entry("2", "b", {})])
    assert index.count() == 0
    index.close()


def test_a_key_in_an_error_is_not_repeated():
    class Refused(DeterministicFakeEmbedding):
        def embed_query(self, text):
            raise PermissionError("Incorrect API key provided: sk-proj-abcdefghijklmnop1234")

    with pytest.raises(MemoryFailure, match="Incorrect API key") as raised:
        resolve_embeddings(Refused(size=2)).embed_query("x")
    assert "abcdefgh" not in str(raised.value)


def test_resolving_none_imports_nothing():
    code = "import sys; from stepcraft.models.embeddings import resolve_embeddings as r; r('none'); print([m for m in ('langchain', 'langchain_core', 'wordllama') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


@needs_wordllama
def test_wordllama_leaves_the_logging_of_its_user_alone():
    code = (
        "import logging; from stepcraft.models.embeddings import resolve_embeddings; "
        "resolve_embeddings('wordllama').embed_query('tea'); print(logging.root.handlers, logging.root.level)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] 30\n"
