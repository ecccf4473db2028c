"""Memories in a Weaviate that is embedded in this process."""

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import pytest

from stepcraft import open_memory
from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.protocol import Found, ProcedureMemory
from stepcraft.memory.weaviate.embedded import server_in
from stepcraft.memory.weaviate.program import Ports, listens, program
from tests.kitchen import PROCEDURES
from tests.servers.weaviate_server import ROOT

HOLDER = """
import sys
from stepcraft import open_memory
from tests.kitchen import PROCEDURES
memory = open_memory(sys.argv[1], embeddings="none")
memory.add(PROCEDURES)
print("held", flush=True)
sys.stdin.readline()
"""

TAKER = """
import os, socket, sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
tries = Path(__file__).with_name("tries")
with tries.open("a") as file:
    file.write("x")
if tries.read_text() == "x":
    taken = socket.create_server(("", int(os.environ[PORT])))
    taken.set_inheritable(True)
os.execv(SERVER, [SERVER, *sys.argv[1:]])
"""


@pytest.fixture
def url(weaviate_folder: Path, tmp_path: Path) -> str:
    return f"weaviate+embedded://{tmp_path}/data/Dishes?binary={weaviate_folder}"


def test_memories_share_one_server_that_ends_with_the_last(
    url: str, tmp_path: Path, weaviate_folder: Path
):
    with open_memory(url, embeddings="wordllama") as first:
        server = server_in(tmp_path / "data", weaviate_folder)
        with open_memory(url) as second:
            first.add(PROCEDURES)
            assert second.count() == 4
            assert second.search("make yoghurt", 1, alpha=1)[0].procedure.output == "make yoghurt"
        assert first.count() == 4
    assert not listens(server.port)
    with open_memory(url, create=False) as again:
        assert {item.id for item in again} == {item.id for item in PROCEDURES}
        with pytest.raises(BadInput, match="no collection Other"):
            open_memory(url.replace("Dishes", "Other"), create=False)


def test_two_processes_share_a_folder_and_each_takes_over_when_the_other_is_killed(
    url: str, tmp_path: Path
):
    arguments = [sys.executable, "-c", HOLDER, url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(arguments, text=True, cwd=ROOT, **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        served = record(tmp_path)["pid"]
        with open_memory(url, create=False) as memory:
            assert memory.count() == 4
            assert record(tmp_path)["pid"] == served, "one server for both"
            holder.kill()
            holder.wait()
            os.kill(served, signal.SIGKILL)  # it would outlive its process
            assert {item.id: item for item in memory} == {item.id: item for item in PROCEDURES}
            assert record(tmp_path)["pid"] != served
    with open_memory(url, create=False) as memory:
        assert memory.count() == 4


def test_a_process_that_ends_leaves_the_folder_to_the_other(url: str, tmp_path: Path):
    arguments = [sys.executable, "-c", HOLDER, url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(arguments, text=True, cwd=ROOT, **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        first = open_memory(url, create=False)
        assert first.count() == 4
        first.close()
        with open_memory(url, create=False) as memory:
            assert memory.count() == 4, (
                "closing a memory here leaves the server of the other process alone"
            )
            holder.communicate("\n")
            assert holder.returncode == 0
            assert memory.count() == 4


def test_the_server_of_a_killed_process_is_ended_by_the_next(url: str, tmp_path: Path):
    arguments = [sys.executable, "-c", HOLDER, url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(arguments, text=True, cwd=ROOT, **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
    left = record(tmp_path)
    assert listens(left["port"])
    with open_memory(url, create=False) as memory:
        assert memory.count() == 4
        assert not listens(left["port"])


def test_nobody_without_the_key_is_let_in(url: str, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "stepcraft.json").touch(mode=0o644)
    with open_memory(url, embeddings="none") as memory:
        memory.add(PROCEDURES)
        known = record(tmp_path)
        assert stat.S_IMODE((tmp_path / "data" / "stepcraft.json").stat().st_mode) == 0o600
        base = f"http://127.0.0.1:{known['port']}/v1"
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            for path in ("meta", "schema", "objects?class=Dishes"):
                assert httpx.get(f"{base}/{path}", headers=headers).status_code == 401
            assert httpx.delete(f"{base}/schema/Dishes", headers=headers).status_code == 401
            assert "unauthorized" in searched_over_grpc(known["grpc"], headers)
        right = {"Authorization": f"Bearer {known['key']}"}
        assert httpx.get(f"{base}/schema", headers=right).is_success
        assert searched_over_grpc(known["grpc"], right) == ""
        command = Path(f"/proc/{known['pid']}/cmdline")
        assert not command.exists() or known["key"].encode() not in command.read_bytes()
        assert memory.count() == 4


def test_the_servers_of_one_cluster_ask_each_other_for_the_key(url: str, tmp_path: Path):
    """The port for other nodes, which reads and writes objects, is open to other machines like that of gRPC."""
    with open_memory(url, embeddings="none") as memory:
        memory.add(PROCEDURES)
        known = record(tmp_path)
        node = f"http://127.0.0.1:{known['port'] + 5}/nodes/status"
        assert httpx.get(node).status_code == 401
        assert httpx.get(node, auth=("stepcraft", known["key"])).is_success


def test_a_key_of_another_server_in_the_environment_does_not_matter(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WEAVIATE_API_KEY", "of-another-server")
    with open_memory(url, embeddings="none") as memory:
        memory.add(PROCEDURES)
        assert memory.count() == 4


def record(tmp_path: Path) -> dict[str, Any]:
    """What the folder says of its server."""
    return json.loads((tmp_path / "data" / "stepcraft.json").read_text())


def searched_over_grpc(port: int, headers: dict[str, str]) -> str:
    """Why a search in the collection by a plain gRPC client is refused; "" if it is not."""
    metadata = [(name.lower(), value) for name, value in headers.items()]
    request = b"\x0a\x06Dishes"  # the collection is field 1 of a SearchRequest
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            channel.unary_unary("/weaviate.v1.Weaviate/Search")(
                request, metadata=metadata, timeout=5
            )
        except grpc.RpcError as error:
            return error.details()
    return ""


def test_a_process_that_has_the_id_of_a_former_server_by_now_is_left_alone(
    url: str, tmp_path: Path, weaviate_url: str
):
    """Another Weaviate may answer at the port of the former server."""
    parts = urlsplit(weaviate_url)
    ports = {"port": parts.port, "grpc": int(parts.query.removeprefix("grpc="))}
    (tmp_path / "data").mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        for started in ({}, {"started": "long ago"}):
            (tmp_path / "data" / "stepcraft.json").write_text(
                json.dumps({"pid": other.pid, **ports, **started})
            )
            with open_memory(url, embeddings="none") as memory:
                assert memory.count() == 0
            assert other.poll() is None
        other.communicate(b"\n")
        assert other.returncode == 0, "it ended by itself"


def test_a_server_that_ended_is_started_again(url: str, tmp_path: Path):
    def kill() -> None:
        os.kill(
            json.loads((tmp_path / "data" / "stepcraft.json").read_text())["pid"], signal.SIGKILL
        )

    async def killed_between(memory: ProcedureMemory) -> list[Found]:
        await memory.asearch("make yoghurt", 1)
        kill()
        return await memory.asearch("make yoghurt", 1)

    with open_memory(url, embeddings="none") as memory:
        memory.add(PROCEDURES)
        kill()
        assert {item.id for item in memory} == {item.id for item in PROCEDURES}
        (found,) = asyncio.run(killed_between(memory))
        assert found.procedure.output == "make yoghurt"


@pytest.mark.parametrize(
    ("port", "tries"), [("GRPC_PORT", "xx"), ("RAFT_PORT", "xx"), ("CLUSTER_DATA_BIND_PORT", "x")]
)
def test_a_port_that_was_taken_meanwhile(port, tries, tmp_path: Path, weaviate_folder: Path):
    """The server ends, and gets a second try; without the port for the data of other nodes it serves all the same."""
    folder = named_program(
        tmp_path,
        TAKER.replace("PORT", repr(port)).replace("SERVER", repr(str(program(weaviate_folder)))),
    )
    start = time.monotonic()
    with open_memory(
        f"weaviate+embedded://{tmp_path}/data/Dishes?binary={folder}", embeddings="none"
    ) as memory:
        memory.add(PROCEDURES)
        assert memory.count() == 4
    assert (folder / "tries").read_text() == tries
    assert time.monotonic() - start < 25, "nobody waits for a server that ended"


def test_a_program_that_ends_at_once_is_not_waited_for(tmp_path: Path):
    folder = named_program(tmp_path, "raise SystemExit(3)")
    start = time.monotonic()
    with pytest.raises(
        MemoryFailure,
        match=rf"cannot be started in {tmp_path}/data: it ended with 3 while it started; see",
    ):
        open_memory(f"weaviate+embedded://{tmp_path}/data/Dishes?binary={folder}")
    assert time.monotonic() - start < 5


def named_program(tmp_path: Path, script: str) -> Path:
    """A folder with a program of our own, where the server is looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder).write_text(f"#!{sys.executable}\n{script}")
    program(folder).chmod(0o755)
    return folder


def test_a_folder_that_cannot_be_made_is_named(url: str, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        MemoryFailure, match=rf"cannot be started in {tmp_path}/file/data: Not a directory"
    ):
        open_memory(url.replace("/data/", "/file/data/"))


def test_a_program_that_is_not_where_it_was_named(tmp_path: Path):
    with pytest.raises(
        BadInput, match=rf"no Weaviate 1\.\d+\.\d+ in {tmp_path} \(weaviate-v.*leave out binary="
    ):
        open_memory(f"weaviate+embedded://{tmp_path}/data/Dishes?binary={tmp_path}")
    assert not (tmp_path / "data").exists()


def test_a_program_that_cannot_be_downloaded(tmp_path: Path):
    start = time.monotonic()
    command = ["-c", "from stepcraft.cli import main; main()", "memory", "count", "--memory"]
    with Ports(1) as (port,):
        run = subprocess.run(
            [sys.executable, *command, f"weaviate+embedded://{tmp_path}/D"],
            env={"HOME": str(tmp_path), "HTTPS_PROXY": f"http://127.0.0.1:{port}"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 1
    assert re.search(
        r"cannot be downloaded from https.*\?binary=FOLDER, or run a server", run.stderr
    )
    told = [
        line
        for line in run.stderr.splitlines()
        if "authlib" not in line and not line.startswith(" ")
    ]
    assert len(told) == 1, "only an old client's old friend authlib may say more"
    assert time.monotonic() - start < 15
