"""Thoughts, queries, revisions and answers put together from what is given, without a language model."""

import re
from collections.abc import Sequence

from stepcraft.models._fit import fit, is_alike, stems, weights
from stepcraft.sections import UNCHANGED
from stepcraft.text import sentences, terms

MOST_THOUGHTS = 5
_MOST_ADDED = 2
_MOST_TOLD = 5

_NAME = re.compile(
    r"[\"\u201c\u300c\u300a]([^\"\u201c\u201d\u300c\u300d\u300a\u300b\n]{2,60})[\"\u201d\u300d\u300b]"  # quoted
    r"|`([^`\n]{2,60})`"
    r"|\b([A-Z][\w.&'\u2019-]*(?:\s+(?:(?:of|the|and|de|la|von|van|in|for|on)\s+)*[A-Z0-9][\w.&'\u2019-]*)*)"
)
_ASKING = frozenset(
    "what which who whom whose when where why how is are was were do does did can could in on of the a an "
    "if for by with from at to as and or name list give tell explain describe write compare".split()
)


def thoughts(question: str) -> str:
    """One thought for each thing that a question names, and one for what it asks of them."""
    named = subjects(question)
    about = [f"{name}: what is known of it bears on the question." for name in named]
    sought = " ".join(word for word in terms(question) if not any(word in name.lower() for name in named))
    return "\n\n".join([*about, f"What is sought: {sought or question.strip()}."][:MOST_THOUGHTS])


def subjects(question: str) -> list[str]:
    """The names in a question, each once, in order."""
    found = (next(filter(None, match.groups())).strip(" .'\u2019") for match in _NAME.finditer(question))
    named = [name for name in (_without_asking(name) for name in found) if len(name) > 1]
    return list(dict.fromkeys(named))[: MOST_THOUGHTS - 1]


def _without_asking(name: str) -> str:
    words = name.split()
    while words and words[0].lower() in _ASKING:
        words = words[1:]
    return " ".join(words)


def query(question: str, thought: str) -> str:
    """What the thought is about, then the words of the question."""
    about = thought.partition(":")[0] if _SCAFFOLD.search(thought) else thought
    words = [*terms(about)[:16], *terms(question)]
    return " ".join(dict.fromkeys(words)) or question.strip()


def revision(question: str, text: str, thought: str, evidence: Sequence[str]) -> str:
    """The text with the sentences of the evidence that say most about the question and its last thought."""
    told = [sentence for passage in evidence for sentence in sentences(passage)]
    weighing = weights([question, *told])
    last = thought or text.rstrip().rpartition("\n\n")[2]
    wanted = stems(question) | stems(last)
    ranked = sorted(told, key=lambda sentence: -fit(wanted, sentence, weighing))
    known = sentences(text)
    added: list[str] = []
    for sentence in ranked:
        new = fit(wanted, sentence, weighing) and not is_alike(sentence, [*known, *added])
        if new and len(added) < _MOST_ADDED:
            added.append(sentence)
    if not added:
        return UNCHANGED
    return f"{(thought or text).rstrip()} {' '.join(sorted(added, key=told.index))}"


def answer(question: str, text: str) -> str:
    """The sentences of a text that fit the question best, in their order."""
    told = [sentence for sentence in sentences(text) if not _SCAFFOLD.search(sentence)] or sentences(text)
    weighing = weights([question, *told])
    wanted = stems(question)
    best = sorted(range(len(told)), key=lambda place: -fit(wanted, told[place], weighing))[:_MOST_TOLD]
    return " ".join(told[place] for place in sorted(best))


_SCAFFOLD = re.compile(r"what is known of it bears on the question\.$|^What is sought: ")
