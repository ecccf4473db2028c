"""What a run may name: the names in a run's context that reach beyond the process, checked against a deployment's rules.

Whoever builds a graph, starts the command line or sets the environment is trusted. Whoever starts a run may be anyone,
so what a run's context names is looked up here before anything is imported, opened, created or connected to.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from stepcraft.errors import BadInput
from stepcraft.files import named_path
from stepcraft.secrets import excerpt

VARIABLE = "STEPCRAFT_ALLOW"
"""The environment variable with the rules of a deployment: entries with semicolons or line breaks between them."""

USER = "{user}"
"""What stands for the authenticated caller in an entry."""

ENTRIES = (
    "corpus:PATH, memory:PATH, store:NAMESPACE, store+postgresql://HOST:PORT/DATABASE/NAMESPACE, "
    "weaviate://HOST:PORT/COLLECTION (weaviate+embedded, weaviate+cloud), "
    "web:ENGINE, model:NAME, embeddings:NAME, reranker:NAME (each may hold * and **), NAME=SPEC, remember, !web, !instructions or *"
)
"""The kinds of entries, for messages."""

_PATHS = frozenset({"corpus", "memory"})
_KINDS = _PATHS | {
    "store", "store+postgresql", "web", "weaviate", "weaviate+embedded", "weaviate+cloud", "model", "embeddings", "reranker",
}  # fmt: skip
_REMEMBER = "remember"
_WORDS = frozenset({_REMEMBER, "!web", "!instructions"})
"""The entries that stand for themselves."""
_DEFAULTS = {
    "memory": frozenset({""}),
    "web": frozenset({"", "ddgs"}),
    "embeddings": frozenset({"wordllama", "none"}),
    "reranker": frozenset({"hybrid", "words", "vectors", "wordllama"}),
    "model": frozenset({"extractive"}),
}
"""What every run may name: the bundled procedures, the public web, models that come with the package."""
_SEARCHED = {
    "memory": {"memory", "store", "store+postgresql", "weaviate", "weaviate+embedded", "weaviate+cloud"},
    "source": _KINDS - {"model", "embeddings", "reranker"},
}
"""The kinds of what a run searches, by its role."""
_SHOWN_DEFAULTS = {
    "memory": "the bundled procedures",
    "source": "memory, web",
    "embeddings": "wordllama, none",
    "reranker": "hybrid, words, vectors",
    "model": "extractive",
}
_NAME = re.compile(r"[A-Za-z][\w.-]{0,99}")


class Reference(NamedTuple):
    """What a name refers to outside the process, in the one form in which it is compared with a deployment's rules."""

    kind: str
    """One of the kinds of entries, or "import"."""
    value: str
    """An absolute path without symbolic links, a namespace, an engine, a URL, or the name of a model."""


@dataclass(frozen=True)
class Policy:
    """The rules of a deployment: what the contexts of its runs may name.

    Every run may name the bundled procedures, the web through the safe fetcher, what the graph was built with, what
    the environment names, and any chat model. The entries allow more:

    - `corpus:/srv/docs`, `memory:/srv/procedures/*.db`: files, and everything below a folder; `*` stands for a part of
      a name, `**` for any path.
    - `weaviate://db:8080/*`, `weaviate+cloud://cluster/Team`, `weaviate+embedded:///srv/data/*`: collections; options
      such as `?tenant=a` are allowed as they are written.
    - `store:team/*`: namespaces of LangGraph's store, beside the own one of an authenticated user.
    - `store+postgresql://db:5432/team/*`: namespaces of a store in a database; a user or `sslmode` as it is written.
    - `web:tavily`, `web:searxng+https://search.example`: further search engines.
    - `model:openai:gpt-5*`: with any such entry, no other chat models.
    - `embeddings:openai:*`, `reranker:cross-encoder:BAAI/*`: further embedding models and rerankers.
    - `docs=corpus:/srv/docs`, `mine=package.module:attribute`: a name under which runs use what stands after it.
    - `mine=weaviate://db:8080/Notes?tenant={user}`: `{user}` stands for the authenticated caller, in any entry.
    - `remember` lets runs of AAG write what a person approved into the memory that they search (`remember=True`).
    - `!web` and `!instructions` refuse the web, and instructions that differ from the default.
    - `*` allows every path, host and engine, and `remember`, for a server that only its owner reaches.

    `package.module:attribute` and `binary=` are refused whatever is allowed, unless they are registered under a name.
    """

    entries: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """What the registered names stand for."""
    patterns: Mapping[str, tuple["_Glob", ...]] = field(default_factory=dict)
    """The patterns of the entries, by kind."""
    trusting: bool = False
    """Whether contexts come from whoever operates the process, so that nothing is refused."""

    @staticmethod
    def of(allow: "Policy | str | Iterable[str] | None") -> "Policy":
        """The policy of these entries; None for those in STEPCRAFT_ALLOW.

        Raises:
            BadInput: an entry is not understood.
        """
        if isinstance(allow, Policy):
            return allow
        if allow is None:
            return _parsed(tuple(re.split(r"[;\n]", os.environ.get(VARIABLE, ""))), VARIABLE)
        return _parsed((allow,) if isinstance(allow, str) else tuple(allow), "allow")

    def check(self, what: str, named: str, references: Iterable[Reference]) -> None:
        """Refuse a name of a run unless everything that it refers to is allowed.

        Args:
            what: what is named, for the message: "source", "memory", "model", …
            named: the name as the run gives it.
            references: what it refers to.

        Raises:
            BadInput: something is not allowed.
        """
        if self.trusting:
            return
        found = list(references)
        if all(map(self._allows, found)):
            return
        names, kinds = (self.names, _SEARCHED[what]) if what in _SEARCHED else ({}, {what})
        listed = [entry for entry in self.entries if _kind_of(entry) in kinds]
        default = "memory" if what == "source" and self.refuses("web") else _SHOWN_DEFAULTS[what]
        allowed = ", ".join([*names, *listed, default])
        raise BadInput(
            f"a run may not name the {what} {excerpt(named)} here; allowed are {allowed} "
            f"({VARIABLE} or allow= of the graph can allow more)"
        )

    def for_caller(self, identity: str, entries: Iterable[str] = ()) -> "Policy":
        """The rules that hold for one caller.

        Args:
            identity: who the caller is, which `{user}` stands for; "" for nobody, for whom such entries do not hold.
            entries: further entries, those of the caller's groups.

        Raises:
            BadInput: an entry is not understood.
        """
        own = tuple(entries)
        if self.trusting or not (own or any(USER in entry for entry in self.entries)):
            return self
        name = user_part(identity) if identity else ""
        listed = [entry.replace(USER, name) for entry in (*self.entries, *own) if name or USER not in entry]
        return _parsed(tuple(listed), VARIABLE)

    def trusting_runs(self) -> "Policy":
        """The same names, for runs whose context comes from whoever operates the process, so that nothing is refused."""
        return replace(self, trusting=True)

    def refuses(self, what: str) -> bool:
        """Whether "web" or "instructions" are refused."""
        return f"!{what}" in self.entries and not self.trusting

    def check_remember(self) -> None:
        """Refuse a run that writes into a memory what was approved in it.

        Raises:
            BadInput: it is not allowed.
        """
        if not (self.trusting or _REMEMBER in self.entries or "*" in self.entries):
            raise BadInput(
                f"a run may not write into a memory here, which remember=True asks for "
                f"(the entry {_REMEMBER!r} in {VARIABLE} or allow= of the graph allows it)"
            )

    def _allows(self, reference: Reference) -> bool:
        kind, value = reference
        if kind == "import" or self.refuses(kind):
            return False
        if value in _DEFAULTS.get(kind, ()) or "*" in self.entries:
            return True
        patterns = self.patterns.get(kind)
        if kind == "model" and patterns is None:
            return True
        return any(pattern.matches(value) for pattern in patterns or ())


def user_part(identity: str) -> str:
    """An identity as `{user}` stands for it: letters, digits, - and _, at most 64 of them, different for each identity.

    Everything else is written as `_` and its bytes in hexadecimal, so that an identity cannot end the part of a path, a
    URL or a pattern that it stands in. Weaviate takes names of tenants of this form alone.
    """
    written = "".join(
        sign
        if sign.isascii() and (sign.isalnum() or sign == "-")
        else "".join(f"_{byte:02X}" for byte in sign.encode())
        for sign in identity
    )
    return written if len(written) <= 64 else f"_h{hashlib.sha256(identity.encode()).hexdigest()[:62]}"


TRUSTING = Policy(trusting=True)
"""For names that come from whoever operates the process."""


def real_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path without symbolic links, whether it exists or not.

    Raises:
        BadInput: it is no path.
    """
    try:
        return named_path(path).resolve()
    except (OSError, RuntimeError) as error:
        raise BadInput(f"{excerpt(os.fspath(path))} is no path that can be used: {error}") from error


@lru_cache(maxsize=4096)  # one for each caller
def _parsed(entries: tuple[str, ...], origin: str) -> Policy:
    given = tuple(entry.strip() for entry in entries if entry.strip())
    names: dict[str, str] = {}
    patterns: dict[str, tuple[_Glob, ...]] = {}
    for entry in given:
        if entry == "*" or entry in _WORDS:
            continue
        name, equals, spec = entry.partition("=")
        if equals and _NAME.fullmatch(name.strip()) and spec.strip():
            names[name.strip()] = spec.strip()
            continue
        kind = _kind_of(entry)
        if kind not in _KINDS:
            raise BadInput(
                f"{origin} has the entry {excerpt(entry)}, which is not understood; there are {ENTRIES}"
            )
        patterns[kind] = (*patterns.get(kind, ()), _pattern(kind, entry))
    if taken := names.keys() & {"web", "memory", "corpus"}:
        raise BadInput(
            f"{origin} registers the name {min(taken)!r}, which is a kind of source; choose another"
        )
    return Policy(given, names, patterns)


def _kind_of(entry: str) -> str:
    """The kind of an entry; `memory:weaviate://…` is one for Weaviate."""
    kind, _, rest = entry.partition(":")
    inner = rest.partition(":")[0].lower()
    return inner if kind == "memory" and inner in _KINDS else kind.lower()


def _pattern(kind: str, entry: str) -> "_Glob":
    """The pattern of an entry, in the form of `Reference.value`."""
    rest = entry[entry.lower().index(kind) + len(kind) + 1 :]
    if kind in _PATHS:
        folder = rest.removesuffix("/**")
        return _Glob.of(_resolved(folder), below=folder != rest or "*" not in rest)
    if kind.startswith("weaviate"):
        place, query, options = rest.removeprefix("//").partition("?")
        host, _, path = place.partition("/")
        if kind == "weaviate+embedded":
            path = _resolved(f"/{path}").removeprefix("/")
        elif kind == "weaviate" and not re.search(r":(?:\d+|\*)$", host):
            host += ":443" if "tls=true" in options.split("&") else ":8080"
        folder, slash, collection = path.rpartition("/")
        path = f"{folder}{slash}{collection[:1].upper()}{collection[1:]}"
        return _Glob.of(f"{kind}://{host.lower()}/{path}{query}{'&'.join(sorted(options.split('&')))}")
    if kind == "store+postgresql":
        host, slash, path = rest.removeprefix("//").partition("/")
        port = "" if not host.rpartition("@")[2] or re.search(r":(?:\d+|\*)$", host) else ":5432"
        user, at, name = host.rpartition("@")
        return _Glob.of(f"{kind}://{user}{at}{name.lower()}{port}{slash}{path}")
    return _Glob.of(rest)


def _resolved(path: str) -> str:
    """A pattern of paths whose part before the first wildcard is absolute and without symbolic links."""
    fixed, star, rest = path.partition("*")
    folder, _, name = fixed.rpartition("/") if star else (fixed, "", "")
    start = str(real_path(folder or ("/" if path.startswith("/") else "."))).rstrip("/")
    return f"{start}/{name}{star}{rest}" if star else start


@dataclass(frozen=True)
class _Glob:
    """A pattern with wildcards. A regular expression would take time that is a power of the length of a name."""

    parts: tuple[str, ...]
    below: bool
    """Whether everything below a matching path matches as well."""

    @staticmethod
    def of(pattern: str, *, below: bool = False) -> "_Glob":
        """Parse a pattern."""
        return _Glob(tuple(filter(None, re.split(r"(\*\*/?|\*)", pattern))), below)

    def matches(self, value: str) -> bool:
        """Whether the whole value, or a path above it if `below`, is one that the pattern stands for."""
        ends = {0}
        for part in self.parts:
            if not ends:
                return False
            if part == "**":
                ends = set(range(min(ends), len(value) + 1))
            elif part == "**/":
                ends |= {place for place in range(min(ends) + 1, len(value) + 1) if value[place - 1] == "/"}
            elif part == "*":
                ends = _within_names(value, ends)
            else:
                ends = {end + len(part) for end in ends if value.startswith(part, end)}
        return len(value) in ends or (self.below and any(value.startswith("/", end) for end in ends))


def _within_names(value: str, starts: set[int]) -> set[int]:
    """The places that follow one of the starts with neither "/" nor "?" between them."""
    found: set[int] = set()
    inside = False
    for place, character in enumerate(f"{value}/"):
        inside = inside or place in starts
        if inside:
            found.add(place)
        inside = inside and character not in "/?"
    return found
