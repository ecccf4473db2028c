"""The entries of an index."""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A text to be found, with its id and any JSON values that belong to it."""

    id: str
    text: str
    payload: Mapping[str, Any]


def entries_where(
    connection: sqlite3.Connection, condition: str, *values: object
) -> list[tuple[int, Entry]]:
    """Return the entries that meet an SQL condition, after the numbers of their rows."""
    sql = f"SELECT seq, id, text, payload FROM entries WHERE {condition}"  # noqa: S608 - ours
    return [
        (number, Entry(name, text, dict(json.loads(payload))))
        for number, name, text, payload in connection.execute(sql, values)
    ]
