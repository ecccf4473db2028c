"""The inputs for samples: records from Self-RAG and HotpotQA, and a user's own questions."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from stepcraft_papers.entries import entries, passages_of, text_of, texts_of
from stepcraft_papers.training.label import Unlabelled, sentences_of

_TURN = re.compile(
    r"(<paragraph>.*?</paragraph>|\[(?:No )?Retrieval\]|\[Continue to Use Evidence\])", re.DOTALL
)
_VERDICT = re.compile(
    r"\[(?:Relevant|Irrelevant|Utility:\d|(?:Fully|Partially) supported"
    r"|No support / Contradictory)\]"
)


@dataclass(frozen=True)
class Item:
    """A question from which a sample is made."""

    id: str
    question: str
    origin: Literal["self-rag", "hotpotqa", "run"]
    answered: list[Unlabelled] = field(default_factory=list[Unlabelled])
    """The segments of the answer in the record; if there are none, RPG writes an answer."""
    passages: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The titles and texts of the passages for RPG; without any, it searches the sources."""
    right: list[str] = field(default_factory=list[str])
    """The right answers; RPG's answer must contain at least one of them."""


def self_rag(file: Path) -> Iterator[Item]:
    """Yield the records of Self-RAG's training data (`instruction`, `input`, `output`).

    Raises:
        BadInput: The file or one of its records cannot be read.
    """
    for entry in entries(file, "id"):
        question, output = text_of(entry.fields, "instruction"), text_of(entry.fields, "output")
        if not question or not output:
            entry.refuse("Self-RAG", "instruction or no output")
        given = text_of(entry.fields, "input")
        yield Item(
            entry.id,
            f"{question}\n\n{given}" if given else question,
            "self-rag",
            list(_answered(output)),
        )


def _answered(output: str) -> Iterator[Unlabelled]:
    """Yield the segments of an output; one without a new passage keeps that of the previous one."""
    sentences: list[tuple[str, str]] = []
    for piece in _TURN.split(output):
        if piece.startswith("<paragraph>"):
            passage = piece.removeprefix("<paragraph>").removesuffix("</paragraph>").strip()
            title, blank, text = passage.partition("\n\n")
            sentences = sentences_of(title, text) if blank else sentences_of("", passage)
        elif piece == "[No Retrieval]":
            sentences = []
        elif not _TURN.match(piece) and (text := " ".join(_VERDICT.sub(" ", piece).split())):
            yield Unlabelled(text=text, sentences=sentences)


def hotpotqa(file: Path) -> Iterator[Item]:
    """Yield the questions of HotpotQA's official file, with their passages.

    Raises:
        BadInput: The file or one of its records cannot be read.
    """
    for entry in entries(file, "id", "_id"):
        question, right = text_of(entry.fields, "question"), texts_of(entry.fields.get("answer"))
        passages = [(title, " ".join(sentences)) for title, sentences in passages_of(entry)]
        if not question or not right or not passages:
            entry.refuse("HotpotQA", "question, no answer or no context")
        yield Item(entry.id, question, "hotpotqa", passages=passages, right=right)


def questions(file: Path) -> Iterator[Item]:
    """Yield the questions in a user's file (`question`, and optionally `id`).

    Raises:
        BadInput: The file or one of its records cannot be read.
    """
    for entry in entries(file, "id"):
        question = text_of(entry.fields, "question")
        if not question:
            entry.refuse("questions", "question")
        yield Item(entry.id, question, "run")


READERS: Mapping[str, Callable[[Path], Iterator[Item]]] = {
    "self-rag": self_rag,
    "hotpotqa": hotpotqa,
    "questions": questions,
}
"""The kinds of files from which samples can be made, with their readers."""
