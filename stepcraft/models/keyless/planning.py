"""Plans, segments and short answers put together from what is given, without a language model."""

from collections.abc import Sequence

from stepcraft.models.keyless.fit import fit, is_alike, stems, weights
from stepcraft.models.keyless.thinking import new_names, subjects
from stepcraft.text.clean import terms
from stepcraft.text.sections import COMPLETE, Section
from stepcraft.text.sentences import sentences

_MOST_WORDS = 70
_MOST_SENTENCES = 3
_NOTHING = "Nothing was found on: "
_END = ".!?\u3002\uff01\uff1f\"'\u201d)"


def plan(question: str, plans: Sequence[str], text: str) -> str:
    """The question; then what of it the text does not say; then the names that came up; then that nothing is left."""
    known = [stems(planned) for planned in plans]
    topics = _topics(question, text) if text else [question.strip()]
    return next((topic for topic in topics if topic and stems(topic) not in known), COMPLETE)


def _topics(question: str, text: str) -> list[str]:
    named = subjects(question)
    of_names = {word for name in named for word in terms(name)}
    sought = [word for word in dict.fromkeys(terms(question)) if word not in of_names]
    unsaid = [word for word in sought if not stems(word) <= stems(text)]
    missing = [name for name in named if not stems(name) <= stems(text)]
    told = new_names(question, text)[:1]
    return [
        *(f"{name}: {' '.join(sought)}" for name in (*missing, *(told if unsaid else []))),
        f"{', '.join(named)}: {' '.join(unsaid)}" if unsaid else "",
    ]


def segment(question: str, topic: str, text: str, evidence: Sequence[Section], *, cites: bool) -> str:
    """The sentences of the evidence that fit the plan and the question best and say something new."""
    told = [(sentence, passage.id) for passage in evidence for sentence in sentences(passage.text)]
    ended = [pair for pair in told if pair[0][-1:] in _END] or told
    weighing = weights([question, *(sentence for sentence, _ in ended)])
    wanted = stems(topic) | stems(question)
    known, left = sentences(text), _MOST_WORDS
    kept: list[int] = []
    for place in sorted(range(len(ended)), key=lambda place: -fit(wanted, ended[place][0], weighing)):
        sentence = ended[place][0]
        words = max(len(sentence.split()), len(sentence.encode("utf-8", "replace")) // 6)
        if len(kept) < _MOST_SENTENCES and (words <= left or not kept) and not is_alike(sentence, known):
            kept.append(place)
            known.append(sentence)
            left -= words
    said = [_cited(*ended[place]) if cites else ended[place][0] for place in sorted(kept)]
    return " ".join(said) or f"{_NOTHING}{topic or question}"


def _cited(sentence: str, number: str) -> str:
    """The mark before the full stop, so that it stays with its sentence."""
    end = len(sentence.rstrip(_END))
    return f"{sentence[:end]} [{number}]{sentence[end:]}"


def combined(question: str, text: str) -> str:
    """The sentence that fits the question best."""
    told = [sentence for sentence in sentences(text) if not sentence.startswith(_NOTHING)]
    weighing = weights([question, *told])
    return max(told, key=lambda sentence: fit(stems(question), sentence, weighing), default=text)
