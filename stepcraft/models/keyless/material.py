"""The material in a prompt, and functions that match texts by the words they share."""

import html
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from stepcraft.contexts.rpg import MARKS
from stepcraft.text.clean import SPACELESS_STOPS, STOPS, stems, terms
from stepcraft.text.lists import without_number
from stepcraft.text.markdown import lines, replaced
from stepcraft.text.sections import Section, parse
from stepcraft.text.sentences import sentences

_SEPARATOR = re.compile(
    r"(?<![ \t])[ \t]*+[,;\n\uff0c\u3001][\s,;\uff0c\u3001]*+(?:and )?(?![^()`]{0,200}+\))"
)
_ENDED = re.compile(rf"[{STOPS}{SPACELESS_STOPS}][\"'\u201d\u2019)\]\u300d]*\Z")
_END = re.compile(rf"(?:{_ENDED.pattern}|\Z)")
_MARKUP = re.compile(
    r"^[ ]{0,3}(?:>[ ]?)++|!?\[(?P<link>[^\[\]\n]{0,200}+)\]\([^()\s]{0,300}+\)"
    r"|</?[a-z][a-z\d]{0,9}+(?:[ ][^<>\n]{0,100}+)?+>"
    r"|(?<![*_])(?P<mark>\*{1,3}+|_{1,3}+)(?=[^\s*_])(?P<text>[^*_\n]{1,300}+)(?<=\S)(?P=mark)(?!\w)",
    re.IGNORECASE | re.MULTILINE,
)
_NO_CLAIM = re.compile(r"\A#{1,6} |[:?\uff1a\uff1f]\W*\Z")
_ALIKE = 0.6
_MAX_COMPARED = 100
"""The maximum number of texts, best first, that are compared with those already known."""


class Material:
    """The sections in a prompt.

    Args:
        messages: The texts of the messages. The id of their `reply_format` section becomes `kind`.
    """

    def __init__(self, messages: Sequence[str]) -> None:
        self.last_message = "".join(messages[-1:])
        # The question may occur twice.
        self.sections = list(dict.fromkeys(each for text in messages for each in parse(text)))
        form = [*self.named("reply_format"), Section("", "", "")][0]
        self.kind, self.form = form.id, form.text
        self.question = " ".join(self.text("question").split())
        self.cites = any(MARKS in text for text in messages)

    def named(self, name: str) -> list[Section]:
        """Return the sections with the given name."""
        return [section for section in self.sections if section.name == name]

    def text(self, name: str) -> str:
        """Return the texts of the sections with the given name, joined by line breaks."""
        return "\n".join(section.text for section in self.named(name))

    @cached_property
    def resources(self) -> list[str]:
        """The resources that the prompt lists, split at commas, without duplicates."""
        things = _SEPARATOR.split(self.text("resources").strip(" .\n"))
        return list(dict.fromkeys(filter(None, things)))

    @cached_property
    def statements(self) -> list[str]:
        """The sentences to quote from passages, with citation marks if the prompt requests them."""
        return [
            _END.sub(rf" [{passage.id}]\g<0>", text, count=1) if self.cites else text
            for passage in self.named("passage")
            for text in _quotable(passage.text)
        ]


def statements(text: str, *, titles: bool = False) -> list[str]:
    """Return the sentences in a text's prose, without list numbers.

    Unless `titles` is set, lines without a final full stop are left out if others have one.
    """
    rows = (row for row, is_code in lines(text) if not (is_code or row.lstrip().startswith("|")))
    prose = html.unescape(replaced("".join(rows), _MARKUP, _without_markup))
    parts = [*map(without_number, sentences(prose))]
    return parts if titles else [part for part in parts if _ENDED.search(part)] or parts


def _quotable(passage: str) -> list[str]:
    """Return a passage's sentences without titles, questions and words that introduce a list."""
    first, below, _ = passage.partition("\n")
    parts = statements(passage)
    if below and parts[:1] == statements(first) and not _ENDED.search(first):
        del parts[0]  # the passage's title
    return [part for part in parts if not _NO_CLAIM.search(part)]


def _without_markup(markup: re.Match[str]) -> str:
    """Return the text of a link or of emphasis, or "" for a blockquote marker or an HTML tag."""
    return markup["link"] or markup["text"] or ""


def heading(text: str) -> str:
    """Return the words in a passage's first line that its sentences do not contain.

    Words in the sentences are omitted, as they tell sentences apart: "admin" in "the admin server".
    """
    title = text.partition("\n")[0]
    others = {*terms(" ".join(statements(text)))}
    is_title = len(title) < 200 and not _ENDED.search(title)
    return " ".join(word for word in terms(title) if word not in others) if is_title else ""


def scores(wanted: frozenset[str], texts: Sequence[str]) -> list[float]:
    """Return a score for each text: rare shared stems raise it, and length lowers it."""
    counts = Counter(stem for text in texts for stem in stems(text))
    # Sorted, because adding floats in another order changes the sum.
    return [
        sum(math.log(1 + len(texts) / counts[stem]) for stem in sorted(wanted & stems(text)))
        / math.sqrt(4 + len(stems(text)))
        for text in texts
    ]


def best(wanted: frozenset[str], texts: Sequence[str], most: int, known: str = "") -> list[str]:
    """Return the best texts, in their original order, that add something new to what is known."""
    chosen: list[str] = []
    seen = [stems(sentence) for sentence in sentences(known)]
    ranked = sorted(zip(scores(wanted, texts), texts, strict=True), key=lambda pair: -pair[0])
    for score, text in ranked[:_MAX_COMPARED]:
        familiar = max((len(stems(text) & other) for other in seen), default=0)
        if score and len(chosen) < most and familiar < _ALIKE * len(stems(text)):
            chosen.append(text)
            seen.append(stems(text))
    return sorted(chosen, key=texts.index)


def nearest(text: str, others: Sequence[str]) -> int:
    """Return the index of the text that best matches the given one."""
    fits = scores(stems(text), others)
    return fits.index(max(fits))


def mentions(text: str, thing: str) -> bool:
    """Return whether a text contains at least half of the words in a name."""
    return 2 * len(stems(thing) & stems(text)) >= len(stems(thing))
