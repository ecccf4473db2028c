"""What tracing costs: a run of AAG with it off and on, and how long a command waits for a LangSmith that is away.

Run with `python benchmarks/tracing.py`. The model answers at once, so the whole run is overhead. Each ratio is that of two
medians measured in turns; the endpoint is a process of its own.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.run_helpers import tracing_context
from rich.console import Console
from rich.table import Table

from benchmarks.timing import in_turns
from stepcraft import build_aag
from tests.kitchen import GOAL, PAPER, cook, forever, small_memory
from tests.scripted import ScriptedModel
from tests.servers.langsmith_server import LangSmithServer

REPEAT, COMMANDS = 40, 5
ENDPOINT = "import sys\nfrom tests.servers.langsmith_server import LangSmithServer\nwith LangSmithServer() as s: print(s.url, flush=True); sys.stdin.read()"
COMMAND = [
    sys.executable,
    "-c",
    "from stepcraft.cli import main; main()",
    "run",
    "direct",
    "a question",
    "--quiet",
]


@contextmanager
def endpoint() -> Iterator[str]:
    """The URL of an endpoint that takes all traces."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", ENDPOINT], text=True, **pipes) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


def runs() -> list[float]:
    """Seconds of a run with tracing switched off in the code, off in the environment, and on."""
    with small_memory() as memory, endpoint() as url:
        graph = build_aag(model=ScriptedModel(forever(cook())), memory=memory)
        client = Client(url, api_key="k")
        tracer = LangChainTracer(client=client)

        def disabled() -> None:
            with tracing_context(enabled=False):
                graph.invoke(GOAL, context=PAPER)

        works: list[Callable[[], object]] = [
            disabled,
            lambda: graph.invoke(GOAL, context=PAPER),
            lambda: graph.invoke(GOAL, {"callbacks": [tracer]}, context=PAPER),
        ]
        measured = in_turns(works, REPEAT)
        client.flush()
        client.cleanup()
        return measured


def exits() -> dict[str, list[float]]:
    """Seconds of a command by what LangSmith does, in turns."""
    with (
        socket.socket() as nobody,
        socket.create_server(("127.0.0.1", 0)) as silent,
        LangSmithServer(mute=True) as mute,
        endpoint() as url,
    ):
        nobody.bind(("127.0.0.1", 0))
        urls = {
            "untraced": "",
            "takes it": url,
            "refuses connections": f"http://127.0.0.1:{nobody.getsockname()[1]}",
            "never answers": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "answers /info and then nothing": mute.url,
        }
        seconds: dict[str, list[float]] = {name: [] for name in urls}
        for _ in range(COMMANDS):
            for name, its_url in urls.items():
                tracing = {
                    "LANGSMITH_TRACING": "true",
                    "LANGSMITH_ENDPOINT": its_url,
                    "LANGSMITH_API_KEY": "k",
                }
                began = time.perf_counter()
                env = {**os.environ, **(tracing if its_url else {})}
                subprocess.run(COMMAND, env=env, check=True, capture_output=True)
                seconds[name].append(time.perf_counter() - began)
        return seconds


def main() -> None:
    """Measure and print both tables."""
    for name in [name for name in os.environ if name.startswith(("LANGSMITH_", "LANGCHAIN_", "STEPCRAFT_"))]:
        del os.environ[name]
    disabled, off, on = runs()
    table = Table("a run", "ratio", "bound", "measured")
    table.add_row(
        "tracing not switched on / disabled in code", f"{off / disabled:.2f}", "≤ 1.05", f"{off * 1e3:.1f} ms"
    )
    table.add_row("tracing on / not switched on", f"{on / off:.2f}", "", f"{on * 1e3:.1f} ms")
    Console(width=110).print(table)
    taken = exits()
    untraced = statistics.median(taken.pop("untraced"))
    table = Table("a command whose LangSmith …", "seconds longer than untraced", "bound")
    for name, seconds in taken.items():
        table.add_row(name, f"{statistics.median(seconds) - untraced:+.1f}", "≤ 3")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
