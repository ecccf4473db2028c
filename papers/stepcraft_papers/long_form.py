"""ASQA and ELI5: questions with long answers (RPG §4).

ASQA's ambiguous questions (Stelmakh et al. 2022) can be read in the official format (`ASQA.json`,
split `dev`), as rows from the Hugging Face Hub, and in ALCE's format, which has `question` and
retrieved passages (`docs`). ELI5 (Fan et al. 2019) can be read in ALCE's format,
`eli5_eval_bm25_top100.json`, and in KILT's, `eli5-dev-kilt.jsonl`. The passages of all questions
together form the corpus.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from stepcraft.evals.samples import Sample
from stepcraft.evals.scores import normalise, rouge_lsum
from stepcraft.text.clean import stems
from stepcraft_papers.entries import (
    Entry,
    entries,
    file_benchmark,
    mapping_of,
    objects_of,
    text_of,
    texts_of,
    whole,
)


def long_answer_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Score a long answer.

    STR-EM is the proportion of readings for which the answer contains a short answer, and
    ROUGE-Lsum is computed against the best-matching long answer, both as in the official scripts of
    ASQA and ALCE. "claim words" is the mean, over ALCE's claims, of the proportion of a claim's
    words (stemmed, without stop words) that occur in the answer. This definition is ours and
    replaces a model with 11 billion parameters: it is an upper bound on what an answer can entail,
    and does not detect contradictions of a claim.
    """
    answer = str(output.get("answer") or "")
    scores: dict[str, float] = {}
    if readings := sample.get("contains"):
        scores["STR-EM"] = str_em(answer, readings)
    if references := sample.get("long_answers"):
        scores["ROUGE-Lsum"] = max(rouge_lsum(answer, reference) for reference in references)
    words = stems(answer)
    claims = [claimed for claim in sample.get("facts", ()) if (claimed := stems(claim))]
    if claims:
        scores["claim words"] = fmean(len(claimed & words) / len(claimed) for claimed in claims)
    return scores


def str_em(answer: str, readings: Sequence[Sequence[str]]) -> float:
    """Return the proportion of readings with a short answer in the text, after normalisation.

    As in ASQA's official script, a match can be part of a longer word.
    """
    text = normalise(answer)
    hits = [any(form and form in text for form in map(normalise, names)) for names in readings]
    return sum(hits) / len(hits) if hits else 0.0


def _asqa(file: Path) -> list[Sample]:
    samples: list[Sample] = []
    for entry in _asqa_entries(file):
        question = text_of(entry.fields, "ambiguous_question", "question")
        pairs = objects_of(entry.fields.get("qa_pairs"))
        readings = [names for pair in pairs if (names := texts_of(pair.get("short_answers")))]
        annotations = objects_of(entry.fields.get("annotations"))
        answers = [text for each in annotations if (text := text_of(each, "long_answer"))]
        if not question or not readings or not answers:
            entry.refuse(
                "ASQA", "question, no short_answers in qa_pairs, or no long_answer in annotations"
            )
        samples.append(
            Sample(id=entry.id, question=question, contains=readings, long_answers=answers)
        )
    return samples


def _asqa_entries(file: Path) -> Iterator[Entry]:
    dev = mapping_of(whole(file), "dev")
    if not dev:
        yield from entries(file, "sample_id", "id")
    for name, fields in dev.items():
        yield Entry(mapping_of(fields), f"{file}, {name}", name)


def _eli5(file: Path) -> list[Sample]:
    samples: list[Sample] = []
    for entry in entries(file, "id", "example_id"):
        question = text_of(entry.fields, "question", "input")
        outputs = [entry.fields, *objects_of(entry.fields.get("output"))]
        answers = [text for each in outputs if (text := text_of(each, "answer"))]
        if not question or not answers:
            entry.refuse("ELI5", "question or no answer")
        sample = Sample(id=entry.id, question=question, long_answers=answers)
        if claims := texts_of(entry.fields.get("claims")):
            sample["facts"] = claims
        samples.append(sample)
    return samples


ASQA = file_benchmark(
    "asqa",
    "ambiguous questions with long answers: short answers of each reading (STR-EM), ROUGE-Lsum",
    _asqa,
    source="https://github.com/google-research/language/tree/master/language/asqa",
    licence="Apache 2.0",
    citation="Stelmakh et al., ASQA: Factoid Questions Meet Long-Form Answers, EMNLP 2022",
    score=long_answer_scores,
    settings={"kind": "long"},
)
ELI5 = file_benchmark(
    "eli5",
    "questions that want an explanation: ROUGE-Lsum, and the words of the claims if there are any",
    _eli5,
    source="https://github.com/princeton-nlp/ALCE",
    licence="not stated; questions and answers are from Reddit",
    citation="Fan et al., ELI5: Long Form Question Answering, ACL 2019; Gao et al., Enabling Large "
    "Language Models to Generate Text with Citations, EMNLP 2023",
    score=long_answer_scores,
    settings={"kind": "long"},
)
