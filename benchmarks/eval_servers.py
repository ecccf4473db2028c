"""An evaluation on three LangGraph servers against the same in this process: `python benchmarks/eval_servers.py`.

The model is scripted, so the outcomes must be equal. In a second run one of the three servers is killed in the middle.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from rich.console import Console
from rich.table import Table

from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import read_methods
from stepcraft.evals.progress import Progress
from stepcraft.evals.servers import Servers
from tests.evals import served
from tests.evals.asked import samples
from tests.servers.langgraph_server import ROOT, LangGraphServer

METHODS = read_methods("direct,rag:k=1", {})
COUNT, AT_A_TIME = 60, 4
PASSING = {"seconds", "began", "trace", "versions", "models"}


def outcomes(directory: Path) -> list[dict[str, Any]]:
    """What does not depend on the moment or the place of a run."""
    found = [
        {name: value for name, value in one.items() if name not in PASSING}
        for one in read_outcomes(directory)
    ]
    return sorted(found, key=lambda one: (one["method"], one["id"]))


def config(folder: Path) -> Path:
    """The configuration of the servers."""
    graphs = {name: f"tests.evals.served:{name}" for name in ("direct", "rag")}
    file = folder / "langgraph.json"
    file.write_text(json.dumps({"dependencies": [str(ROOT)], "graphs": graphs, "python_version": "3.11"}))
    return file


def run(directory: Path, servers: list[LangGraphServer], *, kill_at: int | None = None) -> float:
    """Seconds of an evaluation; the first server is killed when so many samples are done."""
    alive = True

    def look(progress: Progress) -> None:
        nonlocal alive
        if alive and kill_at is not None and progress.done >= kill_at:
            alive = False
            os.killpg(servers[0].pid, signal.SIGKILL)

    began = time.perf_counter()
    on = Servers([one.url for one in servers], concurrency=AT_A_TIME) if servers else None
    local = {"direct": served.direct, "rag": served.rag}
    work = evaluate(
        METHODS,
        samples(COUNT),
        directory,
        graph_of=lambda one: local[one.graph],
        servers=on,
        concurrency=AT_A_TIME,
        on_progress=look,
    )
    asyncio.run(work)
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    table = Table("where", "samples", "failed", "equal to this process", "seconds")
    with tempfile.TemporaryDirectory() as given, ExitStack() as stack:
        folder = Path(given)
        file = config(folder)
        local = run(folder / "local", [])
        wanted = outcomes(folder / "local")
        servers = [stack.enter_context(LangGraphServer(file)) for _ in range(3)]
        rows = [("this process", "local", local)]
        rows.append(("one server", "one", run(folder / "one", servers[:1])))
        rows.append(("three servers", "three", run(folder / "three", servers)))
        rows.append(
            ("three, one killed in the middle", "killed", run(folder / "killed", servers, kill_at=COUNT))
        )
        for where, name, seconds in rows:
            found = outcomes(folder / name)
            equal = sum(one == other for one, other in zip(found, wanted, strict=True))
            failed = sum(bool(one["error"]) for one in found)
            table.add_row(where, str(len(found)), str(failed), f"{equal} of {len(wanted)}", f"{seconds:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
