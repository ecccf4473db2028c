"""Take the results of a window in order, up to the first that changes something (RAT §3.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from stepcraft.contexts.rat import MAX_PARALLEL_STEPS, RatContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budget, Usage, add_usage, calls_left, no_usage, too_few_calls, totals
from stepcraft.nodes.rat.step import Result
from stepcraft.nodes.retrieve import ranked

"""The most steps that work side by side under `window="auto"`."""


class Revision(TypedDict):
    """What became of one thought: what was looked up, what was found, what it was changed to."""

    step: int
    """From 1."""
    thought: str
    """The thought as it was drafted."""
    query: str
    evidence: list[Evidence]
    before: str
    """The text so far with the thought at its end; with `revise_scope="thought"` the thought alone."""
    after: str
    changed: bool
    skipped: str
    """Why the thought was not checked, "" if it was."""


def accept(state: Mapping[str, Any], context: RatContext) -> dict[str, Any]:
    """The text and the revisions so far; where no further step can be made, the rest of the draft as it is."""
    results = _of_this_round(state)
    taken = _taken(results)
    used = _usage(taken, results[len(taken) :])
    warnings = [warning for result in taken for warning in result["warnings"]]
    update = _gathered(state, taken) if gathers(state, context) and taken else _revised(state, taken, context)
    after: dict[str, Any] = {**state, **update, "usage": add_usage(state["usage"], used)}
    if after["done"] < len(after["thoughts"]) and (why := no_more(after, context)):
        update |= _closed(after, why)
        warnings.append(why)
    told = Budget.of("accept", state, context).update(warnings)
    return {**update, "results": Overwrite([]), **told, "usage": used}


def gathers(state: Mapping[str, Any], context: RatContext) -> bool:
    """Whether passages are still to be gathered for all thoughts at once, before one revision (not causal)."""
    return not context.causal and state["found"] is None


def no_more(state: Mapping[str, Any], context: RatContext) -> str:
    """Why no further thought can be checked; "" if one can."""
    if affordable(state, context) >= 1:
        return Budget.of("accept", state, context).spent() or ""
    most: int | None = context.max_retrievals
    if most is not None and state["retrievals"] >= most:
        return f"only the first {state['done']} thoughts were checked: max_retrievals={most} is reached"
    return too_few_calls(context)


def affordable(state: Mapping[str, Any], context: RatContext) -> int:
    """How many steps the limits on searches and calls still allow; one call is kept for the finish."""
    steps = len(state["thoughts"])
    most: int | None = context.max_retrievals
    if most is not None and state["found"] is None:
        steps = min(steps, most - state["retrievals"])
    if (calls := calls_left(state, context)) is not None:
        last = context.finish != "thoughts"
        steps = min(steps, (calls - last) // _calls_a_step(context))
    return steps


def _calls_a_step(context: RatContext) -> int:
    asks = context.query == "model" and context.query_from != "question"
    return 2 if asks else 1


def _of_this_round(state: Mapping[str, Any]) -> Sequence[Result]:
    """The last results that begin at the first thought that is not settled, in the order of the thoughts.

    A fork by `update_state` brings along the results of the round that it replaces.
    """
    results: list[Result] = state["results"]
    starts = [place for place, result in enumerate(results) if result["number"] == state["done"]]
    return results[starts[-1] :] if starts else []


def _taken(results: Sequence[Result]) -> Sequence[Result]:
    """The results whose prefix was right: up to and including the first that changes something."""
    for place, result in enumerate(results, 1):
        if result["after"] != result["before"]:
            return results[:place]
    return results


def _usage(taken: Sequence[Result], thrown: Sequence[Result]) -> Usage:
    used = discarded = no_usage()
    for result in thrown:
        discarded = add_usage(discarded, result["usage"])
    for result in (*taken, *thrown):
        used = add_usage(used, result["usage"])
    if thrown:
        used["discarded"] = totals(discarded)
    return used


def _gathered(state: Mapping[str, Any], results: Sequence[Result]) -> dict[str, Any]:
    """All that was found, for one revision of the whole draft."""
    return {
        "thoughts": [state["draft"]],
        "query": "\n".join(result["query"] for result in results if result["query"]),
        "found": ranked(*(result["evidence"] for result in results)),
        "retrievals": state["retrievals"] + sum(result["searched"] for result in results),
    }


def _revised(state: Mapping[str, Any], results: Sequence[Result], context: RatContext) -> dict[str, Any]:
    """The text and the revisions with the results that are taken."""
    text, revisions = state["text"], list(state["revisions"])
    whole = context.revise_scope == "prefix"
    for result in results:
        revisions.append(_revision(state["thoughts"][result["number"]], result))
        text = result["after"] if whole else text + result["after"]
    return {
        "text": text,
        "done": state["done"] + len(results),
        "width": _width(state["width"], revisions[len(state["revisions"]) :], context),
        "retrievals": state["retrievals"] + sum(result["searched"] for result in results),
        "revisions": revisions,
        "evidence": ranked(state["evidence"], *(result["evidence"] for result in results)),
    }


def _revision(thought: str, result: Result) -> Revision:
    return Revision(
        step=result["number"] + 1,
        thought=thought,
        query=result["query"],
        evidence=result["evidence"],
        before=result["before"],
        after=result["after"],
        changed=result["after"] != result["before"],
        skipped=result["skipped"],
    )


def _width(width: int, revisions: Sequence[Revision], context: RatContext) -> int:
    """Doubled while nothing changes, 1 again after a change; what the caller set, if that is a number."""
    if context.window != "auto" or not revisions:
        return width
    return 1 if revisions[-1]["changed"] else min(MAX_PARALLEL_STEPS, 2 * width)


def _closed(state: Mapping[str, Any], why: str) -> dict[str, Any]:
    """The thoughts that are left, as they were drafted."""
    left = state["thoughts"][state["done"] :]
    revisions = [
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
        "revisions": [*state["revisions"], *revisions],
    }
