"""Turn the passages in a file of samples into a corpus that methods search."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from stepcraft.evals.samples import fields_of, listed
from stepcraft.files import cache_folder
from stepcraft.records import records


def _joined(text: object) -> object:
    return " ".join(text) if isinstance(text, list) else text


class Passage(BaseModel):
    """A passage to answer from."""

    title: str = ""
    text: Annotated[
        str, BeforeValidator(_joined), Field(validation_alias=AliasChoices("text", "sentences"))
    ]


def corpus_settings(path: Path) -> dict[str, Any]:
    """Return settings that make methods search the passages of all records, or {} if none.

    Raises:
        BadInput: A record cannot be read.
        ValidationError: A passage cannot be read.
        OSError: The cache cannot be written.
    """
    corpus = cached(f"{path.stem}-passages", _passages(path))
    return {"sources": [f"corpus:{corpus}"]} if corpus else {}


def _passages(path: Path) -> Iterator[dict[str, str]]:
    """Yield the passages in a file: strings, or objects with title and text or sentences."""
    for record in records(path):
        passages = fields_of(record, path).get("passages")
        for passage in passages if isinstance(passages, list) else listed(passages):
            fields = {"text": passage} if isinstance(passage, str) else passage
            yield Passage.model_validate(fields).model_dump()


def cached(name: str, lines: Iterable[Mapping[str, Any]]) -> Path | None:
    """Write JSON Lines into the user's cache, without duplicates; return None if there are none.

    The file is named after its content, so that the same lines always give the same evaluation
    configuration and are indexed only once.

    Raises:
        OSError: The cache cannot be written.
    """
    written = (json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    data = b"".join(dict.fromkeys(written))
    if not data:
        return None
    folder = cache_folder("evals")
    start = re.sub(r"\W+", "-", name)[:60]
    file = folder / f"{start}-{hashlib.blake2b(data, digest_size=8).hexdigest()}.jsonl"
    if not file.exists():
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(file)
    return file
