"""What a failed model call means: whether to make it again, when, and how to say it."""

import time
from email.utils import parsedate_to_datetime

from stepcraft.errors import without_secrets

PASSING_STATUS = frozenset({408, 409, 429, *range(500, 600)})
FATAL_STATUS = frozenset({401, 403, 404})
LONGEST_WAIT_S = 60.0
"""A provider that asks for a longer wait is not waited for."""

_PASSING_TYPES = frozenset(
    {
        "APIConnectionError",  # openai, anthropic and clients made after them; timeouts are a subclass
        "TransportError",  # httpx: connect, read, protocol, timeout
        "ConnectTimeoutError",
        "ReadTimeoutError",  # botocore
        "APIResponseValidationError",
    }
)
_GARBAGE = (ValueError, TypeError, LookupError)
"""What clients raise over an answer that is no chat completion (a proxy's page, half a JSON)."""


def status(error: BaseException) -> int | None:
    """The HTTP status that a provider's exception carries, if any."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def is_passing(error: BaseException) -> bool:
    """Whether the same call may well succeed later."""
    if (code := status(error)) is not None:
        return code in PASSING_STATUS
    if isinstance(error, UnicodeError):
        return False
    if isinstance(error, (ConnectionError, TimeoutError, *_GARBAGE)):
        return True
    if isinstance(error, RuntimeError) and "Event loop is closed" in str(error):
        return True  # a pooled connection of an earlier asyncio.run; the next call opens its own
    return any(kind.__name__ in _PASSING_TYPES for kind in type(error).__mro__)


def is_fatal(error: BaseException) -> bool:
    """Whether every further call would fail as well: a wrong key, a model that is not there."""
    return status(error) in FATAL_STATUS


def retry_after(error: BaseException) -> float | None:
    """The seconds that the provider asks to wait, if it does."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    value = str(headers.get("retry-after", ""))
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def describe(error: BaseException) -> str:
    """The failure in one line, without secrets."""
    if isinstance(error, TimeoutError) and not str(error):
        return "the model did not answer in time"
    text = " ".join(str(error).split())
    return without_secrets(f"{type(error).__name__}: {text}")[:300]
