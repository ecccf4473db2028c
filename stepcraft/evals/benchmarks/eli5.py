"""ELI5: questions that want an explanation (Fan et al. 2019; RPG §4).

Read are the formats in which it is evaluated: ALCE's `eli5_eval_bm25_top100.json` (`question`, `answer`, `claims` and retrieved
passages in `docs`, which are pooled as the corpus), and KILT's `eli5-dev-kilt.jsonl` (`input`, and `output` with answers).
ALCE asks a model of 11 billion parameters which claims an answer entails; without one, the words of the claims are counted.
"""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from stepcraft.evals.benchmarks.asqa import long_answer_scores
from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import checked, entries, refuse, text_of, texts_of
from stepcraft.evals.samples import Sample
from stepcraft.evals.scores import need_rouge
from stepcraft.text.clean import stems


def explanation_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """ROUGE-Lsum against the best gold answer, and how many of the claims' words occur in the answer.

    "claim words" is the mean over the claims of the share of a claim's words, stemmed and without stop words, that the
    answer has. The definition is ours: it bounds what an answer can entail, and does not see what contradicts a claim.
    """
    scores = long_answer_scores(sample, output)
    own = stems(str(output.get("answer") or ""))
    claims = [words for claim in sample.get("claims", ()) if (words := stems(claim))]
    return scores | (
        {"claim words": fmean(len(words & own) / len(words) for words in claims)} if claims else {}
    )


def _questions(file: Path) -> list[Sample]:
    need_rouge()
    samples: list[Sample] = []
    for one in entries(file, "id", "example_id"):
        question = text_of(one.fields, "question", "input")
        output = one.fields.get("output")
        told = [text_of(given, "answer") for given in output or () if isinstance(given, Mapping)]
        golds = [text for text in (text_of(one.fields, "answer"), *told) if text]
        if not question or not golds:
            refuse(one.where, "ELI5", "question or no answer")
        sample = Sample(id=one.id, question=question, long_answers=golds)
        if claims := texts_of(one.fields.get("claims")):
            sample["claims"] = claims
        samples.append(sample)
    return checked(samples, file, "ELI5")


BENCHMARKS = (
    Benchmark(
        "eli5",
        "questions that want an explanation: ROUGE-Lsum, and the words of the claims where the file has them",
        "not stated; questions and answers are from Reddit",
        "https://github.com/princeton-nlp/ALCE",
        read=_questions,
        score=explanation_scores,
        fields={"kind": "long"},
        citation="Fan et al., ELI5: Long Form Question Answering, ACL 2019; Gao et al., Enabling Large Language Models to "
        "Generate Text with Citations, EMNLP 2023",
    ),
)
