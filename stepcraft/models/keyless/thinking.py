"""Thoughts, queries, revisions and answers put together from what is given, without a language model."""

import re
from collections.abc import Sequence

from stepcraft.models.keyless.fit import fit, is_alike, stems, weights
from stepcraft.text.clean import CAPITALS, STOP_WORDS, terms
from stepcraft.text.sections import UNCHANGED
from stepcraft.text.sentences import sentences

MOST_THOUGHTS = 5
_MOST_ADDED = 2
_MOST_TOLD = 5

_NAME = re.compile(
    r"[\"\u201c\u300c\u300a]([^\"\u201c\u201d\u300c\u300d\u300a\u300b\n]{2,60})[\"\u201d\u300d\u300b]"  # quoted
    r"|`([^`\n]{2,60})`"
    rf"|\b([{CAPITALS}][\w.&'\u2019-]*(?:\s+(?:(?:of|the|and|de|la|von|van|in|for|on)\s+)*[{CAPITALS}0-9][\w.&'\u2019-]*)*)"
)
_ASKING = STOP_WORDS | {
    "name",
    "list",
    "give",
    "tell",
    "explain",
    "describe",
    "write",
    "compare",
    "are",
    "the",
}
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)\]\u300d]*\Z")
"""Titles and headings are no sentences."""

_BEARS = ": what is known of it bears on the question."
_SOUGHT = "What is sought: "
_SUBJECT = re.compile(rf"(.+){re.escape(_BEARS)}")
_SCAFFOLD = re.compile(rf"{re.escape(_BEARS)}$|^{re.escape(_SOUGHT)}")


def thoughts(question: str) -> str:
    """One thought for each thing that a question names, and one for what it asks of them."""
    named = subjects(question)
    about = [f"{name}{_BEARS}" for name in named]
    sought = " ".join(word for word in terms(question) if not any(word in name.lower() for name in named))
    return "\n\n".join([*about, f"{_SOUGHT}{sought or question.strip()}."][:MOST_THOUGHTS])


def subjects(question: str) -> list[str]:
    """The names in a question, each once, in order."""
    return _names(question)[: MOST_THOUGHTS - 1]


def _names(text: str) -> list[str]:
    found = (next(filter(None, match.groups())).strip(" .'\u2019") for match in _NAME.finditer(text))
    return list(dict.fromkeys(name for name in map(_without_asking, found) if len(name) > 1))


def _without_asking(name: str) -> str:
    words = name.split()
    while words and words[0].lower() in _ASKING:
        words = words[1:]
    return " ".join(words)


def query(question: str, text: str, thought: str) -> str:
    """What the thought is about and what the question seeks; for the last one, with the names that came up since."""
    if match := _SUBJECT.fullmatch(thought.strip()):
        others = {term for name in subjects(question) if name != match[1] for term in terms(name)}
        words = [*terms(match[1]), *(term for term in terms(question) if term not in others)]
    elif thought.startswith(_SOUGHT):
        words = [*(term for name in new_names(question, text) for term in terms(name)), *terms(thought)[1:]]
    else:
        words = [*terms(thought)[:20], *terms(question)]
    return " ".join(dict.fromkeys(words)) or question.strip()


def new_names(question: str, text: str) -> list[str]:
    """The names in the sentence that fits the question best that the question does not have."""
    told = [sentence for sentence in sentences(text) if not _SCAFFOLD.search(sentence)]
    weighing = weights([question, *told])
    wanted = stems(question)
    best = sorted(told, key=lambda sentence: -fit(wanted, sentence, weighing))[:2]
    known = set(terms(question))
    names = (name for sentence in best for name in _names(sentence))
    return [name for name in dict.fromkeys(names) if not known & set(terms(name))][:3]


def revision(question: str, text: str, thought: str, evidence: Sequence[str]) -> str:
    """The text with the sentences of the evidence that say most about the question and its last thought."""
    told = [sentence for passage in evidence for sentence in sentences(passage) if _ENDED.search(sentence)]
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
