"""Turn the passages in a file of samples into a corpus that methods search."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from stepcraft.errors import BadInput
from stepcraft.evals.samples import fields_of
from stepcraft.records import records


def corpus_settings(path: Path) -> dict[str, Any]:
    """Return settings that make methods search the passages of all records, or {} without any.

    Raises:
        BadInput: A passage cannot be read, or the cache cannot be written.
    """
    corpus = cached(f"{path.stem}-passages", _passages(path))
    return {"sources": [f"corpus:{corpus}"]} if corpus else {}


def _passages(path: Path) -> Iterator[dict[str, str]]:
    """Yield each passage in a file once: a string, or an object with title and text/sentences."""
    seen: set[bytes] = set()
    for record in records(path):
        for passage in fields_of(record, path).get("passages") or ():
            fields = {"text": passage} if isinstance(passage, str) else passage
            try:
                title = str(fields.get("title") or "")
                text = fields["text"] if "text" in fields else " ".join(fields["sentences"])
            except (AttributeError, KeyError, TypeError):
                raise BadInput(
                    f"{path}:{record.line} has a passage that is none: {passage!r:.80}; write a "
                    "text, or an object with title and text or sentences"
                ) from None
            digest = hashlib.blake2b(f"{title}\n{text}".encode(), digest_size=16).digest()
            if text and digest not in seen:
                seen.add(digest)
                yield {"title": title, "text": text}


def cached(name: str, lines: Iterable[Mapping[str, Any]]) -> Path | None:
    """Write JSON Lines into the user's cache; return the file, or None if there are no lines.

    The file name is derived from its content, so that the same lines always give the same
    configuration of an evaluation, and are indexed only once.

    Raises:
        BadInput: The cache cannot be written.
    """
    data = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    if not data:
        return None
    folder = user_cache_path("stepcraft", appauthor=False) / "evals"
    start = re.sub(r"\W+", "-", name)[:60]
    file = folder / f"{start}-{hashlib.blake2b(data, digest_size=8).hexdigest()}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            written = file.with_suffix(f".{os.getpid()}")
            written.write_bytes(data)
            written.replace(file)
    except OSError as error:
        raise BadInput(
            f"the folder {folder} cannot be written ({error.strerror}); set XDG_CACHE_HOME to a "
            "folder that can be"
        ) from error
    return file
