"""What the page of each method shows, prepared for its template."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepcraft.llm.budget import NodeUsage, Usage
from stepcraft.report._grounds import (
    CitedSentence,
    cited_sentences,
    grounds_of,
    marked_passage,
    merged,
    ranges,
)
from stepcraft.report.rendering import counted, seconds
from stepcraft.segments import support
from stepcraft.text.citations import with_marks_of
from stepcraft.text.clean import clean
from stepcraft.text.diff import shortened, word_diff
from stepcraft.text.patch import StepChange
from stepcraft.text.sections import NOT_SAID


@dataclass(frozen=True)
class StepTime:
    """When one step of a run began and ended, in seconds from the start of the run."""

    node: str
    began: float
    ended: float


@dataclass(frozen=True)
class View:
    """What a page shows of a run, beside what all pages show."""

    template: str
    title: str
    """The method, spelled out."""
    facts: list[str]
    """The run in a few figures."""
    sections: list[tuple[str, str]]
    """The id of each section, and what the navigation calls it."""
    data: dict[str, Any]
    """Values for the template."""


def _rat(_given: Mapping[str, Any], result: Mapping[str, Any]) -> View:
    thoughts = [_thought(revision) for revision in result["revisions"]]
    changed = sum(thought["changed"] for thought in thoughts)
    skipped = sum(bool(thought["skipped"]) for thought in thoughts)
    return View(
        template="rat.html.j2",
        title="Retrieval-augmented thoughts",
        facts=[
            counted(len(thoughts), "thought"),
            f"{changed:,} changed",
            *([f"{skipped:,} skipped"] if skipped else []),
            counted(len(result["evidence"]), "passage"),
        ],
        sections=[("answer", "Answer"), ("thoughts", "Thoughts"), ("sources", "Sources")],
        data={"thoughts": thoughts},
    )


def _thought(revision: Mapping[str, Any]) -> dict[str, Any]:
    """A revision with its outcome and its word diff; the whole diff is kept apart where the short one differs."""
    if revision["skipped"]:
        outcome = ("skipped", "skipped")
    else:
        outcome = ("changed", "changed") if revision["changed"] else ("not changed", "same")
    if not revision["changed"]:
        return {**revision, "outcome": outcome}
    whole = word_diff(clean(revision["before"]).strip(), clean(revision["after"]).strip())
    short = shortened(whole, 160)
    return {**revision, "outcome": outcome, "diff": short, "whole_diff": [] if short == whole else whole}


_REVIEW_OUTCOMES = {
    "accept": ("accepted", "same"),
    "edit": ("edited", "changed"),
    "reject": ("rejected", "skipped"),
}
_CRITIQUE_OUTCOMES = {
    "content": ("nothing to change", "same"),
    "open": ("not applied", "skipped"),
    "unverified": ("applied, not looked at again", "changed"),
    "verified": ("applied and looked at again", "changed"),
    "skipped": ("could not be applied", "skipped"),
}


def _aag(given: Mapping[str, Any], result: Mapping[str, Any]) -> View:
    resources = given.get("resources") or ""
    titles = {found["id"]: (number, found["title"]) for number, found in enumerate(result["evidence"], 1)}
    questions = [
        {
            **asked,
            "answered": asked["answer"] not in {"", NOT_SAID},
            "passages": [titles[name] for name in asked["evidence"] if name in titles],
        }
        for asked in result["questions"]
    ]
    critiques = [
        {
            "outcome": _CRITIQUE_OUTCOMES[critique["status"]],
            "edits": critique["edits"],
            "changes": [_change(change) for change in critique.get("changes", [])],
        }
        for critique in result["critiques"]
    ]
    return View(
        template="aag.html.j2",
        title="Analogy-augmented generation",
        facts=[
            counted(len(result["steps"]), "step"),
            counted(len(questions), "question"),
            counted(sum(len(critique["edits"]) for critique in critiques), "edit"),
            counted(len(result["evidence"]), "procedure"),
        ],
        sections=[
            ("steps", "Steps"),
            ("questions", "Questions"),
            ("critiques", "Critiques"),
            *([("reviews", "Reviews")] if result.get("reviews") else []),
            *([("names", "Names")] if result["names"] else []),
            ("procedures", "Procedures"),
        ],
        data={
            "resources": (resources if isinstance(resources, str) else ", ".join(resources)).strip(),
            "questions": questions,
            "critiques": critiques,
            "reviews": [
                {**said, "outcome": _REVIEW_OUTCOMES[said["type"]]} for said in result.get("reviews", [])
            ],
            "names": [
                {
                    **name,
                    "passages": [titles[place] for place in name["found_in"] if place in titles],
                    "others": [place for place in name["found_in"] if place in {"goal", "resources"}],
                }
                for name in result["names"]
            ],
        },
    )


def _change(change: StepChange) -> dict[str, Any]:
    """A change of a step with its word diff."""
    step = f"step {change['step']}"
    added = f"Added after {step}" if change["step"] else "Added before step 1"
    title = added if not change["before"] else f"{step.capitalize()}{'' if change['after'] else ', removed'}"
    return {
        "title": title,
        "diff": shortened(word_diff(clean(change["before"]), clean(change["after"])), 160),
    }


def _rpg(given: Mapping[str, Any], result: Mapping[str, Any]) -> View:
    segments, evidence = result["segments"], result["evidence"]
    unsupported = sum(segment["unsupported"] for segment in segments)
    inline = given.get("citations") == "inline"
    sentences = cited_sentences(result, inline=inline)
    known = {passage["id"] for passage in evidence}
    # The marks of the segments number all passages that were used, those of the answer the passages that it cites.
    marked = "sentences" in result and (inline or not given.get("paper"))
    return View(
        template="rpg.html.j2",
        title="Retrieve, plan, generate",
        facts=[
            counted(len(segments), "segment"),
            *([f"{unsupported:,} without evidence"] if unsupported else []),
            counted(sum(len(segment["sentences"]) for segment in segments), "chosen sentence"),
            counted(len(evidence), "cited passage" if "sentences" in result else "passage"),
        ],
        sections=[("answer", "Answer"), ("segments", "Segments"), ("passages", "Passages")],
        data={
            "sentences": [
                {
                    "before": sentence.before,
                    "text": sentence.text,
                    "grounds": sentence.grounds,
                    "numbers": ranges([ground.number for ground in sentence.grounds]),
                    "supported": sentence.supported,
                }
                for sentence in sentences
            ],
            "support": _support(sentences),
            "notes": merged(sentences),
            "segments": [
                {
                    **segment,
                    "text": with_marks_of(segment["text"], ()) if marked else segment["text"],
                    "grounds": [
                        (ground, marked_passage(ground)) for ground in grounds_of([segment], evidence)
                    ],
                    "uncited": [
                        sentence["text"]
                        for sentence in segment["sentences"]
                        if sentence["passage"] not in known
                    ],
                }
                for segment in segments
            ],
            "scored": _is_scored(evidence),
        },
    )


def _support(sentences: Sequence[CitedSentence]) -> str:
    """How many sentences rest on evidence, and how the others are shown."""
    unsupported = [sentence for sentence in sentences if not sentence.supported]
    flagged = sum(bool(sentence.grounds) for sentence in unsupported)
    told = [support(len(sentences) - len(unsupported), len(unsupported))]
    if 0 < len(unsupported) < len(sentences):
        told.append("\u2205 marks a sentence that does not rest on evidence.")
    if flagged:
        objected = (
            "is not borne out by what it cites" if flagged == 1 else "are not borne out by what they cite"
        )
        told.append(f"A check found that {flagged:,} of them {objected}.")
    return " ".join(told)


def _baseline(
    title: str, noun: str, heading: str, _given: Mapping[str, Any], result: Mapping[str, Any]
) -> View:
    """The page of a baseline: its answer and, if it searches, its evidence."""
    return View(
        template="baseline.html.j2",
        title=f"Baseline: {title}",
        facts=[counted(len(result["evidence"]), noun)] if noun else [],
        sections=[("answer", "Answer"), *([("evidence", heading)] if noun else [])],
        data={
            "searches": bool(noun),
            "evidence_title": heading,
            "scored": _is_scored(result["evidence"]),
        },
    )


def _is_scored(evidence: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the passages were found by a search; those given with the input or drawn at random score 0."""
    return any(found["score"] for found in evidence)


VIEWS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], View]] = {
    "rat": _rat,
    "aag": _aag,
    "rpg": _rpg,
    "direct": partial(_baseline, "direct answer", "", ""),
    "cot": partial(_baseline, "chain of thought", "", ""),
    "rag": partial(_baseline, "retrieval-augmented generation", "passage", "Passages"),
    "few_shot": partial(_baseline, "few-shot examples", "example", "Examples"),
    "react": partial(_baseline, "ReAct agent", "passage", "Passages"),
}
"""From the name of a graph, the input and the output of a run to what its page shows."""


def cost_tables(steps: Sequence[StepTime], usage: Usage) -> dict[str, Any]:
    """Return the table of time and tokens (`rows` and `totals`) and the bars of the timeline."""
    end = max((step.ended for step in steps), default=0.0)
    rows: list[list[str]] = []
    for node in dict.fromkeys([*(step.node for step in steps), *usage["nodes"]]):
        runs = [step for step in steps if step.node == node]
        busy = sum(step.ended - step.began for step in runs) if runs else None
        rows.append(_row(node, len(runs) or None, busy, usage["nodes"].get(node)))
    totals = [_row("Total", len(steps), end, usage)]
    if "discarded" in usage:
        totals.append(_row("of which discarded", None, None, usage["discarded"]))
    bars = [
        {
            "node": step.node,
            "began": seconds(step.began),
            "ended": seconds(step.ended),
            "x": f"{100 * step.began / (end or 1):.2f}",
            "width": f"{max(100 * (step.ended - step.began) / (end or 1), 0.5):.2f}",
        }
        for step in steps
    ]
    return {"rows": rows, "totals": totals, "bars": bars}


def _row(name: str, runs: int | None, busy: float | None, used: Usage | NodeUsage | None) -> list[str]:
    counts = [used["calls"], used["input_tokens"], used["output_tokens"]] if used else [None] * 3
    shown = ["" if count is None else f"{count:,}" for count in (runs, *counts)]
    return [name, shown[0], "" if busy is None else seconds(busy), *shown[1:]]
