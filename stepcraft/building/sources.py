"""The documents of sources: files and folders, web pages, and loaders of LangChain."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urldefrag

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document as LangChainDocument
from langchain_core.retrievers import BaseRetriever

from stepcraft.building.directory import is_build_directory
from stepcraft.building.documents import Document, Listed, Listing, Unreadable
from stepcraft.building.langsmith_project import list_project
from stepcraft.building.traces import list_traces
from stepcraft.errors import BadInput, Failed, SourceFailure, StepcraftError
from stepcraft.secrets import excerpt, without_secrets
from stepcraft.sources.corpus.content import UnreadableFile, content_of, file_title
from stepcraft.sources.corpus.files import Root, files_of, roots_of, shown
from stepcraft.sources.corpus.retriever import CorpusRetriever
from stepcraft.sources.langchain import RetrieverAdapter
from stepcraft.sources.open import corpus_paths, is_dotted, named_object

if TYPE_CHECKING:
    from stepcraft.sources.web.pages import Pages

Source: TypeAlias = str | BaseRetriever | BaseLoader | Iterable[LangChainDocument | Document]
"""What documents are read from: a name, or an object that holds them."""

KINDS = (
    "corpus:PATH or a path (files and folders), https://… (a page), "
    "package.module:attribute (a LangChain loader, or an iterable of its documents), or traces:FILE.jsonl and "
    "langsmith:PROJECT (runs of agents)"
)
"""The kinds of source that can be named, for messages."""

_PROSE = (
    ".adoc", ".htm", ".html", ".ipynb", ".markdown", ".md", ".mdx", ".pdf", ".qmd", ".rmd", ".rst", ".txt", ".xhtml",
)  # fmt: skip
"""Suffixes of files in folders that are read; data and source code teach no tasks, and each file is paid for."""
_WEB = ("https://", "http://")
_FACTS = ("source", "url", "link", "path", "file_path")
"""The metadata of a LangChain document that says where it comes from."""


def list_documents(sources: Sequence[Source]) -> Listing:
    """List the documents of sources, each once; their texts are read later. It may block.

    Args:
        sources: `corpus:docs` or a path, `https://…` or `web:` with URLs after it,
            `package.module:attribute`; or loaders, iterables of documents, and retrievers
            over files. Consecutive documents of a loader with the same source are the parts of one.

    Raises:
        BadInput: A source is not understood, does not exist, holds no document, or cannot list any.
        SourceFailure: A source cannot be opened. One that fails while it is listed is named in the listing.
    """
    listing = Listing()
    if not sources:
        raise BadInput(f"there is nothing to build from; name {KINDS}")
    seen: set[str | Path] = set()
    for source in sources:
        spec = _spec(source)
        listing.specs.append(spec)
        found = 0
        try:
            for listed in _listed(source, spec, listing):
                found += 1
                if (key := listed.path or listed.source) not in seen:
                    seen.add(key)
                    listing.documents.append(listed)
        except SourceFailure as error:
            if not found:
                raise
            listing.failed.append(Failed(spec, f"{error}; {found:,} documents were listed before"))
        if not found:
            why = f": {listing.failed[-1].reason}" if listing.failed else "; name other files"
            raise BadInput(f"{spec} holds no document{why}")
    return listing


def _spec(source: Source) -> str:
    if isinstance(source, str):
        return without_secrets(source.strip())
    return source.spec if isinstance(source, RetrieverAdapter) else type(source).__name__


def _listed(source: Source, spec: str, listing: Listing) -> Iterator[Listed]:
    if isinstance(source, str):
        yield from _of_name(source.strip(), spec, listing)
    elif isinstance(source, CorpusRetriever):
        yield from _of_files(source.roots, spec, listing)
    elif isinstance(source, RetrieverAdapter):
        yield from _listed(source.retriever, spec, listing)
    elif isinstance(source, BaseRetriever):
        raise BadInput(
            f"{spec} is a retriever, which finds passages but lists no documents; name {KINDS}"
        )
    else:
        yield from _of_documents(source, spec)


def _of_name(name: str, spec: str, listing: Listing) -> Iterator[Listed]:
    kind, colon, rest = name.partition(":")
    if not name:
        raise BadInput(f"the name of a source is empty; name {KINDS}")
    if kind in {"traces", "langsmith"} and colon:
        traces = list_traces(name) if kind == "traces" else list_project(name)
        listing.failed += traces.failed
        yield from traces.documents
    elif name.startswith(_WEB) or kind == "web":
        urls = name.removeprefix("web:").split() if name != "web" else []
        if not urls or not all(url.startswith(_WEB) for url in urls):
            raise BadInput(f"{excerpt(name)} names no page; write web:https://… or the URL alone")
        yield from _of_pages(urls, spec)
    elif kind == "corpus" and colon:
        yield from _of_files(roots_of(corpus_paths(rest)), spec, listing)
    elif kind == "memory" and colon:
        raise BadInput(
            f"{excerpt(name)} holds procedures already; copy them with `stepcraft memory copy`"
        )
    elif is_dotted(name) and not Path(name).exists():
        yield from _listed(cast("Source", named_object(name)), spec, listing)
    elif colon and not Path(name).expanduser().exists():
        raise BadInput(f"{excerpt(name)} is no source of documents; name {KINDS}")
    else:
        yield from _of_files(roots_of([name]), spec, listing)


def _of_files(roots: Sequence[Root], spec: str, listing: Listing) -> Iterator[Listed]:
    listing.roots += roots
    problems: dict[str, str] = {}
    named = {str(root.real) for root in roots}
    is_own = cache(is_build_directory)
    for file in files_of(roots, problems):
        path = Path(file.path)
        if file.path in named or (path.name.lower().endswith(_PROSE) and not is_own(path.parent)):
            source = shown(file.path, roots)
            yield Listed(source, partial(_file, path, source), spec, path=path)
    listing.failed += [Failed(shown(path, roots), why) for path, why in problems.items()]


def _file(path: Path, source: str) -> Document:
    try:
        content = content_of(path)
    except UnreadableFile as error:
        raise Unreadable(str(error)) from error
    except StepcraftError:
        raise
    except Exception as error:  # a file that nobody foresaw costs itself alone
        raise Unreadable(f"it cannot be parsed ({type(error).__name__})") from error
    first = next((block for block in content.blocks if block.level), None)
    # Where a file begins with a heading, that is its title rather than the name of the file.
    is_titled = (
        first and content.title == file_title(path) and not content.text[: first.start].strip()
    )
    title = first.text if first and is_titled else content.title
    return Document(
        source,
        title,
        content.text,
        headings=tuple(block for block in content.blocks if block.level),
        note=content.cut,
    )


def _of_pages(urls: Sequence[str], spec: str) -> Iterator[Listed]:
    from stepcraft.sources.web.retriever import open_pages  # noqa: PLC0415 - its packages may be missing

    pages = open_pages(spec)
    for url in dict.fromkeys(urldefrag(url).url for url in urls):
        yield Listed(url, partial(_page, pages, url), spec)


def _page(pages: "Pages", url: str) -> Document:
    page = pages.get(url).result()
    note = "only its beginning was fetched, because it is too long" if page.cut else ""
    return Document(url, page.title, page.text, note=note)


def _of_documents(
    source: BaseLoader | Iterable[LangChainDocument | Document], spec: str
) -> Iterator[Listed]:
    """The documents that a loader or an iterable gives; they are kept until they are built."""
    found: Any = source.lazy_load() if isinstance(source, BaseLoader) else source
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise BadInput(f"{spec} is a {type(found).__name__}; name {KINDS}")
    seen: set[str] = set()
    parts: list[LangChainDocument | Document] = []
    place = ""
    failure: SourceFailure | None = None

    def whole() -> Listed:
        """The document of the parts so far; others with its source may have come before."""
        name = place if place not in seen else f"{place}#{number - len(parts)}"
        seen.add(place)
        return Listed(name, _giving(_joined(name, parts)), spec, at_hand=True)

    number = 0
    try:
        for number, part in enumerate(_checked(cast("Iterable[object]", found), spec), 1):
            following = _place(part, f"{spec}#{number}")
            if parts and (following != place or isinstance(part, Document)):
                yield whole()
                parts = []
            place = following
            parts.append(part)
    except SourceFailure as error:
        failure = error
    number += 1
    if parts:
        yield whole()
    if failure:
        raise failure


def _checked(found: Iterable[object], spec: str) -> Iterator[LangChainDocument | Document]:
    """The documents, as long as the user's code gives any."""
    try:
        for document in found:
            if not isinstance(document, LangChainDocument | Document):
                raise BadInput(  # noqa: TRY301 - as every failure of a source
                    f"{spec} gives a {type(document).__name__}, not a document of LangChain"
                )
            yield document
    except StepcraftError:
        raise
    except Exception as error:
        reason = " ".join(without_secrets(str(error)).split())[:300]
        raise SourceFailure(
            f"the source {spec} failed: {type(error).__name__}: {reason}"
        ) from error


def _place(document: LangChainDocument | Document, otherwise: str) -> str:
    if isinstance(document, Document):
        return document.source
    facts: dict[str, Any] = document.metadata  # pyright: ignore[reportUnknownMemberType] - a plain dict
    return next((str(facts[name]) for name in _FACTS if facts.get(name)), otherwise)


def _joined(place: str, parts: Sequence[LangChainDocument | Document]) -> Document:
    if isinstance(parts[0], Document):
        return replace(parts[0], source=place)
    given = [part for part in parts if isinstance(part, LangChainDocument)]
    facts: dict[str, Any] = given[0].metadata  # pyright: ignore[reportUnknownMemberType] - a plain dict
    return Document(
        place, str(facts.get("title") or ""), "\n\n".join(part.page_content for part in given)
    )


def _giving(document: Document) -> Callable[[], Document]:
    return lambda: document
