"""What a caller may set for one run, and the one resolver that every node reads it with."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Self, TypeVar, get_type_hints

from langgraph.runtime import get_runtime
from pydantic import Field, TypeAdapter, ValidationError

from stepcraft.errors import BadInput

C = TypeVar("C", bound="Context")

Name = Annotated[str, Field(min_length=1, max_length=2_000)]


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a run's searches, whatever its graph calls them."""

    memory: str | None = None
    embeddings: str | None = None
    retriever: str | Sequence[str] | None = None
    alpha: float | None = None
    """Weight of the vectors in a memory's search; None means the memory's own."""
    k: int = 3
    """Passages a search returns."""
    compose: bool = False
    """Whether a memory offers two procedures as one where the first yields what the second needs."""
    both: bool = False
    """Whether the sources are searched beside the memory."""


@dataclass(frozen=True)
class Context:
    """What a caller may set for one run of any graph. Every field has a default.

    Raises:
        BadInput: a value is out of its bounds or of another type.
    """

    model: Annotated[
        Name | None,
        Field(
            description='The chat model, as init_chat_model names it ("openai:gpt-5-mini"), or "extractive".'
        ),
    ] = None
    node_models: Annotated[
        dict[str, Name],
        Field(
            description='Another model for one node: {"critic": "openai:gpt-5"}.',
            json_schema_extra={"default": {}},
        ),
    ] = field(default_factory=dict)
    temperature: Annotated[
        float | None,
        Field(
            ge=0,
            le=2,
            allow_inf_nan=False,
            description="Sampling temperature; none is sent unless it is set.",
        ),
    ] = None
    max_input_tokens: Annotated[
        int | None,
        Field(ge=200, description="The longest prompt; by default what the model's profile says."),
    ] = None
    max_calls: Annotated[
        int | None,
        Field(ge=1, description="The most model calls a run may make, repeated ones included."),
    ] = None
    deadline_s: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="Seconds after which the run ends with the best answer so far.",
        ),
    ] = None
    retry_wait_s: Annotated[
        float,
        Field(ge=0, le=60, description="Seconds before a failed call is made again; doubled for the next."),
    ] = 0.5

    def __post_init__(self) -> None:
        for name, adapter in _adapters(type(self)).items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, adapter.validate_python(value))
            except ValidationError as error:
                raise BadInput(_sentence(name, value, error)) from None

    @classmethod
    def current(cls) -> Self:
        """The settings of the run that is under way, whatever the runtime holds them in.

        Where `update_state` asks a router what comes next there is no run and no runtime: the defaults.
        """
        return cls.of(getattr(get_runtime(), "context", None))

    @classmethod
    def of(cls, held: object) -> Self:
        """Ours from nothing, a mapping, ours, or an object of another type.

        Of a mapping or another object, what bears the name of a field of ours is taken. In another object a
        value that does not fit is its own business and is passed over.

        Raises:
            BadInput: a value in a mapping is out of its bounds or of another type.
        """
        if isinstance(held, cls):
            return held
        if held is None:
            return _defaults(cls)
        if isinstance(held, Mapping):
            return cls(**{name: held[name] for name in _names(cls) if name in held})
        values = {name: getattr(held, name) for name in _names(cls) if hasattr(held, name)}
        return cls(**{name: value for name, value in values.items() if _fits(cls, name, value)})

    @classmethod
    def named(cls, values: Mapping[str, Any]) -> Self:
        """Ours from values by name, each name known.

        Raises:
            BadInput: a name is not a field's (the nearest is suggested), or a value does not fit.
        """
        for name in values:
            if name not in _names(cls):
                near = difflib.get_close_matches(name, _names(cls), 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_names(cls))}"
                raise BadInput(f"there is no setting {name!r}; {hint}")
        return cls(**values)

    @property
    def step_limit_s(self) -> float | None:
        """Seconds that one step of the graph may take; None without a limit."""
        return None

    def search_settings(self) -> SearchSettings:
        """The settings of the run's searches."""
        return SearchSettings()

    def changed(self) -> dict[str, Any]:
        """The settings that differ from the defaults, for traces; changed instructions by their mark alone."""
        default = _defaults(type(self))
        names = [name for name in _names(type(self)) if getattr(self, name) != getattr(default, name)]
        return {name: "changed" if name.endswith("_instructions") else getattr(self, name) for name in names}


def prompt_of(node: str) -> Any:  # noqa: ANN401 - what pydantic calls a field is untyped
    """The field that shows a node's instructions as its prompt in Studio."""
    return Field(
        min_length=1,
        description=f"What the node {node} is told to do.",
        json_schema_extra={"langgraph_nodes": [node], "langgraph_type": "prompt"},
    )


_ADAPTERS: dict[type, dict[str, TypeAdapter[Any]]] = {}
_DEFAULTS: dict[type, Any] = {}


def _names(cls: type[Context]) -> list[str]:
    return list(_adapters(cls))


def _adapters(cls: type[Context]) -> dict[str, TypeAdapter[Any]]:
    if cls not in _ADAPTERS:
        hints = get_type_hints(cls, include_extras=True)
        _ADAPTERS[cls] = {f.name: TypeAdapter(hints[f.name]) for f in fields(cls)}
    return _ADAPTERS[cls]


def _defaults(cls: type[C]) -> C:
    if cls not in _DEFAULTS:
        _DEFAULTS[cls] = cls()
    default: C = _DEFAULTS[cls]
    return default


def _fits(cls: type[Context], name: str, value: object) -> bool:
    try:
        _adapters(cls)[name].validate_python(value)
    except ValidationError:
        return False
    return True


def _sentence(name: str, value: object, error: ValidationError) -> str:
    why = error.errors()[0]["msg"].replace("Input should be", "it should be")
    if not isinstance(value, str | int | float | bool | Mapping | None):
        why = f"{why} (ready objects go to the graph's builder, names into the context)"
    return f"{name}={value!r:.80} cannot be used: {why}"
