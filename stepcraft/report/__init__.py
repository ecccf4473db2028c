"""An HTML page about a single run of a graph.

The page is self-contained: it fetches nothing and runs no scripts, and a content security policy
enforces both. The markup is in `templates/`; autoescaping makes any text from the run inert.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from stepcraft.nodes.begin import asked_question, checked_resources
from stepcraft.nodes.state import Revision
from stepcraft.progress import counted
from stepcraft.report._checks import checked_pieces, verdicts
from stepcraft.report._costs import StepTime, bars, rows
from stepcraft.report._sentences import cited_sentences
from stepcraft.report.rendering import rendered, seconds
from stepcraft.text.citations import without_marks
from stepcraft.text.clean import clean
from stepcraft.text.diff import shortened, word_diff
from stepcraft.text.lists import numbered

__all__ = ["StepTime", "page"]

_TITLES = {
    "aag": "Analogy-augmented generation",
    "rat": "Retrieval-augmented thoughts",
    "rpg": "Retrieve, plan, generate",
}
_SECTIONS = {
    "warnings": "Warnings",
    "answer": "Answer",
    "checks": "Verdicts",
    "queries": "Looked up",
    "changes": "Changes",
    "names": "Names",
    "reviews": "Reviews",
    "evidence": "Evidence",
    "cost": "Time and tokens",
}
_DECISIONS = {
    "approve": ("approved", "changed"),
    "edit": ("edited", "changed"),
    "reject": ("rejected", "skipped"),
}
_KEPT = 160
"""The number of unchanged characters shown on each side of a change."""


def page(
    graph: str,
    inputs: Mapping[str, Any],
    result: Mapping[str, Any],
    steps: Sequence[StepTime] = (),
    *,
    trace_id: str = "",
) -> str:
    """Return the HTML page for a run.

    Args:
        graph: The name of the graph, as for `get_graph`.
        inputs: The input of the run, optionally with settings from its context.
        result: The output of the run.
        steps: The start and end times of each step, if known.
        trace_id: The id of the run's trace in LangSmith, if it has one.

    Raises:
        BadInput: The input has no question.
    """
    messages: Any = inputs.get("messages") or []
    if isinstance(messages, str | Mapping | BaseMessage):  # a graph also takes a single one
        messages = [messages]
    messages = convert_to_messages(messages)
    written: Sequence[str] = result.get("steps", [])
    evidence = result["evidence"]
    sentences = cited_sentences(result.get("sentences", []), evidence)
    # In a draft, the marks number all passages found; in an answer, only the cited ones.
    plain = _without_marks if sentences else clean
    checks = verdicts(result)
    has_places = checks and not sentences  # RPG's sentences have their own marks
    pieces, listed = (
        checked_pieces(clean(result["answer"]).strip(), checks) if has_places else ([], checks)
    )
    # The papers' graphs have revisions in another form, which are not shown.
    rounds = [each for each in result.get("revisions", []) if "round" in each]
    changes = [change for each in rounds if (change := _change(each, plain))]
    content = {
        "warnings": result["warnings"],
        "answer": True,
        "checks": listed,
        "queries": result.get("queries"),
        "changes": changes or result.get("first_draft"),
        "names": result.get("names"),
        "reviews": result.get("reviews"),
        "evidence": True,
        "cost": True,
    }
    facts = [
        *([counted(len(result["steps"]), "step")] if "steps" in result else []),
        *([counted(len(sentences), "sentence")] if sentences else []),
        *([counted(len(changes), "change")] if content["changes"] else []),
        counted(len(evidence), "passage"),
        counted(result["usage"]["calls"], "model call"),
        *([seconds(max(step.ended for step in steps))] if steps else []),
        *([f"trace {trace_id}"] if trace_id else []),
    ]
    return rendered(
        "run.html.j2",
        title=_title(graph),
        heading=asked_question({**inputs, "messages": messages}),
        facts=facts,
        sections=[(name, title) for name, title in _SECTIONS.items() if content[name]],
        warnings=result["warnings"],
        content=content,
        titles=_SECTIONS,
        result=result,
        has_steps=bool(written) and result["answer"] == numbered(written),
        resources=checked_resources(inputs.get("resources")),
        pieces=pieces,
        listed=listed,
        verdicts=Counter(check.check["verdict"] for check in checks),
        sentences=sentences,
        supported=sum(sentence.supported for sentence in sentences),
        changes=changes,
        draft=plain(result.get("first_draft", "")),
        decisions=_DECISIONS,
        numbers={passage["id"]: number for number, passage in enumerate(evidence, 1)},
        # Passages from the input, and procedures drawn at random, score 0.
        scored=any(passage["score"] for passage in evidence),
        rows=rows(steps, result["usage"]),
        bars=bars(steps),
    )


def _title(graph: str) -> str:
    """Return the full name of a graph."""
    method = graph.removesuffix("_paper")
    return _TITLES.get(method, method) + ", as in the paper" * (method != graph)


def _without_marks(text: str) -> str:
    return without_marks(clean(text), plain=False)


def _change(revision: Revision, plain: Callable[[str], str]) -> dict[str, Any] | None:
    """Return a revision with its word diff and, if that was shortened, the full diff as well.

    Return None if only citations differ.
    """
    before, after = (plain(revision[side]).strip() for side in ("before", "after"))
    if before == after:
        return None
    whole = word_diff(before, after)
    short = shortened(whole, _KEPT)
    return {**revision, "diff": short, "whole_diff": [] if short == whole else whole}
