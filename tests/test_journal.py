"""Append-only files of JSON lines."""

from __future__ import annotations

import errno
import fcntl
import json
from pathlib import Path

import pytest

from stepcraft.errors import BadInput
from stepcraft.journal import FolderLock, LineFile


@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize("cut", ["", "{", "x" * 200_000])
def test_a_line_that_was_cut_off_is_removed(tmp_path: Path, kept: int, cut: str) -> None:
    file = tmp_path / "calls.jsonl"
    lines = "".join(
        f"{json.dumps({'call': number, 'text': 'é' * 50_000})}\n" for number in range(kept)
    )
    file.write_text(lines + cut, "utf-8")
    with LineFile(file) as opened:
        opened.add({"call": kept})
    assert file.read_text("utf-8") == f'{lines}{{"call": {kept}}}\n'


def test_a_disk_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(BadInput, match="cannot be locked: No locks available; name a directory"):
        FolderLock(tmp_path, "an evaluation is running into")
