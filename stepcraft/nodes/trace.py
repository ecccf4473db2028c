"""Trace each sentence of the answer to its evidence, and number the citations (RPG §3.2)."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.llm.calls import Inline
from stepcraft.llm.node import published
from stepcraft.llm.resources import Resources
from stepcraft.nodes.checks import current_text, final_checks
from stepcraft.nodes.draft import material
from stepcraft.progress import counted, emit, joined, quoted
from stepcraft.schema import described
from stepcraft.text.citations import (
    cited_sentences,
    labels,
    marks,
    unread_marks,
    without_marks,
)
from stepcraft.text.claims import claims
from stepcraft.text.clean import normalised
from stepcraft.text.names import mentions, names_in
from stepcraft.text.sentences import sentences

_LABEL = r"""(?:(?:the|final|short|correct|finale|endgültige|kurze|итоговый)[ \t]+){0,2}+
(?:answer|antwort|antwoord|réponse|respuesta|resposta|risposta|ответ|відповідь|odpowiedź|cevap|svar
|απάντηση|đáp[ ]án|الجواب|الإجابة|उत्तर|(?:最终|最終)?(?:答案|回答)是?|答え|정답|답변|답|答)
(?:[ \t]+(?:finale?|corta|courte|is))?+"""
_ANSWER = re.compile(
    rf"""^(?:[ \t]*+[-*+>\#]+[ \t])*+[ \t]*+(?:
    (?P<mark>[*_]{{1,3}}){_LABEL}(?:(?P=mark)(?:\s*+[:\uff1a]|\n)|\s*+[:\uff1a](?P=mark))
    |\u3010{_LABEL}\u3011
    |(?:(?<=\#[ ])|(?<=^)){_LABEL}[ \t]*+\n(?=[^\n]+\Z)
    |<answer>(?=(?s:.)*+(?<=</answer>))
    |(?P<open>[*_]{{0,3}}){_LABEL}\s*+[:\uff1a])\s*+""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""The label of an answer: emphasised, plain, or at the start of emphasised text (`open`)."""
_EMPHASIS = re.compile(r"(\*{1,3})([^*]+)\1|(_{1,3})([^_]*\s[^_]*)\3")
"""Emphasis around a whole text, as opposed to a name such as `__init__`."""
_BOXED = re.compile(r"\A\#{1,6}[ \t]+|\A\$*\\boxed\{(.*)\}\$*\Z", re.DOTALL)
"""What some models are trained to put around an answer."""
_ABBREVIATED = re.compile(
    r"(?:\b[^\W\d_]{1,2}\.[ \u00a0]?){2,}\Z"
    r"|\b(?:Ave|St|Rd|Blvd|Inc|Ltd|Co|Corp|Jr|Sr|al|cit|etc)\.\Z"
)
_FULL_STOP = re.compile(r"(?<!\.)[.\u3002]\Z")


@described
class TracedSentence(TypedDict):
    """A sentence of an answer with the evidence that it rests on."""

    text: str
    """The sentence, including trailing whitespace."""
    evidence: list[str]
    """The ids of the passages that it cites, without duplicates."""
    unconfirmed: list[str]
    """The words in it that the check found missing from the evidence or contradicted by it."""
    supported: bool
    """Whether it cites evidence, no check objected to its words, and every name in its code
    occurs in the evidence that it cites or in the question.
    """


@Inline
def trace(state: Any, resources: Resources[RpgContext]) -> dict[str, Any]:
    """Return the traced sentences, the answer with its final marks, and the passages.

    Marks are numbered from 1 in the order in which passages are first cited. The passages are in
    the same order, followed by others that the check relied on. A short answer is the text after
    "Answer:", without marks; its sentences are those of the reasoning that led to it.
    """
    text, evidence = state["answer"], state["evidence"]
    known = labels(material(state))
    cited = [number for number in marks(text, unless_in=known) if number <= len(evidence)]
    passages: list[Evidence] = [evidence[number - 1] for number in cited]
    numbers = {number: place for place, number in enumerate(cited, 1)}
    bare = [each for each, _ in cited_sentences(text, {}, unless_in=known)]
    if known:  # verdicts quote statements without any labels
        bare = [without_marks(each, plain=False) for each in bare]
    unconfirmed, unmatched = _unconfirmed(state, bare)
    traced = [
        _traced(sentence, [passages[place - 1] for place in places], state["task"], words)
        for (sentence, places), words in zip(
            cited_sentences(text, numbers, unless_in=known), unconfirmed, strict=True
        )
    ]
    supported = sum(each["supported"] for each in traced)
    emit(
        resources.graph,
        "trace",
        f"{supported} of {counted(len(traced), 'sentence')} rest on evidence.",
    )
    short = state["form"] == "short"
    warnings: list[str] = []
    if evidence and not passages and not short:
        warnings.append("trace: no sentence of the answer cites a passage")
    unread = dict.fromkeys(f"[{each}]" for each in unread_marks(text) if 0 < each <= len(evidence))
    if unread and not short:
        warnings.append(f"trace: brackets that were not read as citations: {', '.join(unread)}")
    if unmatched:
        warnings.append(f"trace: not confirmed, but in no sentence: {joined(unmatched, 5)}")
    deciding = {id_ for each in [*state["checks"], *state["revisions"]] for id_ in each["evidence"]}
    deciding -= {passage["id"] for passage in passages}
    return published(
        resources.graph,
        state,
        {
            "answer": short_answer(without_marks(text, unless_in=known))
            if short
            else "".join(each["text"] for each in traced),
            "sentences": traced,
            "warnings": warnings,
            "evidence": [*passages, *(each for each in evidence if each["id"] in deciding)],
        },
    )


def short_answer(text: str) -> str:
    """Return the text after the last "Answer:" in a text, or else its last paragraph.

    Emphasis around the whole answer is removed. So is the final full stop, unless it belongs to an
    abbreviation or the answer has several sentences.
    """
    text = text.rstrip()
    found = [*_ANSWER.finditer(text)]
    answer = (
        (found[-1]["open"] or "") + text[found[-1].end() :] if found else text.rpartition("\n\n")[2]
    )
    answer = answer.strip().removesuffix("</answer>")
    answer = _without_stop(_BOXED.sub(r"\1", answer.strip(), count=1))
    emphasis = _EMPHASIS.fullmatch(answer)
    return _without_stop((emphasis[2] or emphasis[4]).strip()) if emphasis else answer


def _without_stop(text: str) -> str:
    # If the full stop belonged to an abbreviation, "Xy" would not begin a second sentence.
    if _ABBREVIATED.search(text) or not _FULL_STOP.search(text):
        return text
    return text[:-1] if len(sentences(f"It {text} Xy")) == 2 else text


def _unconfirmed(
    state: Mapping[str, Any], sentences: Sequence[str]
) -> tuple[list[list[str]], list[str]]:
    """Return the words in each sentence that the check did not confirm, and those in no sentence.

    Args:
        state: The state, with the checks.
        sentences: The sentences without their marks. A statement can overlap several of them.
    """
    solid = [*map(_solid, sentences)]
    text, ends = "".join(solid), [*accumulate(map(len, solid))]
    unconfirmed: list[list[str]] = [[] for _ in sentences]
    unmatched: list[str] = []
    checks = final_checks(state)
    rounds = {check["part"]: check["round"] for check, _ in checks}  # the last of each part
    for check, has_changed in checks:
        words, statement = without_marks(check["words"], plain=False), check["text"]
        is_of_rest = check["verdict"] == "not found" and not words
        is_last = check["round"] == rounds[check["part"]]
        if check["verdict"] == "supported" or (has_changed and not (is_of_rest and is_last)):
            continue
        now = without_marks(current_text(check, state), plain=False)
        if has_changed:
            statements = _unchanged(statement, now, text)
        else:
            statements = _spans(statement, text) or _spans(now, text)
        quotes = [
            span
            for span in _spans(words, text)
            if any(start <= span[0] and span[1] <= stop for start, stop in statements)
        ]
        for start, stop in quotes or statements:
            for number in range(bisect_right(ends, start), bisect_left(ends, stop) + 1):
                shown = words or min(statement, sentences[number], key=len)
                unconfirmed[number].append(normalised(shown))
        if not statements and not has_changed:
            unmatched.append(quoted(words or statement))
    return unconfirmed, unmatched


def _unchanged(before: str, now: str, text: str) -> list[tuple[int, int]]:
    """Return the spans in a solid text of sentences that a changed statement still has."""
    earlier = {_solid(before[start:stop]) for start, stop in claims(before)}
    kept = [
        (len(_solid(now[:start])), len(_solid(now[:stop])))
        for start, stop in claims(now)
        if _solid(now[start:stop]) in earlier
    ]
    return [(at + start, at + stop) for at, _ in _spans(now, text) for start, stop in kept]


def _spans(words: str, text: str) -> list[tuple[int, int]]:
    """Return where words occur in a solid text."""
    solid = _solid(words)
    return [each.span() for each in re.finditer(re.escape(solid), text)] if solid else []


def _solid(text: str) -> str:
    """Return a normalised text without any whitespace."""
    return "".join(normalised(text).split())


def _traced(
    text: str, cited: Sequence[Evidence], question: str, unconfirmed: Sequence[str]
) -> TracedSentence:
    texts = [question, *(f"{passage['title']}\n{passage['text']}" for passage in cited)]
    vouched = all(any(mentions(each, name) for each in texts) for name in names_in([text]))
    return TracedSentence(
        text=text,
        evidence=list(dict.fromkeys(each["id"] for each in cited)),
        unconfirmed=list(dict.fromkeys(unconfirmed)),
        supported=bool(cited) and vouched and not unconfirmed,
    )
