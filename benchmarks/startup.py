"""Start-up time of the package and of its command line, as multiples of importing typer and rich.

Run with `python benchmarks/startup.py`. Each figure is the ratio of two medians measured in the same run.
"""

import statistics
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

REPEAT = 15
CASES = {
    "import stepcraft": ["-c", "import stepcraft"],
    "stepcraft --help": [
        "-c",
        "import sys; sys.argv = ['stepcraft', '--help']; from stepcraft.cli import main; main()",
    ],
}


def seconds(arguments: list[str]) -> float:
    """Return the median wall time of REPEAT processes with these arguments."""
    times: list[float] = []
    for _ in range(REPEAT):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Measure each case and print the table."""
    bare = seconds(["-c", "import typer, rich"])
    table = Table("what", "ratio", "bound", "measured")
    for name, arguments in CASES.items():
        ours = seconds(arguments)
        table.add_row(
            f"{name} / importing typer and rich",
            f"{ours / bare:.2f}",
            "≤ 3",
            f"{ours * 1e3:.0f} ms over {bare * 1e3:.0f} ms",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
