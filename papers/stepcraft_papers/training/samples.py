"""Training samples: a question and the segments of its answer (RPG §3.3)."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepcraft.errors import BadInput
from stepcraft.records import records
from stepcraft_papers.contexts import Kind


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Support(_Strict):
    """A sentence that supports a segment."""

    title: str
    """The title of its passage."""
    text: str = Field(min_length=1)


class Segment(_Strict):
    """A part of an answer, with its plan and the sentences that support it."""

    plan: str
    """The topic to look up for it, or "" if nothing had to be looked up."""
    support: tuple[Support, ...]
    """The sentences that support it, out of all those shown."""
    text: str = Field(min_length=1)


class TrainingSample(_Strict):
    """A question with the segments of its answer, in order."""

    id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    kind: Kind = "long"
    origin: Literal["self-rag", "hotpotqa", "run"]
    """The data set that its record is from, or "run" for an RPG run on a user's question."""
    segments: tuple[Segment, ...] = Field(min_length=1)


def read_samples(path: Path) -> list[TrainingSample]:
    """Return the samples in a JSON Lines file.

    Raises:
        BadInput: The file cannot be read, or a line is not a valid sample.
    """
    samples: list[TrainingSample] = []
    for record in records(path):
        try:
            samples.append(TrainingSample.model_validate(record.values))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            reason = record.reason or f"{where}: {first['msg']}"
            raise BadInput(f"{path}:{record.line} is no training sample: {reason}") from error
    if not samples:
        raise BadInput(f"{path} has no training samples; make some with `build`")
    return samples


_HELD_BACK = (2**256 // 10).to_bytes(32, "big")
"""Samples whose hashes are below this value are reserved for validation."""


def split(
    samples: Sequence[TrainingSample], train: int, validation: int
) -> tuple[list[TrainingSample], list[TrainingSample]]:
    """Return at most `train` samples for training and at most `validation` others.

    A tenth of all ids, chosen by hash, is reserved for validation, so that no sample that was held
    back is used for training when the file grows.

    Raises:
        BadInput: Nothing is left to train on.
    """
    hashes = {each.id: hashlib.sha256(each.id.encode()).digest() for each in samples}
    order = sorted(samples, key=lambda each: hashes[each.id])
    cut = sum(hashes[each.id] < _HELD_BACK for each in order) if validation else 0
    held_back, rest = order[:cut][:validation], order[cut:][:train]
    if not rest:
        raise BadInput(
            f"of {len(samples)} samples none is left to train on; make more, or leave out "
            "--validation"
        )
    return rest, held_back
