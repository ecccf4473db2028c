"""The documents of sources: files, web pages, loaders of LangChain, and what agents did."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urldefrag

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document as LangChainDocument

from stepcraft.building.documents import Document, Listed, Listing, Unreadable
from stepcraft.building.langsmith import list_runs
from stepcraft.building.threads import list_threads
from stepcraft.errors import BadInput, Failed, SourceFailure, StepcraftError
from stepcraft.secrets import excerpt, without_secrets
from stepcraft.sources.corpus.content import UnreadableFile, content_of, file_title
from stepcraft.sources.corpus.files import files_of, roots_of, shown
from stepcraft.sources.open import corpus_paths, is_dotted, named_object

if TYPE_CHECKING:
    from stepcraft.sources.web.pages import Pages

Source: TypeAlias = str | BaseLoader | Iterable[LangChainDocument]
"""What documents are read from: a name, or an object that holds them."""

KINDS = (
    "corpus:PATH or a path (files and folders), https://… (a page), package.module:attribute (a "
    "LangChain loader, or an iterable of its documents), or threads:FILE.jsonl and "
    "langsmith:PROJECT (what agents did)"
)
"""The kinds of source that can be named, for messages."""

_PROSE = (
    ".adoc", ".htm", ".html", ".ipynb", ".markdown", ".md", ".mdx", ".pdf", ".qmd", ".rmd", ".rst",
    ".txt", ".xhtml",
)  # fmt: skip
"""Suffixes of files in folders that are read; data and source code teach no tasks, and each file is
paid for."""
_WEB = ("https://", "http://")


def list_documents(sources: Sequence[Source]) -> Listing:
    """List the documents of sources, each once; their texts are read later. It may block.

    Args:
        sources: `corpus:docs` or a path, `https://…` or `web:` with URLs after it, `threads:FILE`,
            `langsmith:PROJECT`, `package.module:attribute`; or loaders and iterables of documents.
            Documents of a loader with the same source are the parts of one.

    Raises:
        BadInput: A source is not understood, does not exist, holds no document, or cannot list any.
        SourceFailure: A source cannot be opened.
    """
    listing = Listing()
    documents: dict[str, Listed] = {}
    if not sources:
        raise BadInput(f"there is nothing to build from; name {KINDS}")
    for source in sources:
        if isinstance(source, str):
            spec = without_secrets(source.strip())
            listed = list(_of_name(source.strip(), spec, listing))
        else:
            spec = type(source).__name__
            listed = list(_of(source, spec))
        listing.specs.append(spec)
        if not listed:
            why = f": {listing.failed[-1].reason}" if listing.failed else "; name other files"
            raise BadInput(f"{spec} holds no document{why}")
        for each in listed:
            documents.setdefault(each.key, each)
    listing.documents = [*documents.values()]
    return listing


def _of_name(name: str, spec: str, listing: Listing) -> Iterable[Listed]:
    kind, colon, rest = name.partition(":")
    if kind == "threads" and colon:
        return list_threads(rest, spec, listing.failed)
    if kind == "langsmith" and colon:
        return list_runs(rest, spec)
    if name.startswith(_WEB) or kind == "web":
        urls = name.removeprefix("web:").split()
        if not all(url.startswith(_WEB) for url in urls or [""]):
            raise BadInput(f"{excerpt(name)} names no page; write web:https://… or the URL alone")
        return _of_pages(urls, spec)
    if kind == "corpus" and colon:
        return _of_files(corpus_paths(rest), spec, listing)
    if is_dotted(name) and not Path(name).exists():
        return _of(named_object(name), spec)
    if not name or (colon and not Path(name).exists()):
        raise BadInput(f"{excerpt(name)} is no source of documents; name {KINDS}")
    return _of_files([name], spec, listing)


def _of_files(paths: Sequence[str], spec: str, listing: Listing) -> Iterator[Listed]:
    roots = roots_of(paths)
    named = {str(root) for root in roots}
    listing.roots += roots
    problems: dict[str, str] = {}
    for file in files_of(roots, problems):
        is_prose = file.path.lower().endswith(_PROSE) and not file.path.endswith(".build.html")
        if is_prose or file.path in named:
            source = shown(file.path, roots)
            read = partial(_file, Path(file.path), source)
            yield Listed(source, read, spec, stamp=f"{file.changed} {file.size}")
    listing.failed += [Failed(shown(path, roots), why) for path, why in problems.items()]


def _file(path: Path, source: str) -> Document:
    try:
        content = content_of(path)
    except StepcraftError:
        raise
    except Exception as error:  # a file that nobody foresaw costs itself alone
        unforeseen = f"it cannot be parsed ({type(error).__name__})"
        reason = str(error) if isinstance(error, UnreadableFile) else unforeseen
        raise Unreadable(reason) from error
    title = content.title
    first = next((block for block in content.blocks if block.level), None)
    # Where a file begins with a heading, that is its title rather than the name of the file.
    if first and title == file_title(path) and not content.text[: first.start].strip():
        title = first.text
    return Document(source, title, content.text, note=content.cut)


def _of_pages(urls: Sequence[str], spec: str) -> Iterator[Listed]:
    from stepcraft.sources.web.retriever import open_pages  # noqa: PLC0415 - an extra

    pages = open_pages(spec)
    for url in dict.fromkeys(urldefrag(url).url for url in urls):
        yield Listed(url, partial(_page, pages, url), spec)


def _page(pages: "Pages", url: str) -> Document:
    page = pages.get(url).result()
    note = "only its beginning was fetched, because it is too long" if page.cut else ""
    return Document(url, page.title, page.text, note=note)


def _of(source: object, spec: str) -> Iterator[Listed]:
    """Yield the documents that a loader or an iterable gives."""
    documents: dict[str, Document] = {}
    if isinstance(source, BaseLoader):
        source = source.lazy_load()
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise BadInput(f"{spec} is a {type(source).__name__}; name {KINDS}")
    try:
        for number, part in enumerate(cast("Iterable[object]", source), 1):
            if not isinstance(part, LangChainDocument):
                kind = type(part).__name__
                raise BadInput(f"{spec} gives a {kind}, not a document of LangChain")  # noqa: TRY301
            metadata = cast("dict[str, Any]", part.metadata)
            places = [metadata.get(key) for key in ("source", "url", "path", "file_path")]
            name = str(next(filter(None, places), f"{spec}#{number}"))
            before = documents.get(name) or Document(name, str(metadata.get("title") or ""), "")
            text = f"{before.text}\n\n{part.page_content}".strip()
            documents[name] = replace(before, text=text)
    except StepcraftError:
        raise
    except Exception as error:  # the user's code may raise anything
        reason = " ".join(without_secrets(str(error)).split())[:300]
        raise SourceFailure(
            f"the source {spec} failed: {type(error).__name__}: {reason}"
        ) from error
    for document in documents.values():
        yield Listed(document.source, partial(_same, document), spec)


def _same(document: Document) -> Document:
    return document
