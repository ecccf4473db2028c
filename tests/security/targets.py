"""What is fuzzed: everything that reads a text, a URL, a file or settings from outside.

The suite gives each target a few examples, and `python benchmarks/fuzz.py` as many as its minutes allow.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from stepcraft import Procedure
from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import Context
from stepcraft.contexts.baselines import CotContext, DirectContext, FewShotContext, RagContext, ReactContext
from stepcraft.contexts.rat import RatContext
from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import StepcraftError
from stepcraft.memory.files import read_procedures
from stepcraft.memory.open import open_memory
from stepcraft.memory.weaviate.url import parse_url
from stepcraft.nodes.rpg.input_passages import given_passages
from stepcraft.sources.corpus.content import UnreadableFile
from stepcraft.sources.corpus.passages import passages
from stepcraft.sources.open import open_source
from stepcraft.sources.web.fetch import Fetched
from stepcraft.sources.web.pages import readable
from stepcraft.sources.web.urls import AllowedHosts, checked_url, is_public
from tests.security.readers import READERS, UNITS

CONTEXTS: list[type[Context]] = [
    AagContext, RatContext, RpgContext, CotContext, DirectContext, FewShotContext, RagContext, ReactContext,
]  # fmt: skip


class TooSlow(AssertionError):
    """An example took longer than it may."""


@dataclass(frozen=True)
class Target:
    """A function, and the examples that it is given."""

    name: str
    examples: st.SearchStrategy[Any]
    function: Callable[[Any], object]
    raises: tuple[type[Exception], ...] = (StepcraftError,)
    """The exceptions that are documented."""
    seconds: float = 1.0
    """The most that an example may take, of the time of the thread itself."""

    def check(self, example: object) -> None:
        """Give an example to the function.

        Raises:
            TooSlow: it took too long.
            Exception: whatever the function raises that is not documented.
        """
        begun = time.thread_time()
        with suppress(*self.raises):
            self.function(example)
        if (taken := time.thread_time() - begun) > self.seconds:
            raise TooSlow(f"it took {taken:.1f} s")


TEXTS = st.lists(
    st.sampled_from(UNITS) | st.text(max_size=20) | st.characters(codec=None).map(lambda one: 50 * one),
    max_size=30,
).map("".join)
"""Also lone surrogates."""
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from([10**400, "9" * 5_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip

NOWHERE = "nowhere-at-all"
"""A part of every path and module name, so that no file, folder or module of this machine is opened."""
_URL_PARTS = [
    ":", "/", "//", "///", "?", "&", "=", "#", "@", "%", "%00", "%2f", "..", "~", "~root", ",", "[", "]", "[::1", "::1]", "\0", "\ud800", "é",
    "host", "8080", ":99999", ":-1", ":x", "Docs", "grpc=", "tls=true", "ef=", "replicas=", "tenant=", "quantizer=rq", "9" * 5_000, "\u0661",
    ".db", ".jsonl", ".csv", "user:secret@", "127.0.0.1", "xn--a", "a" * 300, " ", "\n",
]  # fmt: skip


def urls(*schemes: str) -> st.SearchStrategy[str]:
    """URLs and what looks like them."""
    parts = st.lists(st.sampled_from(_URL_PARTS) | st.text(max_size=5), max_size=12).map("".join)
    return st.builds(str.__add__, st.sampled_from(schemes) | st.text(max_size=8), parts)


def named_nowhere(url: str) -> str:
    """A URL of nothing that there is on this machine, and of no server."""
    kind, colon, rest = url.partition(":")
    offline = kind.strip().lower().startswith(("weaviate", "import"))
    return f"{NOWHERE}{colon}{rest}" if offline else f"{kind}{colon}{NOWHERE}/{rest}{NOWHERE}"


def _opened(spec: str) -> None:
    open_source(named_nowhere(spec))


def _opened_memory(url: str) -> None:
    open_memory(named_nowhere(url), embeddings="none", create=False)


_PROCEDURE = {"input": "rope", "output": "a knot", "steps": ["Take it.", "Tie it."]}
_JSON = json.dumps(_PROCEDURE)
FILES: dict[str, bytes] = {
    ".jsonl": f"{_JSON}\n{_JSON}\n".encode(),
    ".json": f"[{_JSON}, {_JSON}]".encode(),
    ".csv": b'output,input,steps\nknot,rope,"1. Take it.\n2. Tie it."\n',
    ".md": b"---\ntitle: Knots\n---\n# Knots\n\nA knot.\n\n## Reef #\n\n```sh\n# no\n```\n\nTitle\n=====\n",
    ".rst": b"=====\nKnots\n=====\n\nA knot.\n\nReef\n----\n\nA reef.\n",
    ".html": b"<html><head><title>Knots</title></head><body><h1>Knots</h1><p>A <b>knot</b>.<table><tr><td>1</table>",
    ".ipynb": json.dumps({"metadata": {"kernelspec": {"language": "python"}}, "cells": [{"cell_type": "code", "source": ["a = 1"]}]}).encode(),
    ".txt": "Ein Knoten. \u4e00\u4e2a\u7ed3\u3002".encode(),
    ".py": b'"""Knots."""\n\n\ndef tie(rope):\n    return rope\n',
    ".pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>endobj\n4 0 obj<</Length 20>>stream\nBT (Knots) Tj ET\nendstream\n"
    b"endobj\nxref\n0 1\ntrailer<</Root 1 0 R/Size 5>>\nstartxref\n0\n%%EOF",
}  # fmt: skip
"""A small valid file of each kind."""
_PIECES = [
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80", b"\r", b"\n", b'"', b"'", b",", b"[", b"{", b"]", b"}", b"<", b">", b"&#x110000;", b"---\n",
    b"# ", b"1e999", b"NaN", b"-", b"9" * 5_000, b"[" * 2_000, b"<b>" * 300, b"\\ud800", b"null", b"title: ", b"/Kids[2 0 R]", b"```",
]  # fmt: skip


@st.composite
def files(draw: st.DrawFn, *suffixes: str) -> tuple[str, bytes]:
    """The suffix and content of a file: random bytes, or a valid file in which some parts are replaced."""
    suffix = draw(st.sampled_from(suffixes or tuple(FILES)))
    if draw(st.booleans()):
        return suffix, draw(
            st.lists(st.sampled_from(_PIECES) | st.binary(max_size=20), max_size=10).map(b"".join)
        )
    content = FILES[suffix]
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        stop = draw(st.integers(start, min(len(content), start + 30)))
        content = content[:start] + draw(st.sampled_from(_PIECES) | st.binary(max_size=8)) + content[stop:]
    return suffix, content


def _of_file(read: Callable[[Path], object]) -> Callable[[tuple[str, bytes]], object]:
    def function(file: tuple[str, bytes]) -> object:
        suffix, content = file
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"file{suffix}")
            path.write_bytes(content)
            return read(path)

    return function


def settings_of(context: type[Context]) -> st.SearchStrategy[dict[str, Any]]:
    """Values of the fields of a context, and a field that it does not have."""
    names = [one.name for one in fields(context)]
    return st.dictionaries(st.sampled_from([*names, "no_such_setting"]), VALUES, max_size=4)


PAGES = st.builds(
    Fetched,
    url=st.just("https://a.example/knots"),
    body=files(".html", ".txt").map(lambda file: file[1]),
    type=st.sampled_from(["text/html", "text/plain", "application/xhtml+xml"]),
    charset=st.sampled_from(["", "utf-8", "utf-16", "idna", "utf-7", "gb18030", "\0", "rot13"]),
)

TARGETS = [
    *(Target(name, TEXTS, reader) for name, reader in READERS.items()),
    Target("open_source", urls("corpus:", "memory:", "memory:store:", "web:", "package.module:"), _opened),
    Target("open_memory", urls("", "file://", "store:", "http://"), _opened_memory),
    Target("parse_url", urls("weaviate://", "weaviate+embedded://", "weaviate+cloud://", "weaviate://h/Docs?grpc=", "weaviate://h/Docs?ef="), parse_url),
    Target("checked_url", urls("http://", "https://", "ftp://"), checked_url),
    Target("is_public", urls("", "::", "10."), is_public),
    Target("AllowedHosts", urls("", "wiki.example"), lambda host: AllowedHosts([host])),
    Target("procedures of a file", files(".jsonl", ".json", ".csv"), _of_file(lambda path: list(read_procedures(path)))),
    Target(
        "passages of a file", files(), _of_file(lambda path: list(passages(path, []))), (StepcraftError, UnreadableFile)
    ),
    Target("a web page", PAGES, readable),
    Target("given_passages", st.lists(VALUES | st.fixed_dictionaries({"text": TEXTS, "id": VALUES}), max_size=4) | VALUES, given_passages),
    Target("Procedure", st.fixed_dictionaries({"input": VALUES, "output": VALUES, "steps": VALUES, "metadata": VALUES}), lambda values: Procedure(**values)),
    *(Target(context.__name__, settings_of(context), lambda values, made=context: made(**values)) for context in CONTEXTS),
]  # fmt: skip
