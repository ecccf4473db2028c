"""The procedures and queries that the benchmarks of all memories use, and how they measure.

Procedures are made with a seed, of sentences of the bundled ones.
"""

import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure

QUERIES = 40


def procedures(count: int) -> list[Procedure]:
    """As many different procedures, of the sentences of the bundled ones."""
    chance = random.Random(7)
    bundled = list(open_memory(embeddings="none"))
    steps = [step for procedure in bundled for step in procedure.steps]
    words = sorted({word for step in steps for word in step.split()})
    return [
        Procedure(
            output=" ".join([*chance.choice(bundled).output.split()[:6], *chance.sample(words, 3)]),
            input=chance.choice(bundled).input,
            steps=tuple(chance.choices(steps, k=chance.randint(3, 9))),
        )
        for _ in range(count)
    ]


def queries(of: list[Procedure]) -> list[str]:
    """Goals with resources, as AAG asks."""
    chance = random.Random(8)
    return [f"{chance.choice(of).output} using {chance.choice(of).input}" for _ in range(QUERIES)]


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def resident() -> float:
    """The peak resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says on Linux may be the peak of the parent process
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
