"""Documents from sources: files, web pages, LangChain loaders, and agents' records."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urldefrag

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document as LangChainDocument

from stepcraft.building.documents import Document, Listed, Listing, digest_of, listed
from stepcraft.building.langsmith import list_runs
from stepcraft.building.threads import list_threads
from stepcraft.errors import BadInput, Failed, SourceFailure, StepcraftError
from stepcraft.secrets import excerpt, masked_line, without_secrets
from stepcraft.sources.corpus.content import Content, file_title, read_content
from stepcraft.sources.corpus.files import files_of, roots_of, shown_path
from stepcraft.sources.open import corpus_paths, is_dotted, named_object
from stepcraft.text.markdown import replaced

Source: TypeAlias = str | BaseLoader | Iterable[LangChainDocument]
"""A source of documents: a name, or an object that contains them."""

_HEADING = re.compile(r"#{1,6}[ \t]")
_AUTOMATIC = re.compile(r"^([ \t]*)#\.[ \t]+(?=\S)", re.MULTILINE)
"""An item that reStructuredText numbers by itself."""
_PROSE = re.compile(
    r"(?:\.(?:adoc|asciidoc|docx|eml|epub|(?<!\.build\.)x?html?|ipynb|man|markdown|mbox|mdc|mdx?"
    r"|mhtml?|odt|org|pdf|pptx|qmd|rmd|rst|rtf|srt|tex|te?xt|textile|vtt|[1-9])"
    r"|/(?:INSTALL|README))$",
    re.IGNORECASE,
)
"""Matches the names of files to read in folders. The pages that builds write are skipped, and so
are data and source code, because they teach no tasks and each file costs money.
"""


def list_documents(sources: Sequence[Source]) -> Listing:
    """List the documents in sources without duplicates; their texts are read later. Can block.

    Args:
        sources: `corpus:docs` or a path, `https://…`, `threads:FILE`, `langsmith:PROJECT`,
            `package.module:attribute`; or loaders and iterables of documents. Documents from a
            loader that share a source are parts of one document.

    Raises:
        BadInput: A source is not recognised, does not exist, contains no documents, or cannot list
            them.
        SourceFailure: A source cannot be opened.
    """
    listing = Listing([], [], [])
    documents: dict[str, Listed] = {}
    for source in sources or [""]:
        if isinstance(source, str):
            spec, entries = source, [*_of_name(source, listing)]
        else:
            spec = type(source).__name__
            entries = [*_of_loader(source, spec)]
        if not entries:
            why = f": {listing.failed[-1].reason}" if listing.failed else "; name other files"
            raise BadInput(f"{spec} holds no document{why}")
        for each in entries:
            key = each.key
            while not _is_same(documents.setdefault(key, replace(each, key=key)), each):
                is_path = each.root and key == each.key
                key = str(Path(each.root, key)) if is_path else f"{spec}#{key}"
    listing.documents = [*documents.values()]
    return listing


def _is_same(known: Listed, other: Listed) -> bool:
    """Return whether two entries with the same key are for the same file, or have the same text."""
    return (known.root or known.stamp) == (other.root or other.stamp)


def _of_name(name: str, listing: Listing) -> Iterator[Listed]:
    match name.partition(":"):
        case "threads", ":", path:
            yield from list_threads(path, listing.failed)
        case "langsmith", ":", project:
            yield from list_runs(project)
        case "http" | "https", _, _:
            yield _of_page(urldefrag(name).url)
        case "corpus", ":", paths:
            yield from _of_files(corpus_paths(paths)[0], listing)
        case _ if is_dotted(name) and not Path(name).exists():
            yield from _of_loader(named_object(name), name)
        case kind, colon, _ if not kind or (colon and not Path(name).exists()):
            raise BadInput(
                f"{excerpt(name)} is no source of documents; name corpus:PATH or a path (files "
                "and folders), https://… (a page), package.module:attribute (a LangChain loader, "
                "or an iterable of its documents), or threads:FILE.jsonl and langsmith:PROJECT "
                "(what agents did)"
            )
        case _:
            yield from _of_files([name], listing)


def _of_files(paths: Sequence[str], listing: Listing) -> Iterator[Listed]:
    roots = roots_of(paths)
    listing.roots += roots
    files, problems, _, notes = files_of(roots)
    for file in files:
        path = Path(file.path)
        if _PROSE.search(file.path) or path in roots:
            source = shown_path(file.path, roots)
            root = next(each for each in roots if path.is_relative_to(each))
            root = root.parent if root == path else root
            yield Listed(
                source,
                partial(_file, path, source, notes.get(file.path, "")),
                key=path.relative_to(root).as_posix(),
                stamp=f"{file.changed} {file.size}",
                root=str(root),
            )
    listing.unread.update(problems)
    listing.failed += [Failed(shown_path(path, roots), why) for path, why in problems.items()]


def _file(path: Path, source: str, note: str) -> Document:
    try:
        content = read_content(path)
    except StepcraftError:
        raise
    except Exception as error:  # one bad file must not stop the rest
        raise SourceFailure(f"it cannot be parsed ({type(error).__name__})") from error
    title = content.title
    first = next((block for block in content.blocks if block.level), None)
    # If a file begins with a heading, that is its title rather than the name of the file.
    if first and title == file_title(path) and not content.text[: first.start].strip():
        title = first.text
    notes = "; ".join(filter(None, [note, content.cut]))
    return Document(source, title, _as_markdown(content), note=notes)


def _as_markdown(content: Content) -> str:
    """Return a file's text with all headings, and the numbered lists of markup, as in Markdown."""
    parts, end = list[str](), 0
    for block in content.blocks:
        if block.level and not _HEADING.match(content.text, block.start):
            parts += [content.text[end : block.start], f"{'#' * block.level} {block.text}\n"]
            end = block.stop
    text = "".join([*parts, content.text[end:]])
    return replaced(text, _AUTOMATIC, lambda item: f"{item[1]}1. ")


def _of_page(url: str) -> Listed:
    from stepcraft.sources.web.retriever import open_pages  # noqa: PLC0415 - an extra

    pages = open_pages(without_secrets(url))

    def read() -> Document:
        page = pages.get(url).result()
        return Document(url, page.title, page.text, note=page.note)

    return Listed(url, read, key=url)


def _of_loader(source: BaseLoader | Iterable[LangChainDocument], spec: str) -> Iterator[Listed]:
    """Yield the documents from a loader or an iterable."""
    try:
        parts = list(source.lazy_load() if isinstance(source, BaseLoader) else source)
    except Exception as error:  # the user's code may raise anything
        reason = masked_line(f"{type(error).__name__}: {error}")
        raise SourceFailure(f"the source {spec} failed: {reason}") from error
    documents: dict[str, list[LangChainDocument]] = {}
    for part in parts:
        if not isinstance(part, LangChainDocument):
            raise BadInput(f"{spec} gives a {type(part).__name__}, not a document of LangChain")
        places = map(part.metadata.get, ("source", "url", "path", "file_path"))
        name = str(next(filter(None, places), "") or f"{spec}#{digest_of(part.page_content)}")
        documents.setdefault(name, []).append(part)
    for name, pages in documents.items():
        title = str(pages[0].metadata.get("title") or "")
        text = "\n\n".join(page.page_content for page in pages)
        yield listed(Document(name, title, text))
