"""Limits of users on runs, model calls and tokens, counted in a database that all workers of a deployment share.

STEPCRAFT_LIMITS_DB names it: `sqlite:////path/limits.db` for the workers of one machine, `postgresql://…` for several.
LangGraph's store would be shared as well, but it has no atomic increment. Counts are kept by the minute and by the day of
UTC. A run and a call are counted before they are made, in one statement that counts up to the limit and no further, so
two workers never pass it together. Tokens are known after a call: the calls in flight when the limit is reached still
count.
"""

import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from stepcraft import access
from stepcraft.access import Rules
from stepcraft.concurrency import OncePerKey
from stepcraft.errors import BadInput, LimitsFailure
from stepcraft.secrets import without_secrets

VARIABLE = "STEPCRAFT_LIMITS_DB"
"""The environment variable that names the database of the counts."""

_KINDS = "sqlite:////path/limits.db or postgresql://host/database"
_PATIENCE_S = 5
"""How long a count waits for the database."""
_MINUTE, _DAY = 60, 86_400


_TABLE = (
    "CREATE TABLE IF NOT EXISTS stepcraft_usage (identity TEXT NOT NULL, measure TEXT NOT NULL, "
    "since BIGINT NOT NULL, used BIGINT NOT NULL, PRIMARY KEY (identity, measure, since))"
)


class Counters(ABC):
    """Counts by user, measure and window, in one table that is made when it is not there."""

    mark = "?"
    """The placeholder of a parameter."""
    _today = 0
    """The day of the latest count; on the first of a day, the counts of those before yesterday are deleted."""

    @abstractmethod
    def execute(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction of its own, and return its rows.

        Raises:
            LimitsFailure: the database cannot be used.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    def prepare(self) -> None:
        """Make the table."""
        self.execute(_TABLE, ())

    def add(self, identity: str, measure: str, since: int, amount: int, limit: int | None = None) -> bool:
        """Add to a count, unless that would pass the limit; return whether it was added."""
        if limit is not None and amount > limit:
            return False
        if (today := since // _DAY) > self._today:
            self._today = today
            self.forget((today - 1) * _DAY)
        within_limit = "" if limit is None else f" WHERE stepcraft_usage.used + excluded.used <= {self.mark}"
        marks = ", ".join([self.mark] * 4)
        rows = self.execute(
            f"INSERT INTO stepcraft_usage (identity, measure, since, used) VALUES ({marks}) "  # noqa: S608 - placeholders alone
            "ON CONFLICT (identity, measure, since) DO UPDATE SET used = stepcraft_usage.used + excluded.used"
            f"{within_limit} RETURNING used",
            (identity, measure, since, amount, *([] if limit is None else [limit])),
        )
        return bool(rows)

    def used(self, identity: str, measure: str, since: int) -> int:
        """The count."""
        rows = self.execute(
            f"SELECT used FROM stepcraft_usage WHERE identity = {self.mark} AND measure = {self.mark} "  # noqa: S608 - placeholders alone
            f"AND since = {self.mark}",
            (identity, measure, since),
        )
        return int(rows[0][0]) if rows else 0

    def forget(self, before: int) -> None:
        """Delete the counts of windows that began before this time."""
        self.execute(f"DELETE FROM stepcraft_usage WHERE since < {self.mark}", (before,))  # noqa: S608 - a placeholder alone


class SqliteCounters(Counters):
    """Counts in a file, for the workers of one machine. Not for a network file system, whose locks do not hold."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.Error as error:
            raise LimitsFailure(f"the limits at {path} ({VARIABLE}) cannot be opened: {error}") from error

    def execute(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction of its own, and return its rows."""
        try:
            with self._lock:
                return self._connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise LimitsFailure(f"the limits at {self._path} ({VARIABLE}) cannot be used: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()


class PostgresCounters(Counters):
    """Counts in Postgres, for workers on any number of machines. A few connections are kept open."""

    mark = "%s"

    def __init__(self, url: str) -> None:
        try:
            from psycopg_pool import ConnectionPool  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise BadInput(
                f'{VARIABLE} names Postgres, which needs a package: pip install "stepcraft[postgres]"'
            ) from error
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=4,
            open=False,
            timeout=_PATIENCE_S,
            kwargs={
                "autocommit": True,
                "connect_timeout": _PATIENCE_S,
                "application_name": "stepcraft limits",
            },
            check=ConnectionPool.check_connection,
        )
        self._pool.open()

    def prepare(self) -> None:
        """Make the table. Workers that start together make it one after the other: Postgres fails all but one."""
        lock = "PERFORM pg_advisory_xact_lock(hashtext('stepcraft_usage'))"
        self.execute(f"DO $$BEGIN {lock}; {_TABLE}; END$$", ())

    def execute(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction of its own, and return its rows."""
        import psycopg  # noqa: PLC0415 - an extra

        try:
            with self._pool.connection() as connection:
                cursor = connection.execute(statement.encode(), parameters or None)
                return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            reason = " ".join(without_secrets(str(error)).split())[:200] or type(error).__name__
            raise LimitsFailure(f"the limits in Postgres ({VARIABLE}) cannot be used: {reason}") from error

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def open_counters(url: str) -> Counters:
    """The counters in a database; each is opened once in a process.

    Raises:
        BadInput: the URL is not understood, or a package is missing.
        LimitsFailure: the database cannot be used.
    """
    return _OPENED.get(url, lambda: _open(url))


def _open(url: str) -> Counters:
    parts = urlsplit(url)
    counters: Counters
    if parts.scheme == "sqlite" and not parts.netloc and parts.path.strip("/"):
        counters = SqliteCounters(Path(unquote(parts.path[1:])))
    elif parts.scheme in {"postgresql", "postgres"}:
        counters = PostgresCounters(url)
    else:
        raise BadInput(f"{VARIABLE} is not understood: {without_secrets(url)[:80]!r}; write {_KINDS}")
    counters.prepare()
    return counters


_OPENED: OncePerKey[str, Counters] = OncePerKey()


class Refusal(NamedTuple):
    """Why nothing more is allowed now, and in how many seconds it is again."""

    sentence: str
    seconds: int


@dataclass(frozen=True)
class Allowance:
    """What one user may still use. The methods block, and raise LimitsFailure where the database cannot be used."""

    identity: str
    rules: Rules
    counters: Counters

    def take_run(self) -> Refusal | None:
        """Count a run that begins, unless a limit is reached: then why not."""
        if refusal := self._used_up(
            ("calls", self.rules.calls_per_day), ("tokens", self.rules.tokens_per_day)
        ):
            return refusal
        limit = self.rules.runs_per_minute
        now = time.time()
        if limit is None or self.counters.add(self.identity, "runs", _window(now, _MINUTE), 1, limit):
            return None
        seconds = _seconds_left(now, _MINUTE)
        return Refusal(
            f"{self.identity} has started {limit:,} runs in this minute, which is the limit; the next one can be "
            f"started in {seconds} s",
            seconds,
        )

    def take_call(self) -> Refusal | None:
        """Count a model call that is about to be made, unless a limit is reached: then why not."""
        if refusal := self._used_up(("tokens", self.rules.tokens_per_day)):
            return refusal
        limit, now = self.rules.calls_per_day, time.time()
        if limit is None or self.counters.add(self.identity, "calls", _window(now, _DAY), 1, limit):
            return None
        return self._refusal("calls", limit, now)

    def add_tokens(self, tokens: int) -> None:
        """Count the tokens of a call that was made."""
        if tokens and self.rules.tokens_per_day is not None:
            self.counters.add(self.identity, "tokens", _window(time.time(), _DAY), tokens)

    def calls_left(self) -> int | None:
        """The model calls that are left today; None without a limit."""
        limit = self.rules.calls_per_day
        if limit is None:
            return None
        return max(0, limit - self.counters.used(self.identity, "calls", _window(time.time(), _DAY)))

    def _used_up(self, *limits: tuple[str, int | None]) -> Refusal | None:
        now = time.time()
        for measure, limit in limits:
            if limit is not None and self.counters.used(self.identity, measure, _window(now, _DAY)) >= limit:
                return self._refusal(measure, limit, now)
        return None

    def _refusal(self, measure: str, limit: int, now: float) -> Refusal:
        seconds = _seconds_left(now, _DAY)
        hours, minutes = seconds // 3600, seconds % 3600 // 60
        what = "model calls" if measure == "calls" else "tokens"
        return Refusal(
            f"{self.identity} has used the {limit:,} {what} of today; more are allowed from 00:00 UTC, in {hours} h "
            f"{minutes} min",
            seconds,
        )


def allowance_of(identity: str, rules: Rules) -> Allowance | None:
    """What a user may still use; None where its rules have no limit.

    Raises:
        BadInput: there is a limit, and STEPCRAFT_LIMITS_DB does not name a database to count in.
        LimitsFailure: the database cannot be used.
    """
    if not rules.limits_usage:
        return None
    url = os.environ.get(VARIABLE, "").strip()
    if not url:
        raise BadInput(f"a group has a limit, but nothing is counted: set {VARIABLE} to {_KINDS}")
    return Allowance(identity, rules, open_counters(url))


def allowance() -> Allowance | None:
    """What the user of the run in progress may still use; None where nothing is limited.

    Raises:
        BadInput, LimitsFailure: as `allowance_of`.
    """
    rules = access.rules()
    who = access.caller() if rules.limits_usage else None
    return allowance_of(who.identity, rules) if who else None


def _window(now: float, seconds: int) -> int:
    return int(now) // seconds * seconds


def _seconds_left(now: float, seconds: int) -> int:
    return seconds - int(now) % seconds
