"""RAT's speed: its rounds against the clock, what the house adds to LangGraph, and tokens that need not be paid.

Run with `python benchmarks/rat.py`. Every ratio is of two measurements in this one run, save those over a critical
path, which is counted: rounds by the rule of `window="auto"`, 100 ms a model call and 50 ms a search.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, product, takewhile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.documents import Document
from rich.console import Console
from rich.table import Table

from benchmarks.bare_rat import bare_rat
from benchmarks.timing import in_turns, looped_in_turns
from stepcraft import RatContext, build_rat
from stepcraft.contexts.rat import MAX_PARALLEL_STEPS
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, passage, thinker

CALL_S, SEARCH_S = 0.1, 0.05
STEP_S = 2 * CALL_S + SEARCH_S
CASES = {
    "nothing changes": lambda n: "." * n,
    "one change in the middle": lambda n: "." * (n // 2) + "x" + "." * (n - n // 2 - 1),
    "all change": lambda n: "x" * n,
}


def draft(n: int) -> str:
    """Thoughts of about 60 words each."""
    claim = "The bridge was finished in the year {0} by {0} masons, which a chronicle of the town tells. "
    return "\n\n".join((claim * 4).format(1500 + number).strip() for number in range(n))


def model(changes: str, latency: float = 0.0) -> ScriptedModel:
    """Changes the thoughts that are marked."""
    return ScriptedModel(thinker(changes, draft(len(changes))), latency=latency)


def shelf(latency: float = 0.0) -> Shelf:
    """Two passages of about 150 words on anything."""
    return Shelf(latency=latency, says=lambda query: [_long(passage(query, number)) for number in range(2)])


def _long(found: Document) -> Document:
    return Document(found.page_content * 2, id=found.id, metadata=found.metadata)


def rounds(changes: str) -> int:
    """How often steps are made side by side under "auto": the width doubles until something changes."""
    done, width, made = 0, 1, 0
    while done < len(changes):
        settled, change, _ = changes[done : done + width].partition("x")
        done += len(settled) + len(change)
        width = 1 if change else min(MAX_PARALLEL_STEPS, 2 * width)
        made += 1
    return made


def both_ways(runs: Sequence[tuple[Any, RatContext | None]], repeat: int) -> list[tuple[str, list[float]]]:
    """The seconds of a run of each graph, in turns: blocking, and on an event loop."""
    blocking = [partial(graph.invoke, QUESTION, context=context) for graph, context in runs]
    unblocking = [partial(graph.ainvoke, QUESTION, context=context) for graph, context in runs]
    return [
        ("sync", in_turns(blocking, repeat)),
        ("async", asyncio.run(looped_in_turns(unblocking, repeat))),
    ]


def critical_path(table: Table) -> None:
    """Wall time over the rounds that "auto" should take, and over strict order."""
    for n, (case, changed) in product((5, 8), CASES.items()):
        changes = changed(n)
        graph = build_rat(model=model(changes, CALL_S), retriever=shelf(SEARCH_S))
        path = 2 * CALL_S + rounds(changes) * STEP_S
        for kind, (wall, strict) in both_ways([(graph, RatContext()), (graph, RatContext(window=1))], 3):
            what = f"{n} thoughts, {case}, {kind}"
            told = f"{wall:.3f} s; {rounds(changes)} rounds"
            table.add_row(f"wall / critical path: {what}", f"{wall / path:.3f}", "≤ 1.10", told)
            table.add_row(f"wall / strict order: {what}", f"{wall / strict:.3f}", "≤ 1.05", f"{strict:.3f} s")
        calls = 3 + 3 * n
        released = calls * CALL_S + n * SEARCH_S
        what = f"released code / critical path: {n} thoughts, {case}"
        table.add_row(what, f"{released / path:.2f}", "", f"{calls} calls in a row, {released:.2f} s")


def overhead(table: Table) -> None:
    """A run over the same loop written straight on LangGraph, with a model and a source of no latency."""
    for case, changed in CASES.items():
        changes = changed(5)
        ours = build_rat(model=model(changes), retriever=shelf()), RatContext()
        straight = bare_rat(model(changes), shelf()), None
        for kind, (house, bare) in both_ways([ours, straight], 40):
            table.add_row(
                f"run / same loop with bare nodes: 5 thoughts, {case}, {kind}",
                f"{house / bare:.2f}",
                "≤ 1.3",
                f"{house * 1e3:.1f} ms over {bare * 1e3:.1f} ms",
            )


def output_tokens(table: Table) -> None:
    """What a revision that changes nothing costs, by NO CHANGE and by writing the text again."""
    for n in (5, 8):
        for case, changed in CASES.items():
            by_word = _written(thinker(changed(n), draft(n)))
            again = _written(_writing_again(thinker(changed(n), draft(n))))
            table.add_row(
                f"output tokens of revise, NO CHANGE / the text again: {n} thoughts, {case}",
                f"{by_word / again:.2f}",
                "",
                f"{by_word} over {again}",
            )


def _written(think: Callable[[str, str], str]) -> int:
    graph = build_rat(model=ScriptedModel(think), retriever=shelf())
    result = graph.invoke(QUESTION, context=RatContext(window=1))
    return int(result["usage"]["nodes"]["revise"]["output_tokens"])


def _writing_again(think: Callable[[str, str], str]) -> Callable[[str, str], str]:
    def reply(node: str, prompt: str) -> str:
        said = think(node, prompt)
        text = prompt.rpartition("<text>\n")[2].partition("\n</text>")[0]
        return text if said == "NO CHANGE" else said

    return reply


def repeated_input(table: Table) -> None:
    """Characters that a prompt has in common with the beginning of the same node's prompt before it."""
    for case, changed in CASES.items():
        scripted = model(changed(8))
        build_rat(model=scripted, retriever=shelf()).invoke(QUESTION, context=RatContext(window=1))
        prompts: dict[str, list[str]] = defaultdict(list)
        for call in scripted.calls:
            prompts[call.node].append(call.prompt)
        common = {node: sum(_common(*pair) for pair in pairwise(asked)) for node, asked in prompts.items()}
        whole = {node: sum(map(len, asked)) for node, asked in prompts.items()}
        for node in ("to_query", "revise"):
            _share(table, f"{case}, {node}", common[node], whole[node])
        _share(table, f"{case}, the run", sum(common.values()), sum(whole.values()))


def _common(earlier: str, later: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(earlier, later, strict=False)))


def _share(table: Table, what: str, common: int, whole: int) -> None:
    told = f"{common // 4} of {whole // 4} tokens"
    table.add_row(
        f"input that repeats the prompt before, 8 thoughts, {what}", f"{common / whole:.2f}", "", told
    )


def main() -> None:
    """Print the table."""
    table = Table("what", "ratio", "wanted", "of")
    output_tokens(table)
    repeated_input(table)
    overhead(table)
    critical_path(table)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
