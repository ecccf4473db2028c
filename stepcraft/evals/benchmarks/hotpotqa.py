"""HotpotQA: questions whose answer takes several passages (Yang et al. 2018).

Read is the official format, `hotpot_dev_distractor_v1.json`: an array of `_id`, `question`, `answer`, `supporting_facts`
(title and number of a sentence) and `context` (title and sentences), as well as the same under the names of one's own files
(`passages`, `supporting_facts` with title and sentence). The passages of all questions are pooled as the corpus, and the
supporting facts are the gold passages and sentences.
"""

from stepcraft.evals.benchmarks.benchmark import Benchmark

BENCHMARKS = (
    Benchmark(
        "hotpotqa",
        "questions of several hops with short answers: exact match and F1, recall of gold passages and sentences",
        "CC BY-SA 4.0",
        "https://hotpotqa.github.io",
        fields={"kind": "short", "rpg_paper": {"kind": "multihop"}},
        citation="Yang et al., HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering, EMNLP 2018",
    ),
)
