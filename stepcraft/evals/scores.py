"""Scores of one answer: pure functions of texts, from 0 to 1, defined as in the papers that report them.

Without any gold answer, alias or needle to compare with, a score is 0. Only `pass_at_k` raises BadInput for its
arguments.
"""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from stepcraft.errors import BadInput
from stepcraft.text.clean import CJK
from stepcraft.text.sentences import sentences

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED_ANSWERS = frozenset(("yes", "no", "noanswer"))
_STEP_WORD = re.compile(f"[{CJK}]|[^\\s{CJK}]+")
_ROUGE_WORD = re.compile("[a-z0-9]+")
_ROUGE_CELLS = 1_200_000
"""The largest product of two texts' lengths in words that ROUGE compares: its time grows with it."""
_ROUGE_SENTENCE = 3
"""How many words a further sentence costs as much time as."""
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")


def normalise(text: str) -> str:
    """Return a text in lower case without ASCII punctuation, English articles and needless blanks.

    This is the normalisation of SQuAD (Rajpurkar et al. 2016, the official evaluation script). A text of which it
    would leave nothing, such as the answer "A", only gets lower case and folded blanks.
    """
    lowered = text.lower()
    kept = _ARTICLES.sub(" ", lowered.translate(_NO_PUNCTUATION))
    return " ".join(kept.split()) or " ".join(lowered.split())


def exact_match(answer: str, golds: Iterable[str]) -> float:
    """Return 1 if the answer equals one of the gold answers after normalisation, else 0 (SQuAD's EM)."""
    wanted = normalise(answer)
    return float(any(normalise(gold) == wanted for gold in golds))


def f1(answer: str, golds: Iterable[str]) -> float:
    """Return the F1 of the answer's words against the gold answer that it fits best.

    Words are what blanks separate after normalisation, counted as often as they occur (SQuAD's F1). Where the answer
    or the gold answer is "yes", "no" or "noanswer", they must be equal (HotpotQA, Yang et al. 2018; 2WikiMultiHopQA,
    Ho et al. 2020: the official evaluation scripts). Two empty texts are equal (SQuAD 2.0).
    """
    wanted = normalise(answer)
    return max((_f1(wanted, normalise(gold)) for gold in golds), default=0.0)


def _f1(answer: str, gold: str) -> float:
    if answer == gold:
        return 1.0
    if answer in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS:
        return 0.0
    words, gold_words = Counter(answer.split()), Counter(gold.split())
    return 2 * (words & gold_words).total() / (words.total() + gold_words.total())


def contains(answer: str, needles: Sequence[str | Sequence[str]]) -> float:
    """Return the share of the needles that occur in the answer after normalisation.

    A needle is a text, or several of which one is enough. A needle may be part of a word. This is ASQA's str-EM
    (Stelmakh et al. 2022, the official script), where the needles are the short answers to a question's readings.
    """
    text = normalise(answer)
    choices = [[needle] if isinstance(needle, str) else needle for needle in needles]
    found = [any(form and form in text for form in map(normalise, choice)) for choice in choices]
    return sum(found) / len(found) if found else 0.0


def alias_accuracy(answer: str, aliases: Iterable[str]) -> float:
    """Return 1 if an alias occurs in the answer, else 0 (PopQA, Mallen et al. 2023, and its official script).

    An alias is looked for as it is written, in lower case, and with a capital first letter alone.
    """
    forms = [
        form
        for alias in aliases
        for form in (alias, alias.lower(), alias.capitalize())
        if alias.strip()
    ]
    return float(any(form in answer for form in forms))


def steps_f1(steps: Sequence[str], gold_steps: Sequence[str]) -> float:
    """Return how well steps fit the gold steps, in their order.

    Each step is aligned with at most one gold step and each gold step with at most one step, so that no two pairs
    cross and the sum S of the pairs' similarities is the largest possible. The similarity of a pair is the F1 of its
    words after normalisation (Chinese and Japanese characters are words). With m steps and n gold steps the precision
    is S/m and the recall S/n, and the result is their F1, 2S/(m + n). It is 1 where the lists agree and where both
    are empty. The definition is ours: it does not see that two steps say together what one gold step says.
    """
    if not steps or not gold_steps:
        return float(not steps and not gold_steps)
    counted_gold = [_counted_words(step) for step in gold_steps]
    lengths = np.array([len(words) for words in counted_gold], dtype=np.float64)
    places: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for place, words in enumerate(counted_gold):
        for word in words:
            places[word].append(place)
    found = {word: np.array(at) for word, at in places.items()}
    best = np.zeros(len(gold_steps) + 1)
    for step in steps:
        words = _counted_words(step)
        common: NDArray[np.float64] = np.zeros(len(gold_steps))
        for word in words:
            if word in found:
                common[found[word]] += 1
        similar = 2 * common / np.maximum(len(words) + lengths, 1)
        best[1:] = np.maximum.accumulate(np.maximum(best[1:], best[:-1] + similar))
    return min(1.0, 2 * float(best[-1]) / (len(steps) + len(gold_steps)))


def _counted_words(step: str) -> list[tuple[str, int]]:
    """Return the words, each with how often it has occurred before: what two such lists share is what F1 counts."""
    seen: Counter[str] = Counter()
    counted: list[tuple[str, int]] = []
    for word in _STEP_WORD.findall(normalise(step)):
        counted.append((word, seen[word]))
        seen[word] += 1
    return counted


def need_rouge() -> None:
    """Check that ROUGE can be computed.

    Raises:
        BadInput: `rouge-score` is not installed.
    """
    if find_spec("rouge_score") is None:
        raise BadInput('ROUGE needs rouge-score: pip install "stepcraft[evals]"')


def rouge_lsum(answer: str, gold: str) -> float:
    """Return the F-measure of ROUGE-Lsum with stemming, a sentence a line (Lin 2004, §3.2; ASQA's official script).

    It is computed by `rouge-score`, which knows Latin letters and digits alone: a text of other scripts scores 0.
    Texts of which each has more than about 1,000 words are compared as far as their beginnings; what stands behind
    counts as not found.

    Raises:
        BadInput: `rouge-score` is not installed.
    """
    need_rouge()
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415 - an extra, and slow to import
    from rouge_score.tokenizers import DefaultTokenizer  # noqa: PLC0415 - the same

    lines, gold_lines = _rouge_lines(answer), _rouge_lines(gold)
    if not lines or not gold_lines:
        return 0.0
    compared = _beginning(lines, _ROUGE_CELLS // _rouge_cost(gold_lines))
    gold_compared = _beginning(gold_lines, _ROUGE_CELLS // _rouge_cost(lines))
    # The scorer's own choice of a tokenizer would set up logging for the whole process.
    scorer = RougeScorer(["rougeLsum"], tokenizer=DefaultTokenizer(use_stemmer=True))
    score = scorer.score(_joined(gold_compared), _joined(compared))["rougeLsum"]
    precision = float(score.precision) * _words(compared) / _words(lines)
    recall = float(score.recall) * _words(gold_compared) / _words(gold_lines)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _rouge_lines(text: str) -> list[list[str]]:
    """Return the words of each sentence that has any."""
    return [
        words for sentence in sentences(text) if (words := _ROUGE_WORD.findall(sentence.lower()))
    ]


def _rouge_cost(lines: list[list[str]]) -> int:
    """Return what a text contributes to the time of a comparison, in words."""
    return sum(len(words) + _ROUGE_SENTENCE for words in lines)


def _beginning(lines: list[list[str]], cost: int) -> list[list[str]]:
    """Return the first lines up to a cost, which is never less than that of a square comparison."""
    left = max(cost, math.isqrt(_ROUGE_CELLS))
    kept: list[list[str]] = []
    for words in lines:
        left -= _ROUGE_SENTENCE
        if left <= 0:
            break
        kept.append(words[:left])
        left -= len(words)
    return kept


def _words(lines: list[list[str]]) -> int:
    return sum(map(len, lines))


def _joined(lines: list[list[str]]) -> str:
    return "\n".join(map(" ".join, lines))


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that one of k samples is correct, estimated from n samples of which c are.

    The estimate is unbiased: 1 - C(n - c, k) / C(n, k) (HumanEval, Chen et al. 2021, §2.1).

    Raises:
        BadInput: c is not between 0 and n, or k not between 1 and n.
    """
    if not 0 <= c <= n:
        raise BadInput(
            f"{c} of {n} samples cannot be correct: give a number between 0 and {max(n, 0)}."
        )
    if not 1 <= k <= n:
        raise BadInput(
            f"pass@{k} cannot be estimated from {n} samples: k must be between 1 and their number."
        )
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def numbers_equal(answer: str | float, gold: str | float) -> bool:
    """Whether two numbers differ by less than 0.001 (PAL, Gao et al. 2022, the official script of GSM8K).

    A text is read as a number, also with commas between thousands. What is no number or not finite equals nothing.
    """
    return abs(_number(answer) - _number(gold)) < 1e-3


def _number(value: str | float) -> float:
    """Return a number, NaN where the value is none or infinite."""
    if isinstance(value, str):
        value = value.strip()
        value = value.replace(",", "") if _THOUSANDS.fullmatch(value) else value
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
