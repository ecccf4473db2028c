"""Trace each sentence of the answer to its evidence, and number the citations (RPG §3.2)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.llm.calls import Inline
from stepcraft.llm.node import published
from stepcraft.llm.resources import Resources
from stepcraft.nodes.checks import final_checks
from stepcraft.progress import counted, emit
from stepcraft.schema import described
from stepcraft.text.citations import cited_sentences, marks, unread_marks, without_marks
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
    |<answer>(?=(?s:.)*</answer>\s*\Z)
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
    """Whether it cites evidence, the check confirmed all its words, and every name in its code
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
    cited = [number for number in marks(text) if number <= len(evidence)]
    passages: list[Evidence] = [evidence[number - 1] for number in cited]
    numbers = {number: place for place, number in enumerate(cited, 1)}
    rejected = _rejected(state)
    traced = [
        _traced(sentence, [passages[place - 1] for place in places], state["task"], rejected)
        for sentence, places in cited_sentences(text, numbers)
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
    deciding = {id_ for each in [*state["checks"], *state["revisions"]] for id_ in each["evidence"]}
    deciding -= {passage["id"] for passage in passages}
    return published(
        resources.graph,
        state,
        {
            "answer": short_answer(without_marks(text))
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
    labels = [*_ANSWER.finditer(text)]
    answer = (
        (labels[-1]["open"] or "") + text[labels[-1].end() :]
        if labels
        else text.rpartition("\n\n")[2]
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


def _rejected(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the statements that the check did not confirm, each with the words it rejected."""
    return [
        (normalised(without_marks(check["text"])), normalised(without_marks(check["words"])))
        for check, has_changed in final_checks(state)
        if check["verdict"] != "supported" and not has_changed
    ]


def _traced(
    text: str, cited: Sequence[Evidence], question: str, rejected: Iterable[tuple[str, str]]
) -> TracedSentence:
    texts = [question, *(f"{passage['title']}\n{passage['text']}" for passage in cited)]
    vouched = all(any(mentions(each, name) for each in texts) for name in names_in([text]))
    bare = normalised(without_marks(text))
    unconfirmed = [
        words or min(statement, bare, key=len)
        for statement, words in rejected
        if (statement in bare or bare in statement) and words in bare
    ]
    return TracedSentence(
        text=text,
        evidence=list(dict.fromkeys(each["id"] for each in cited)),
        unconfirmed=unconfirmed,
        supported=bool(cited) and vouched and not unconfirmed,
    )
