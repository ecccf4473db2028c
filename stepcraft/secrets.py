"""Masking of secrets in everything that people read: messages, traces, reports, the terminal."""

import base64
import binascii
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any
from urllib.parse import quote, quote_plus, unquote

_MASK = "***"

_CERTAIN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:lsv2_|gh[pousr]_|github_pat_|(?:sk|pk|rk)_(?:live|test|stepcraft)_|whsec_|xox[a-z]-|xapp-|glpat-|tvly-|nvapi-|pplx-"
    r"|shpat_|dop_v1_|ya29\.|AGE-SECRET-KEY-)[\w*-]{6,}+"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}+"
    r"|AIza[\w-]{16,}+"
    r"|eyJ[\w-]{8,}+(?:\.[\w-]++){0,4}"
    r")"
)
"""Keys whose beginning alone tells what they are; a JWT is a base64 text that begins with `{"`."""
_LIKELY = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|key|xai|pypi)-([\w*-]{6,}+)|(?:hf|gsk|npm|r8|pcsk|jina)_([A-Za-z0-9*]{8,}+)(?![_-]))"
)
"""Keys whose beginning could be that of a word; `_is_random` tells them from class names and the like."""
_STRETCH = re.compile(r"[A-Za-z0-9]{12}")

_AUTHORIZATION = re.compile(
    r"authorization(?:[\"']|%2[27])?(?:[\s:=,(+]|%3[AD]|%20){1,4}+b?(?:[\"']|%2[27])?(basic|bearer|token|digest|negotiate|apikey)(?:[\s+]|%20){1,4}+([^\s\"'<>,;]++)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?<![A-Za-z])(bearer|basic)(?:[\s+]|%20){1,4}+([^\s\"'<>,;()]{6,}+)", re.IGNORECASE)
_BEARER_WORDS = frozenset(
    [
        "authentication",
        "authorisation",
        "authorization",
        "certificate",
        "certificates",
        "cheque",
        "cheques",
        "credential",
        "credentials",
        "format",
        "header",
        "headers",
        "instrument",
        "instruments",
        "scheme",
        "schemes",
        "shares",
        "security",
        "securities",
        "string",
        "strings",
        "tokens",
    ]
)
"""What follows "Bearer" in prose."""

_NAMED = re.compile(
    r"(?<![\w.-])([A-Za-z_][\w.-]{0,63}+)([\"']?)\s{0,2}+[:=]\s{0,2}+(?:([\"'])([^\s\"'<>]{8,}+)\3|([\w.~+/=%-]{8,}+)(?![\w(\[{*]))"
)
_IN_QUERY = re.compile(r"(?:[?&#]|&amp;)([\w.%\[\]-]{1,64}+)=([^&#\s\"'`<>]++)")
_IN_ENCODED_QUERY = re.compile(r"%(?:3F|26)([\w.-]{1,64}+)%3D((?:(?!%26|%23)[^&#\s\"'<>])++)", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"token(?!s|i[sz])|secret|passw|passphrase|pwd|credential|signature|api[_.-]?key|access[_.-]?key|private[_.-]?key|jwt",
    re.IGNORECASE,
)
_SECRET_NAME_IN_QUERY = re.compile(r"(?:^|[_.-])(?:key|sig|auth|authorization|pass)$", re.IGNORECASE)
_CAMEL_KEY = re.compile(r"[a-z]Key$")

_ENCODED_URL = re.compile(
    r"%3A%2F%2F([\w.~-]{0,64}+%3A[^\s/?#&\"'<>]{1,200}|(?:(?!%2F)[^\s/?#&\"'<>]){1,200})%40", re.IGNORECASE
)
_SLASHES = re.compile(":/{1,2}|//")
_AUTHORITY = re.compile(r"[^\s/?#:\"'()<>,;\[\]{}|\\`]*+")
_PORT = re.compile(r":\d{0,5}+(?![^/?#])")
_RUN = re.compile(r"[^\s\"<>]*+")
_ADDRESS = re.compile(r"[^\s\"<>'(),;]*+")

_SECRET_VARIABLE = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_LEAST = 4
_ANYWHERE = 8
_NO_SECRETS = frozenset(
    [
        "true",
        "false",
        "null",
        "none",
        "auto",
        "test",
        "tests",
        "testing",
        "dummy",
        "fake",
        "empty",
        "default",
        "enable",
        "enabled",
        "disable",
        "disabled",
        "optional",
        "required",
        "always",
        "never",
    ]
)
"""Values of variables that are settings or stand-ins; masking them would blot ordinary sentences out."""


def without_secrets(text: str, also: Collection[str] = ()) -> str:
    """Mask the secrets in a text as `***`; a text that was masked is left as it is.

    Args:
        text: The text.
        also: Further secrets, masked as the values of environment variables are.

    What counts as a secret:

    - the user information of a URL of any scheme, also where the password holds an unescaped `@` or `/`;
    - a query parameter that is named as a secret (`key`, `api_key`, `token`, `password`, `sig`, …), and outside of a
      URL a value with letters and digits after such a name (`api_key="…"`, but no `key`, which is ordinary code);
    - what follows `Authorization: Basic` and `Bearer`;
    - keys and tokens of known providers, by how they begin (`sk-`, `ghp_`, `AKIA`, …), and JSON web tokens;
    - the values of environment variables whose name contains KEY, TOKEN, SECRET or PASSWORD in either case. A value
      of 8 characters or more is masked anywhere, one of 4 to 7 as a whole word, a shorter one not at all. Ordinary
      settings ("true", "auto", "test", …) are left alone, and so is a number in a variable about TOKENS, a limit.
    """
    if not also:
        return _without(text, _environment())
    forms = {
        (value, len(value) < _ANYWHERE)
        for value in also
        if len(value) >= _LEAST and value.lower() not in _NO_SECRETS
    }
    return _without_in(text, _environment() | forms)


def redacted(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Return a value of JSON with all its texts masked, the names in mappings included."""
    if value is None or isinstance(value, bool | int | float):
        return value  # most settings are no text, and need no look at the environment
    return _redacted(value, _environment())


def names_secret(name: str) -> bool:
    """Tell whether the name of an argument says that its value is a secret, whatever that looks like."""
    return bool(_SECRET_NAME.search(name)) or name.lower() in {"auth", "authorization", "pass"}


def _redacted(value: Any, environment: "_Forms") -> Any:  # noqa: ANN401 - JSON in, JSON out
    if isinstance(value, str):
        return _without(value, environment)
    if isinstance(value, Mapping):
        return {_redacted(name, environment): _redacted(item, environment) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, environment) for item in value]
    return value


def _without(text: str, environment: "_Forms") -> str:
    # Names, versions and labels come again and again.
    return _without_in_short(text, environment) if len(text) < _SHORT else _without_in(text, environment)


def _without_in(text: str, environment: "_Forms") -> str:
    # Masking one secret may uncover the beginning of another; each pass leaves less, and the second rarely finds any.
    while (masked := _masked(text, environment)) != text:
        text = masked
    return text


_without_in_short = lru_cache(maxsize=1024)(_without_in)
_SHORT = 48


def excerpt(value: object, length: int = 80) -> str:
    """Return the beginning of a value as Python writes it, masked before it is cut, so that no half secret stays."""
    return without_secrets(repr(value))[:length]


_Forms = frozenset[tuple[str, bool]]
"""The values of secret variables as they may appear in a message, and whether only whole words count."""


def _masked(text: str, environment: _Forms) -> str:
    found = chain(
        _in_environment(text, environment), _in_urls(text), _keys(text), _named(text), _credentials(text)
    )
    parts: list[str] = []
    end = -1
    for start, stop in sorted(found):
        if start > end:
            parts += [text[max(end, 0) : start], _MASK]
        end = max(end, stop)
    return "".join([*parts, text[max(end, 0) :]])


def _in_environment(text: str, environment: _Forms) -> Iterator[tuple[int, int]]:
    for secret, whole_word in environment:
        start = text.find(secret)
        while start >= 0:
            stop = start + len(secret)
            if not whole_word or not (_is_word(text[start - 1 : start]) or _is_word(text[stop : stop + 1])):
                yield start, stop
            start = text.find(secret, stop)


def _environment() -> _Forms:
    # Every message and label is masked: what the values look like in one is kept until a variable changes.
    return _forms(tuple((name, os.environ.get(name, "")) for name in os.environ if _names_secret(name)))


@lru_cache(maxsize=4096)
def _names_secret(variable: str) -> bool:
    return _SECRET_VARIABLE.search(variable) is not None


@lru_cache(maxsize=4)
def _forms(variables: tuple[tuple[str, str], ...]) -> _Forms:
    values: set[tuple[str, bool]] = set()
    for name, value in variables:
        secret = value.strip()
        limit = secret.isdecimal() and "TOKENS" in name.upper()
        ordinary = (
            _MASK in secret or not any(map(str.isalnum, secret)) or secret.lower() in _NO_SECRETS or limit
        )
        if len(secret) < _LEAST or ordinary:
            continue
        forms = {secret, " ".join(secret.split()), *_quoted(secret)}
        forms |= {repr(secret)[1:-1], json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        if "\n" in secret:  # a key in several lines may be shown in part
            forms |= {line for line in map(str.strip, secret.splitlines()) if len(line) >= 16}
        values |= {(form, len(secret) < _ANYWHERE) for form in forms}
    return frozenset(values)


def _quoted(secret: str) -> set[str]:
    return {
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    }


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _in_urls(text: str) -> Iterator[tuple[int, int]]:
    end, run_end, last_at, address_end, address_at = 0, -1, -1, -1, -1
    while slashes := _SLASHES.search(text, end):
        # What else begins like this may be a path; only a name with a password is told from a folder there.
        is_url = slashes[0] == "://"
        start = end = slashes.end()
        if start >= run_end:
            run = _RUN.match(text, start)
            run_end = run.end() if run else start
            last_at = text.rfind("@", start, run_end)
        if start >= address_end:
            address = _ADDRESS.match(text, start)
            address_end = address.end() if address else start
            address_at = text.rfind("@", start, address_end)
        if last_at <= start:
            continue
        stop = _user_information(text, start, last_at, address_at, is_url=is_url)
        if stop > start:
            yield start, stop
            end = stop
    for match in _ENCODED_URL.finditer(text):
        yield match.span(1)
    for match in chain(_IN_QUERY.finditer(text), _IN_ENCODED_QUERY.finditer(text)):
        name = unquote(match[1])
        if any(kind.search(name) for kind in (_SECRET_NAME, _SECRET_NAME_IN_QUERY, _CAMEL_KEY)):
            yield match.start(2), match.start(2) + len(match[2].rstrip(".,:;!?)]}"))


def _user_information(text: str, start: int, last_at: int, address_at: int, *, is_url: bool) -> int:
    """Where the user information ends that begins at `start`; `start` if there is none.

    Args:
        text: The text.
        start: Where the user information would begin.
        last_at: The last `@` before a blank or a quote.
        address_at: The last `@` of what could be one address.
        is_url: Whether a scheme stands before it.

    A password may hold a slash, a user name may not: after `name:`, all up to the last `@` counts, unless the name is
    that of a host and a port follows.
    """
    authority = _AUTHORITY.match(text, start)
    stop = authority.end() if authority else start
    name = text[start:stop]
    if text[stop : stop + 1] == ":":
        if not _PORT.match(text, stop):
            return last_at
        if "@" not in name and "." not in name and name != "localhost":
            return max(start, address_at)
    elif not is_url:
        return start
    return start + max(0, name.rfind("@"))


def _keys(text: str) -> Iterator[tuple[int, int]]:
    for match in _CERTAIN.finditer(text):
        yield match.span()
    for match in _LIKELY.finditer(text):
        if _is_random(match[1] or match[2]):
            yield match.span()


def _is_random(body: str) -> bool:
    """Whether this looks like a key rather than words with hyphens."""
    return not body.islower() or any(map(str.isdecimal, body)) or "*" in body or bool(_STRETCH.search(body))


def _named(text: str) -> Iterator[tuple[int, int]]:
    for match in _NAMED.finditer(text):
        group = 4 if match[4] else 5
        value = match[group]
        mixed = any(map(str.isalpha, value)) and any(map(str.isdecimal, value))
        if mixed and (_SECRET_NAME.search(match[1]) or _CAMEL_KEY.search(match[1])):
            yield match.span(group)


def _credentials(text: str) -> Iterator[tuple[int, int]]:
    for match in _AUTHORIZATION.finditer(text):
        yield match.span(2)
    for match in _SCHEME.finditer(text):
        word = match[2].rstrip(".:!?")
        if match[1].lower() == "basic":
            secret = _is_basic(match[2])
        elif match[1] == "bearer":
            secret = any(map(str.isdecimal, word)) or not (word.islower() or word.istitle())
        else:
            secret = word.lower() not in _BEARER_WORDS
        if secret:
            yield match.span(2)


def _is_basic(word: str) -> bool:
    """Whether this is a name and a password as HTTP encodes them."""
    try:
        return b":" in base64.b64decode(word, validate=True)
    except binascii.Error:
        return False
