"""Memories as LangChain retrievers."""

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from stepcraft.errors import BadInput
from stepcraft.memory.open import open_memory
from stepcraft.memory.retriever import ProcedureRetriever


class TestBundled(RetrieversIntegrationTests):
    """The retriever of the bundled procedures in the suite that LangChain has for retrievers."""

    @pytest.fixture(autouse=True)
    def _memory(self):
        with open_memory(embeddings="none") as self.memory:
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return ProcedureRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}

    @property
    def retriever_query_example(self) -> str:
        return "add long-term memory to a chat agent"


def test_documents_hold_the_procedure_and_where_it_came_from():
    with open_memory(embeddings="none") as memory:
        (document,) = memory.as_retriever(1).invoke("create a key-value dataset from a CSV file")
        kept = memory.get(document.metadata["id"])
    assert document.page_content == kept.text()
    assert document.metadata["title"] == kept.output
    assert document.metadata["source"] == kept.source
    assert document.metadata["score"] == 1


def test_a_search_shows_as_a_retriever_run():
    queries: list[str] = []

    class Seen(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, **_):
            queries.append(query)

    with open_memory(embeddings="none") as memory:
        memory.as_retriever(2).invoke("stream tokens", {"callbacks": [Seen()]})
    assert queries == ["stream tokens"]


@pytest.mark.parametrize("options", [{"k": 0}, {"alpha": 2}])
def test_options_out_of_bounds_are_refused(options):
    with (
        open_memory(embeddings="none") as memory,
        pytest.raises(BadInput, match="k must be a whole number"),
    ):
        memory.as_retriever(**options).invoke("stream tokens")


async def test_k_is_given_with_a_call_on_a_loop() -> None:
    with open_memory(embeddings="none") as memory:
        retriever = memory.as_retriever()
        found = await retriever.ainvoke("add memory to a chat agent", k=1)
        assert len(found) == 1
        assert found == retriever.invoke("add memory to a chat agent", k=1)
