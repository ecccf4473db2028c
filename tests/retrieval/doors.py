"""Sources that open only when a test lets them."""

import threading
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class Says(BaseRetriever):
    """Finds its own texts, in order, under the ids that it is given."""

    texts: dict[str, str]
    source: str = ""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(text, id=name, metadata={"source": self.source}) for name, text in self.texts.items()
        ]


class Door:
    """A source that is opened when a test says so, after ten seconds at the latest."""

    def __init__(self) -> None:
        self.waiting = threading.Event()
        self.open = threading.Event()
        self.passed: list[bool] = []
        """For each opening, whether the test let it in."""

    def __call__(self) -> BaseRetriever:
        self.waiting.set()
        self.passed.append(self.open.wait(10))
        return Says(texts={"late": "Rye came late."})


first, second = Door(), Door()


def quick() -> BaseRetriever:
    """A source that opens at once."""
    return Says(texts={"quick": "Rye came at once."})
