"""What a document says to the model that reads it rather than to people: text that no reader sees, and instructions.

It is high precision rather than complete, because documentation quotes such text where it warns of it: only whole
sentences in prose count, never code or what stands in quotation marks. What it misses meets the sections of the prompt.
"""

import re
from collections.abc import Iterator

from stepcraft.text.markdown import outside_code
from stepcraft.text.sentences import sentences

_COMMENTS = (("<!--", "-->"), ("{/*", "*/}"))
"""What opens and closes a comment in HTML and in MDX."""
_UNSEEN = re.compile("[\U000e0000-\U000e007f]+")
"""Letters that no font has."""
_PARAGRAPH = re.compile(r"\S[^\n]*(?:\n[ \t]*\S[^\n]*)*")
_SUSPECT = re.compile(
    r"ignor|disregard|forget|overrid|system prompt|instruction|from now on|\b(?:AI|LLM|language model|chatbot)s?\b"
    r"|\u5ffd\u7565|\u65e0\u89c6|\u7121\u8996",
    re.IGNORECASE,
)
"""What every sentence below has a word of."""

_MODEL = (
    r"(?:AIs?|LLMs?|(?:large )?language models?|chat ?bots?|AI (?:assistant|agent|model|system|tool|reader|crawler)s?"
    r"|(?:coding|AI coding) (?:assistant|agent)s?)"
)
_ADDRESSED = re.compile(
    r"[\W\d_]{0,12}(?:(?:important|note|notice|attention|warning|urgent|system)\b[\W_]{1,4})?(?:"
    # Ignore all previous instructions. Disregard everything above. Forget what you were told.
    r"(?:(?:please|now|you|must|should|will|first|then|also|kindly|\w+ly)[, ]++){0,4}"
    r"(?:ignore|disregard|forget|override|bypass)\s++(?:(?:all|any|of|the|these|those|every|other|\w+ly)\s++){0,4}"
    r"(?:(?:previous|prior|preceding|above|earlier|foregoing|former)\s++(?:\w++\s++){0,2}"
    r"(?:instruction|prompt|rule|direction|guideline|directive|order|command)s?\b"
    r"|your\s++(?:\w++\s++){0,2}(?:instructions|prompt|rules|guidelines|safety)\b"
    r"|instructions?\s++(?:above|before|so far|(?:that )?you)\b|(?:everything|anything|all)\s++(?:\w++\s++)?(?:above|before)\b"
    r"|(?:what(?:ever)?|everything|anything|all)\s++(?:that\s++)?you\s++(?:were|have been|are)\s++told\b)"
    # Note to AI assistants: …  If you are a language model, …  AI agents: …
    rf"|(?:(?:note|notice|message|instructions?|attention)(?:\s*+,)?\s++)?(?:to|for)\s++(?:all\s++|any\s++|the\s++)?{_MODEL}\b"
    rf"(?:[^.:,\n]{{0,60}}\b(?:reading|processing|summari[sz]ing|parsing|indexing|crawling)\b[^.:,\n]{{0,40}})?\s*+[:,]"
    rf"|if you are an?\s++{_MODEL}\b"
    rf"|(?:hey |dear |hello |attention,? )?(?:all )?{_MODEL}(?:\s++(?:reading|processing|summari[sz]ing|parsing)\b[^.:,\n]{{0,40}})?\s*+[:,]\s++"
    r"(?:you (?:must|should|will)|please|always|never|do not|don't|add|execute|ignore|include|insert|output|remember|run|save|store|write)\b"
    r"|from now on,? you (?:are|will|must|act|should)\b"
    r"|(?:reveal|print|repeat|output|show|tell me)\s++(?:\w++\s++)?your\s++(?:\w++\s++){0,2}(?:system prompt|instructions)\b"
    # the same in German, Spanish, French and Chinese
    r"|ignorier(?:e|en sie)\s++(?:\w++\s++){0,2}(?:vorherigen|bisherigen|obigen|fr\u00fcheren)\s++(?:anweisungen|instruktionen)"
    r"|ignor[ae]\s++(?:\w++\s++){0,2}(?:las|les)?\s*+instrucciones\s++(?:anteriores|previas)"
    r"|ignor(?:e|ez)\s++(?:\w++\s++){0,2}les\s++instructions\s++(?:pr\u00e9c\u00e9dentes|ci-dessus)"
    r"|(?:\u8bf7|\u8acb)?(?:\u5ffd\u7565|\u65e0\u89c6|\u7121\u8996)(?:\u6240\u6709|\u4e4b\u524d|\u4ee5\u4e0a|\u4e0a\u8ff0|\u524d\u9762|\u7684|\u4e00\u5207){1,4}(?:\u6307\u4ee4|\u6307\u793a|\u8bf4\u660e|\u63d0\u793a)"
    r")",
    re.IGNORECASE,
)


def addressed(text: str) -> str:
    """Return the first sentence of a text that gives instructions to the model that reads it, "" if there is none."""
    if not _SUSPECT.search(text):
        return ""
    prose = "".join(text[start:stop] if code else "`\u2026`" for start, stop, code in _pieces(text))
    return next((sentence for sentence in sentences(prose) if _ADDRESSED.match(sentence)), "")


def for_people(text: str) -> tuple[str, list[str]]:
    """Return the text as its readers see it, and the sentences for which paragraphs were left out.

    Blanks stand for comments, invisible letters and paragraphs with instructions to a model, so that all offsets stay.
    Code is left as it is.
    """
    seen = as_shown(text)
    kept = list(seen)
    found: list[str] = []
    for paragraph in _PARAGRAPH.finditer(seen) if _SUSPECT.search(seen) else ():
        if sentence := addressed(paragraph[0]):
            found.append(sentence)
            kept[paragraph.start() : paragraph.end()] = _blank(paragraph[0])
    return "".join(kept), found


def as_shown(text: str) -> str:
    """Return a Markdown text as its readers see it: blanks stand for comments and for letters that no font has."""
    kept = list(text)
    for start, stop in _hidden(text):
        kept[start:stop] = _blank(text[start:stop])
    return "".join(kept)


def _hidden(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of comments that begin outside of code, and of letters that nobody sees."""
    yield from (unseen.span() for unseen in _UNSEEN.finditer(text))
    for opening, closing in _COMMENTS:
        if opening not in text:
            continue
        end = 0
        for start, stop in outside_code(text):
            while (begun := text.find(opening, max(start, end), stop)) >= 0:
                closed = text.find(closing, begun + len(opening))
                if closed < 0:
                    end = len(text)
                    break
                end = closed + len(closing)
                yield begun, end


def _blank(text: str) -> str:
    return "".join("\n" if character == "\n" else " " for character in text)


def _pieces(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the offsets of prose and of code in turn, each with whether it is prose."""
    end = 0
    for start, stop in [*outside_code(text), (len(text), len(text))]:
        if end < start:
            yield end, start, False
        if start < stop:
            yield start, stop, True
        end = stop
