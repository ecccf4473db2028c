"""Loaders of documents such as users have."""

from collections.abc import Iterator

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document


class Pages(BaseLoader):
    """Gives a document for each page of a file, as loaders of PDF do."""

    def lazy_load(self) -> Iterator[Document]:
        for source, page in (("a.pdf", 1), ("a.pdf", 2), ("b.pdf", 1), ("a.pdf", 3)):
            yield Document(
                f"{source} page {page}", metadata={"source": source, "title": source.upper()}
            )


class Breaking(BaseLoader):
    """Loses its server after the first document."""

    def lazy_load(self) -> Iterator[Document]:
        yield Document("one")
        raise ConnectionError("the server is gone")


pages = Pages()
breaking = Breaking()
documents = [Document("first"), Document("second", metadata={"url": "https://tea.example"})]
none: list[Document] = []
texts = ["no document"]
number = 3


def made() -> Pages:
    """Makes a loader."""
    return Pages()
