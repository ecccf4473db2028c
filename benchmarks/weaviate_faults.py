"""The message that a user of the command line sees for each fault of Weaviate, and after how many seconds.

Run with `python benchmarks/weaviate_faults.py`. It starts the server that `scripts/weaviate install` built, and causes
the fault that the row names. Faults in the middle of a search or an iteration need a process that survives them: they are tested in
`tests/memory/test_weaviate_faults.py`, and measured here in this process.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

import weaviate
from langchain_core.embeddings import DeterministicFakeEmbedding
from rich.console import Console
from rich.markup import escape
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stepcraft.errors import StepcraftError
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from tests.servers.ports import Ports
from tests.memory.test_weaviate_faults import serving
from tests.servers.weaviate_server import WeaviateServer

STEPCRAFT = [sys.executable, "-c", "from stepcraft.cli import main; main()"]
KEYS = {
    "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
    "AUTHENTICATION_APIKEY_ENABLED": "true",
    "AUTHENTICATION_APIKEY_ALLOWED_KEYS": "right-secret",
    "AUTHENTICATION_APIKEY_USERS": "cook",
}
DISHES = [
    Procedure(input="flour", output=f"dish {number}", steps=("Mix.", "Bake."))
    for number in range(3000)
]


def command(url: str, *arguments: str, **environment: str) -> tuple[float, str]:
    """The seconds and the last line of `stepcraft memory …` on a memory, with its exit status."""
    start = time.monotonic()
    done = subprocess.run(
        [*STEPCRAFT, "memory", *(arguments or ("count",)), "--memory", url],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    message = (done.stderr or done.stdout).strip().splitlines() or [""]
    return time.monotonic() - start, f"{message[-1]} (exit {done.returncode})"


def attempt(call: Callable[[], object]) -> tuple[float, str]:
    """The seconds and the message of a call in this process."""
    start = time.monotonic()
    try:
        call()
    except StepcraftError as error:
        return time.monotonic() - start, str(error)
    return time.monotonic() - start, "no error"


def connection_faults(server: WeaviateServer, folder: Path) -> dict[str, tuple[float, str]]:
    """Faults of connecting to a server."""
    http, grpc = server.port, server.grpc_port
    with Ports(1) as (closed,):
        seen = {
            "wrong host": command("weaviate://no-such-host.invalid/Dishes"),
            "wrong port": command(f"weaviate://127.0.0.1:{closed}/Dishes"),
            "wrong scheme": command(f"http://127.0.0.1:{http}/Dishes"),
            "TLS against a plain port": command(
                f"weaviate://127.0.0.1:{http}/Dishes?grpc={grpc}&tls=true"
            ),
            "gRPC closed, HTTP open": command(f"weaviate://127.0.0.1:{http}/Dishes?grpc={closed}"),
        }
    with serving("1.26.4") as port:
        seen["a server too old"] = command(f"weaviate://127.0.0.1:{port}/Dishes")
    with WeaviateServer(folder / "keys", KEYS) as locked:
        seen["no key"] = command(locked.url("Dishes"))
        seen["wrong key"] = command(locked.url("Dishes"), WEAVIATE_API_KEY="wrong-secret")
    return seen


def collection_faults(
    server: WeaviateServer, client: weaviate.WeaviateClient, folder: Path
) -> dict[str, tuple[float, str]]:
    """Faults of a collection, and refused procedures."""
    url = server.url("Dishes")
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(DISHES)
    client.collections.create("Books")
    with open_memory(server.url("Tenants", tenant="one"), embeddings="none") as memory:
        memory.add(DISHES[:1])
    huge = folder / "huge.jsonl"
    step = "x" * 120_000_000
    huge.write_text(f'{{"input": "flour", "output": "a dish", "steps": ["{step}"]}}\n')
    seen = {
        "a collection of another shape": command(server.url("Books")),
        "no such tenant": command(server.url("Tenants", tenant="two")),
        "no tenant named": command(server.url("Tenants")),
        "other embeddings": attempt(
            lambda: open_memory(url, embeddings=DeterministicFakeEmbedding(size=256))
        ),
        "other dimensions": attempt(partial(_searched, server.url("Fake"))),
        "a procedure of 120 MB": command(url, "import", str(huge)),
    }
    more = folder / "more.jsonl"
    more.write_text('{"input": "rye", "output": "a bread", "steps": ["Bake."]}\n')
    shard = client.collections.use("Dishes").config.get_shards()[0].name
    client.collections.use("Dishes").config.update_shards("READONLY", shard)
    seen["a read-only shard"] = command(url, "import", str(more))
    client.collections.use("Dishes").config.update_shards("READY", shard)
    return seen


def _searched(url: str) -> None:
    """In a collection whose vectors have another length than those of the model of the same name."""
    with open_memory(url, embeddings=DeterministicFakeEmbedding(size=4)) as memory:
        memory.add(DISHES[:1])
    with open_memory(url, embeddings=DeterministicFakeEmbedding(size=8)) as memory:
        memory.search("dish 7")


def outage_faults(server: WeaviateServer) -> dict[str, tuple[float, str]]:
    """Outages of the server; the memory is used again after each."""
    seen = {}
    with open_memory(server.url("Dishes"), embeddings="wordllama") as memory:
        search = partial(memory.search, "dish 7")
        reading = iter(memory)
        list(islice(reading, 1000))
        server.kill()
        seen["killed, then a search"] = attempt(search)
        seen["killed in an iteration"] = attempt(lambda: next(reading))
        server.start()
        search()
        server.freeze()
        with suppress(ProcessLookupError):
            seen["frozen, then a search"] = attempt(search)
            seen["frozen, then opened"] = attempt(lambda: open_memory(server.url("Dishes")))
            server.thaw()
        search()
    return seen


def main() -> None:
    """Print the table."""
    table = Table("fault", "seconds", "what is seen")
    with tempfile.TemporaryDirectory() as name, WeaviateServer(Path(name) / "weaviate") as server:
        seen = connection_faults(server, Path(name))
        with weaviate.connect_to_local(
            "127.0.0.1", server.port, server.grpc_port, skip_init_checks=True
        ) as client:
            seen |= collection_faults(server, client, Path(name))
        seen |= outage_faults(server)
    for fault, (seconds, message) in seen.items():
        table.add_row(fault, f"{seconds:.1f}", escape(message))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
