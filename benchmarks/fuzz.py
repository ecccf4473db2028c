"""Random input for everything that reads from outside: `python benchmarks/fuzz.py [--minutes 10] [--target NAME]`.

Each target of tests/security/targets.py is given new examples in turns until the time is over. Printed are the number
of examples of each target and what was found: each undocumented exception, or time that an example may not take, with
the shortest example for it. The exit code is 1 if there is any.
"""

import argparse
import logging
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.security.targets import TARGETS, Target, TooSlow

ROUND = settings(
    max_examples=100,
    database=None,
    deadline=None,
    derandomize=False,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

Finding = tuple[str, str]
"""A target, and the exception with the line of code that raised it."""


def fuzz(target: Target, counts: Counter[str], found: dict[Finding, str], until: float) -> None:
    """Give a target a round of examples, and keep the shortest one for each finding."""

    def check(example: object) -> None:
        if time.monotonic() > until:
            return
        counts[target.name] += 1
        try:
            target.check(example)
        except Exception as error:
            key = target.name, _described(error)
            shown = ascii(example)
            found[key] = min(found.get(key, shown), shown, key=len)

    ROUND(given(target.examples)(check))()


def _described(error: Exception) -> str:
    if isinstance(error, TooSlow):
        return "it took too long"
    frames = traceback.extract_tb(error.__traceback__)
    frame = next(
        (one for one in reversed(frames) if "stepcraft/" in Path(one.filename).as_posix()), frames[-1]
    )
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--target", help="only the targets with this in their names")
    options = parser.parse_args()
    logging.disable()  # warnings of records and pages that are left out
    chosen = [target for target in TARGETS if (options.target or "") in target.name]
    until = time.monotonic() + 60 * options.minutes
    counts: Counter[str] = Counter()
    found: dict[Finding, str] = {}
    while time.monotonic() < until:
        for target in chosen:
            fuzz(target, counts, found, until)
    table = Table("target", "examples", "findings")
    for target in chosen:
        table.add_row(
            target.name, f"{counts[target.name]:,}", str(sum(name == target.name for name, _ in found))
        )
    console = Console()
    console.print(table)
    for (name, described), example in sorted(found.items()):
        console.print(
            f"{name}: {described}\n    {example:.300}", markup=False, highlight=False, soft_wrap=True
        )
    console.print(f"{counts.total():,} examples, {len(found)} findings", highlight=False)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
