"""What a caller shows at the door: API keys, and tokens of an identity provider."""

import hashlib
import hmac
import json
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stepcraft.access import Access, Caller, Jwt
from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from jwt import PyJWKClient

_PREFIX = "sk_stepcraft_"
"""By it keys are recognised, and masked in messages."""
_LONGEST = 20_000
"""Characters of a token that is looked at."""


def new_key() -> tuple[str, str]:
    """A new API key, and its hash for the file of users.

    The hash is SHA-256 without salt or repetition: those protect passwords, which can be guessed. A key is 256 random
    bits, which cannot, and a slow hash would cost every request its time.
    """
    key = _PREFIX + secrets.token_urlsafe(32)
    return key, _hashed(key)


def authenticated(access: Access, shown: str) -> Caller | None:
    """Who shows this key or token; None if nobody does. It may block, to fetch the keys of an identity provider.

    Raises:
        BadInput: the public keys cannot be read or fetched.
    """
    if not shown or len(shown) > _LONGEST:
        return None
    if access.jwt and shown.count(".") == 2:
        return _of_token(access.jwt, shown)
    offered, found = _hashed(shown), None
    for name, user in access.users.items():
        for key in user.keys:
            # All are compared, each in constant time: how long it takes tells nothing.
            if hmac.compare_digest(offered, key):
                found = Caller(name)
    return found


def _hashed(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _of_token(rules: Jwt, token: str) -> Caller | None:
    import jwt  # noqa: PLC0415 - an extra

    try:
        key = (
            _public_key(rules)
            if rules.jwks_url is None
            else _jwks(rules.jwks_url).get_signing_key_from_jwt(token)
        )
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(rules.algorithms),
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=rules.leeway_s,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWKClientConnectionError, json.JSONDecodeError) as error:
        raise BadInput(f"the public keys at {rules.jwks_url} cannot be fetched: {error}") from error
    except jwt.PyJWTError:
        return None
    identity, groups = claims["sub"], claims.get(rules.groups_claim, [])
    if not isinstance(identity, str) or not 0 < len(identity) <= 200 or not identity.isprintable():
        return None
    listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    return Caller(identity, tuple(name for name in listed if isinstance(name, str)))


def _public_key(rules: Jwt) -> str:
    path = rules.key_file
    try:
        return path.read_text("ascii") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the public key {path} cannot be read: {error}") from error


@lru_cache(maxsize=4)
def _jwks(url: str) -> "PyJWKClient":
    from jwt import PyJWKClient  # noqa: PLC0415 - an extra

    # An unknown key id makes it fetch again at most every 30 s, so that nobody can have it fetch all the time.
    return PyJWKClient(url, timeout=5)
