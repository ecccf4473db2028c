"""Which sentences a plan selects, and at what cost: `python benchmarks/selection.py [--hotpot FILE] [--asqa FILE]`.

On HotpotQA (distractor) the question is the plan and its own ten passages are selected from; a gold sentence is found
if at least half of it is among the best 3, 5 or 10. On ASQA the question selects from its hundred passages.
Times are ratios within one run: all of a selection over the same sentences scored alone.
"""

import argparse
import json
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

from langchain_core.embeddings import Embeddings
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.corpus import HOTPOT
from benchmarks.timing import in_turns
from stepcraft.evidence import Evidence
from stepcraft.graphs.rpg import RpgContext, build_rpg
from stepcraft.llm.resources import GraphResources
from stepcraft.models.embeddings import WordLlamaEmbedder
from stepcraft.nodes.rpg.select import SelectNode
from stepcraft.rerank.ready import ReadySentences
from stepcraft.rerank.resolve import resolve_reranker
from stepcraft.segments import Selected
from stepcraft.text.clean import tokens
from stepcraft.text.sentences import passage_sentences
from tests.bridge import planner
from tests.scripted import ScriptedModel

ASQA = HOTPOT.parents[1] / "asqa-rpg-demo" / "test_long_form.json"
WANTED = {3: 0.54, 5: 0.64, 10: 0.83}
EVERYTHING = RpgContext(paper=True, threshold=-10.0, max_evidence_tokens=1_000_000)


class CountingEmbeddings(Embeddings):
    """The default vectors, and how many texts were embedded."""

    def __init__(self) -> None:
        self.documents = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors, counted."""
        self.documents += len(texts)
        return WordLlamaEmbedder().embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """The vector of a plan."""
        return WordLlamaEmbedder().embed_query(text).tolist()


def evidence(passages: list[tuple[str, str]]) -> list[Evidence]:
    """Passages of title and text."""
    return [
        Evidence(id=str(number), title=title, text=text, source="", score=0.0)
        for number, (title, text) in enumerate(passages)
    ]


def reading(plan: str, found: list[Evidence]) -> dict:
    """What the node reads in the first cycle."""
    return {"plan": plan, "question": plan, "evidence": found, "segments": []}


def length(text: str) -> int:
    """How many characters that are no blanks."""
    return len("".join(text.split()))


def gold_found(row: dict, best: list[Selected]) -> int:
    """How many gold sentences are at least half among these."""
    texts = ["".join(passage["sentences"]) for passage in row["passages"]]
    chosen: set[tuple[int, int]] = set()
    for one in best:
        number, before = int(one["passage"]), passage_sentences(texts[int(one["passage"])])[: one["position"]]
        start = sum(map(length, before))
        chosen |= {(number, place) for place in range(start, start + length(one["text"]))}
    titles = [passage["title"] for passage in row["passages"]]
    found = 0
    for fact in row["supporting_facts"]:
        number = titles.index(fact["title"])
        own = row["passages"][number]["sentences"]
        if fact["sentence"] < len(own):
            start = sum(map(length, own[: fact["sentence"]]))
            size = length(own[fact["sentence"]])
            found += 2 * sum((number, place) in chosen for place in range(start, start + size)) >= size
    return found


def hotpot(file: Path, table: Table) -> None:
    """Recall of gold sentences."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    gold = sum(len(row["supporting_facts"]) for row in rows)
    for name in ("hybrid", "words", "vectors"):
        node, reranker = SelectNode(GraphResources()), resolve_reranker(name)
        found, kept, sizes = dict.fromkeys(WANTED, 0), 0, [0, 0]
        for row in rows:
            passages = evidence([(one["title"], "".join(one["sentences"])) for one in row["passages"]])
            ask = reading(row["question"], passages)
            every = node.select(ask, EVERYTHING, reranker)["selected"]
            default = node.select(ask, RpgContext(paper=True), reranker)["selected"]
            best = sorted(every, key=lambda one: -one["score"])
            for count in WANTED:
                found[count] += gold_found(row, best[:count])
            kept += gold_found(row, default)
            sizes[0] += sum(tokens(one["text"]) for one in default)
            sizes[1] += sum(tokens(one["text"]) for one in passages)
        for count, wanted in WANTED.items():
            what = f"HotpotQA: recall of gold sentences within {count}, {name}"
            goal = f"≥ {wanted}" if name == "hybrid" else ""
            table.add_row(what, f"{found[count] / gold:.3f}", goal, f"{found[count]} of {gold}")
        part = (
            f"{kept} of {gold}, in {sizes[0] / len(rows):.0f} of {sizes[1] / len(rows):.0f} tokens a question"
        )
        table.add_row(f"HotpotQA: recall as it is set by default, {name}", f"{kept / gold:.3f}", "", part)


def asqa(file: Path, table: Table) -> None:
    """Time and tokens of a selection from a hundred passages, and how often a run splits and embeds."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    reranker = resolve_reranker("hybrid")
    for number, row in enumerate(rows, 1):
        passages = evidence([(one["title"], one["text"]) for one in row["docs"]])
        ask = reading(row["question"], passages)
        node = SelectNode(GraphResources())
        chosen = node.select(ask, RpgContext(paper=True), reranker)["selected"]
        kept, given = (sum(tokens(one["text"]) for one in side) for side in (chosen, passages))
        what = f"{len(chosen)} sentences of {len(passages)} passages, {kept:,} of {given:,} tokens"
        table.add_row(f"ASQA {number}: tokens kept", f"{kept / given:.3f}", "", what)
        first_and_later(number, node, ask, table)
    once(rows[0], table)


def first_and_later(number: int, node: SelectNode, ask: dict, table: Table) -> None:
    """The first selection of a run, and one that finds the sentences ready."""
    reranker, plan = resolve_reranker("hybrid"), ask["plan"]
    ready = ReadySentences().of(ask["evidence"], reranker)
    works = {
        "first": (
            lambda: SelectNode(GraphResources()).select(ask, RpgContext(paper=True), reranker),
            lambda: reranker.ready(ready.sentences).scores(plan),
        ),
        "later": (
            partial(node.select, ask, RpgContext(paper=True), reranker),
            partial(ready.ranking.scores, plan),
        ),
    }
    for which, pair in works.items():
        whole, alone = in_turns(pair, 40)
        times = f"{whole * 1e3:.1f} ms over {alone * 1e3:.1f} ms"
        table.add_row(
            f"ASQA {number}: {which} selection / scoring alone", f"{whole / alone:.2f}", "≤ 1.3", times
        )


def once(row: dict, table: Table) -> None:
    """A run of RPG with three cycles, whose splits of passages are counted in all threads."""
    counting, splits = CountingEmbeddings(), Counter[CodeType]()
    plans = [row["question"], "goals in world cups", "women's football"]
    graph = build_rpg(model=ScriptedModel(planner(plans)), reranker=counting)
    passages = [{"title": one["title"], "text": one["text"]} for one in row["docs"]]

    def see(frame: FrameType, event: str, _: object) -> None:
        splits[frame.f_code] += event == "call"

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        result = graph.invoke({"question": row["question"], "passages": passages})
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    found = evidence([(one["title"], one["text"]) for one in row["docs"]])
    sentences = ReadySentences().of(found, resolve_reranker("words")).sentences
    cycles = len(result["segments"])
    for what, made, there in (
        ("passages split", splits[passage_sentences.__code__], len(passages)),
        ("sentences embedded", counting.documents, len({one.titled for one in sentences})),
    ):
        name = f"ASQA: {what} in a run of {cycles} cycles / there are"
        table.add_row(name, f"{made / there:.2f}", "1", f"{made} of {there}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hotpot", type=Path, default=HOTPOT)
    parser.add_argument("--asqa", type=Path, default=ASQA)
    options = parser.parse_args()
    table = Table("what", "ratio", "wanted", "of")
    hotpot(options.hotpot, table)
    asqa(options.asqa, table)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
