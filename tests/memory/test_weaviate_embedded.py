"""Memories in a Weaviate that is embedded in this process."""

import os
import socket
from pathlib import Path

import pytest

from stepcraft import open_memory
from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory import _weaviate_embedded as embedded_servers
from tests.kitchen import PROCEDURES
from tests.servers.weaviate_server import binary, folder


@pytest.fixture
def url(tmp_path: Path) -> str:
    if not binary().exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("run scripts/weaviate install")
    return f"weaviate+embedded://{tmp_path}/data/Dishes?binary={folder()}"


def test_memories_share_one_server_that_ends_with_the_last(url: str, tmp_path: Path):
    with open_memory(url, embeddings="wordllama") as first:
        server = embedded_servers.server_in(tmp_path / "data", folder())
        with open_memory(url) as second:
            first.add(PROCEDURES)
            assert second.count() == 4
            assert second.search("make yoghurt", 1, alpha=1)[0].procedure.output == "make yoghurt"
        assert first.count() == 4
    with socket.socket() as probe:
        assert probe.connect_ex((server.host, server.port)) != 0
    with open_memory(url, create=False) as again:
        assert {item.id for item in again} == {item.id for item in PROCEDURES}
        with pytest.raises(BadInput, match="no collection Other"):
            open_memory(url.replace("Dishes", "Other"), create=False)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoryFailure, match="cannot be started"):
        open_memory(f"weaviate+embedded://{tmp_path}/file/data/Dishes?binary={tmp_path}")
