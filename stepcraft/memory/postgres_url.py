"""URLs of memories in Postgres."""

from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from stepcraft.errors import BadInput
from stepcraft.secrets import without_secrets

SCHEME = "store+postgresql"

_EXAMPLE = f"{SCHEME}://host:5432/database/name/space"
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


@dataclass(frozen=True)
class PostgresUrl:
    """A database, and a namespace of the store in it."""

    name: str
    """The URL; it holds no password."""
    database: str
    """The URL of the database, as libpq takes it."""
    namespace: str


def parse_postgres_url(url: str) -> PostgresUrl:
    """Parse `store+postgresql://user@host:5432/database/name/space?sslmode=require`.

    Raises:
        BadInput: the URL is malformed, names no database or an unknown option, or holds a password.
    """
    shown = without_secrets(url)
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError as error:
        raise BadInput(f"{shown} is no URL; check its host and port") from error
    if parts.password is not None:
        raise BadInput(
            "a password does not belong into the URL of a memory; set PGPASSWORD to it, or use ~/.pgpass"
        )
    database, _, namespace = unquote(parts.path).removeprefix("/").partition("/")
    if not database or not url[len(SCHEME) :].startswith("://"):
        raise BadInput(f"{shown} names no database; write {_EXAMPLE}")
    query = _query(shown, parts)
    user = f"{quote(unquote(parts.username), safe='')}@" if parts.username else ""
    # Without a host, libpq takes the socket of this machine, or what PGHOST names.
    host = (
        f"{f'[{parts.hostname}]' if ':' in parts.hostname else parts.hostname}:{port}"
        if parts.hostname
        else ""
    )
    place = f"{user}{host}/{quote(database, safe='')}"
    spaces = "/".join(part for part in namespace.split("/") if part)
    return PostgresUrl(url, f"postgresql://{place}{query}", spaces)


def _query(shown: str, parts: SplitResult) -> str:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in options.items():
        if name != "sslmode":
            raise BadInput(
                f"{shown} has no option {name!r}; there is sslmode, and libpq's variables (PGSSLROOTCERT, …)"
            )
        if value not in _SSL_MODES:
            raise BadInput(f"{shown} has sslmode={value}; write one of {', '.join(_SSL_MODES)}")
    return f"?sslmode={options['sslmode']}" if options else ""
