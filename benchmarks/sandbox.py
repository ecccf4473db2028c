"""A program in the sandbox, as a multiple of a bare Python that runs nothing.

Run with `python benchmarks/sandbox.py`. Each figure is the ratio of two medians measured in the same run. Measured on two
cores: 1.7 for a program in the sandbox (bubblewrap 0.35, the limits and the watching 0.4), 1.9 for sixteen at once.
"""

import asyncio
import subprocess
import sys

from rich.console import Console
from rich.table import Table
from timing import in_turns

from stepcraft.evals.sandbox import Sandbox

REPEAT = 60
AT_ONCE = 16


def bare() -> None:
    """Start Python without a sandbox."""
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True, capture_output=True)


def main() -> None:
    """Measure one program after another, and several at once, and print the table."""
    sandbox = Sandbox()
    sandbox.probe()
    unkept = Sandbox("none", i_understand=True)

    async def several() -> None:
        await asyncio.gather(*(sandbox.arun("pass") for _ in range(AT_ONCE)))

    async def several_bare() -> None:
        await asyncio.gather(*(asyncio.to_thread(bare) for _ in range(AT_ONCE)))

    python, kept, limits = in_turns(
        [bare, lambda: sandbox.run("pass"), lambda: unkept.run("pass")], repeat=REPEAT
    )
    python_at_once, kept_at_once = in_turns(
        [lambda: asyncio.run(several_bare()), lambda: asyncio.run(several())], repeat=10
    )
    table = Table("what", "ratio", "bound", "measured")
    for name, ours, base, bound in (
        ("a program in the sandbox / bare Python", kept, python, "≤ 2"),
        ("a program with limits alone / bare Python", limits, python, ""),
        (
            f"{AT_ONCE} programs at once in sandboxes / in bare Python",
            kept_at_once,
            python_at_once,
            "≤ 2",
        ),
    ):
        table.add_row(
            name, f"{ours / base:.2f}", bound, f"{ours * 1e3:.1f} ms over {base * 1e3:.1f} ms"
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
