"""Check extracted procedures without a model, and merge those from the parts of a document."""

import re
from collections.abc import Sequence
from typing import Any

from stepcraft.building.drafted import Drafted, Flagged, Rejected, Written
from stepcraft.building.grounding import Grounds, without_stand_ins
from stepcraft.building.nodes import PartRead
from stepcraft.building.settings import ExtractContext
from stepcraft.llm.node import State
from stepcraft.llm.resources import Resources
from stepcraft.sources.corpus.content import markdown_headings
from stepcraft.text.clean import normalised, stems
from stepcraft.text.markdown import shown_heading

_ANCHOR = re.compile(r"\{\s*+#([\w.:-]++)\s*+\}\s*+$")
_NUMBER = re.compile(r"^(?:step\s+)?\d+(?:\.\d+)*[.:)]?\s+")

_ALIKE = 0.6
"""The minimum share of words in common for outputs in two parts to count as the same task."""


def check(state: State, resources: Resources[ExtractContext]) -> dict[str, Any]:
    """Return the procedures in a document, and those that were rejected.

    A step with a name, call, option or number that is not in the document is flagged; with
    `strict`, its procedure is rejected. A procedure with a single step, or with an output equal to
    its input, is always rejected.
    """
    is_transcript = state["kind"] == "transcript"
    settings, text = resources.settings(state), f"{state['title']}\n{state['text']}"
    # The title counts as a heading, as on a page about a single task. A transcript has no headings,
    # and its procedures have placeholders for values.
    headings = [state["title"], *(heading.text for heading in markdown_headings(state["text"]))]
    grounds, readable = Grounds(text), _folded(text)
    drafts: list[Drafted] = []
    rejected: list[Rejected] = []
    for written in _without_repeats(state["written"], [] if is_transcript else headings):
        steps, heading = written["steps"], written["heading"]
        missing = grounds.missing([*map(without_stand_ins, steps)] if is_transcript else steps)
        reason = ""
        if len(steps) < 2:
            reason = "it has only one step"
        elif _folded(written["output"]) == _folded(written["input"]):
            reason = "its output is its input"
        elif missing and settings.strict:
            step, names = next(iter(missing.items()))
            reason = f"step {step} has what the document does not have: {', '.join(names)}"
        if reason:
            rejected.append(Rejected(output=written["output"], reason=reason, sentence=""))
            continue
        drafts.append(
            {
                **written,
                "heading": shown_heading(heading),
                "source": place_of(state["source"], heading),
                "flagged": [Flagged(step=step, names=names) for step, names in missing.items()],
            }
        )
    parts: list[PartRead] = state["written"]
    for task in (task for part in parts for task in part["rejected"]):
        is_copied = _folded(task["sentence"]) in readable
        entry: Rejected = task if is_copied else {**task, "sentence": ""}
        if entry not in rejected:
            rejected.append(entry)
    return {"procedures": drafts, "rejected": rejected}


def _without_repeats(parts: Sequence[PartRead], headings: Sequence[str]) -> list[Written]:
    """Return the procedures from all parts, with their headings matched to the document's.

    If a task in the overlap of two parts is found in both, the version with more steps is kept.
    """
    entries: list[tuple[int, Written]] = []
    for number, part in enumerate(parts):
        for written in part["procedures"]:
            entry: Written = {**written, "heading": find_heading(written["heading"], headings)}
            # Under the title, or a heading that occurs again, similar tasks may be different ones.
            is_single = headings[1:].count(entry["heading"]) == 1
            for place, (before, other) in enumerate(entries):
                is_near, is_alike = number - before < 2, number != before and is_single
                if is_near and _same_task(entry, other, is_alike=is_alike):
                    longer = max(other, entry, key=lambda each: len(each["steps"]))
                    entries[place] = number, longer
                    break
            else:
                entries.append((number, entry))
    return [entry for _, entry in entries]


def _same_task(procedure: Written, other: Written, *, is_alike: bool) -> bool:
    """Return whether heading and output are the same; if `is_alike`, similar outputs suffice."""
    if procedure["heading"] != other["heading"]:
        return False
    if is_alike and procedure["heading"]:
        words, others = stems(procedure["output"]), stems(other["output"])
        return len(words & others) >= _ALIKE * len(words | others)
    return _folded(procedure["output"]) == _folded(other["output"])


def _folded(text: str) -> str:
    return normalised(text).casefold()


def find_heading(copied: str, headings: Sequence[str]) -> str:
    """Return the document heading that a model copied, or "" if none matches.

    Models sometimes prefix it with the headings above it, as in "A > B".
    """
    wanted = filter(None, map(_words, (copied, copied.rpartition(" > ")[2])))
    alike = (heading for words in wanted for heading in headings if _words(heading) == words)
    return next(alike, "")


def place_of(source: str, heading: str) -> str:
    """Return a source with a heading as its fragment, in the form used by Markdown sites."""
    anchor = _ANCHOR.search(heading)
    slug = re.sub(r"[^\w\- ]", "", shown_heading(heading).lower()).strip().replace(" ", "-")
    fragment = anchor[1] if anchor else slug
    return f"{source}#{fragment}" if fragment and "#" not in source else source


def _words(heading: str) -> str:
    return _NUMBER.sub("", shown_heading(heading.strip().lstrip("#")).casefold())
