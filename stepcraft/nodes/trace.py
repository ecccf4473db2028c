"""Say what each sentence of the answer rests on, and number the cited evidence (RPG §3.2)."""

import re
from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.llm.node import published
from stepcraft.llm.resources import Resources
from stepcraft.progress import counted, emit
from stepcraft.schema import described
from stepcraft.text.citations import cited_sentences, with_marks
from stepcraft.text.names import mentions, names_in

_ANSWER = re.compile(r"(?:^|\n)[\s>*_#-]*answer[*_]*\s*:[*_]*\s*", re.IGNORECASE)


@described
class TracedSentence(TypedDict):
    """A sentence of an answer, and what it rests on."""

    text: str
    """The sentence, with the white space behind it."""
    evidence: list[str]
    """The ids of the passages that it cites, each once."""
    supported: bool
    """Whether it cites evidence, and what it names in code stands there or in the question."""


def trace(state: Any, resources: Resources[RpgContext]) -> dict[str, Any]:
    """Return the traced sentences, the answer with its final marks, and the cited passages.

    The passages are in the order in which they are cited.
    A short answer is what stands behind "Answer:"; its sentences are those by which it was found
    out.
    """
    settings = resources.settings(state)
    evidence: Sequence[Evidence] = state["evidence"]
    sentences: list[TracedSentence] = [
        _traced(text, [evidence[number - 1] for number in numbers], state["task"])
        for text, numbers in cited_sentences(state["answer"], range(1, len(evidence) + 1))
    ]
    ids = list(dict.fromkeys(id_ for sentence in sentences for id_ in sentence["evidence"]))
    by_id = {passage["id"]: passage for passage in evidence}
    short = state["form"] == "short"
    inline = settings.citations == "inline" and not short
    if inline:
        sentences = [
            {
                **each,
                "text": with_marks(each["text"], [ids.index(id_) + 1 for id_ in each["evidence"]]),
            }
            for each in sentences
        ]
    text = "".join(each["text"] for each in sentences).strip()
    supported = sum(each["supported"] for each in sentences)
    emit(
        resources.graph,
        "trace",
        f"{supported} of {counted(len(sentences), 'sentence')} rest on evidence.",
    )
    return published(
        resources.graph,
        state,
        {
            "answer": short_answer(text) if short else text,
            "sentences": sentences,
            "evidence": [by_id[id_] for id_ in ids],
        },
    )


def short_answer(text: str) -> str:
    """Return what stands behind the last "Answer:" of a text, or else its last paragraph."""
    *_, behind = _ANSWER.split(text)
    return (
        (behind if behind != text else text.rpartition("\n\n")[2])
        .strip()
        .strip("*_")
        .removesuffix(".")
    )


def _traced(text: str, cited: Sequence[Evidence], question: str) -> TracedSentence:
    texts = [question, *(f"{passage['title']}\n{passage['text']}" for passage in cited)]
    vouched = all(any(mentions(each, name) for each in texts) for name in names_in([text]))
    return TracedSentence(
        text=text,
        evidence=list(dict.fromkeys(each["id"] for each in cited)),
        supported=bool(cited) and vouched,
    )
