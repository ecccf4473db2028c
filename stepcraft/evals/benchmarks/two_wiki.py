"""2WikiMultiHopQA: questions of several hops over Wikipedia and Wikidata (Ho et al. 2020; RPG §4).

Read is the official format, `dev.json` of `data_ids_april7.zip`: as HotpotQA with `answer_id` and `evidences`. Where
`id_aliases.json` of the same archive lies beside the file, its aliases and demonyms of the answer are right as well, as in
the official script (version 1.1). Files whose `answer` is a list of aliases are read, too.
"""

from pathlib import Path

from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import entries, texts_of
from stepcraft.evals.samples import Sample, read_samples

_ALIASES = "id_aliases.json"


def _questions(file: Path) -> list[Sample]:
    samples = read_samples(file)
    beside = file.with_name(_ALIASES)
    if not beside.exists():
        return samples
    ids = {one.id: str(one.fields.get("answer_id") or "") for one in entries(file, "id", "_id")}
    wanted = set(ids.values())
    aliases = {
        one.id: [*texts_of(one.fields.get("aliases")), *texts_of(one.fields.get("demonyms"))]
        for one in entries(beside, "Q_id")
        if one.id in wanted
    }
    for sample in samples:
        if more := aliases.get(ids.get(sample["id"], "")):
            sample["answers"] = list(dict.fromkeys([*sample.get("answers", ()), *more]))
    return samples


BENCHMARKS = (
    Benchmark(
        "2wikimultihopqa",
        "questions of several hops with short answers and their aliases: exact match and F1",
        "Apache 2.0",
        "https://github.com/Alab-NII/2wikimultihop",
        read=_questions,
        fields={"kind": "short", "rpg_paper": {"kind": "multihop"}},
        citation="Ho et al., Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of Reasoning Steps, COLING 2020",
    ),
)
