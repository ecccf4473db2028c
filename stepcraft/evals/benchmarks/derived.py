"""What methods search that comes from a file of samples: its passages as a corpus, its other procedures as a memory.

It is written once into the user's cache, under a name that its content gives, so that the same file always gives the same
configuration of an evaluation.
"""

import filecmp
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from stepcraft.errors import BadInput
from stepcraft.evals.gold import passages_of
from stepcraft.records import records


def pooled(file: Path) -> dict[str, Any]:
    """The setting by which methods search the passages of all records of a file; none where it has no passages.

    A passage that several records bring is searched once.

    Raises:
        BadInput: A record has passages that cannot be read, or the cache cannot be written.
    """
    corpus = derived(f"{file.stem}-passages", _pool(file))
    return {"sources": [f"corpus:{corpus}"]} if corpus else {}


def _pool(file: Path) -> Iterator[dict[str, Any]]:
    seen: set[bytes] = set()
    for record in records(file):
        for title, sentences in passages_of(record.values or {}, f"{file}:{record.line}"):
            passage = {"title": title, "text": " ".join(filter(None, sentences))}
            digest = hashlib.blake2b(
                f"{title}\n{passage['text']}".encode(), digest_size=16
            ).digest()
            if passage["text"] and digest not in seen:
                seen.add(digest)
                yield passage


def derived(name: str, lines: Iterable[Mapping[str, Any]]) -> Path | None:
    """A file of JSON lines in the user's cache; None where there are no lines. It is readable for its owner alone.

    Raises:
        BadInput: The cache cannot be written.
    """
    lines = iter(lines)
    if (first := next(lines, None)) is None:  # then nothing need be writable
        return None
    folder = user_cache_path("stepcraft", appauthor=False) / "evals"
    digest = hashlib.blake2b(digest_size=8)
    written = ""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, written = tempfile.mkstemp(suffix=".new", dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            for line in chain((first,), lines):
                data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
                digest.update(data)
                file.write(data)
        start = "".join(letter if letter.isalnum() else "-" for letter in name)[:60]
        target = folder / f"{start}-{digest.hexdigest()}.jsonl"
        # One that is there and has not changed stays as it is, so that its index need not be looked at again.
        if not (target.exists() and filecmp.cmp(written, target, shallow=False)):
            Path(written).replace(target)
    except OSError as error:
        raise BadInput(
            f"the folder {folder} cannot be written ({error.strerror}); set XDG_CACHE_HOME to a folder that can be"
        ) from error
    finally:
        if written:
            Path(written).unlink(missing_ok=True)
    return target
