"""Replies of the keyless model in RAT, RPG and the baselines: thoughts, queries, plans, segments and answers."""

import re
from collections.abc import Sequence

from stepcraft.models.keyless import procedures
from stepcraft.models.keyless.material import Material, fit, is_alike, weights
from stepcraft.text.citations import with_marks
from stepcraft.text.clean import CAPITALS, SPACELESS_STOPS, STOP_WORDS, STOPS, stems, terms
from stepcraft.text.lists import read_steps
from stepcraft.text.sections import COMPLETE, NOT_SAID, UNCHANGED
from stepcraft.text.sentences import sentences
from stepcraft.text.thoughts import split_thoughts

MAX_THOUGHTS = 5
_MAX_ADDED = 2
_MAX_ANSWER = 5
_MAX_SEGMENT_WORDS = 70
_MAX_SEGMENT = 3
_MAX_TRIED = 100
"""The most sentences that are compared with all those of the text so far, the best first."""

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
_PARAGRAPH = re.compile(r"^\[[0-9]{1,3}\] ", re.MULTILINE)
_LIST_NUMBER = re.compile(r"\A\d{1,3}[.)]\s+")
_ENDED = re.compile(rf"[{STOPS}{SPACELESS_STOPS}][\"'\u201d\u2019)\]\u300d]*\Z")
"""The end of a sentence, which titles and headings lack."""
_END = ".!?\u3002\uff01\uff1f\"'\u201d)"

_BEARS = ": what is known of it bears on the question."
_SOUGHT = "What is sought: "
_NOTHING = "No evidence was found for this."
_ONE_FACT = re.compile(
    r"\s*(?:who|when|where|whose|how (?:many|much|old|long|tall|far)|(?:in )?(?:which|what) \w+ (?:was|is|did|does))\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(rf"(.+){re.escape(_BEARS)}")
_SCAFFOLD = re.compile(rf"{re.escape(_BEARS)}$|^{re.escape(_SOUGHT)}")


def think(material: Material) -> str:
    """Write one thought for each thing that the question names, and one for what it asks about them."""
    question = material.text("question")
    named = _subjects(question)
    sought = " ".join(word for word in terms(question) if not any(word in name.lower() for name in named))
    about = [f"{name}{_BEARS}" for name in named]
    return "\n\n".join([*about, f"{_SOUGHT}{sought or question.strip()}."][:MAX_THOUGHTS])


def reason(material: Material) -> str:
    """Write thoughts, and the last of them again as the answer."""
    thoughts = think(material)
    return f"{thoughts}\n\nANSWER\n{thoughts.rpartition(chr(10) * 2)[2]}"


def reply(material: Material) -> str:
    """Answer from the evidence, as procedures or as prose; without evidence, write thoughts."""
    passages = material.text("evidence")
    if not passages:
        return think(material)
    told = procedures.answer(material)
    return told if told != NOT_SAID else _best_sentences(material.text("question"), passages)


def split(material: Material) -> str:
    """Split a text at its blank lines."""
    return "\n=====\n".join(split_thoughts(material.text("text")))


def query(material: Material) -> str:
    """Write a query: what the thought is about and what the question seeks; for the last thought, with new names."""
    question, thought = material.text("question"), material.text("thought")
    if match := _SUBJECT.fullmatch(thought.strip()):
        others = {term for name in _subjects(question) if name != match[1] for term in terms(name)}
        words = [*terms(match[1]), *(term for term in terms(question) if term not in others)]
    elif thought.startswith(_SOUGHT):
        names = _new_names(question, material.text("text"))
        words = [*(term for name in names for term in terms(name)), *terms(thought)[1:]]
    else:
        words = [*terms(thought)[:20], *terms(question)]
    return " ".join(dict.fromkeys(words)) or question.strip()


def revise(material: Material) -> str:
    """Add to the text the sentences of the evidence that say most about the question and the last thought."""
    text = material.text("thought") or material.text("text")
    added = _added(material)
    return f"{text.rstrip()} {added}" if added else UNCHANGED


def revise_paragraphs(material: Material) -> str:
    """As `revise`, with the last paragraph alone, behind its number."""
    text = material.text("text").rstrip()
    added = _added(material)
    last = max((found.start() for found in _PARAGRAPH.finditer(text)), default=0)
    return f"{text[last:]} {added}" if added else UNCHANGED


def _added(material: Material) -> str:
    question, text, thought = (material.text(name) for name in ("question", "text", "thought"))
    passages = [section.text for section in material.named("evidence")]
    told = [one for passage in passages for one in _statements(passage) if _ENDED.search(one)]
    weighing = weights([question, *told])
    wanted = stems(question) | stems(thought or text.rstrip().rpartition("\n\n")[2])
    known = [stems(sentence) for sentence in sentences(text)]
    added: list[str] = []
    for sentence in sorted(told, key=lambda sentence: -fit(wanted, sentence, weighing))[:_MAX_TRIED]:
        if len(added) == _MAX_ADDED or not fit(wanted, sentence, weighing):
            break
        if not is_alike(sentence, known):
            added.append(sentence)
            known.append(stems(sentence))
    return " ".join(sorted(added, key=told.index))


def finish(material: Material) -> str:
    """Answer with the sentences of the text that fit the question best, in their order."""
    return _best_sentences(material.text("question"), material.text("text"))


def article(material: Material) -> str:
    """Put the question above the answer as a title."""
    return f"# {material.text('question')}\n\n{finish(material)}"


def outline(material: Material) -> str:
    """Plan a topic for each of several names of the question, else the question itself; say which kind it is."""
    question = material.text("question")
    named = _subjects(question)
    sought = " ".join(word for word in terms(question) if not any(word in name.lower() for name in named))
    topics = [f"{name}: {sought}" for name in named] if len(named) > 1 else [question.strip()]
    kind = "short" if len(topics) == 1 and _ONE_FACT.match(question) else "long"
    kinds = [kind] if "multihop" in material.instructions else []
    return "\n".join([*kinds, *(f"- {topic}" for topic in topics)])


def plan(material: Material) -> str:
    """Plan the question itself, then what the text lacks of it, then the names that came up, until nothing is left."""
    question, text = material.text("question"), material.text("text")
    known = [stems(planned) for planned in read_steps(material.text("plans"))]
    topics = _topics(question, text) if text else [question.strip()]
    return next((topic for topic in topics if topic and stems(topic) not in known), COMPLETE)


def segment(material: Material) -> str:
    """Take the sentences of the evidence that fit plan and question best and are new; cite them if the format does."""
    question, topic, text = (material.text(name) for name in ("question", "plan", "text"))
    told = [(one, passage.id) for passage in material.named("evidence") for one in _statements(passage.text)]
    told = [pair for pair in told if pair[0][-1:] in _END] or told
    weighing = weights([question, *(sentence for sentence, _ in told)])
    wanted = stems(topic) | stems(question)
    known, left = [stems(sentence) for sentence in sentences(text)], _MAX_SEGMENT_WORDS
    kept: list[int] = []
    best = sorted(range(len(told)), key=lambda place: -fit(wanted, told[place][0], weighing))
    for place in best[:_MAX_TRIED]:
        sentence = told[place][0]
        words = max(len(sentence.split()), len(sentence.encode("utf-8", "replace")) // 6)
        if len(kept) < _MAX_SEGMENT and (words <= left or not kept) and not is_alike(sentence, known):
            kept.append(place)
            known.append(stems(sentence))
            left -= words
    cites = "[1]" in material.instructions
    written = [
        with_marks(told[place][0], [int(told[place][1])]) if cites else told[place][0]
        for place in sorted(kept)
    ]
    return " ".join(written) or _NOTHING


def combine(material: Material) -> str:
    """Return the one sentence of the text that fits the question best."""
    question, text = material.text("question"), material.text("text")
    told = [sentence for sentence in sentences(text) if sentence != _NOTHING]
    weighing = weights([question, *told])
    return max(told, key=lambda sentence: fit(stems(question), sentence, weighing), default=text)


def join(material: Material) -> str:
    """Return the text as it is, without sentences that say that nothing was found."""
    text = material.text("text")
    return text.replace(_NOTHING, "").strip() or text


def check(_material: Material) -> str:
    """Take every sentence as borne out: they are those of the evidence."""
    return "NONE"


def gist(material: Material, last_message: str) -> str:
    """Return the first sentences of the evidence, or else of the last message."""
    told = material.text("evidence") or last_message
    return " ".join(sentences(told[:2000])[:3]) or "There is nothing to work with."


def _subjects(question: str) -> list[str]:
    return _names(question)[: MAX_THOUGHTS - 1]


def _names(text: str) -> list[str]:
    """Return the names in a text, each once, in order."""
    found: list[str] = []
    for match in _NAME.finditer(text):
        words = next(filter(None, match.groups())).strip(" .'\u2019").split()
        while words and words[0].lower() in _ASKING:
            words.pop(0)
        found.append(" ".join(words))
    return list(dict.fromkeys(name for name in found if len(name) > 1))


def _new_names(question: str, text: str) -> list[str]:
    """Return the names that the question lacks in the sentences of the text that fit it best."""
    told = [sentence for sentence in sentences(text) if not _SCAFFOLD.search(sentence)]
    weighing = weights([question, *told])
    wanted = stems(question)
    best = sorted(told, key=lambda sentence: -fit(wanted, sentence, weighing))[:2]
    known = set(terms(question))
    names = dict.fromkeys(name for sentence in best for name in _names(sentence))
    return [name for name in names if not known & set(terms(name))][:3]


def _statements(text: str) -> list[str]:
    """Return the sentences of a passage without the path of its headings and the numbers of a list."""
    first, _, below = text.partition("\n")
    told = below if below and " \u203a " in first else text
    return [_LIST_NUMBER.sub("", sentence) for sentence in sentences(told)]


def _best_sentences(question: str, text: str) -> str:
    told = [one for one in _statements(text) if not _SCAFFOLD.search(one)] or _statements(text)
    weighing = weights([question, *told])
    wanted = stems(question)
    best = sorted(range(len(told)), key=lambda place: -fit(wanted, told[place], weighing))[:_MAX_ANSWER]
    return " ".join(told[place] for place in sorted(best))


def _topics(question: str, text: str) -> Sequence[str]:
    """Return what to look up next: each missing name, a new name, then the words that the text lacks."""
    named = _subjects(question)
    of_names = {word for name in named for word in terms(name)}
    sought = [word for word in dict.fromkeys(terms(question)) if word not in of_names]
    unsaid = [word for word in sought if not stems(word) <= stems(text)]
    missing = [name for name in named if not stems(name) <= stems(text)]
    told = _new_names(question, text)[:1] if unsaid else []
    return [
        *(f"{name}: {' '.join(sought)}" for name in (*missing, *told)),
        f"{', '.join(named)}: {' '.join(unsaid)}" if unsaid else "",
    ]
