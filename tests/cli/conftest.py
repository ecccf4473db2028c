"""Each test of the command line is run in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepcraft.memory.files import write_jsonl
from tests.kitchen import PROCEDURES


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def kitchen(here: Path) -> Path:
    """The file kitchen.jsonl with some procedures."""
    file = here / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    return file
