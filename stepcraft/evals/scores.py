"""Scores of a single answer, from 0 to 1, following the papers' official scripts.

A score is 0 if there is nothing to compare an answer with.
"""

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from stepcraft.text.clean import CJK
from stepcraft.text.sentences import sentences

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED_ANSWERS = {"yes", "no", "noanswer"}
_STEP_WORD = re.compile(f"[{CJK}]|[^\\s{CJK}]+")
_SIGNS = str.maketrans("-−–+#.,", "\ue000\ue000\ue000\ue001\ue002\ue003\ue003")
_MEANT = re.compile(
    r"(?<=\d)(?:\.|,(?!(?:\d\d,){0,9}\d{3}(?!\d)))(?=\d)"
    r"|(?<![\w)\]])[-−–](?=\.?\d)|(?<=\de)[-−–](?=\d{1,3}(?![\w:–-]))|(?<=[a-z])[+#]+(?!\w)"
)
"""Punctuation that carries meaning: the decimal point or comma, the sign of a number and of its
exponent, and the ending of C++ or C#. A comma before three digits may separate thousands (or two,
in India).
"""
_COMPARISON = re.compile(r"</?[a-zA-Z][^<>]*>|([<>!=]=|(?<![-=])[<>])(?:\s+|(?=[-−–.\ue000]?\d))")
"""An HTML tag, or a comparison (captured as a group), as in "load > 5" and ">=3.11"."""
_AROUND_SIGNS = re.compile("[\\s`'\"‘’“”]|^\\*\\*(?=[^*])|(?<=[^*])\\*\\*$|(?<=[^.\\s])\\.$")
"""What may surround an answer that is only punctuation, such as `!=`."""
_BETWEEN_NUMBERS = re.compile(r"(?<=\d)[/:^\u2044](?=\d)")
"""What separates two numbers, as in 1/2, 10:30 and 10^6."""
_SUPERSCRIPT = re.compile(r"(?<=\d)[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
_LETTER_A = re.compile(r"(?<![.&/-])\bA\b(?!\s+\w|\.(?:\w|\s+\w)|[&/-]\w)")
"""The letter A as in "hepatitis A", which is neither an article nor an initial."""
_ARTICLE_A = re.compile(r"\ba\b(?=\s+\w)")
_UNSPACED = f"[{CJK}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
_VOWEL_SIGNS = "".join(
    sign for sign in map(chr, range(0x900, 0xE00)) if unicodedata.category(sign) in {"Mc", "Mn"}
)
"""Signs of Indian scripts, which belong to the letter before them but are not matched by \\w."""
_LETTER = rf"(?:(?!{_UNSPACED})\w|[\ue000-\ue005{_VOWEL_SIGNS}])"
_LATIN = re.compile(r"[a-zA-Z\u00c0-\u024f]")
_ROUGE_CHARACTERS = 10_000
"""The number of characters at which texts are cut for ROUGE. Its time is proportional to the
product of both lengths, which means seconds for texts this long.
"""


def normalise(text: str) -> str:
    """Return text in lower case, without ASCII punctuation, English articles or extra spaces.

    This is the normalisation in SQuAD's official script (Rajpurkar et al. 2016). A text that would
    become empty, such as the answer "A", is only lowercased and stripped of extra spaces.
    """
    lowered = text.lower()
    bare = _ARTICLES.sub(" ", lowered.translate(_NO_PUNCTUATION))
    return " ".join(bare.split()) or " ".join(lowered.split())


def plain_forms(gold: str) -> list[Callable[[str], str]]:
    """Return the ways of normalising a gold answer and the answers that are compared with it.

    Meaningful punctuation is kept, as in -5, 3.5, C++ and C#, and so are comparisons, such as <=,
    that contradict those of the gold answer. Other punctuation, such as a hyphen, is removed in one
    way and becomes a space in the others. Unicode forms of a character count as equal, as do upper
    and lower case, as in "Maß" and "MASS".
    """
    has_a = _LETTER_A.search(gold) is not None
    plain = partial(_plain, has_a=has_a, compared={*_COMPARISON.findall(gold)} - {""})
    return [partial(plain, gap=""), partial(plain, gap=" "), partial(plain, gap=" ", listed=True)]


def _plain(
    text: str, gap: str, *, has_a: bool, compared: Iterable[str], listed: bool = False
) -> str:
    """Return normalised text.

    Args:
        text: The text.
        gap: The replacement for punctuation.
        has_a: Whether to keep an A that is upper-case or not followed by a word.
        compared: The comparisons in the gold answer; a text with only different ones keeps those.
        listed: Whether a comma between numbers separates them, as in "2,3".
    """
    text = re.sub(r"(?<=\d),(?=\d)", ", ", text) if listed else text
    raised = _SUPERSCRIPT.sub(r"^\g<0>", _ARTICLE_A.sub(" ", text) if has_a else text)
    folded = unicodedata.normalize("NFKC", raised).casefold()
    signed = _MEANT.sub(lambda match: match[0].translate(_SIGNS), folded)
    if compared and {*_COMPARISON.findall(signed)}.isdisjoint(compared):
        signed = _COMPARISON.sub(
            lambda it: it[0] if it[1] in {None, *compared} else " \ue005", signed
        )
    if has_a:
        signed = re.sub(r"\ba\b", "\ue004", signed)
    divided = _BETWEEN_NUMBERS.sub(" ", signed)
    bare = "".join(gap if _is_punctuation(each) else each for each in divided)
    return normalise(bare) or _AROUND_SIGNS.sub("", folded)


def _is_punctuation(character: str) -> bool:
    is_unicode = unicodedata.category(character).startswith("P")
    return is_unicode or character in string.punctuation


def exact_match(
    answer: str, golds: Iterable[str], normal: Callable[[str], str] = normalise
) -> float:
    """Return 1 if the answer equals one of the gold answers after normalisation (SQuAD's EM)."""
    wanted = normal(answer)
    return float(any(normal(gold) == wanted for gold in golds))


def f1(answer: str, golds: Iterable[str], normal: Callable[[str], str] = normalise) -> float:
    """Return the F1 of the answer's words against the best matching gold answer (SQuAD's F1).

    If the answer or the gold answer is "yes", "no" or "noanswer", the score is 0 unless they are
    equal, as in the official scripts of HotpotQA (Yang et al. 2018) and 2WikiMultiHopQA (Ho et al.
    2020).
    """
    wanted = normal(answer)
    return max((_f1(wanted, normal(gold)) for gold in golds), default=0.0)


def _f1(answer: str, gold: str) -> float:
    if answer == gold:
        return 1.0
    if answer in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS:
        return 0.0
    return _overlap(Counter(answer.split()), Counter(gold.split()))


def _overlap(words: Counter[str], gold_words: Counter[str]) -> float:
    total = words.total() + gold_words.total()
    return 2 * (words & gold_words).total() / total if total else 0.0


def contains(answer: str, needles: Iterable[Iterable[str]]) -> float:
    """Return the share of the needles that occur in the answer as whole words.

    A needle is a list of alternative strings, any of which counts as a match. Case, articles and
    punctuation are ignored, and a hyphen matches either a space or nothing.
    """
    hits = [
        any(_occurs(form(name), form(answer)) for name in names for form in plain_forms(name))
        for names in needles
    ]
    return sum(hits) / len(hits) if hits else 0.0


def _occurs(needle: str, text: str) -> bool:
    if all(map(_is_punctuation, needle)):  # "<" does not occur in "<="
        return needle == text != ""
    # Chinese and Japanese words have no spaces between them.
    before = "" if re.match(_UNSPACED, needle) else rf"(?<!{_LETTER})"
    behind = "" if re.match(_UNSPACED, needle[-1]) else rf"(?!{_LETTER})"
    return re.search(before + re.escape(needle) + behind, text) is not None


def steps_f1(steps: Sequence[str], gold_steps: Sequence[str]) -> float:
    """Return how well steps match the gold steps, taking their order into account.

    Each step is aligned with at most one gold step, so that no two pairs cross and the sum S of the
    pairs' similarities is maximal. The similarity of a pair is the F1 of its words after
    normalisation (Chinese and Japanese characters count as words). With m steps and n gold steps,
    the precision is S/m and the recall S/n, and the result is their F1, 2S/(m + n). This definition
    is our own. It does not recognise two steps that together say the same as one gold step.
    """
    if not steps or not gold_steps:
        return float(not steps and not gold_steps)
    gold_words = [Counter(_STEP_WORD.findall(normalise(step))) for step in gold_steps]
    best = [0.0] * (len(gold_steps) + 1)
    for step in steps:
        words = Counter(_STEP_WORD.findall(normalise(step)))
        row = [0.0]
        for place, gold in enumerate(gold_words):
            row.append(max(row[-1], best[place + 1], best[place] + _overlap(words, gold)))
        best = row
    return min(1.0, 2 * best[-1] / (len(steps) + len(gold_steps)))


def rouge_lsum(answer: str, gold: str) -> float:
    """Return the F-measure of ROUGE-Lsum with stemming, as in ASQA's official script.

    The official tokenizer takes only ASCII letters and digits into account. If most letters of the
    gold answer are not Latin, words (or Chinese and Japanese characters) are compared
    instead. Texts are cut at 10,000 characters.
    """
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415 - an extra
    from rouge_score.tokenizers import DefaultTokenizer  # noqa: PLC0415

    letters = [*filter(str.isalpha, gold)]
    is_latin = 2 * len(_LATIN.findall("".join(letters))) >= len(letters)
    tokenizer = DefaultTokenizer(use_stemmer=True) if is_latin else _Words()
    lines = ["\n".join(sentences(text[:_ROUGE_CHARACTERS])) for text in (gold, answer)]
    # The scorer's own way of choosing a tokenizer would set up logging for the whole process.
    scorer = RougeScorer(["rougeLsum"], tokenizer=tokenizer)
    return float(scorer.score(*lines)["rougeLsum"].fmeasure)


class _Words:
    """A tokenizer of words in any script."""

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text."""
        return _STEP_WORD.findall(normalise(text))


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that one of k answers is right, given that c of n were right.

    The estimate is unbiased: 1 - C(n - c, k) / C(n, k) (HumanEval, Chen et al. 2021, section 2.1).
    """
    return 1 - math.comb(n - c, k) / math.comb(n, k)
