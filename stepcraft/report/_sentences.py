"""An answer whose every sentence shows its evidence: where it is pointed at, clicked, or entered; on paper as notes.

All of it is markup: a sentence is the label of a button, and the button opens a popover, which Escape closes.
"""

from collections.abc import Sequence

from stepcraft.report._grounds import Ground, Stated
from stepcraft.report._html import NOTHING, Html, element, joined, link, listed, phrase
from stepcraft.report._parts import counted

_QUOTED = 600
"""A longer sentence, or a passage that was chosen whole, is cut; the passages below have all of it."""


def answer(sentences: Sequence[Stated]) -> Html:
    """The text, a word on how to read it, and the notes for paper."""
    text = joined(_sentence(number, given) for number, given in enumerate(sentences, 1))
    shown = element("div", text, class_="prose answer", dir="auto")
    return joined([shown, _hint(sentences), _notes(sentences)])


def _sentence(number: int, given: Stated) -> Html:
    if not given.grounds:
        return joined([given.before, given.text])
    label = element("label", given.text, for_=f"mark-{number}")
    cited = _ranges([ground.number for ground in given.grounds])
    mark = element(
        "button",
        cited,
        id=f"mark-{number}",
        class_="mark",
        type="button",
        popovertarget=f"evidence-{number}",
        aria_label=f"Evidence: {'passage' if len(given.grounds) == 1 else 'passages'} {cited}",
    )
    evidence = element(
        "div",
        listed(map(_quoted, given.grounds), class_="quoted"),
        id=f"evidence-{number}",
        class_="evidence",
        popover="",
    )
    return joined([given.before, element("div", label, mark, evidence, class_="sentence")])


def _ranges(numbers: Sequence[int]) -> str:
    """With three in a row or more as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _quoted(ground: Ground) -> Html:
    number = element("span", str(ground.number), class_="number")
    heading = element("p", number, " ", phrase(ground.passage["title"] or "Untitled", "b"))
    quotes = [phrase(_cut(sentence), "blockquote") for sentence in ground.sentences]
    return joined([heading, *quotes, _from(ground)])


def _from(ground: Ground) -> Html:
    source = ground.passage["source"]
    return element("div", link(source), class_="from") if source else NOTHING


def _cut(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED].rstrip()} …"


def _hint(sentences: Sequence[Stated]) -> Html:
    bare = sum(not given.grounds for given in sentences)
    if bare == len(sentences):
        return element("p", "No sentence of it rests on evidence.", class_="note") if sentences else NOTHING
    how = element(
        "p",
        "Point at a sentence to see its evidence; a click keeps it open, Escape closes it.",
        class_="note hint",
    )
    without = element("p", f"{counted(bare, 'sentence')} without a number: no evidence.", class_="note")
    return joined([how, without if bare else NOTHING])


def _notes(sentences: Sequence[Stated]) -> Html:
    """Each passage that a sentence names, with all that was chosen from it for any of them."""
    merged: dict[int, Ground] = {}
    for ground in (ground for given in sentences for ground in given.grounds):
        known = merged.get(ground.number, ground).sentences
        chosen = tuple(dict.fromkeys([*known, *ground.sentences]))
        merged[ground.number] = Ground(ground.number, ground.passage, chosen)
    return listed((_quoted(merged[number]) for number in sorted(merged)), "ol", class_="footnotes")
