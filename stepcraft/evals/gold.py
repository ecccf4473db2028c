"""Gold passages: what has to be found to answer a question, and how much of it a method found.

The scores need no model, so that they say something of retrieval and selection also where the keyless model writes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.text.clean import clean

POOLED = ("passages", "context", "docs", "ctxs")
"""The fields in which files have passages: ours, that of HotpotQA and 2WikiMultiHopQA, ALCE's, and that of DPR."""


class Gold(TypedDict):
    """A passage that bears out the answer."""

    title: str
    """Its title; "" where it is known by its sentences alone."""
    sentences: list[str]
    """Those of its sentences that bear out the answer; none where they are not known."""


def passages_of(fields: Mapping[str, Any], where: str) -> list[tuple[str, list[str]]]:
    """The passages that a record brings, each as its title and its sentences, or its text as the only one.

    A passage is a text, `{"title", "text"}`, `{"title", "sentences"}` or, as in HotpotQA and 2WikiMultiHopQA, a title
    and a list of sentences. An empty sentence keeps its place, by which supporting facts number the others.

    Args:
        fields: The fields of the record.
        where: The file and line, for messages.

    Raises:
        BadInput: `passages` holds something else; under the names that others use it is passed over.
    """
    for name in POOLED:
        value = fields.get(name)
        if isinstance(value, Mapping):  # the columns of the Hugging Face hub
            columns = value
            value = [
                list(pair)
                for pair in zip_longest(*(columns.get(key, ()) for key in ("title", "sentences")))
            ]
        if not isinstance(value, list) or not value:
            continue
        found = [_passage(one) for one in value]
        read = [one for one in found if one]
        if len(read) == len(found):
            return read
        if name == "passages":
            raise BadInput(
                f"{where} has a passage that is none: {value[found.index(None)]!r:.80}; write a text, or an object with "
                "title and text or sentences"
            )
    return []


def _passage(value: object) -> tuple[str, list[str]] | None:
    if isinstance(value, str):
        title, sentences = "", [value]
    elif isinstance(value, Mapping):
        one = value
        title, sentences = one.get("title") or "", one.get("sentences", one.get("text"))
    elif isinstance(value, list) and len(value) == 2:
        title, sentences = value
    else:
        return None
    texts = [sentences] if isinstance(sentences, str) else sentences
    if not isinstance(title, str) or not _is_texts(texts):
        return None
    return _folded(title), [_folded(text) for text in texts]


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def gold_of(fields: Mapping[str, Any], where: str) -> list[Gold]:
    """The gold passages of a record, from `gold` or, as in HotpotQA and 2WikiMultiHopQA, from `supporting_facts`.

    `gold` is a list of titles, or of objects with title and sentences. Supporting facts are titles with the numbers of
    sentences; a number beyond the last sentence, of which HotpotQA has some, leaves the title alone.

    Raises:
        BadInput: There is something else in one of these fields.
    """
    found: dict[str, Gold] = {}
    for title, sentences in _facts(fields, where):
        one = found.setdefault(_key(title) or "\n".join(sentences), Gold(title=title, sentences=[]))
        one["sentences"] += [text for text in sentences if text and text not in one["sentences"]]
    return list(found.values())


def _facts(fields: Mapping[str, Any], where: str) -> Iterator[tuple[str, list[str]]]:
    given: Any = fields.get("gold") or []
    if not isinstance(given, list):
        raise BadInput(f"{where} has a gold that is no list: {given!r:.80}; write a list of titles")
    for one in given:
        whole = {"title": one} if isinstance(one, str) else one
        passage = _passage({"sentences": [], **whole} if isinstance(whole, dict) else whole)
        if not passage or not any([passage[0], *passage[1]]):
            raise BadInput(
                f"{where} has a gold passage that is none: {one!r:.80}; write a title, or an object with title and sentences"
            )
        yield passage
    facts: Any = fields.get("supporting_facts") or []
    if isinstance(facts, Mapping):  # the columns of the Hugging Face hub
        columns = facts
        facts = [
            list(pair)
            for pair in zip(columns.get("title", ()), columns.get("sent_id", ()), strict=False)
        ]
    sentences = {_key(title): texts for title, texts in passages_of(fields, where)}
    for fact in facts if isinstance(facts, list) else [facts]:
        match fact:
            case {"title": str(title), "sentence": int(number)} | [str(title), int(number)]:
                yield (
                    _folded(title),
                    sentences.get(_key(title), [])[max(number, 0) : max(number, 0) + 1],
                )
            case _:
                raise BadInput(
                    f"{where} has a supporting fact that is none: {fact!r:.80}; write a title and a sentence's number"
                )


def retrieval_scores(gold: Sequence[Gold], output: Mapping[str, Any]) -> dict[str, float]:
    """The recall of gold passages and gold sentences in what an output names as its evidence.

    A gold passage is found if a passage of the evidence has its title, or holds one of its sentences where it has no
    title; a sentence, if such a passage holds it, blanks apart. Where the output has segments (RPG), the recall of gold
    sentences among those that the segments were written from is scored as well.
    """
    if not gold:
        return {}
    evidence = [
        (_key(str(one.get("title") or "")), _folded(str(one.get("text") or "")))
        for one in output.get("evidence") or ()
    ]
    of = [
        [text for title, text in evidence if not one["title"] or title == _key(one["title"])]
        for one in gold
    ]
    scores = {
        "gold passages": _share(
            bool(texts)
            and (bool(one["title"]) or any(_holds(texts, wanted) for wanted in one["sentences"]))
            for one, texts in zip(gold, of, strict=True)
        )
    }
    pairs = [
        (wanted, texts) for one, texts in zip(gold, of, strict=True) for wanted in one["sentences"]
    ]
    if not pairs:
        return scores
    scores["gold sentences"] = _share(_holds(texts, wanted) for wanted, texts in pairs)
    if "segments" in output:
        selected: dict[str, list[str]] = {}
        for segment in output["segments"]:
            for sentence in segment["sentences"]:
                selected.setdefault(sentence["passage"], []).append(sentence["text"])
        written_from = [_folded(" ".join(texts)) for texts in selected.values()]
        scores["gold sentences selected"] = _share(
            _holds(written_from, wanted) for wanted, _ in pairs
        )
    return scores


def _holds(texts: Iterable[str], wanted: str) -> bool:
    return any(wanted in text for text in texts)


def _share(found: Iterable[bool]) -> float:
    counted = list(found)
    return sum(counted) / len(counted)


def _folded(text: str) -> str:
    return " ".join(clean(text).split())


def _key(title: str) -> str:
    return _folded(title).casefold()
