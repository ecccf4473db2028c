"""Procedures, which are the units that memories store (AAG §3.1)."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.secrets import excerpt
from stepcraft.text.clean import clean, normalised

MAX_CHARACTERS = 100_000
"""The maximum number of characters in a procedure's input, output and steps together."""

_KINDS = {"id": str, "input": str, "output": str, "steps": list, "source": str, "metadata": dict}
_NAMESPACE = uuid.UUID("8b0f6f0e-3f0c-5d0e-9a57-0c1f6c9d2a11")
_Count: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=10**9)]
MOST_RUNS = 200
"""The number of runs remembered so that none is counted twice."""


class Outcomes(NamedTuple):
    """How often following a procedure succeeded and failed."""

    successes: _Count = 0
    failures: _Count = 0
    last_used: str = ""
    """When the last outcome was recorded, as ISO 8601 in UTC, or "" if there is none."""
    runs: tuple[str, ...] = ()
    """Identifiers of the latest runs that the outcomes come from, most recent first."""

    def __str__(self) -> str:
        return f"+{self.successes} -{self.failures}"

    @classmethod
    def of(cls, value: object) -> "Outcomes":
        """Return stored outcomes; a value in any other form counts as no outcomes."""
        try:
            return _OUTCOMES.validate_python(value)
        except ValidationError:
            return cls()

    def together(self, other: "Outcomes", count: Callable[[int, int], int]) -> "Outcomes":
        """Combine these outcomes with another procedure's, applying `count` to the numbers."""
        return Outcomes(
            count(self.successes, other.successes),
            count(self.failures, other.failures),
            max(self.last_used, other.last_used),
            tuple(dict.fromkeys(self.runs + other.runs))[:MOST_RUNS],
        )


_OUTCOMES = TypeAdapter(Outcomes)


class Content(TypedDict):
    """The content of a procedure."""

    output: str
    input: str
    steps: list[str]


class Version(Content):
    """An earlier version of a procedure, with details of the change that replaced it."""

    tags: NotRequired[dict[str, str]]
    """Its tags; like `expires`, they are missing from the oldest stored versions."""
    expires: NotRequired[str]
    approved: NotRequired[Any]
    """Its approval and its stale mark, if it had them in the metadata."""
    stale: NotRequired[Any]
    at: str
    """When this version was replaced, as ISO 8601 in UTC."""
    why: str
    by: str


_VERSIONS = TypeAdapter(list[Version])


def _versions_of(value: object) -> tuple[Version, ...]:
    try:
        return tuple(_VERSIONS.validate_python(value or []))
    except ValidationError:
        return ()


_LATER: dict[str, Callable[[Any], Any]] = {
    "tags": lambda value: value or {},
    "key": lambda value: value or "",
    "expires": lambda value: value or "",
    "outcomes": Outcomes.of,
    "versions": _versions_of,
}
"""Fields that are omitted when empty, with the functions that read them."""


@dataclass(frozen=True)
class Procedure:
    """A procedure: input resources, an output, and the steps from one to the other (AAG §3.1).

    Texts are cleaned. The id is derived from the key if there is one; otherwise, it is the one
    passed, or else derived from the content.

    Raises:
        BadInput: A field or a step is empty, the procedure is too long, the id is not a UUID or
            does not match the key, a tag is not a string, or `expires` is not a date.
    """

    input: str
    """The required resources, as comma-separated text."""
    output: str
    """The goal."""
    steps: tuple[str, ...]
    """The steps in order."""
    id: str = ""
    """A UUID, by default derived from the key or the content; pass one to change a procedure in
    place.
    """
    source: str = ""
    """Where the procedure comes from."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Additional JSON values."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """Named values that searches can filter by, such as a product and its version."""
    key: str = ""
    """The caller's own id, such as that of a page; adding a procedure replaces any with the same
    key.
    """
    expires: str = ""
    """The last day on which it is valid, such as 2027-01-31, or "" if it never expires."""
    outcomes: Outcomes = field(default=Outcomes(), hash=False)
    """The outcomes of following it."""
    versions: Sequence[Version] = field(default=(), hash=False)
    """Its earlier versions, latest first."""

    def __post_init__(self) -> None:
        steps: Any = self.steps
        if isinstance(steps, str) or not isinstance(steps, Sequence) or not steps:
            raise BadInput(
                f"steps must be a list of texts with at least one step, not {excerpt(steps)}"
            )
        # The dataclass is frozen, so its own fields are set by bypassing its __setattr__.
        self.__dict__.update(
            steps=tuple(_filled(f"step {number}", step) for number, step in enumerate(steps, 1)),
            input=_filled("input", self.input),
            output=_filled("output", self.output),
            source=_text("source", self.source),
            metadata=_json_object(self.metadata),
            tags=checked_tags(self.tags),
            key=_text("key", self.key),
            expires=_day(self.expires),
            outcomes=Outcomes.of(self.outcomes),
            versions=_versions_of(self.versions),
        )
        texts = (self.input, self.output, *self.steps)
        if (size := sum(map(len, texts))) > MAX_CHARACTERS:
            raise BadInput(
                f"the procedure has {size:,} characters; at most {MAX_CHARACTERS:,} are kept, "
                "so shorten it"
            )
        derived = id_of_key(self.key) if self.key else _id_of([*map(normalised, texts)])
        self.__dict__["id"] = standard_id(str(self.id or derived))
        if not is_uuid(self.id):
            raise BadInput(
                f"id must be a UUID, not {excerpt(self.id)}; leave it out to derive it from the "
                "content"
            )
        if self.key and self.id != derived:
            raise BadInput(
                f"the procedure with the key {excerpt(self.key)} has the id {derived}, not "
                f"{self.id}; leave the id out, as in replace(procedure, id='', key=…)"
            )

    @classmethod
    def of_kept(cls, fields: Mapping[str, Any]) -> "Procedure":
        """Return a procedure read from a memory, without cleaning it again.

        Anything that another program wrote is checked as in `from_dict`.

        Args:
            fields: The fields, as returned by `to_dict`.

        Raises:
            BadInput: As for `from_dict`.
        """
        is_whole = all(isinstance(fields.get(name), kind) for name, kind in _KINDS.items())
        if not (is_whole and all(isinstance(step, str) for step in fields["steps"])):
            return cls.from_dict(fields)
        procedure = object.__new__(cls)
        values = {name: fields[name] for name in _KINDS}
        later = {name: read(fields.get(name)) for name, read in _LATER.items()}
        procedure.__dict__.update(values, steps=tuple(fields["steps"]), **later)
        return procedure

    def text(self) -> str:
        """Return the procedure as the text that is embedded and shown to a model (AAG §3.2)."""
        numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1))
        return f"how to {self.output} using {self.input}\n{numbered}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values, which `from_dict` can read."""
        values = {name: vars(self)[name] for name in (*_KINDS, *_LATER)}
        outcomes = self.outcomes._asdict() | {"runs": [*self.outcomes.runs]}
        values |= {
            "steps": [*self.steps],
            "outcomes": any(self.outcomes) and outcomes,
            "versions": [*self.versions],
        }
        return {name: value for name, value in values.items() if value or name in _KINDS}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Procedure":
        """Create a procedure from the result of `to_dict`, ignoring unknown keys.

        Raises:
            BadInput: A field is missing or has another type.
        """
        check_has_all(record, record)
        return cls(**{name: record[name] for name in cls.__dataclass_fields__ if name in record})


FIELDS = tuple(each.name for each in fields(Procedure))
"""The names of a procedure's fields."""


@dataclass(frozen=True)
class Found:
    """A search result: a procedure and its score, where higher is better."""

    procedure: Procedure
    score: float


def id_of_key(key: str) -> str:
    """Return the id of the procedure with the given key."""
    return _id_of(["key", clean(key).strip()])


def _id_of(content: Sequence[str]) -> str:
    return str(uuid.uuid5(_NAMESPACE, json.dumps(content, ensure_ascii=False)))


def check_has_all(fields: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Reject fields without an output, an input or steps; the message lists the record's fields.

    Raises:
        BadInput: One of them is missing.
    """
    missing = [name for name in ("output", "input", "steps") if name not in fields]
    if missing:
        raise BadInput(
            f"the procedure has no {' and no '.join(map(repr, missing))}; "
            f"it has {', '.join(sorted(filter(record.get, record)))[:300] or 'none'}"
        )


def checked_tags(tags: object) -> dict[str, str]:
    """Validate and return the tags of a procedure or of a search filter.

    Raises:
        BadInput: The tags are not a mapping of strings, or a name contains a character that filters
            cannot handle.
    """
    pairs = [*tags.items()] if isinstance(tags, Mapping) else [("", "")]
    checked: dict[str, str] = {}
    for pair in pairs:
        name, value = (clean(each).strip() if isinstance(each, str) else "" for each in pair)
        if not (name and value):
            raise BadInput(
                f"tags must be names with texts, such as product=kitchen, not {excerpt(tags)}"
            )
        if set(name) & set('"\\=.$'):
            raise BadInput(f'the tag {excerpt(name)} cannot be used: leave out " \\ = . and $')
        checked[name] = value
    return checked


def has_our_form(name: str, value: object) -> bool:
    """Return whether a value from a file is valid for one of the optional fields."""
    match name:
        case "id":
            return is_uuid(str(value))
        case "tags":
            return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
        case "expires":
            with suppress(BadInput):
                return bool(_day(value))
            return False
        case "outcomes" | "versions":
            return any(_LATER[name](value))
        case _:
            return isinstance(value, {"source": str, "metadata": dict}.get(name, object))


def _day(value: object) -> str:
    text = _text("expires", value)
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError as error:
        raise BadInput(f"expires must be a day such as 2027-01-31, not {excerpt(text)}") from error


def is_uuid(text: str) -> bool:
    """Return whether a string is a UUID, as the ids of procedures are."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def standard_id(id_: str) -> str:
    """Return a UUID in lower case with hyphens, as memories store it; return other text as is."""
    return str(uuid.UUID(id_)) if is_uuid(id_) else id_


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a text, not {type(value).__name__}: {excerpt(value)}")
    return clean(value).strip()


def _filled(name: str, value: object) -> str:
    text = _text(name, value)
    if not normalised(text):
        raise BadInput(f"{name} is empty; give it a text")
    return text


def _json_object(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
        values: dict[str, Any] = json.loads(clean(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"metadata must be a mapping of JSON values: {error}") from error
    return values
