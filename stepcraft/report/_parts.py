"""What the reports of all methods show alike: changes, passages and warnings."""

from collections.abc import Sequence

from stepcraft.evidence import Evidence
from stepcraft.report._html import NOTHING, Html, element, joined, link, listed, phrase, prose, section
from stepcraft.text.clean import clean
from stepcraft.text.diff import Piece, shortened, word_diff

_TAGS = {"removed": "del", "added": "ins"}


def counted(number: int, what: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def changes(before: str, after: str) -> Html:
    """What was removed and added; where much stays the same, the whole text is folded away."""
    whole = word_diff(clean(before).strip(), clean(after).strip())
    short = shortened(whole, 160)
    if short == whole:
        return _diff(whole)
    return joined([_diff(short), element("details", element("summary", "The whole text"), _diff(whole))])


def _diff(pieces: Sequence[Piece]) -> Html:
    shown = [text if kind == "same" else element(_TAGS[kind], text) for kind, text in pieces]
    return element("div", *shown, class_="prose diff", dir="auto")


def passage(found: Evidence, *, scored: bool = True) -> Html:
    """A passage behind its title, and where it came from."""
    title = phrase(found["title"] or "Untitled")
    score = element("span", f"{found['score']:.2f}", class_="score", title="How well it fits the query")
    heading = [score, " ", title] if scored else [title]
    folded = element("details", element("summary", *heading), prose(found["text"]))
    return joined([folded, _source(found)])


def passages(found: Sequence[Evidence]) -> Html:
    """Passages, best first as they come."""
    return listed(map(passage, found), "ul", class_="passages")


def source_line(found: Evidence) -> Html:
    """A passage by its title and its source alone."""
    score = element("span", f"{found['score']:.2f}", class_="score")
    return joined([score, " ", phrase(found["title"] or "Untitled"), _source(found)])


def _source(found: Evidence) -> Html:
    return element("div", link(found["source"]), class_="from") if found["source"] else NOTHING


def warned(warnings: Sequence[str]) -> Html:
    """The warnings, where there are any."""
    return section("warnings", "Warnings", listed(map(phrase, warnings))) if warnings else NOTHING


def badge(text: str, kind: str) -> Html:
    """A word or two on what became of something."""
    return element("span", text, class_=f"badge {kind}")
