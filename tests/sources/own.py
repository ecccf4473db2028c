"""Retrievers such as users have."""

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import ToolException, tool
from pydantic import Field

TEXTS = [f"Tea of kind {number}." for number in range(10)]


class Fixed(BaseRetriever):
    """Gives the same documents always; takes no number."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content=text) for text in TEXTS]


class WithField(BaseRetriever):
    """As many as its field says."""

    k: int = 2

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(
                page_content=text, id=text, metadata={"url": "https://tea.example", "score": 0.5}
            )
            for text in TEXTS[: self.k]
        ]


class OverStore(BaseRetriever):
    """As a vector store's retriever."""

    search_kwargs: dict[str, int] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content=text) for text in TEXTS[: self.search_kwargs.get("k", 4)]]


class Failing(BaseRetriever):
    """Never works."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        raise ConnectionError("Bearer abcdefghijklm123 refused")


@tool
async def search(query: str, limit: int = 5) -> str:
    """Search for teas."""
    if query == "gone":
        raise ToolException("Bearer abcdefghijklm123 refused")
    return "\n\n".join(f"{text} {'Steep it. ' * 100}" for text in TEXTS)


search.handle_tool_error = True


@tool
def compare(one: str, other: str) -> str:
    """Compare two teas."""
    return one + other


fixed = Fixed()
with_field = WithField()
over_store = OverStore(search_kwargs={"k": 4})
failing = Failing()
number = 3


class rooms:
    """Holds a retriever in an attribute."""

    inner = with_field


def made() -> BaseRetriever:
    """Makes one."""
    return Fixed()


def makes_none() -> str:
    """Makes something else."""
    return "no retriever"


def breaks() -> BaseRetriever:
    """Cannot make one."""
    raise RuntimeError("no key")
