"""Procedures: the unit that memories store (AAG §3.1)."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, cast

from stepcraft.errors import BadInput
from stepcraft.secrets import excerpt
from stepcraft.text.clean import clean, normalised

TEMPLATE = "how to {output} using {input}\n{steps}"
"""The default text of a procedure; `{steps}` becomes the numbered steps."""

MAX_CHARACTERS = 100_000
"""The length of the longest procedure that is accepted, all fields together."""

MAX_TEMPLATE = 10_000
"""The length of the longest template."""

_MAX_PLACEHOLDERS = 10
_NAMESPACE = uuid.UUID("8b0f6f0e-3f0c-5d0e-9a57-0c1f6c9d2a11")


@dataclass(frozen=True)
class Procedure:
    """A procedure: input resources, an output, and the ordered steps from one to the other (AAG §3.1).

    Texts are cleaned. Procedures of equal content have equal ids, unless an id is given.

    Raises:
        BadInput: a field or a step is empty, the procedure is too long, or the id is no UUID.
    """

    input: str
    """The resources, as a comma-separated text."""
    output: str
    """The goal."""
    steps: tuple[str, ...]
    """The steps in order."""
    id: str = ""
    """A UUID, derived from the content unless given; give one to change a procedure in place."""
    source: str = ""
    """Where the procedure comes from."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Further JSON values."""

    def __post_init__(self) -> None:
        steps = cast("object", self.steps)
        if isinstance(steps, str) or not isinstance(steps, Sequence):
            raise BadInput(
                f"steps must be a list of texts, not {type(steps).__name__}: {excerpt(steps)}"
            )
        if not steps:
            raise BadInput("steps is empty; a procedure has at least one step")
        texts = tuple(
            _filled(f"step {n}", step) for n, step in enumerate(cast("Sequence[object]", steps), 1)
        )
        for name in ("input", "output"):
            object.__setattr__(self, name, _filled(name, getattr(self, name)))
        object.__setattr__(self, "steps", texts)
        object.__setattr__(self, "source", _text("source", self.source))
        object.__setattr__(self, "metadata", _json_object(self.metadata))
        size = len(self.input) + len(self.output) + sum(map(len, self.steps))
        if size > MAX_CHARACTERS:
            raise BadInput(
                f"the procedure has {size:,} characters; at most {MAX_CHARACTERS:,} are kept, so shorten it"
            )
        content = [normalised(self.input), normalised(self.output), *map(normalised, self.steps)]
        content_id = uuid.uuid5(_NAMESPACE, json.dumps(content, ensure_ascii=False))
        given: object = self.id or content_id
        if not is_uuid(str(given)):
            raise BadInput(
                f"id must be a UUID, not {excerpt(given)}; leave it out to derive it from the content"
            )
        object.__setattr__(self, "id", str(uuid.UUID(str(given))))

    @classmethod
    def of_kept(
        cls,
        *,
        id: str,  # noqa: A002 - the field is called id
        input: str,  # noqa: A002 - the field is called input
        output: str,
        steps: Sequence[str],
        source: str,
        metadata: dict[str, Any],
    ) -> "Procedure":
        """Rebuild a procedure that a memory stored; its texts were cleaned then, and are not cleaned again.

        Raises:
            BadInput: a field or a step is empty.
            TypeError: a field or a step has another type.
        """
        texts: Any = (id, input, output, source, *steps)
        groups: Any = (steps, metadata)
        if not isinstance(groups[0], list | tuple) or not isinstance(groups[1], dict):
            raise TypeError
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        if not (input and output and steps and all(steps)):
            raise BadInput(
                f"the procedure {id} was kept without input, output or steps; add it again"
            )
        procedure = object.__new__(cls)
        procedure.__dict__.update(
            input=input, output=output, steps=tuple(steps), id=id, source=source, metadata=metadata
        )
        return procedure

    def text(self, template: str = TEMPLATE) -> str:
        """The procedure as one text, as it is embedded and shown to a model (AAG §3.2)."""
        numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1))
        return template.format(output=self.output, input=self.input, steps=numbered)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values, which `from_dict` reads."""
        return {
            "id": self.id,
            "input": self.input,
            "output": self.output,
            "steps": list(self.steps),
            "source": self.source,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Procedure":
        """Make a procedure of the result of `to_dict`; unknown keys are ignored.

        Raises:
            BadInput: a field is missing or has another type.
        """
        missing = [name for name in ("input", "output", "steps") if name not in record]
        if missing:
            raise BadInput(
                f"the procedure has no {' and no '.join(map(repr, missing))}; it has {', '.join(sorted(record))[:300] or 'none'}"
            )
        return cls(**{name: record[name] for name in cls.__dataclass_fields__ if name in record})


@dataclass(frozen=True)
class Found:
    """A search result: a procedure and its score, where higher is better."""

    procedure: Procedure
    score: float


def compose(first: Procedure, second: Procedure) -> Procedure:
    """Compose two procedures into (first.input, second.output, the steps of both) (AAG §3.1).

    Raises:
        BadInput: the output of `first` is not among the comma-separated inputs of `second`.
    """
    needed = {
        normalised(part).casefold()
        for part in second.input.replace(";", ",").replace("\n", ",").split(",")
    }
    if normalised(first.output).casefold() not in needed | {normalised(second.input).casefold()}:
        raise BadInput(
            f"{first.output!r} is not among the inputs of the second procedure, {second.input!r}"
        )
    return Procedure(input=first.input, output=second.output, steps=first.steps + second.steps)


def checked_template(template: str) -> str:
    """Return the template if it can be used.

    A template may come with a database from elsewhere, so it is not all that `str.format` takes: `{steps:>3000000000}`
    would fill the memory.

    Raises:
        BadInput: it has anything but a few of its three placeholders, or none for the steps, or is too long.
    """
    shown = f"the template {excerpt(template)}"
    try:
        parts = list(Formatter().parse(template[: MAX_TEMPLATE + 1]))
    except ValueError as error:
        raise BadInput(
            f"{shown} cannot be filled in ({error}); use {{output}}, {{input}}, {{steps}}"
        ) from error
    fields = [field for _, *field in parts if field[0] is not None]
    for name, spec, conversion in fields:
        if name not in {"output", "input", "steps"} or spec or conversion:
            raise BadInput(
                f"{shown} cannot be filled in ({{{name:.40}}} is not used with anything else in its braces, or at all); "
                "use {output}, {input}, {steps}"
            )
    if len(template) > MAX_TEMPLATE or len(fields) > _MAX_PLACEHOLDERS:
        raise BadInput(
            f"{shown} is too long; at most {MAX_TEMPLATE:,} characters and {_MAX_PLACEHOLDERS} placeholders are used"
        )
    if "steps" not in [name for name, _, _ in fields]:
        raise BadInput(f"{shown} has no place for the steps; put {{steps}} into it")
    return template


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID, as the ids of procedures are."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a text, not {type(value).__name__}: {excerpt(value)}")
    return clean(value).strip()


def _filled(name: str, value: object) -> str:
    text = _text(name, value)
    if not normalised(text):
        raise BadInput(f"{name} is empty; give it a text")
    return text


def _json_object(metadata: object) -> dict[str, Any]:
    try:
        copy = json.loads(clean(json.dumps(metadata, ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"metadata must be JSON values: {error}") from error
    if not isinstance(copy, dict):
        raise BadInput(f"metadata must be a mapping, not {type(metadata).__name__}")
    return cast("dict[str, Any]", copy)
