"""Rank rows by words."""

import itertools
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stepcraft.text.words import query_words

MIN_RANKED = 15_000
"""The maximum number of rows ranked by words, or a twentieth of all rows if that is more.

Ranking costs about 2 µs per row. At 100,000 procedures, 97% of the top three results match those
from ranking every row that shares a word with the query, which takes four times as long
(`benchmarks/local_memory.py`).
"""

_RANKS = "SELECT rowid, rank FROM words WHERE words MATCH ?"


def _any(words: Iterable[str]) -> str:
    """Return the FTS5 expression for rows that contain any of the given words."""
    return " OR ".join(f'"{word}"' for word in words)


class WordRanking:
    """Ranks rows by the words of a query, and caches how many rows contain each word."""

    def __init__(self) -> None:
        self._rows = 0
        self._counts: dict[str, int] = {}

    def scores(
        self, connection: sqlite3.Connection, query: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the row numbers and BM25 ÷ best BM25 of all rows that share a word with a query.

        If the query's words occur in too many rows, only rows with one of the rarest words are
        ranked, using all words.
        """
        rare, frequent = map(_any, self._parted(connection, query_words(query)))
        sql, values = _RANKS, [rare]
        if frequent:
            # FTS5 has no optional words, so rows that also contain a frequent word come first, then
            # all others.
            sql = f"{_RANKS} UNION ALL {_RANKS}"
            values = [f"({rare}) AND ({frequent})", f"({rare}) NOT ({frequent})"]
        rows = connection.execute(sql, values).fetchall() if rare else []
        numbers, ranks = np.array(rows, np.float64).reshape(-1, 2).T
        return numbers.astype(np.int64), ranks / ranks.min(initial=-0.0)

    def _parted(
        self, connection: sqlite3.Connection, words: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Return the words that select rows (any one is enough), and those that only rank them."""
        (rows,) = connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()
        if abs(rows - self._rows) > self._rows / 10:  # the counts only help to choose among words
            self._rows, self._counts = rows, {}
        counts = {word: self._count(connection, word) for word in words}
        most = max(MIN_RANKED, rows // 20)
        if sum(counts.values()) <= most:
            return words, ()
        rising = sorted(filter(counts.get, words), key=counts.__getitem__)
        # BM25 gives no weight to a word that occurs in more than half of the rows.
        telling = [word for word in rising if counts[word] <= rows / 2] or rising[:1]
        sums = itertools.accumulate(counts[word] for word in telling)
        rare = sum(total <= most for total in sums) or 1
        return telling[:rare], telling[rare:]

    def _count(self, connection: sqlite3.Connection, word: str) -> int:
        count = self._counts.get(word, 0)
        if not count:  # 0 is not cached, since a row with the word may be added
            (count,) = connection.execute(
                "SELECT count(*) FROM words WHERE words MATCH ?", (_any([word]),)
            ).fetchone()
            self._counts[word] = count
        return count
