"""HotpotQA and 2WikiMultiHopQA: questions that need several passages to answer (RPG §4).

Files are read in the official format, `hotpot_dev_distractor_v1.json` and `dev.json` from
`data_ids_april7.zip` (`_id`, `question`, `answer`, `supporting_facts`, `context`), or with our own
field names (`passages`, and supporting facts with title and sentence). The passages of all
questions together form the corpus, and the supporting facts are the gold passages and sentences. If
`id_aliases.json` is in the same folder as the 2WikiMultiHopQA file, the aliases and demonyms of an
answer also count as right, as in the official script (version 1.1).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.samples import Gold, Sample
from stepcraft.evals.scores import exact_match, f1
from stepcraft.evals.scoring import gold_scores
from stepcraft_papers.entries import (
    Entry,
    entries,
    file_benchmark,
    fold,
    passages_of,
    text_of,
    texts_of,
)


def _questions(benchmark: str, file: Path) -> list[Sample]:
    aliases = _aliases(file)
    samples: list[Sample] = []
    for entry in entries(file, "id", "_id"):
        question, answers = text_of(entry.fields, "question"), texts_of(entry.fields.get("answer"))
        if not question or not answers:
            entry.refuse(benchmark, "question or no answer")
        answers += aliases.get(str(entry.fields.get("answer_id") or ""), [])
        sample = Sample(id=entry.id, question=question, answers=list(dict.fromkeys(answers)))
        if gold := _gold(entry):
            sample["gold"] = gold
        samples.append(sample)
    return samples


def _gold(entry: Entry) -> list[Gold]:
    """Return the gold passages, with only a title if HotpotQA's sentence number does not exist."""
    passages = {title.casefold(): sentences for title, sentences in passages_of(entry)}
    gold: dict[str, Gold] = {}
    for title, number in _facts(entry):
        passage = gold.setdefault(title.casefold(), Gold(title=title, sentences=[]))
        for sentence in passages.get(title.casefold(), [])[number : number + 1]:
            if sentence and sentence not in passage["sentences"]:
                passage["sentences"].append(sentence)
    return list(gold.values())


def _facts(entry: Entry) -> Iterator[tuple[str, int]]:
    facts = entry.fields.get("supporting_facts") or []
    if isinstance(facts, dict):  # the columns of the Hugging Face hub
        facts = zip(facts.get("title", ()), facts.get("sent_id", ()), strict=False)
    for fact in facts:
        match fact:
            case {"title": str(title), "sentence": int(number)} | [str(title), int(number)]:
                yield fold(title), max(number, 0)
            case _:
                raise BadInput(f"{entry.where} has a supporting fact that is none: {fact!r:.80}")


def _aliases(file: Path) -> dict[str, list[str]]:
    beside = file.with_name("id_aliases.json")
    if not beside.exists():
        return {}
    return {
        entry.id: [
            name for key in ("aliases", "demonyms") for name in texts_of(entry.fields.get(key))
        ]
        for entry in entries(beside, "Q_id")
    }


def short_answer_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Return exact match and F1 as the official scripts do, and the recall of gold passages."""
    answer, answers = str(output.get("answer") or ""), sample.get("answers", ())
    scores = {"exact match": exact_match(answer, answers), "F1": f1(answer, answers)}
    return scores | gold_scores(sample.get("gold", ()), output.get("evidence") or ())


HOTPOTQA = file_benchmark(
    "hotpotqa",
    "questions of several hops with short answers: exact match, F1, recall of gold passages",
    partial(_questions, "HotpotQA"),
    source="https://hotpotqa.github.io",
    licence="CC BY-SA 4.0",
    citation="Yang et al., HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question "
    "Answering, EMNLP 2018",
    score=short_answer_scores,
    settings={"kind": "short", "rpg_paper": {"kind": "multihop"}},
)
TWO_WIKI = file_benchmark(
    "2wikimultihopqa",
    "questions of several hops with short answers and their aliases: exact match and F1",
    partial(_questions, "2WikiMultiHopQA"),
    source="https://github.com/Alab-NII/2wikimultihop",
    licence="Apache 2.0",
    citation="Ho et al., Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of "
    "Reasoning Steps, COLING 2020",
    score=short_answer_scores,
    settings={"kind": "short", "rpg_paper": {"kind": "multihop"}},
)
