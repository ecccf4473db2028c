"""LGStep: procedures for LangGraph and LangSmith, and the same in a domain that no model knows."""

from importlib.resources import files
from pathlib import Path

from stepcraft.evals.benchmarks.benchmark import Benchmark

_DATA = Path(str(files("stepcraft.evals") / "data"))

BENCHMARKS = (
    *(
        Benchmark(
            f"lgstep-{split}",
            f"procedures for LangGraph and LangSmith, the {told}; the memory is the bundled one",
            "that of this package",
            "this package",
            packaged=_DATA / f"lgstep-{split}.jsonl",
        )
        for split, told in (("val", "24 of middle length"), ("test", "42 longest"))
    ),
    *(
        Benchmark(
            f"lgstep-renamed-{split}",
            f"the same as lgstep-{split} with every product and API name replaced: a domain that no model knows",
            "that of this package",
            "this package",
            packaged=_DATA / f"lgstep-renamed-{split}.jsonl",
            fields={"memory": str(_DATA / "lgstep-renamed-memory.jsonl")},
        )
        for split in ("val", "test")
    ),
)
