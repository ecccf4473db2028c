"""What the commands print about a run: its steps while it works, its result, and the changes of RAT's revisions."""

from collections.abc import Callable, Iterator, Mapping, Sized
from typing import Any

from rich.console import Console

from stepcraft.cli.output import one_line, printable, write
from stepcraft.segments import support
from stepcraft.text.diff import shortened, word_diff
from stepcraft.text.sections import COMPLETE, NO_INFO

_REVIEWED = {"accept": "accepted", "edit": "edited", "reject": "rejected"}
_EVIDENCE_TITLES = {"aag": "Procedures used:", "few_shot": "Examples:"}
_SENTENCES_SHOWN = 8
_CHARACTERS_SHOWN = 160


def show_result(graph: str, result: Mapping[str, Any], out: Console, err: Console) -> None:
    """Print the answer and its evidence on `out`, the warnings on `err`."""
    lines = [result["answer"]]
    if counts := _support(result):
        lines += ["", counts]
    if result["evidence"]:
        lines += ["", _EVIDENCE_TITLES.get(graph, "Evidence:")]
    for number, passage in enumerate(result["evidence"], 1):
        lead = f"[{number}]" if graph == "rpg" else f"{passage['score']:.2f}"
        title = one_line(passage["title"]) or one_line(passage["text"])[:80]
        source = f"  ({one_line(passage['source'])})" if passage["source"] else ""
        lines.append(f"  {lead}  {title}{source}")
    if result.get("remembered"):
        lines += ["", f"Remembered as {result['remembered']}."]
    write(out, "\n".join(lines))
    for warning in result["warnings"]:
        write(err, f"warning: {one_line(warning)}", style="yellow")


def progress_lines(graph: str, node: str, update: Mapping[str, Any]) -> list[str]:
    """Describe what a node of a graph returned, in one line or a few; in none if it is not worth a line."""
    if graph == "aag":
        return [_aag_progress(node, update)]
    if graph == "rat":
        return _rat_progress(node, update)
    if graph == "rpg":
        return _RPG_PROGRESS[node](update) if node in _RPG_PROGRESS else [""]
    if graph == "chat":
        return [f"{update['method']} ({one_line(update['reason'])})" if node == "route" else ""]
    if node in {"retrieve", "sample", "agent"}:
        return [_count(update.get("evidence", []), "example" if node == "sample" else "passage")]
    return [] if node == "conclude" else [""]


def _aag_progress(node: str, update: Mapping[str, Any]) -> str:
    if node == "answer":
        return "".join(one_line(asked["question"]) for asked in update.get("questions", []))
    if node == "review":
        return _REVIEWED[update["reviews"][-1]["type"]]
    if node == "remember":
        return update["remembered"] or "not remembered"
    if node == "critic" and update.get("critiques"):
        return _count(update["edits"], "edit") if update["edits"] else "content"
    counted = {
        "retrieve": ("evidence", "procedure"),
        "to_query": ("queries", "question"),
        "check_names": ("names", "name"),
    }
    field, noun = counted.get(node, ("steps", "step"))
    return _count(update[field], noun) if update.get(field) else ""


def _rat_progress(node: str, update: Mapping[str, Any]) -> list[str]:
    if node == "split":
        return [_count(update["thoughts"], "thought")]
    if node != "step":
        return [] if node == "accept" else [""]
    lines: list[str] = []
    for checked in update.get("results", []):
        thought = f"thought {checked['number'] + 1}"
        if checked["skipped"]:
            lines.append(f"{thought}: not checked: {one_line(checked['skipped'])}")
            continue
        outcome = "changed" if checked["after"] != checked["before"] else "not changed"
        sources = dict.fromkeys(passage["title"] or passage["source"] for passage in checked["evidence"])
        found = one_line(", ".join(sources))[:120]
        lines.append(f"{thought}: {outcome}  « {one_line(checked['query'])[:120]} »  {found}")
    return lines


def _support(update: Mapping[str, Any]) -> str:
    """How many of the traced sentences rest on evidence; "" where there are none."""
    supported = [sentence["supported"] for sentence in update.get("sentences") or []]
    return support(supported.count(True), supported.count(False))


def _planned(update: Mapping[str, Any]) -> list[str]:
    if topics := update.get("outline"):
        return [_count(topics, "topic"), *(f"  {one_line(topic)}" for topic in topics)]
    signals = {NO_INFO: "no evidence is needed", COMPLETE: "the answer is complete"}
    return [one_line(update.get("plan", "")) or signals.get(update.get("signal", ""), "")]


def _selected(update: Mapping[str, Any]) -> list[str]:
    best = sorted(update.get("selected", []), key=lambda sentence: -sentence["score"])
    shown = [
        f"  {sentence['score']:.2f}  {one_line(sentence['text'])[:_CHARACTERS_SHOWN]}"
        for sentence in best[:_SENTENCES_SHOWN]
    ]
    more = [f"  and {len(best) - len(shown)} more"] if len(best) > len(shown) else []
    return [_count(best, "sentence") if best else "no sentence fits", *shown, *more]


def _outlined(update: Mapping[str, Any]) -> list[str]:
    return [
        " ".join(one_line(segment["text"]) for segment in made["segments"])
        or f"nothing was written on: {one_line(made['plan'])}"
        for made in update.get("outlined", [])
    ]


def _objections(update: Mapping[str, Any]) -> list[str]:
    verdicts = update.get("verdicts")
    return [f"{_count(verdicts, 'sentence')} not borne out" if verdicts else ""]


_RPG_PROGRESS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "retrieve": lambda update: [_count(update.get("evidence", []), "passage")],
    "outline": _planned,
    "plan": _planned,
    "select": _selected,
    "answer": lambda update: (
        [one_line(segment["text"]) for segment in update.get("segments", [])[-1:]] or [""]
    ),
    "segment": _outlined,
    "gather": lambda update: [_count(update.get("segments", []), "segment")],
    "pass_over": lambda update: [f"nothing was found on: {one_line(update['plans'][-1])}"],
    "trace": lambda update: [_support(update)],
    "check": _objections,
}
"""The lines about what each node of RPG returned."""


def show_revisions(result: Mapping[str, Any], console: Console) -> None:
    """Print each revision of RAT with its query, its word diff and its sources.

    Removed text is red and struck through, added text is green; without colours they are marked [-…-] and {+…+}.
    """
    coloured = console.color_system is not None and not console.no_color
    revisions = result["revisions"]
    for revision in revisions:
        outcome = "changed" if revision["changed"] else "not changed"
        if revision["skipped"]:
            outcome = f"skipped, {one_line(revision['skipped'])}"
        write(console, f"Thought {revision['step']} of {len(revisions)}: {outcome}", style="bold")
        if revision["query"]:
            write(console, f"looked up: {one_line(revision['query'])}", style="dim")
        write(console, *_changes(revision, coloured=coloured))
        for passage in revision["evidence"]:
            source = f"  ({one_line(passage['source'])})" if passage["source"] else ""
            title = one_line(passage["title"]) or "untitled"
            write(console, f"  {passage['score']:.2f}  {title}{source}", style="dim")
        write(console, "")


def _changes(revision: Mapping[str, Any], *, coloured: bool) -> Iterator[str | tuple[str, str]]:
    """The word diff of a revision as text with styles, or the beginning of a thought that did not change."""
    if not revision["changed"]:
        thought = one_line(revision["thought"])
        yield thought if len(thought) <= _CHARACTERS_SHOWN else f"{thought[:_CHARACTERS_SHOWN]}…"
        return
    before, after = (printable(revision[side]).strip() for side in ("before", "after"))
    for kind, text in shortened(word_diff(before, after)):
        if kind == "removed":
            yield (text, "red strike") if coloured else f"[-{text}-]"
        elif kind == "added":
            yield (text, "green") if coloured else f"{{+{text}+}}"
        else:
            yield text


def _count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
