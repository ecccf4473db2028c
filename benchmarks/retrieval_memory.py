"""Whether a memory finds the right procedure: `python benchmarks/retrieval_memory.py [--weaviate] [--texts]`.

The memory is that of the 212 bundled procedures. Three kinds of queries are searched for:

- newcomer: goals for 60 procedures, drawn over all topics, in the words of somebody who does not know the terms of the
  documentation (`paraphrases.jsonl`);
- user: goals for the same procedures by somebody who knows the terms (`paraphrases.jsonl`);
- name: the names in code that stand in one procedure alone.

For each weight of the vectors (alpha) the tables have the share of queries whose procedure is among the first 1, 3 and
5, and the mean reciprocal rank among the first 10 (MRR). The last columns say how the mean reciprocal rank of all goals, without names,
differs from that of the default alpha: the mean with its interval of 95 %, and p of the paired randomisation test.

- By default: the local memory.
- --weaviate: the memory in the Weaviate server that `scripts/weaviate install` built.
- --texts: what if other texts were embedded than the whole procedure; the words searched stay those of the whole.
- --embeddings NAME: other embeddings than wordllama, as `init_embeddings` names them.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stepcraft.evals.stats import mean_interval, paired
from stepcraft.index import Entry, LocalIndex
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ALPHA, ProcedureMemory
from stepcraft.memory.weaviate import memory as weaviate_memory
from stepcraft.models.embeddings import WordLlamaEmbedder
from tests.servers.weaviate_server import WeaviateServer

GOALS = Path(__file__).with_name("paraphrases.jsonl")
ASKERS = ("newcomer", "user", "name")
ALPHAS = tuple(tenth / 10 for tenth in range(11))
FIRST = (1, 3, 5)
K = 3
"""How many procedures AAG retrieves for a query."""
DEPTH = 10
SEED = 18
TEXTS: dict[str, Callable[[Procedure], Sequence[str]]] = {
    "whole": lambda item: [item.text()],
    "output": lambda item: [item.output],
    "output, input": lambda item: [f"how to {item.output} using {item.input}"],
    "output, steps": lambda item: [item.text("{output}\n{steps}")],
    "whole + output": lambda item: [item.text(), item.output],
}


@dataclass(frozen=True)
class Query:
    """A text to search for, who asks so, and the id of the procedure that is wanted."""

    asker: str
    text: str
    wanted: str


def queries(procedures: list[Procedure]) -> list[Query]:
    """All queries: goals of newcomers and users, then names."""
    ids = {str(item.metadata["id"]): item.id for item in procedures}
    goals = [json.loads(line) for line in GOALS.read_text(encoding="utf-8").splitlines()]
    found = [Query(goal["asker"], goal["goal"], ids[goal["id"]]) for goal in goals]
    places: dict[str, set[str]] = defaultdict(set)
    for item in procedures:
        for name in re.findall(r"`([A-Za-z_][\w.]{3,30})`", "\n".join(item.steps)):
            places[name].add(item.id)
    found += [
        Query("name", name, *holders) for name, holders in places.items() if len(holders) == 1
    ]
    return sorted(found, key=lambda query: ASKERS.index(query.asker))


def ranks(memory: ProcedureMemory, asked: list[Query], alpha: float) -> list[float]:
    """At which place the procedure of each query is found; infinity where it is not among the first 10."""
    return places(
        lambda text: [hit.procedure.id for hit in memory.search(text, DEPTH, alpha=alpha)], asked
    )


def places(search: Callable[[str], list[str]], asked: list[Query]) -> list[float]:
    """At which place a search that returns ids has what each query wants."""
    rows = [(search(query.text), query.wanted) for query in asked]
    return [ids.index(wanted) + 1 if wanted in ids else inf for ids, wanted in rows]


def table(
    title: str, first: str, asked: list[Query], rows: dict[str, list[float]], default: str
) -> Table:
    """The figures of each row, from the ranks of its queries."""
    figures = [*(f"@{count}" for count in FIRST), "MRR"]
    heads = [f"{asker} {figure}" for asker in ASKERS for figure in figures]
    shown = Table(first, *heads, f"MRR of goals - that at {default}", "p", title=title)
    goals = [place for place, query in enumerate(asked) if query.asker != "name"]
    for name, found in rows.items():
        cells = []
        for asker in ASKERS:
            own = [rank for rank, query in zip(found, asked, strict=True) if query.asker == asker]
            cells += [f"{fmean(rank <= count for rank in own):.2f}" for count in FIRST]
            cells.append(f"{fmean(1 / rank for rank in own):.2f}")
        both = [[1 / one[place] for place in goals] for one in (found, rows[default])]
        change = paired(*both)
        interval = f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
        shown.add_row(name, *cells, interval, f"{change.p:.3f}")
    return shown


def by_alpha(
    title: str, memory: ProcedureMemory, asked: list[Query], default: float
) -> Iterator[Table | str]:
    """The table of a memory, and how sure recall at 3 is at its default alpha."""
    rows = {f"{alpha:g}": ranks(memory, asked, alpha) for alpha in ALPHAS}
    yield table(title, "alpha", asked, rows, f"{default:g}")
    for asker in ASKERS:
        found = zip(rows[f"{default:g}"], asked, strict=True)
        own = [float(rank <= K) for rank, query in found if query.asker == asker]
        sure = mean_interval(own)
        yield f"{asker} @{K} at alpha {default:g}: {sure.mean:.2f} [{sure.low:.2f}, {sure.high:.2f}] of {len(own)}"


@contextmanager
def in_weaviate(procedures: list[Procedure], embeddings: str) -> Iterator[ProcedureMemory]:
    """A collection of them in a server of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WeaviateServer(Path(folder)) as server,
        open_memory(server.url("Goals"), embeddings=embeddings) as memory,
    ):
        memory.add(procedures)
        yield memory


class MeanEmbedder(WordLlamaEmbedder):
    """Gives a procedure, known by its whole text, the mean of the vectors of some of its texts."""

    def __init__(self, texts: dict[str, Sequence[str]]) -> None:
        self.texts = texts

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """One mean a text."""
        vectors = [super(MeanEmbedder, self).embed_documents(self.texts[text]) for text in texts]
        return np.array(
            [(each / np.linalg.norm(each, axis=1, keepdims=True)).mean(axis=0) for each in vectors]
        )


def found_by(
    texts: Callable[[Procedure], Sequence[str]],
    procedures: list[Procedure],
    asked: list[Query],
    alpha: float,
) -> list[float]:
    """`ranks` where a procedure's vector is the mean of those of some texts."""
    embedder = MeanEmbedder({item.text(): texts(item) for item in procedures})
    with closing(LocalIndex(":memory:", embedder)) as index:
        index.put([Entry(item.id, item.text(), {}) for item in procedures])
        return places(
            lambda text: [h.entry.id for h in index.search(text, DEPTH, alpha=alpha)], asked
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weaviate", action="store_true", help="measure the memory in Weaviate")
    parser.add_argument("--texts", action="store_true", help="measure other texts to embed")
    parser.add_argument("--embeddings", default="wordllama", help="the embeddings of both memories")
    options = parser.parse_args()
    console = Console(width=200)
    procedures = list(open_memory(embeddings="none"))
    asked = queries(procedures)
    if options.texts:
        for alpha in (1.0, ALPHA):
            rows = {
                name: found_by(texts, procedures, asked, alpha) for name, texts in TEXTS.items()
            }
            console.print(
                table(f"What is embedded, at alpha {alpha:g}", "text", asked, rows, "whole")
            )
    elif options.weaviate:
        with in_weaviate(procedures, options.embeddings) as memory:
            console.print(
                *by_alpha("Memory in Weaviate", memory, asked, weaviate_memory.ALPHA), sep="\n"
            )
    else:
        with open_memory(embeddings=options.embeddings) as memory:
            console.print(*by_alpha("Local memory", memory, asked, ALPHA), sep="\n")


if __name__ == "__main__":
    main()
