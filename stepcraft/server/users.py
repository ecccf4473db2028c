"""A server's users: the file named by STEPCRAFT_ACCESS, with their API keys and tokens."""

import hashlib
import json
import os
import secrets
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, FilePath, ValidationError, model_validator

from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from jwt import PyJWKClient

VARIABLE = "STEPCRAFT_ACCESS"

Text = Annotated[str, Field(min_length=1, max_length=200)]
KeyHash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
# Only signatures by a private key: whoever can check an HS256 token could also create one.
Algorithm = Annotated[str, Field(pattern=r"^([RPE]S(256|384|512)|EdDSA)$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class User(_Table):
    """The `[users.NAME]` table."""

    keys: tuple[KeyHash, ...]
    """Hashes of the API keys, as `stepcraft server key` prints them."""


class Jwt(_Table):
    """The `[jwt]` table: which tokens from an identity provider are accepted."""

    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)]
    issuer: Text
    audience: Text
    key_file: FilePath | None = None
    """The file that contains the issuer's public key, in PEM format."""
    jwks_url: Annotated[str, Field(pattern="^https://")] | None = None
    """The URL at which the issuer publishes its public keys."""
    leeway_s: Annotated[int, Field(ge=0, le=300)] = 30
    """The maximum difference, in seconds, between the clocks of the issuer and the server."""

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if (self.key_file is None) == (self.jwks_url is None):
            raise ValueError("name either key_file or jwks_url")
        return self


class Users(_Table):
    """The contents of the file that lists the users."""

    users: dict[Text, User] = {}
    jwt: Jwt | None = None

    @model_validator(mode="after")
    def _check_users(self) -> Self:
        keys = [key for user in self.users.values() for key in user.keys]
        if not keys and not self.jwt:
            raise ValueError(
                "nobody can come in: add a key (`stepcraft server key NAME`) or a table [jwt]"
            )
        if len(keys) > len(set(keys)):
            raise ValueError("a key stands there twice")
        return self

    def identify(self, credential: str) -> str | None:
        """Return the owner of a key or token, or None. May block to fetch public keys.

        Raises:
            BadInput: The public keys cannot be read or fetched.
        """
        if self.jwt and credential.count(".") == 2:
            return _subject(self.jwt, credential)
        digest = _digest(credential)
        return next((name for name, user in self.users.items() if digest in user.keys), None)


def new_key() -> tuple[str, str]:
    """Return a new API key and its hash for the file."""
    key = "sk-" + secrets.token_hex(32)  # langsmith's anonymizer recognises and masks this form
    return key, _digest(key)


def read_users() -> Users:
    """Return the users in the file named by STEPCRAFT_ACCESS.

    Raises:
        BadInput: The variable is not set, or the file cannot be used.
    """
    if not (name := os.environ.get(VARIABLE, "").strip()):
        raise BadInput(
            f"{VARIABLE} is not set: name the file of users there, or serve langgraph.json, which "
            "lets everybody in"
        )
    try:
        return _parsed(Path(name).read_text("utf-8"))
    except ValidationError as error:
        # Without the value, which may be a key in plain text.
        problem = error.errors(include_input=False)[0]
        place = ".".join(map(str, problem["loc"])) or "the file"
        reason = f"{place}: {problem['msg'].removeprefix('Value error, ')}"
    except (OSError, ValueError) as error:
        reason = str(error)
    raise BadInput(f"{name} ({VARIABLE}) cannot be used: {reason}")


@lru_cache(maxsize=1)
def _parsed(text: str) -> Users:
    return Users.model_validate(tomllib.loads(text))


def _digest(key: str) -> str:
    # Salt and repetition protect passwords, which can be guessed; a key is 256 random bits.
    return f"sha256:{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _subject(rules: Jwt, token: str) -> str | None:
    import jwt  # noqa: PLC0415 - an extra

    try:
        if rules.key_file:
            key: Any = rules.key_file.read_text("ascii")
        else:
            key = _jwks(str(rules.jwks_url)).get_signing_key_from_jwt(token)
        claims = jwt.decode(
            token,
            key,
            algorithms=list(rules.algorithms),
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=rules.leeway_s,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWKClientConnectionError, json.JSONDecodeError) as error:
        raise BadInput(f"the keys at {rules.jwks_url} cannot be fetched: {error}") from error
    except (OSError, UnicodeDecodeError, jwt.InvalidKeyError) as error:
        raise BadInput(f"the key {rules.key_file} cannot be read: {error}") from error
    except jwt.PyJWTError:
        return None
    subject: str = claims["sub"]
    return subject if 0 < len(subject) <= 200 and subject.isprintable() else None


@lru_cache(maxsize=1)
def _jwks(url: str) -> "PyJWKClient":
    from jwt import PyJWKClient  # noqa: PLC0415 - an extra

    # For unknown key ids, it fetches the keys again at most every 30 s.
    return PyJWKClient(url, timeout=5)
