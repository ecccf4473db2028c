"""The passages of `stepcraft rpg --passages`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.records import records

_KINDS = (".jsonl", ".json", ".csv", ".txt")


def given_from(file: Path | None, sources: Sequence[str] | None) -> dict[str, Any]:
    """The passages of a file as input of a run; nothing where they are to be searched for.

    Raises:
        BadInput: the file cannot be read, or sources are named beside it.
    """
    if file is None:
        return {}
    if sources:
        raise BadInput(f"--passages {file} leaves nothing to search for; leave out --from or --passages")
    if file.suffix.lower() not in _KINDS:
        raise BadInput(f"{file} is not a kind of file that is read; name a .jsonl, .json, .csv or .txt file")
    return {"passages": _paragraphs(file) if file.suffix.lower() == ".txt" else _records(file)}


def _paragraphs(file: Path) -> list[str]:
    """What stands between blank lines."""
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {file}; check the name") from error
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not in UTF-8; save it as UTF-8") from error
    return [passage.strip() for passage in re.split(r"\n[ \t]*\n", text) if passage.strip()]


def _records(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for record in records(file):
        if record.values is None:
            raise BadInput(f"{file}:{record.line} cannot be read: {record.reason}")
        if not isinstance(record.values.get("text"), str):
            raise BadInput(f"{file}:{record.line} has no text; give each passage one under 'text'")
        found.append(record.values)
    return found
