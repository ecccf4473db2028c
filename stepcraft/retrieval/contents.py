"""Digests of the code and files that answers depend on, used to detect changes."""

import hashlib
import os
import sys
from contextlib import suppress
from inspect import getsource
from pathlib import Path
from typing import Any

from stepcraft.files import open_regular
from stepcraft.memory.open import MEMORY_VARIABLE
from stepcraft.memory.urls import is_text
from stepcraft.sources.corpus.files import files_of, roots_of, shown_path
from stepcraft.sources.corpus.remote import is_url
from stepcraft.sources.open import corpus_paths, is_dotted, named_object


def source_digest(spec: str) -> str:
    """Return a digest of a local corpus, a memory's text file or a retriever's code, or else "".

    Raises:
        BadInput: There is no such file or folder, or the retriever cannot be imported.
    """
    spec = spec.strip()
    kind, _, rest = spec.partition(":")
    if kind not in {"corpus", "memory", "web"} and is_dotted(spec):
        return code_digest(named_object(spec, is_called=lambda _: False), spec)
    if kind == "memory":
        spec = rest or os.environ.get(MEMORY_VARIABLE, "")
    is_file = is_text(Path(spec)) and Path(spec).is_file()
    paths = corpus_paths(rest)[0] if kind == "corpus" else [spec] * is_file
    if not paths or any(map(is_url, paths)):
        return ""
    digest, roots = hashlib.sha256(), roots_of(paths)
    for name, *_ in files_of(roots).files:
        path = Path(name)
        if all(path.with_name(each).exists() for each in ("configuration.json", "samples.jsonl")):
            continue  # in the directory of an evaluation, which changes while it runs
        digest.update(shown_path(name, roots, escape=True).encode())
        with suppress(OSError), open_regular(path) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def code_digest(target: object, spec: str = "") -> str:
    """Return a digest of a function's code, or else of the module in its spec, or else ""."""
    places: list[Any] = [getattr(target, "func", target), sys.modules.get(spec.partition(":")[0])]
    for place in places:
        with suppress(TypeError, OSError):
            return hashlib.sha256(getsource(place).encode()).hexdigest()
    return ""
