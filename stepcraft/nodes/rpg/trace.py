"""What each sentence of the answer rests on, and the numbering of the evidence."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.nodes.rpg.answer import passage_of_sentences
from stepcraft.progress import Said
from stepcraft.segments import Segment, TracedSentence, support, used
from stepcraft.text.citations import cited_sentences, parts, renumbered, with_marks
from stepcraft.text.clean import stems
from stepcraft.text.markdown import code_blocks
from stepcraft.text.names import mentions, names_in

_SAME = 0.7
"""The part of a sentence's words that it shares with another one that says the same."""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    answer: str
    raw_answer: str
    segments: list[Segment]
    evidence: list[Evidence]
    verdicts: dict[str, str] | None


def trace(state: Reading) -> dict[str, Any]:
    """The sentences with the ids of what they cite, the answer with final marks, and the cited passages in order.

    In the answer that comes in, the marks number all passages that the segments were written from. After a check it is
    made again from the same answer: `verdicts` has the sentences that are not borne out, by their place, with what is
    written instead ("" for a sentence that is dropped), or None where they are only marked as unsupported.
    """
    context = RpgContext.current(state)
    verdicts = state.get("verdicts")
    raw = state["answer"] if verdicts is None else state["raw_answer"]
    ids = used(state["segments"])
    passages = {passage["id"]: passage for passage in state["evidence"]}
    chosen = [one for segment in state["segments"] for one in segment["sentences"]]
    cited_from = {id_: passages.get(id_) or passage_of_sentences(id_, chosen, passages) for id_ in ids}
    sentences = traced(raw, state["segments"], context)
    if context.marks:
        sentences = [part for one in sentences for part in _vouched(one, cited_from, state["question"])]
    warnings: list[str] = []
    if verdicts:
        mended = _judged(sentences, verdicts, ids, mend=context.check == "mend")
        if not mended:
            warnings = [
                "nothing of the answer is borne out by what it cites; it was kept and marked as unsupported"
            ]
        sentences = mended or _judged(sentences, verdicts, ids, mend=False)
    answer, cited = _written(sentences, ids, context)
    update: dict[str, Any] = {"answer": answer, "raw_answer": raw, "sentences": sentences}
    if is_checked_next({**state, "sentences": sentences}, context):
        return update
    evidence = [cited_from[id_] for id_ in cited]
    numbers = {place: cited.index(id_) + 1 for place, id_ in enumerate(ids, 1) if id_ in cited}
    shown = numbers if context.citations == "inline" else {}
    segments: list[Segment] = [
        {**segment, "text": renumbered(segment["text"], shown).strip()} if context.marks else segment
        for segment in state["segments"]
    ]
    return {**update, "evidence": evidence, "segments": segments, "warnings": warnings}


def describe(_state: Mapping[str, Any], update: Mapping[str, Any]) -> Said:
    """How many sentences rest on evidence."""
    supported = [sentence["supported"] for sentence in update["sentences"]]
    told = support(supported.count(True), supported.count(False)) or "The answer has no sentences."
    return Said(told, {"sentences": len(supported), "unsupported": supported.count(False)})


def is_checked_next(state: Mapping[str, Any], context: RpgContext) -> bool:
    """Whether the sentences are still to be checked."""
    supported = any(sentence["supported"] for sentence in state["sentences"])
    return context.check != "off" and state.get("verdicts") is None and supported


def traced(text: str, segments: Sequence[Segment], context: RpgContext) -> list[TracedSentence]:
    """The sentences of an answer, without marks, with the ids of the passages that they cite.

    A sentence without a mark that says what a marked sentence of a segment says has its marks. Where the model was
    asked for no marks, a sentence rests on what its segment was written from.
    """
    ids = used(segments)
    numbers = range(1, len(ids) + 1)
    if not context.marks:
        return _of_segments(text, segments)
    known = [
        (stems(sentence), cited)
        for segment in segments
        for sentence, cited in cited_sentences(segment["text"], numbers)
        if cited
    ]
    found: list[TracedSentence] = []
    for sentence, cited in cited_sentences(text, numbers):
        rests_on = cited or _marks_of_the_same(stems(sentence), known)
        found.append(
            TracedSentence(
                text=sentence, evidence=[ids[number - 1] for number in rests_on], supported=bool(rests_on)
            )
        )
    return found


def _vouched(
    sentence: TracedSentence, passages: Mapping[str, Evidence], question: str
) -> list[TracedSentence]:
    """The sentence, unsupported where it names in code what neither its passages nor the question do.

    A block of code with such a name becomes an unsupported sentence of its own.
    """
    text = sentence["text"]
    start = next((block.start for block in code_blocks(text)), len(text))
    known = [
        question,
        *(f"{passages[id_]['title']}\n{passages[id_]['text']}" for id_ in sentence["evidence"]),
    ]

    def is_known(part: str) -> bool:
        return all(any(mentions(one, name) for one in known) for name in names_in([part]))

    if not sentence["supported"] or is_known(text):
        return [sentence]
    if not is_known(text[:start]) or not text[:start].strip():
        return [TracedSentence(text=text, evidence=[], supported=False)]
    return [
        {**sentence, "text": text[:start]},
        TracedSentence(text=text[start:], evidence=[], supported=False),
    ]


def _of_segments(text: str, segments: Sequence[Segment]) -> list[TracedSentence]:
    found: list[TracedSentence] = []
    for sentence, _ in cited_sentences(text, ()):
        own = [segment for segment in segments if sentence.strip() in segment["text"]] or segments
        ids = list(dict.fromkeys(id_ for segment in own for id_ in segment["evidence"]))
        found.append(TracedSentence(text=sentence, evidence=ids, supported=bool(ids)))
    return found


def _marks_of_the_same(own: frozenset[str], known: Sequence[tuple[frozenset[str], list[int]]]) -> list[int]:
    shared = [
        (len(own & other) / max(len(own), len(other)), cited) for other, cited in known if len(other) > 2
    ]
    best, cited = max(shared, key=lambda pair: pair[0], default=(0.0, []))
    return cited if best >= _SAME else []


def _judged(
    sentences: Sequence[TracedSentence], verdicts: dict[str, str], ids: Sequence[str], *, mend: bool
) -> list[TracedSentence]:
    """The sentences after a check: unsupported ones marked as such, or rewritten or dropped.

    The heading of a dropped sentence goes over to the next one, unless that has its own.
    """
    kept: list[TracedSentence] = []
    left = [*sentences]
    for place, one in enumerate(left, 1):
        verdict = verdicts.get(str(place))
        if verdict is None:
            kept.append(one)
        elif not mend:
            kept.append({**one, "supported": False})
        elif verdict:
            kept += _rewritten(one, verdict, ids)
        elif (heading := _heading(one)) and place < len(left) and not _heading(left[place]):
            left[place] = {**left[place], "text": heading + left[place]["text"].lstrip()}
        elif kept:
            behind = one["text"][len(one["text"].rstrip()) :]
            kept[-1] = {**kept[-1], "text": kept[-1]["text"].rstrip() + behind}
    return kept


def _heading(sentence: TracedSentence) -> str:
    before, _, _ = parts(sentence["text"])
    return before[: before.rfind("\n") + 1].lstrip()


def _rewritten(sentence: TracedSentence, instead: str, ids: Sequence[str]) -> list[TracedSentence]:
    """The sentences instead of one, whose headings, bullet and code stay; itself, unsupported, if it is code alone."""
    before, words, behind = parts(sentence["text"])
    fence = behind.strip()[:3]
    instead = instead.removeprefix(" ".join(before.split()) + " ")
    instead = parts(instead.partition(fence)[0] if fence else instead)[1]
    rewritten = cited_sentences(instead, range(1, len(ids) + 1)) if words else []
    if not rewritten:
        return [{**sentence, "supported": False}]
    texts = [text for text, _ in rewritten]
    texts[0] = before + texts[0]
    texts[-1] = texts[-1].rstrip() + behind
    return [
        TracedSentence(
            text=text, evidence=[ids[number - 1] for number in cited] or sentence["evidence"], supported=True
        )
        for text, (_, cited) in zip(texts, rewritten, strict=True)
    ]


def _written(
    sentences: list[TracedSentence], ids: Sequence[str], context: RpgContext
) -> tuple[str, list[str]]:
    """The answer, whose marks are numbered by first use, and the ids of what it cites; `sentences` get the marks."""
    cited = list(dict.fromkeys(id_ for one in sentences for id_ in one["evidence"]))
    if not context.marks:
        cited = list(ids)
    if context.citations == "inline":
        for place, one in enumerate(sentences):
            numbers = [cited.index(id_) + 1 for id_ in one["evidence"]]
            sentences[place] = {**one, "text": with_marks(one["text"], numbers)}
    if sentences:
        sentences[0] = {**sentences[0], "text": sentences[0]["text"].lstrip()}
        sentences[-1] = {**sentences[-1], "text": sentences[-1]["text"].rstrip()}
    return "".join(one["text"] for one in sentences), cited
