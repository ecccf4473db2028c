"""The memory in Weaviate (`benchmarks/weaviate_memory.py`): `python benchmarks/memory.py [--sizes 1000,10000]`.

The procedures that the benchmarks of all memories use are made here, with a seed, of sentences of the bundled ones. The
local memory is measured by `benchmarks/local_memory.py`.
"""

import argparse
import random
import resource
import subprocess
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


def peak(size: int, url: str) -> float:
    """Fill a memory and search it; by how many MB the peak of resident memory grows."""
    made = procedures(1000)
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(made[:1])
        memory.search("load the model")
        start = resident()
        memory.add(
            Procedure(
                output=f"{made[n % 1000].output} {n}",
                input=made[n % 1000].input,
                steps=made[n % 1000].steps,
            )
            for n in range(size)
        )
        memory.search("search the long-term memory of an agent")
        return resident() - start


def own_peak(size: int, url: str) -> float:
    """`peak` in a process of its own."""
    command = [sys.executable, __file__, "--peak", str(size), "--url", url]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def resident() -> float:
    """The peak resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says on Linux may be the peak of the parent process
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--million", action="store_true", help="at 1,000,000 procedures too")
    parser.add_argument("--peak", type=int, help="only print the peak memory at this size")
    parser.add_argument("--url", default="", help="of the memory to fill for --peak")
    options = parser.parse_args()
    if options.peak:
        print(f"{peak(options.peak, options.url):.0f}")
        return
    from benchmarks.weaviate_memory import table  # noqa: PLC0415 - it imports this module

    table([*map(int, options.sizes.split(",")), *([1_000_000] if options.million else [])])


if __name__ == "__main__":
    main()
