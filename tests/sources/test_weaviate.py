"""Documents of one's own in a real Weaviate."""

import uuid

import pytest
import weaviate
from langchain_core.retrievers import BaseRetriever
from weaviate.classes.config import Configure, DataType, Property
from weaviate.classes.data import DataObject

from stepcraft import Procedure, open_memory, open_source
from stepcraft.errors import BadInput, SourceFailure
from tests.servers.ports import Ports
from stepcraft.models.embeddings import WordLlamaEmbedder

TEXTS = {
    "Green tea": "Steep for two minutes.",
    "Black tea": "Steep for four minutes.",
    "Soup": "Boil the potatoes until they are soft.",
}


def named(base: str, collection: str, **options: str) -> str:
    before, mark, after = base.partition("/?")
    pairs = "".join(f"&{name}={value}" for name, value in options.items())
    return f"{before}/{collection}{'?' if mark else ''}{after}{pairs}"


@pytest.fixture
def client(weaviate_url: str):
    host, _, grpc_port = weaviate_url.removeprefix("weaviate://127.0.0.1:").partition("/?grpc=")
    with weaviate.connect_to_local(
        "127.0.0.1", int(host), int(grpc_port), skip_init_checks=True
    ) as connected:
        yield connected


@pytest.fixture
def collection(client: weaviate.WeaviateClient):
    """A collection with the properties body, name and url, and vectors of wordllama."""
    name = f"Test{uuid.uuid4().hex}"
    made = client.collections.create(
        name,
        properties=[
            Property(name=field, data_type=DataType.TEXT) for field in ("body", "name", "url")
        ],
        vector_config=Configure.Vectors.self_provided(),
    )
    vectors = WordLlamaEmbedder().embed_documents(list(TEXTS.values()))
    made.data.insert_many(
        [
            DataObject(
                {"name": title, "body": text, "url": f"https://tea.example/{number}"}, vector=vector
            )
            for number, ((title, text), vector) in enumerate(
                zip(TEXTS.items(), vectors.tolist(), strict=True)
            )
        ]
    )
    yield name
    client.collections.delete(name)


@pytest.fixture
def documents(weaviate_url: str, collection: str):
    source = open_source(named(weaviate_url, collection))
    yield source
    source.close()


def titles(source: BaseRetriever, query: str, **options) -> list[str]:
    return [document.metadata["title"] for document in source.invoke(query, **options)]


async def test_documents_are_found_by_their_words(documents):
    first, second = documents.invoke("how long does green tea steep")
    assert first.page_content == "Steep for two minutes."
    assert first.metadata == {"title": "Green tea", "source": "https://tea.example/0", "score": 1}
    assert 0 < second.metadata["score"] < 1
    assert uuid.UUID(first.id)
    assert titles(documents, "green tea", k=1) == ["Green tea"]
    assert len(await documents.ainvoke("tea", k=1)) == 1
    assert titles(documents, "?!") == []
    with pytest.raises(BadInput, match="at least 1"):
        documents.invoke("tea", k=0)


def test_vectors_count_where_their_model_is_named(weaviate_url: str, collection: str):
    source = open_source(named(weaviate_url, collection, embeddings="wordllama"))
    assert titles(source, "cook vegetables", k=1) == ["Soup"]
    assert titles(source, "green tea", k=3)[0] == "Green tea"
    source.close()


def test_properties_may_be_named(weaviate_url: str, collection: str):
    source = open_source(named(weaviate_url, collection, text="name", title="url"))
    (first, *_) = source.invoke("soup")
    assert (first.page_content, first.metadata["title"]) == ("Soup", "https://tea.example/2")
    source.close()
    with pytest.raises(
        BadInput, match=r"has no text property 'words'; it has body, name, url: name one"
    ):
        open_source(named(weaviate_url, collection, text="words"))


def test_a_collection_of_procedures_gives_procedures(
    weaviate_url: str, client: weaviate.WeaviateClient
):
    name = f"Test{uuid.uuid4().hex}"
    url = named(weaviate_url, name)
    with open_memory(url, embeddings="none") as memory:
        memory.add([Procedure(output="tea", input="leaves", steps=("Boil.", "Pour."))])
    (found,) = open_source(url).invoke("tea")
    assert found.metadata["title"] == "tea"
    assert "1. Boil." in found.page_content
    client.collections.delete(name)


def test_what_is_not_there_is_one_sentence(weaviate_url: str, client: weaviate.WeaviateClient):
    with pytest.raises(BadInput, match="there is no collection Nothing; check the name"):
        open_source(named(weaviate_url, "Nothing"))
    name = f"Test{uuid.uuid4().hex}"
    client.collections.create(name, properties=[Property(name="size", data_type=DataType.INT)])
    with pytest.raises(BadInput, match="no property that is called text or alike; it has none"):
        open_source(named(weaviate_url, name))
    client.collections.delete(name)
    with Ports(1) as (port,), pytest.raises(SourceFailure, match=f"{port}/Nothing "):
        open_source(f"weaviate://127.0.0.1:{port}/Nothing")
    with pytest.raises(BadInput, match="names no collection"):
        open_source(f"weaviate://127.0.0.1:{port}/")
