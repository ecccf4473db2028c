"""What the command line tells of a node that is done, and of a result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from stepcraft.evidence import Evidence
from stepcraft.text.clean import clean
from stepcraft.text.sections import COMPLETE, NO_INFO

_USED = {"aag": "Procedures used:", "few_shot": "Examples:"}


def news(method: str, node: str, update: Mapping[str, Any]) -> list[str]:
    """What a node gave, in a line or, where it gave several things, some."""
    return _OF.get(method, _of_baseline)(node, update)


def show_result(method: str, result: Mapping[str, Any], out: Console, err: Console) -> None:
    """The answer and what it rests on, on one console, the warnings on the other."""
    lines = [result["answer"]]
    if result["evidence"]:
        lines += ["", _USED.get(method, "Evidence:"), *_used(result["evidence"], numbered=method == "rpg")]
    out.print(Text("\n".join(lines)), soft_wrap=True)
    for warning in result["warnings"]:
        err.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _used(evidence: Sequence[Evidence], *, numbered: bool) -> Iterator[str]:
    """A line for each passage, with its score or the number that it is cited by."""
    for number, passage in enumerate(evidence, 1):
        lead = f"[{number}]" if numbered else f"{passage['score']:.2f}"
        source = f"  ({passage['source']})" if passage["source"] else ""
        yield f"  {lead}  {_line(passage['title']) or _line(passage['text'])[:80]}{source}"


def _of_aag(node: str, update: Mapping[str, Any]) -> list[str]:
    if node == "answer":
        return ["".join(_line(asked["question"]) for asked in update.get("questions", []))]
    if node == "critic" and update.get("critiques"):
        return [_count(update["edits"], "edit") if update["edits"] else "content"]
    counted = {"retrieve": ("evidence", "procedure"), "to_query": ("queries", "question")}
    field, what = counted.get(node, ("steps", "step"))
    return [_count(update[field], what) if update.get(field) else ""]


def _of_rat(node: str, update: Mapping[str, Any]) -> list[str]:
    if node == "split":
        return [_count(update["thoughts"], "thought")]
    if node == "step":
        return [_step(result) for result in update.get("results", [])]
    return [] if node == "accept" else [""]


def _step(result: Mapping[str, Any]) -> str:
    """What was looked up for a thought, where it was found, and what became of it."""
    number = f"thought {result['number'] + 1}"
    if result["skipped"]:
        return f"{number}: not checked: {_line(result['skipped'])}"
    became = "changed" if result["after"] != result["before"] else "not changed"
    sources = dict.fromkeys(passage["title"] or passage["source"] for passage in result["evidence"])
    return f"{number}: {became}  « {_line(result['query'])[:120]} »  {_line(', '.join(sources))[:120]}"


def _of_rpg(node: str, update: Mapping[str, Any]) -> list[str]:
    if node == "retrieve":
        return [_count(update.get("evidence", []), "passage")]
    if node == "plan":
        return [_line(update.get("plan", "")) or _SIGNALS.get(update.get("signal", ""), "")]
    if node == "select":
        chosen = sorted(update.get("selected", []), key=lambda one: -one["score"])
        told = [f"  {one['score']:.2f}  {_line(one['text'])[:160]}" for one in chosen[:_SHOWN]]
        more = [f"  and {len(chosen) - _SHOWN} more"] if len(chosen) > _SHOWN else []
        return [_count(chosen, "sentence") if chosen else "no sentence fits", *told, *more]
    if node == "answer" and update.get("segments"):
        return [_line(update["segments"][-1]["text"])]
    return [""]


def _of_baseline(node: str, update: Mapping[str, Any]) -> list[str]:
    if node in {"retrieve", "sample", "agent"}:
        return [_count(update.get("evidence", []), "example" if node == "sample" else "passage")]
    return [] if node == "conclude" else [""]


_SHOWN = 8
"""So many of the chosen sentences are shown as they come, the best; the page has all of them."""

_SIGNALS = {NO_INFO: "no evidence is needed", COMPLETE: "the answer is complete"}

_OF = {"aag": _of_aag, "rat": _of_rat, "rpg": _of_rpg}


def _line(text: str) -> str:
    return " ".join(clean(text).split())


def _count(things: Sequence[object], what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"
