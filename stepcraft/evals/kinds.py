"""The kinds of judgement: what a judge is asked about an answer, and how verdicts are scored."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from stepcraft.evals.samples import Sample

Kind = Literal["vote", "support", "facts", "rubric", "reference"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Reading(NamedTuple):
    """A kind of judgement on each item of a single answer: a sentence, a fact or a criterion."""

    instructions: str
    scores: Sequence[str]
    """The names of an answer's scores; each is the mean of its items' weights.

    Except for "support", the first score is 0 if there is no answer.
    """
    verdicts: Mapping[str, Sequence[float]]
    """The possible verdicts, each with one weight per score, or no weights if it does not count."""


READINGS: Mapping[str, Reading] = {
    "support": Reading(
        """\
An answer to a question is given, sentence by sentence, with the passages that it is to rest on.
Decide for each sentence whether the passages support it.

A sentence is supported if the passages say the same in whatever words, or if it follows from them.
It is unsupported if anything that it claims, such as a name, a number, an order or a cause, is
missing from the passages or differs there, even if you know it to be true. It is miscited if it
cites passages, such as [p2], and only others support it. A phrase without a verb claims that it
answers the question, and an instruction claims that it is to be followed. Code claims its calls,
options and settings, but not its imports, its own names and example values. A sentence that says
that something is not known is supported if the passages do not tell it. A sentence that claims
nothing, such as a heading, has no claim.""",
        ("support",),
        {"supported": (1,), "miscited": (1,), "unsupported": (0,), "no claim": ()},
    ),
    "facts": Reading(
        """\
An answer to a question is given, and numbered facts that a right answer states. Decide for each
fact whether the answer covers it, in whatever words, contradicts it, or whether it is missing.""",
        ("facts covered", "facts not contradicted"),
        {"covered": (1, 1), "contradicted": (0, 0), "missing": (0, 1)},
    ),
    "rubric": Reading(
        """\
An answer to a question is given, and numbered criteria. Decide for each criterion whether the
answer meets it. Judge each by itself, and nothing but what it asks for.""",
        ("rubric",),
        {"met": (1,), "unmet": (0,)},
    ),
    "reference": Reading(
        """\
An answer to a question is given. Sections with the id "right" hold what is known of a right answer;
decide by it whether the answer is right. An answer may be worded, ordered or divided in another way
and be just as right. It is partly right if it has a part of what was asked for and nothing wrong.
Number 1 stands for the whole answer.""",
        ("reference",),
        {"right": (1,), "partly": (0.5,), "wrong": (0,)},
    ),
}


def criteria(kind: str, sample: Sample) -> list[str]:
    """Return the sample's own criteria for grading an answer."""
    fields: Mapping[str, Any] = sample
    if kind == "reference":
        is_known = any(map(fields.get, ("answers", "long_answers", "contains", "steps")))
        return ["The answer is right."] if is_known else []
    return list(fields.get(kind) or ())
