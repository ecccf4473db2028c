"""An evaluation in a process of its own: `python -m tests.evals.asked DIRECTORY CALLS`.

Each question that the model is asked is appended to the file CALLS.
"""

import asyncio
import sys
from pathlib import Path

from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import Method
from stepcraft.evals.samples import Sample
from tests.scripted import ScriptedModel

COUNT = 20


def samples(count: int) -> list[Sample]:
    """Questions whose answer is their number."""
    return [
        Sample(id=str(number), question=f"Question {number}?", answers=[str(number)])
        for number in range(count)
    ]


def number_in(prompt: str) -> str:
    """The number of the question in a prompt."""
    return prompt.partition("Question ")[2].partition("?")[0]


def main(directory: str, calls: str) -> None:
    """Run it."""
    log = Path(calls).open("ab", buffering=0)  # noqa: SIM115 - open until the process is killed

    def reply(_node: str, prompt: str) -> str:
        log.write(f"{number_in(prompt)}\n".encode())
        return number_in(prompt)

    model = ScriptedModel(reply, latency=0.1)
    method = Method("direct", "direct", options={"model": model})
    asyncio.run(evaluate([method], samples(COUNT), Path(directory)))


if __name__ == "__main__":
    main(*sys.argv[1:])
