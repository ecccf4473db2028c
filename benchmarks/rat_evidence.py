"""Recall of the gold passages in keyless runs of RAT: `python benchmarks/rat_evidence.py [--hotpot FILE] [--questions 20]`.

The passages of all questions of HotpotQA (distractor) form one corpus. RAT is compared with one search for the
question: for five passages (RAG-5), and for as many as RAT found for that question.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.corpus import HOTPOT, gold_of, pool_of, write_pool
from stepcraft import build_rat
from stepcraft.sources.corpus.retriever import open_corpus


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hotpot", type=Path, default=HOTPOT)
    parser.add_argument("--questions", type=int, default=20)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.hotpot.read_text(encoding="utf-8").splitlines()]
    gold, found, passages = 0, {"RAT": 0, "RAG-5": 0, "RAG, as many": 0}, 0
    with tempfile.TemporaryDirectory() as place:
        write_pool(Path(place), pool_of(rows), as_lines=True)
        corpus = open_corpus([place], index=":memory:")
        rat = build_rat(model="extractive", retriever=corpus)
        for row in rows[: options.questions]:
            wanted = gold_of(row)
            evidence = rat.invoke({"question": row["question"]})["evidence"]
            plain = [document.metadata["title"] for document in corpus.invoke(row["question"], k=20)]
            gold += len(wanted)
            passages += len(evidence)
            found["RAT"] += len(wanted & {passage["title"] for passage in evidence})
            found["RAG-5"] += len(wanted & set(plain[:5]))
            found["RAG, as many"] += len(wanted & set(plain[: len(evidence)]))
        corpus.close()
    table = Table("keyless", "gold passages found", "passages a question")
    for name, count in found.items():
        many = 5 if name == "RAG-5" else passages / options.questions
        table.add_row(name, f"{count} of {gold}", f"{many:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
