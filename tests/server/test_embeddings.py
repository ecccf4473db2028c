"""The embeddings of a server's store."""

from __future__ import annotations

import json

import pytest
from langgraph.store.memory import InMemoryStore

from stepcraft.server.embeddings import DIMENSIONS, StoreEmbeddings, embeddings
from tests.servers.langgraph_server import ROOT


@pytest.mark.parametrize(
    "model", [embeddings, StoreEmbeddings(by_words=True)], ids=["default", "by words"]
)
async def test_a_store_finds_what_fits(model: StoreEmbeddings) -> None:
    store = InMemoryStore(index={"dims": DIMENSIONS, "embed": model, "fields": ["text"]})
    for key, text in (
        ("bread", "Bake a loaf of rye bread"),
        ("cat", "Feed the cat"),
        ("empty", "…"),
    ):
        await store.aput(("notes",), key, {"text": text})
    found = await store.asearch(("notes",), query="How is rye bread baked?", limit=1)
    assert found[0].key == "bread"
    assert {len(vector) for vector in model.embed_documents(["one", ""])} == {DIMENSIONS}
    assert model.embed_documents([]) == []


def test_langgraph_json_names_their_length() -> None:
    index = json.loads((ROOT / "langgraph.json").read_text("utf-8"))["store"]["index"]
    assert index["dims"] == DIMENSIONS
