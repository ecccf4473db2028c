"""An import during which the server and the importing process are killed: `python benchmarks/weaviate_import_kills.py [--size 100000]`.

The server is killed (SIGKILL) and started again at 30 % and at 70 %, the importing process is killed at 50 %. After
the second run the memory must hold exactly what was given, and procedures near a kill must be found by their words and
by their vectors as often as others: the server's index of vectors is approximate.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.memory import procedures
from stepcraft.memory.files import write_jsonl
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.cli.memory import compare
from tests.servers.weaviate_server import WeaviateServer

AROUND = 2000
"""How many procedures before and after a kill are sampled: every fortieth is searched by words and by vector."""


def run(
    file: Path, url: str, server: WeaviateServer, kill_server: int, kill_import: int = 0
) -> None:
    """One `stepcraft memory import`; at these counts the server is killed and started again, and the import killed."""
    command = [
        sys.executable,
        "-c",
        "from stepcraft.cli import main; main()",
        "memory",
        "import",
        str(file),
        "-m",
        url,
    ]
    importing = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert importing.stderr
    for line in importing.stderr:
        count = int(re.sub(r"\D", "", line) or 0)
        print(f"  {line.strip()}", flush=True)
        if count == kill_server:
            server.kill()
            start = time.monotonic()
            server.start()
            print(
                f"  the server was killed, and served again after {time.monotonic() - start:.0f} s"
            )
        if count == kill_import:
            importing.kill()
            print("  the import was killed")
    print(f"  exit status {importing.wait()}", flush=True)


def lost(
    memory: ProcedureMemory, known: list[Procedure], places: list[int]
) -> tuple[int, int, int]:
    """How many procedures were sampled, and how many of them a search by words and one by vector do not find."""
    near = [
        item for place in places for item in known[max(0, place - AROUND) : place + AROUND : 40]
    ]
    missed = [
        sum(
            item.id not in [hit.procedure.id for hit in memory.search(item.text(), 5, alpha=alpha)]
            for item in near
        )
        for alpha in (0, 1)
    ]
    return len(near), missed[0], missed[1]


def main() -> None:
    """Import, kill, import again, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000)
    size = parser.parse_args().size
    known = procedures(size)
    with tempfile.TemporaryDirectory() as folder, WeaviateServer(Path(folder)) as server:
        file, url, start = Path(folder) / "procedures.jsonl", server.url("Kills"), time.monotonic()
        write_jsonl(known, file)
        print(f"first run, of {size:,} procedures")
        run(file, url, server, 3 * size // 10, size // 2)
        print("second run")
        run(file, url, server, 7 * size // 10)
        with open_memory(url) as memory:
            found = compare(memory, known)
            print(
                f"{memory.count():,} are in after {time.monotonic() - start:.0f} s: {found.same:,} as given,"
            )
            print(
                f"{len(found.missing)} missing, {len(found.different)} different, {len(found.extra)} extra"
            )
            for where, parts in {"near": (3, 5, 7), "far from": (1, 4, 9)}.items():
                asked, words, vectors = lost(memory, known, [size * part // 10 for part in parts])
                print(
                    f"of {asked:,} {where} the kills, {words} are not found by their words, "
                    f"{vectors} not by their vectors"
                )


if __name__ == "__main__":
    main()
