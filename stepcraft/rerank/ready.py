"""The sentences of a run's passages, made ready for a reranker once and scored in every cycle."""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

from stepcraft.evidence import Evidence
from stepcraft.rerank import Ranking, Reranker, Sentence
from stepcraft.text.sentences import passage_sentences

_MAX_ENTRIES = 256
_MAX_CACHED = 20_000
"""The number of sentences in all cache entries together; the last entry is kept whatever its size."""
_MAX_SCORED = 5_000
"""The number of sentences above which neighbours are scored and selected together."""

_Passage = tuple[str, str, str]
"""Id, title and text."""
_Key = tuple[tuple[_Passage, ...], int]
"""The passages, and the id of the reranker object."""


@dataclass(frozen=True)
class Ready:
    """The sentences of some passages, and their ranking."""

    reranker: Reranker
    sentences: tuple[Sentence, ...]
    ranking: Ranking


class ReadySentences:
    """A cache of sentences that are ready to be scored, by the content of their passages.

    It is not part of a graph's state: a run that is resumed in another process makes its sentences ready again.
    Threads and event loops may share it; those that need the same passages wait for the first of them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[_Key, Future[Ready]] = {}

    def of(self, evidence: Iterable[Evidence], reranker: Reranker) -> Ready:
        """Return the sentences of passages, ready for a reranker, whose exceptions are raised as they are."""
        first: dict[str, _Passage] = {}
        for passage in evidence:
            first.setdefault(passage["id"], (passage["id"], passage["title"], passage["text"]))
        passages = tuple(first.values())
        key = passages, id(reranker)
        with self._lock:
            known = self._entries.pop(key, None)
            future = self._entries[key] = known or Future()
        if known is None:
            try:
                sentences = _split(passages)
                future.set_result(Ready(reranker, sentences, reranker.ready(sentences)))
            except BaseException as error:
                with self._lock:
                    self._entries.pop(key, None)
                future.set_exception(error)
            else:
                self._drop_oldest()
        return future.result()

    def _drop_oldest(self) -> None:
        with self._lock:
            sizes = [
                len(one.result().sentences) if one.done() else 0 for one in self._entries.values()
            ]
            while len(sizes) > 1 and (len(sizes) > _MAX_ENTRIES or sum(sizes) > _MAX_CACHED):
                self._entries.pop(next(iter(self._entries)))
                sizes.pop(0)


def _split(passages: Sequence[_Passage]) -> tuple[Sentence, ...]:
    """Split passages into sentences; those of a book are joined, as scoring each would take minutes."""
    found = [passage_sentences(text) for _, _, text in passages]
    size = max(1, math.ceil(sum(map(len, found)) / _MAX_SCORED))
    return tuple(
        Sentence(name, place // size, title, " ".join(own[place : place + size]))
        for (name, title, _), own in zip(passages, found, strict=True)
        for place in range(0, len(own), size)
    )
