"""Mask secrets in traces, logs and error messages.

Answers, steps and records are never rewritten.
"""

import json
import os
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import quote

MASK = "***"

_SECRET_VARIABLE = re.compile(
    r"(?:API_?KEY|SECRET_?KEY|ACCESS_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)(?:_\d+)?$",
    re.IGNORECASE,
)
_GAP = r"(?:\s|\\[nrt])"
"""Whitespace, as is or escaped as in a repr or JSON."""
_LEAST = 8
"""The minimum length of a masked value; shorter ones could be ordinary words."""


def anonymizer() -> Callable[[Any], Any]:
    """Return a masking function for traces: `langsmith.Client(anonymizer=stepcraft.anonymizer())`.

    It applies langsmith's rules, and masks the values of environment variables whose names suggest
    a secret.
    """
    from langsmith.anonymizer import create_secret_anonymizer  # noqa: PLC0415 - slow, needed late

    masked: Callable[[Any], Any] = create_secret_anonymizer(
        extra_rules=[{"pattern": _values(tuple(os.environ.items())), "replace": MASK}]
    )
    return masked


def without_secrets(text: str) -> str:
    """Return a message with its secrets masked, by the rules of `anonymizer`."""
    from langsmith.anonymizer import (  # noqa: PLC0415 - as above
        DEFAULT_SECRET_RULES,
        SECRET_PLACEHOLDER,
    )

    text = _values(tuple(os.environ.items())).sub(MASK, text)
    for rule in DEFAULT_SECRET_RULES:
        text = re.sub(rule["pattern"], rule.get("replace") or MASK, text)
    return text.replace(SECRET_PLACEHOLDER, MASK)


def excerpt(value: object, length: int = 80) -> str:
    """Return the start of a value's `repr`, masked before it is cut."""
    return without_secrets(repr(value))[:length]


def masked_line(text: object, length: int = 300) -> str:
    """Mask a text, then return its start on one line."""
    return " ".join(without_secrets(str(text)).split())[:length]


@lru_cache(maxsize=4)
def _values(environment: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    """Return a pattern for the secrets in an environment, even if they span line breaks.

    They are also found as they appear in a repr, in JSON and in a URL.
    """
    values = {value.strip() for name, value in environment if _SECRET_VARIABLE.search(name)}
    forms = {
        re.sub(_GAP, "", form)
        for value in values
        if len(value) >= _LEAST and not value.isdecimal()
        for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""))
    }
    patterns = (f"{_GAP}*+".join(map(re.escape, form)) for form in sorted(forms, key=len)[::-1])
    return re.compile("|".join(patterns) or r"(?!)")
