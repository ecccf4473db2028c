"""The time and memory of a corpus, compared with its bare parts: `python benchmarks/corpus.py [--files 10000]`.

Each figure is a ratio of times within one run, except the last:

- first opening ÷ (the same files read, split and embedded, and nothing kept), the best of three rounds of each:
  embedded as a corpus does it ("bare"), and with wordllama's own `embed`, which takes twice as long ("wordllama");
- second opening, when nothing was changed ÷ first opening, and ÷ (the same folders listed and their files' sizes and
  times read);
- the same with one file changed, with the number of files that were read;
- search ÷ (the same FTS5 query for the best k by rank + the same query embedded and multiplied with a bare
  matrix), the median over the same queries, taken in turns;
- growth of the peak resident memory in a process that opens the corpus and searches it.

The files consist of sentences of the bundled procedures, chosen with a fixed seed. With the questions of HotpotQA
(distractor) as `--hotpot FILE`, the recall of the gold passages among those of all questions is measured as well.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import wordllama
from rich.console import Console
from rich.table import Table
from wordllama import WordLlama

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.memory import resident, seconds
from stepcraft.memory.open import open_memory
from stepcraft.models.embeddings import WordLlamaEmbedder
from stepcraft.sources.corpus.files import files_of, roots_of
from stepcraft.sources.corpus.passages import passages
from stepcraft.sources.corpus.retriever import CorpusRetriever, open_corpus
from stepcraft.text.words import query_words

K = 5
QUERIES = 40
ROUNDS = 3
HOTPOT = Path(__file__).parents[2] / "shared" / "data" / "hotpotqa-distractor" / "dev_60.jsonl"


def make_files(folder: Path, count: int) -> list[str]:
    """Markdown files of a few sections each, in folders of a hundred; some of their headings as queries."""
    chance = random.Random(7)
    bundled = list(open_memory(embeddings="none"))
    steps = [step for procedure in bundled for step in procedure.steps]
    words = sorted({word for step in steps for word in step.split()})
    headings: list[str] = []
    for number in range(count):
        place = folder / f"part{number // 100}"
        place.mkdir(exist_ok=True)
        parts = [f"# {' '.join(chance.sample(words, 4))}"]
        for _ in range(chance.randint(2, 4)):
            headings.append(
                " ".join([*chance.choice(bundled).output.split()[:6], *chance.sample(words, 2)])
            )
            parts += [f"## {headings[-1]}", *chance.choices(steps, k=chance.randint(3, 8))]
        file = place / f"{number}.md"
        file.write_text("\n\n".join(parts))
        os.utime(file, (1_700_000_000, 1_700_000_000))  # as old as the files of a corpus are
    return chance.sample(headings, QUERIES)


def bare(folder: Path, embed: Callable[[list[str]], np.ndarray]) -> np.ndarray:
    """The files read, split and embedded by the thousand; the vectors."""
    texts: list[str] = []
    vectors: list[np.ndarray] = []
    for file in sorted(folder.rglob("*.md")):
        texts += [f"{passage.title}\n{passage.text}" for passage in passages(file)]
        if len(texts) >= 1000:
            vectors.append(embed(texts))
            texts = []
    return np.concatenate([*vectors, *([embed(texts)] if texts else [])])


class BareSearch:
    """The best by words from the table of the index itself, and the best by vectors."""

    def __init__(self, corpus: CorpusRetriever, matrix: np.ndarray) -> None:
        self.connection = corpus.index._connection
        self.matrix = matrix
        self.embedder = WordLlamaEmbedder()

    def __call__(self, query: str) -> object:
        """The k best of both."""
        found = self.connection.execute(
            "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
            (" OR ".join(f'"{word}"' for word in query_words(query)), K),
        ).fetchall()
        scores = self.matrix @ self.embedder.embed_query(query)
        return found, np.argpartition(scores, -K)[-K:]


def opened_and_closed(folder: Path, index: Path) -> None:
    """What is measured of an opening."""
    open_corpus([folder], index=index).close()


def measure(count: int) -> Table:
    """All figures for so many files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "files"
        folder.mkdir()
        queries = make_files(folder, count)
        open_corpus([Path(__file__)], index=":memory:").close()
        matrices: list[np.ndarray] = []
        rounds: list[tuple[float, float, float]] = []
        ours = WordLlamaEmbedder().embed_documents
        library = WordLlama.load(
            cache_dir=Path(wordllama.__file__).parent, disable_download=True
        ).embed
        for number in range(ROUNDS):
            index = Path(name) / f"index{number}.db"
            parts = seconds(lambda: matrices.append(bare(folder, ours)))
            plain = seconds(partial(bare, folder, library))
            rounds.append((seconds(partial(opened_and_closed, folder, index)), parts, plain))
        first, parts, plain = map(min, zip(*rounds, strict=True))
        second = seconds(partial(opened_and_closed, folder, index))
        listing = seconds(lambda: files_of(roots_of([folder])))
        corpus = open_corpus([folder], index=index)
        (folder / "part0" / "0.md").write_text("# Changed\n\nOne file.")
        refreshed = seconds(corpus.refresh)
        read = corpus.read
        bare_search = BareSearch(corpus, matrices[0])
        search = partial(corpus.index.search, k=K, alpha=corpus.alpha)
        search(queries[0]), bare_search(queries[0])
        pairs = [
            (seconds(partial(search, query)), seconds(partial(bare_search, query)))
            for query in queries
        ]
        passages_kept = corpus.index.count()
        corpus.close()
        grown = subprocess.run(
            [sys.executable, __file__, "--peak", str(folder)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    table = Table(
        "", "corpus", "bare", "ratio", title=f"{count:,} files, {passages_kept:,} passages"
    )
    table.add_row("first opening", f"{first:.2f} s", f"{parts:.2f} s", f"{first / parts:.2f}")
    table.add_row("÷ wordllama", f"{first:.2f} s", f"{plain:.2f} s", f"{first / plain:.2f}")
    table.add_row("nothing changed", f"{second:.2f} s", f"{first:.2f} s", f"{second / first:.3f}")
    table.add_row("÷ listing", f"{second:.2f} s", f"{listing:.2f} s", f"{second / listing:.1f}")
    table.add_row(
        f"{read} file changed", f"{refreshed:.2f} s", f"{second:.2f} s", f"{refreshed / second:.2f}"
    )
    mine, theirs = (1000 * median(pair[side] for pair in pairs) for side in (0, 1))
    ratio = median(ours / other for ours, other in pairs)
    table.add_row("search", f"{mine:.2f} ms", f"{theirs:.2f} ms", f"{ratio:.2f}")
    table.add_row("memory", f"+{grown.strip()} MB", "", "")
    return table


def peak(folder: str) -> float:
    """Open a corpus and search it; by how many MB the peak of resident memory grows."""
    open_corpus([__file__], index=":memory:").invoke("load the model")
    start = resident()
    with tempfile.TemporaryDirectory() as name:
        corpus = open_corpus([folder], index=Path(name) / "index.db")
        corpus.invoke("search the long-term memory of an agent")
        corpus.close()
    return resident() - start


def quality(file: Path) -> Table:
    """Recall of the gold passages among those of all questions, as one JSONL file and as a file for each."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    pool = pool_of(rows)
    table = Table("HotpotQA", "passages", "recall@5", "recall@10", title="Recall without a model")
    for name in ("one JSONL file", "markdown files"):
        with tempfile.TemporaryDirectory() as folder:
            write_pool(Path(folder), pool, as_lines=name == "one JSONL file")
            corpus = open_corpus([folder], index=":memory:")
            table.add_row(
                name, str(len(pool)), *(f"{recall(corpus, rows, k):.3f}" for k in (5, 10))
            )
            corpus.close()
    return table


def pool_of(rows: list[dict]) -> list[tuple[str, str]]:
    """The passages of all questions, each once: title and text."""
    return sorted({(p["title"], "".join(p["sentences"])) for row in rows for p in row["passages"]})


def gold_of(row: dict) -> set[str]:
    """The titles of the passages that a question is answered from."""
    return {fact["title"] for fact in row["supporting_facts"]}


def write_pool(folder: Path, pool: list[tuple[str, str]], *, as_lines: bool) -> None:
    """The passages as files of a corpus."""
    if as_lines:
        lines = (json.dumps({"title": title, "text": text}) for title, text in pool)
        (folder / "passages.jsonl").write_text("\n".join(lines))
        return
    for number, (title, text) in enumerate(pool):
        (folder / f"{number}.md").write_text(f"# {title}\n\n{text}\n")


def recall(corpus: CorpusRetriever, rows: list[dict], k: int) -> float:
    """Which part of the gold passages is among the k best for its question."""
    hits = total = 0
    for row in rows:
        gold = gold_of(row)
        hits += len(
            gold & {document.metadata["title"] for document in corpus.invoke(row["question"], k=k)}
        )
        total += len(gold)
    return hits / total


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--hotpot", type=Path, default=HOTPOT)
    parser.add_argument("--peak", help="only print the peak memory of a folder")
    options = parser.parse_args()
    if options.peak:
        print(f"{peak(options.peak):.0f}")
        return
    console = Console()
    console.print(measure(options.files))
    if options.hotpot.exists():
        console.print(quality(options.hotpot))


if __name__ == "__main__":
    main()
