"""Embedding models by name."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_openai import AzureOpenAIEmbeddings, OpenAIEmbeddings

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
def test_the_vectors_are_those_of_wordllama_itself():
    wordllama = import_module("wordllama")
    own = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = [
        "tea",
        "",
        "\u200b",
        "👾",
        "煮一壶茶",
        "Boil the water, and wait. " * 50,
        "tea " * 5000,
    ]
    embedder = resolve_embeddings("wordllama")
    assert np.allclose(embedder.embed_documents(texts), own.embed(texts), atol=1e-6)
    assert np.allclose(embedder.embed_query("tea"), own.embed("tea")[0], atol=1e-6)


def test_the_default_needs_no_key(monkeypatch):
    assert default_embeddings() == ("wordllama" if find_spec("wordllama") else "none")
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    assert resolve_embeddings() is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nonsense", "embeddings 'nonsense' cannot be used; name 'wordllama', 'none' or provider:"),
        ("nobody:model", "'nobody:model' cannot be used; name"),
        ("", "'' cannot be used; name"),
        ("openai:text-embedding-3-small", "set the `OPENAI_API_KEY`"),
        pytest.param(
            "cohere:embed-english-v3.0",
            "pip install langchain-cohere",
            marks=pytest.mark.skipif(bool(find_spec("langchain_cohere")), reason="it is installed"),
        ),
        (5, "not int"),
    ],
)
def test_what_cannot_be_resolved_is_named(name, reason):
    with pytest.raises(BadInput, match=reason):
        resolve_embeddings(name)


def test_names_and_objects_of_the_same_model_go_by_one_name(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    name = "openai:text-embedding-3-small"
    assert resolve_embeddings(name).name == name
    assert resolve_embeddings(OpenAIEmbeddings(model="text-embedding-3-small")).name == name


def test_objects_of_one_class_are_named_by_what_they_ask():
    class Deployed(DeterministicFakeEmbedding):
        model_id: str

    names = [resolve_embeddings(Deployed(size=4, model_id=name)).name for name in "ab"]
    assert names == ["tests:a", "tests:b"]


def test_deployments_of_unnamed_models_are_told_apart():
    options = {"azure_endpoint": "https://example.openai.azure.com", "api_key": "none"}
    models = [AzureOpenAIEmbeddings(azure_deployment=name, **options) for name in "ab"]
    assert [resolve_embeddings(model).name for model in models] == ["openai:a", "openai:b"]


def test_an_object_is_taken_and_named():
    embedder = resolve_embeddings(DeterministicFakeEmbedding(size=5))
    assert embedder.name == "DeterministicFakeEmbedding"
    assert embedder.embed_documents(["a", "b"]).shape == (2, 5)
    assert embedder.embed_query("a").dtype == np.float32


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


RESOLVE = "import logging, sys; from stepcraft.models.embeddings import resolve_embeddings as r; "
IMPORTED = "[m for m in ('langchain', 'langchain_core', 'wordllama') if m in sys.modules]"


@pytest.mark.parametrize(
    ("code", "output"),
    [
        pytest.param(f"r('none'); print({IMPORTED})", "[]\n", id="none imports nothing"),
        pytest.param(
            "r('wordllama').embed_query('tea'); print(logging.root.handlers, logging.root.level)",
            "[] 30\n",
            id="wordllama leaves the logging of its user alone",
            marks=needs_wordllama,
        ),
    ],
)
def test_what_resolving_changes(code, output):
    command = [sys.executable, "-c", RESOLVE + code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == output
