"""What a check of `stepcraft doctor` found."""

from dataclasses import dataclass
from typing import Literal

from stepcraft.secrets import without_secrets

State = Literal["ok", "missing", "wrong"]


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    check: str
    state: State
    """Whether it works, is not set up, or is set up and does not work."""
    found: str
    advice: str = ""
    """What to do about it."""


def described(error: BaseException) -> str:
    """An exception that is not of this package, in one line."""
    text = " ".join(str(error).split())
    return without_secrets(f"{type(error).__name__}: {text}")[:300]
