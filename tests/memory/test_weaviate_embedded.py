"""Memories in the client's embedded Weaviate."""

import subprocess
import sys
from pathlib import Path

import pytest

from stepcraft import open_memory
from stepcraft.errors import MemoryFailure
from tests.kitchen import PROCEDURES
from tests.servers.weaviate_server import ROOT

HOLDER = """
import sys
from stepcraft import open_memory
from tests.kitchen import PROCEDURES, dish
with open_memory(sys.argv[1], embeddings="wordllama") as memory:
    with open_memory(sys.argv[1].replace("Dishes", "Others"), embeddings="none") as other:
        other.add([dish(1)])
        memory.add(PROCEDURES)
        print(memory.count(), other.count(), flush=True)
        sys.stdin.readline()
"""


def test_it_belongs_to_one_process_and_keeps_its_data(tmp_path: Path, weaviate_folder: Path):
    url = f"weaviate+embedded://{tmp_path}/data/Dishes?binary={weaviate_folder}"
    command = [sys.executable, "-W", "ignore", "-c", HOLDER, url]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stdout.readline() == "4 1\n"
        with pytest.raises(MemoryFailure, match=r"cannot be started in .*docker compose up"):
            open_memory(url)
        holder.communicate("\n")
    assert holder.returncode == 0
    with open_memory(url, create=False) as memory:
        assert memory.search("yoghurt", 1)[0].procedure.output == "make yoghurt"
        assert memory.count() == len(PROCEDURES)
