"""Sentences made ready once a run, though a run asks for them once a cycle."""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

from stepcraft.evidence import Evidence
from stepcraft.rerank import Ranking, Reranker, Sentence
from stepcraft.text.sentences import passage_sentences

_MOST = 256
_MOST_SENTENCES = 20_000
"""So many are kept in all, save the last."""
_SCORED = 5_000
"""Where there are more sentences, neighbours are scored and selected together."""

_Passage = tuple[str, str, str]
"""Its id, its title and its text."""
_Key = tuple[tuple[_Passage, ...], int]
"""Passages, and the reranker that they were made ready for."""


@dataclass(frozen=True)
class Ready:
    """The sentences of some passages, and what ranks them."""

    reranker: Reranker
    sentences: tuple[Sentence, ...]
    ranking: Ranking


class ReadySentences:
    """What was made ready last, by the content of the passages.

    It is no part of the state: a run that is resumed elsewhere makes its sentences ready again. Threads and event
    loops may share it; those that need the same passages wait for the first of them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[_Key, Future[Ready]] = {}

    def of(self, evidence: Iterable[Evidence], reranker: Reranker) -> Ready:
        """The sentences of these passages, ready for this reranker, which may raise anything."""
        first: dict[str, _Passage] = {}
        for passage in evidence:
            first.setdefault(passage["id"], (passage["id"], passage["title"], passage["text"]))
        distinct = tuple(first.values())
        key = distinct, id(reranker)
        with self._lock:
            kept = self._kept.pop(key, None)
            future = self._kept[key] = kept or Future()
        if kept is None:
            self._make(key, future, distinct, reranker)
        return future.result()

    def _make(
        self, key: _Key, future: Future[Ready], passages: Sequence[_Passage], reranker: Reranker
    ) -> None:
        try:
            sentences = _split(passages)
            future.set_result(Ready(reranker, sentences, reranker.ready(sentences)))
        except BaseException as error:
            with self._lock:
                self._kept.pop(key, None)
            future.set_exception(error)
        else:
            self._forget()

    def _forget(self) -> None:
        """The oldest; what was made ready last stays, however large."""
        with self._lock:
            sizes = [len(one.result().sentences) if one.done() else 0 for one in self._kept.values()]
            while len(sizes) > 1 and (len(sizes) > _MOST or sum(sizes) > _MOST_SENTENCES):
                self._kept.pop(next(iter(self._kept)))
                sizes.pop(0)


def _split(passages: Sequence[_Passage]) -> tuple[Sentence, ...]:
    """The sentences of passages; of a book so many together that it takes no minutes."""
    found = [passage_sentences(text) for _, _, text in passages]
    size = max(1, math.ceil(sum(map(len, found)) / _SCORED))
    return tuple(
        Sentence(name, place // size, title, " ".join(own[place : place + size]))
        for (name, title, _), own in zip(passages, found, strict=True)
        for place in range(0, len(own), size)
    )
