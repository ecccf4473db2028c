"""Digests of the code and files that answers depend on, used to detect changes."""

import hashlib
import sys
from contextlib import suppress
from inspect import getsource
from pathlib import Path
from typing import Any

from stepcraft.files import open_regular
from stepcraft.memory.urls import is_text
from stepcraft.sources.corpus.files import files_of, roots_of
from stepcraft.sources.corpus.remote import is_url
from stepcraft.sources.open import corpus_paths, is_dotted, named_object


def source_digest(spec: str) -> str:
    """Return a digest of a local corpus, a memory's text file or a retriever's code, or else "".

    Raises:
        BadInput: There is no such file or folder, or the retriever cannot be imported.
    """
    kind, _, rest = spec.partition(":")
    if kind not in {"corpus", "memory", "web"} and is_dotted(spec):
        return code_digest(named_object(spec, is_called=lambda _: False), spec)
    is_file = is_text(Path(spec)) and Path(spec).is_file()
    paths = corpus_paths(rest)[0] if kind == "corpus" else [spec] * is_file
    if not paths or any(map(is_url, paths)):
        return ""
    digest = hashlib.sha256()
    for path in (Path(name) for name, *_ in files_of(roots_of(paths)).files):
        if path.with_name("configuration.json").exists():
            continue  # in the directory of an evaluation, which changes while it runs
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
