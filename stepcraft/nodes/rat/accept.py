"""The window of steps: what a step is sent and returns, and which results of a window are accepted (RAT §3.2).

The steps of a window run in parallel, each on the text as it is if no step before it in the window changes anything.
Their results are accepted in order, up to and including the first that changes something: its own text was right, and
that of the steps after it was not. So the answer is the same as in strict order.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from stepcraft.contexts.rat import MAX_PARALLEL_STEPS, RatContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import (
    Budget,
    Budgeted,
    Usage,
    add_usage,
    branches,
    calls_left,
    no_usage,
    too_few_calls,
    totals,
)
from stepcraft.nodes.retrieve import ranked
from stepcraft.progress import ProgressData, Said, Settled, counted
from stepcraft.schema import described
from stepcraft.secrets import without_secrets


@described
class Revision(TypedDict):
    """The outcome for one thought: the query, the evidence, and the text before and after."""

    step: int
    """Number of the thought, from 1."""
    thought: str
    """The thought as it was drafted."""
    query: str
    """What was searched for."""
    evidence: list[Evidence]
    """The passages that were found."""
    before: str
    """The text so far with the thought at its end; with `revise_scope="thought"` the thought alone."""
    after: str
    """The same text after the revision."""
    changed: bool
    """Whether the revision changed anything."""
    skipped: str
    """Why the thought was not checked, "" if it was."""


class Result(TypedDict):
    """The result of one step."""

    number: int
    """Index of the thought, from 0."""
    query: str
    evidence: list[Evidence]
    before: str
    after: str
    """Equal to `before` where nothing was changed."""
    skipped: str
    """Why the thought was not checked, "" if it was."""
    searched: bool
    """Whether a search was made."""
    warnings: list[str]
    usage: Usage


class Step(Budgeted):
    """The state of one step."""

    number: int
    question: str
    text: str
    """The text so far, with the thought at its end."""
    thought: str
    rest: str
    """The thoughts that follow, "" where they are not shown."""
    query: str
    evidence: list[Evidence]
    before: str
    """What the revision replaces: the text, or the thought alone."""
    after: str
    skipped: str
    revises: bool
    """Whether the text is revised; otherwise the step only searches."""
    results: list[Result]


def to_look_up(state: Step) -> list[str]:
    """The query of a step; none where it has been skipped or already has evidence."""
    return [] if state["skipped"] or state["evidence"] else [state["query"]]


def keep_found(state: Step, found: list[list[Evidence]], failed: list[str]) -> dict[str, Any]:
    """The evidence of a step; without any, its thought is not checked."""
    if not found:
        return {}
    nothing = f"nothing was found for {without_secrets(state['query']):.200}" if not found[0] else ""
    return {"evidence": found[0], "skipped": failed[0] if failed else nothing}


def note(state: Step) -> dict[str, Any]:
    """The result of a step, the only key that it returns to the loop."""
    result = Result(
        number=state["number"],
        query=state["query"],
        evidence=state["evidence"],
        before=state["before"],
        after=state["after"] if not state["skipped"] else state["before"],
        skipped=state["skipped"],
        searched=bool(state["query"]),
        warnings=state["warnings"],
        usage=state["usage"],
    )
    return {"results": [result]}


def about_step(state: Step) -> ProgressData:
    """The thought of a step, which runs ahead of those before it."""
    return {"thought": state["number"] + 1, "provisional": True}


def describe_start(state: Step) -> Said:
    """The thought that a step looks up and checks."""
    return Said(f"Checking thought {state['number'] + 1}.", about_step(state))


def describe_step(update: Mapping[str, list[Result]]) -> Said:
    """What a step found out; `describe` says whether it counts."""
    result = update["results"][-1]
    thought, changed = result["number"] + 1, result["after"] != result["before"]
    data: ProgressData = {
        "thought": thought,
        "provisional": True,
        "queries": [result["query"]] if result["query"] else [],
        "found": len(result["evidence"]),
        "titles": [passage["title"] for passage in result["evidence"] if passage["title"]],
        "changed": changed,
    }
    if result["warnings"]:
        data["warnings"] = result["warnings"]
    if result["skipped"]:
        data["reason"] = result["skipped"]
        return Said(f"Thought {thought} is not checked: {result['skipped']}", data, skipped=True)
    outcome = "a correction is proposed" if changed else "nothing is to be changed"
    return Said(f"Thought {thought}: {outcome}.", data)


def describe(state: Mapping[str, Any], update: Mapping[str, Any]) -> Said:
    """Which thoughts are settled now, and how."""
    if "found" in update:
        found = len(update["found"])
        return Said(f"Found {counted(found, 'passage')} for all thoughts.", {"found": found})
    results = _last_round(state)
    revisions: list[Revision] = update["revisions"][len(state["revisions"]) :]
    total = len(update["revisions"]) + len(state["thoughts"]) - update["done"]
    checked = [one for one in revisions if not one["skipped"]]
    corrected = [str(one["step"]) for one in checked if one["changed"]]
    data: ProgressData = {
        "thoughts": total,
        "settled": [
            Settled(thought=one["step"], changed=one["changed"], skipped=one["skipped"]) for one in revisions
        ],
        "discarded": len(results) - len(_accepted(results)),
    }
    if len(revisions) == 1:
        which, [one] = f"thought {revisions[0]['step']} of {total}", revisions
        if one["skipped"]:
            return Said(f"{which.capitalize()} was not checked: {one['skipped']}", data)
        return Said(f"Checked {which}: {'corrected' if one['changed'] else 'nothing to change'}.", data)
    which = f"thoughts {revisions[0]['step']} to {revisions[-1]['step']} of {total}"
    if not checked:
        return Said(f"{which.capitalize()} were not checked: {revisions[0]['skipped']}", data)
    outcome = f"corrected {', '.join(corrected)}" if corrected else "nothing to change"
    missed = len(revisions) - len(checked)
    return Said(f"Checked {which}: {outcome}{f'; {missed} were not checked' if missed else ''}.", data)


def unchecked(thoughts: Sequence[str]) -> dict[str, Any]:
    """The state of the loop before its first window."""
    lists: dict[str, Any] = {"thoughts": list(thoughts), "revisions": [], "evidence": []}
    return {**lists, "text": "", "done": 0, "query": "", "found": None}


def next_window(state: Mapping[str, Any], context: RatContext) -> list[Send]:
    """The steps of the next window, each with its share of the remaining model calls."""
    thoughts, first = state["thoughts"], state["done"]
    searching = only_searches(state, context)
    width = len(thoughts) if searching else state["width"]
    last = min(len(thoughts), first + min(width, _affordable_steps(state, context)))
    if state["found"] is None:
        steps = [_step(state, place, context, revises=not searching) for place in range(first, last)]
    else:
        skipped = "" if state["found"] else "nothing was found for any thought"
        whole = dict.fromkeys(("text", "thought", "before", "after"), state["draft"])
        steps = [
            {**_empty_step(state), **whole}
            | {"number": first, "query": state["query"], "evidence": state["found"], "skipped": skipped}
        ]
    left = calls_left(state, context)
    shares = branches(state, None if left is None else left - (context.finish != "thoughts"), len(steps))
    return [Send("step", {**step, **share}) for step, share in zip(steps, shares, strict=True)]


def _step(state: Mapping[str, Any], place: int, context: RatContext, *, revises: bool) -> dict[str, Any]:
    """One thought, on the text as it is if no step before it in the window changes anything."""
    thoughts = state["thoughts"]
    text = state["text"] + "".join(thoughts[state["done"] : place + 1]) if revises else state["draft"]
    before = thoughts[place] if context.revise_scope == "thought" else text
    return {
        **_empty_step(state),
        "number": place,
        "text": text,
        "thought": thoughts[place],
        "rest": "".join(thoughts[place + 1 :]) if context.show_rest and revises else "",
        "before": before,
        "after": before,
        "revises": revises,
    }


def _empty_step(state: Mapping[str, Any]) -> dict[str, Any]:
    texts = dict.fromkeys(("rest", "query", "skipped"), "")
    lists: dict[str, Any] = {"evidence": [], "warnings": [], "results": []}
    return {**texts, **lists, "number": 0, "question": state["question"], "revises": True}


def accept(state: Mapping[str, Any]) -> dict[str, Any]:
    """Extend the text and the revisions with the accepted results; where no step can follow, with the rest as drafted."""
    context = RatContext.current(state)
    results = _last_round(state)
    accepted = _accepted(results)
    used = _usage(accepted, results[len(accepted) :])
    warnings = [warning for result in accepted for warning in result["warnings"]]
    if only_searches(state, context) and accepted:
        update = {
            "thoughts": [state["draft"]],
            "query": "\n".join(result["query"] for result in accepted if result["query"]),
            "found": ranked(*(result["evidence"] for result in accepted)),
            "retrievals": state["retrievals"] + sum(result["searched"] for result in accepted),
        }
    else:
        update = _revised(state, accepted, context)
    after: dict[str, Any] = {**state, **update, "usage": add_usage(state["usage"], used)}
    if after["done"] < len(after["thoughts"]) and (why := why_stopped(after, context)):
        update |= _rest_as_drafted(after, why)
        warnings.append(why)
    limits = Budget.of("accept", state, context).update(warnings)
    return {**update, "results": Overwrite([]), **limits, "usage": used}


def only_searches(state: Mapping[str, Any], context: RatContext) -> bool:
    """Whether the next window only searches, for one revision of the whole draft later (`causal=False`)."""
    return not context.causal and state["found"] is None


def why_stopped(state: Mapping[str, Any], context: RatContext) -> str:
    """Why no further thought can be checked; "" if one can."""
    if _affordable_steps(state, context) >= 1:
        return Budget.of("accept", state, context).spent() or ""
    limit = context.max_retrievals
    if limit is not None and state["retrievals"] >= limit:
        return f"only the first {state['done']} thoughts were checked: max_retrievals={limit} is reached"
    return too_few_calls(state, context)


def _affordable_steps(state: Mapping[str, Any], context: RatContext) -> int:
    """Number of steps that the limits on searches and calls allow, with one call left for the finish."""
    steps = len(state["thoughts"])
    if context.max_retrievals is not None and state["found"] is None:
        steps = min(steps, context.max_retrievals - state["retrievals"])
    if (calls := calls_left(state, context)) is not None:
        asks_for_query = context.query == "model" and context.query_from != "question"
        steps = min(steps, (calls - (context.finish != "thoughts")) // (2 if asks_for_query else 1))
    return steps


def _last_round(state: Mapping[str, Any]) -> Sequence[Result]:
    """The results that begin at the first thought that is not settled, in the order of the thoughts.

    After a fork by `update_state`, the results of the round that it replaces come before them.
    """
    results: list[Result] = state["results"]
    starts = [place for place, result in enumerate(results) if result["number"] == state["done"]]
    return results[starts[-1] :] if starts else []


def _accepted(results: Sequence[Result]) -> Sequence[Result]:
    """The results up to and including the first that changes something."""
    for place, result in enumerate(results, 1):
        if result["after"] != result["before"]:
            return results[:place]
    return results


def _usage(accepted: Sequence[Result], discarded: Sequence[Result]) -> Usage:
    used, wasted = no_usage(), no_usage()
    for result in discarded:
        wasted = add_usage(wasted, result["usage"])
    for result in (*accepted, *discarded):
        used = add_usage(used, result["usage"])
    if discarded:
        used["discarded"] = totals(wasted)
    return used


def _revised(state: Mapping[str, Any], results: Sequence[Result], context: RatContext) -> dict[str, Any]:
    """The text, the revisions and the next width after some accepted results.

    The width doubles while nothing changes and returns to 1 after a change, unless the caller has set it.
    """
    text, width = state["text"], state["width"]
    revisions: list[Revision] = list(state["revisions"])
    for result in results:
        changed = result["after"] != result["before"]
        revisions.append(
            Revision(
                step=result["number"] + 1,
                thought=state["thoughts"][result["number"]],
                query=result["query"],
                evidence=result["evidence"],
                before=result["before"],
                after=result["after"],
                changed=changed,
                skipped=result["skipped"],
            )
        )
        text = result["after"] if context.revise_scope == "prefix" else text + result["after"]
    if context.window == "auto" and results:
        width = 1 if revisions[-1]["changed"] else min(MAX_PARALLEL_STEPS, 2 * width)
    revises_all = bool(results) and state["found"] is not None
    return {
        "text": text,
        "done": len(state["thoughts"]) if revises_all else state["done"] + len(results),
        "width": width,
        "retrievals": state["retrievals"] + sum(result["searched"] for result in results),
        "revisions": revisions,
        "evidence": ranked(state["evidence"], *(result["evidence"] for result in results)),
    }


def _rest_as_drafted(state: Mapping[str, Any], why: str) -> dict[str, Any]:
    """The text and the revisions with the remaining thoughts as they were drafted, each skipped for one reason."""
    left = state["thoughts"][state["done"] :]
    skipped = [
        Revision(
            step=number,
            thought=thought,
            query="",
            evidence=[],
            before=thought,
            after=thought,
            changed=False,
            skipped=why,
        )
        for number, thought in enumerate(left, state["done"] + 1)
    ]
    return {
        "text": state["text"] + "".join(left),
        "done": len(state["thoughts"]),
        "revisions": [*state["revisions"], *skipped],
    }
