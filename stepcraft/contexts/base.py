"""The settings that every graph has, and how a node reads the settings of its run.

A context is a frozen dataclass: each field has a default, a description, bounds and the metadata that LangGraph Studio
shows. Instructions are fields like any other, so that Studio shows them as prompts.
"""

import difflib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, get_type_hints

from langgraph.runtime import get_runtime
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.config import JsonDict

from stepcraft.errors import BadInput
from stepcraft.secrets import excerpt, redacted

C = TypeVar("C", bound="Context")

Name = Annotated[str, Field(min_length=1, max_length=2_000)]
Names = Annotated[list[Name], Field(max_length=100)]

LONGEST_S = 10_000_000
"""The longest time limit, some four months: what waits for a thread or an event loop takes no number without bounds."""


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a run's searches, under the same names for every graph."""

    memory: str | None = None
    embeddings: str | None = None
    retriever: str | Sequence[str] | None = None
    alpha: float | None = None
    """Weight of the vectors in a memory's search; None means the memory's own."""
    feedback_weight: float | None = None
    """By how much votes move a procedure's score at most; None means the memory's own."""
    k: int = 3
    """Passages a search returns."""
    compose: bool = False
    """Whether a memory offers two procedures as one where the first yields what the second needs."""
    both: bool = False
    """Whether the sources are searched beside the memory."""


@dataclass(frozen=True)
class Context:
    """The settings of one run of any graph. Every field has a default.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    __pydantic_config__: ClassVar[ConfigDict]
    model_nodes: ClassVar[tuple[str, ...]] = ()
    """The nodes that ask a model."""

    model: Annotated[
        Name | None,
        Field(
            description='The chat model, as init_chat_model names it ("openai:gpt-5-mini"), or "extractive".'
        ),
    ] = None
    node_models: Annotated[
        dict[str, Name],
        Field(
            description="Another model for some nodes.",
            json_schema_extra={"default": {}},
        ),
    ] = field(default_factory=dict)
    temperature: Annotated[
        float | None,
        Field(
            ge=0,
            le=2,
            allow_inf_nan=False,
            description="Sampling temperature; by default none is sent.",
        ),
    ] = None
    seed: Annotated[
        int | None,
        Field(
            ge=-(2**63),
            lt=2**63,
            description="Seed of the model's sampling, where its provider takes one; by default none is sent.",
        ),
    ] = None
    max_input_tokens: Annotated[
        int | None,
        Field(ge=200, description="Length limit of a prompt; by default the limit in the model's profile."),
    ] = None
    max_calls: Annotated[
        int | None,
        Field(ge=1, description="Limit on the model calls of a run, retries included."),
    ] = None
    deadline_s: Annotated[
        float | None,
        Field(
            gt=0,
            le=LONGEST_S,
            allow_inf_nan=False,
            description="Seconds after which the run ends with the best answer so far.",
        ),
    ] = None
    retry_wait_s: Annotated[
        float,
        Field(ge=0, le=60, description="Seconds before a failed call is retried; doubled for each retry."),
    ] = 0.5

    def __new__(cls, /, *_args: object, **values: object) -> Self:
        """Check the names of the fields before the constructor of the dataclass raises a TypeError; note those given."""
        for name in values:
            if name not in _adapters(cls):
                near = difflib.get_close_matches(name, _adapters(cls), 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_adapters(cls))}"
                raise BadInput(f"there is no setting {name!r}; {hint}")
        made = super().__new__(cls)
        object.__setattr__(made, "_given", frozenset(values))
        return made

    def __init_subclass__(cls, nodes: Sequence[str] | None = None) -> None:
        """Describe the settings in JSON schemas, without what their constructor raises.

        Args:
            nodes: The nodes that ask a model; those of the class above where none are named. Studio shows with them the
                settings that belong to no node in particular.
        """
        if nodes is not None:
            cls.model_nodes = tuple(nodes)
        described = inspect.cleandoc(cls.__doc__ or "").partition("\n\nRaises:")[0]

        def describe(schema: dict[str, Any]) -> None:
            schema["description"] = described
            for shown in schema["properties"].values():
                shown.setdefault("langgraph_nodes", list(cls.model_nodes))
            if nodes := cls.model_nodes:
                named = f'Another model for some of the nodes {", ".join(nodes)}: {{"{nodes[-1]}": "openai:gpt-5"}}.'
                schema["properties"]["node_models"]["description"] = named

        cls.__pydantic_config__ = ConfigDict(json_schema_extra=describe)

    def __post_init__(self) -> None:
        for name, value in self.preset().items():
            if name not in self.__dict__["_given"]:
                object.__setattr__(self, name, value)
        for name, adapter in _adapters(type(self)).items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, adapter.validate_python(value))
            except ValidationError as error:
                raise BadInput(_sentence(name, value, error)) from None

    @classmethod
    def current(cls, state: Mapping[str, Any] | None = None) -> Self:
        """The settings of the run in progress.

        A run's own context holds. A run without one, or with one that changes no default (which is what a server
        passes when a client sends none), has the settings in `state`: those that the run was begun with, where it is
        now resumed.

        Args:
            state: The input of the node or router that asks; None for the settings of a run that begins.

        Raises:
            BadInput: The context has a value that cannot be used, or the run is resumed without a context although it
                was begun with a setting that holds a secret.
        """
        context = cls.of(getattr(get_runtime(), "context", None))
        kept = _kept(state)
        return context if kept is None or context.changed else cls._restored(kept)

    @classmethod
    def of(cls, held: object) -> Self:
        """Coerce None, a mapping or any object to this context.

        LangGraph has coerced a mapping that was passed to the graph itself. A mapping that arrives here is the context
        of a parent graph, as is an object of another type. Both may serve several subgraphs: fields that this context
        does not have are ignored, and fields that it has are validated. Of a context of another graph of ours only
        the settings that differ from its defaults are taken.

        Raises:
            BadInput: A value has the wrong type or is out of bounds.
        """
        if isinstance(held, cls):
            return held
        if held is None:
            return _default(cls)
        if isinstance(held, Mapping):
            return cls(**{name: held[name] for name in _adapters(cls) if name in held})
        names = held.differences(_default(type(held))) if isinstance(held, Context) else _adapters(cls)
        values = {
            name: getattr(held, name) for name in names if name in _adapters(cls) and hasattr(held, name)
        }
        try:
            return cls(**values)
        except BadInput as error:
            raise BadInput(
                f"{error}; it comes from the parent's {type(held).__name__}: rename its field, or call this graph in a "
                f"node with a context of its own"
            ) from None

    @classmethod
    def takes(cls, name: str, value: object) -> bool:
        """Whether there is a setting of this name, and it may have this value."""
        try:
            _adapters(cls)[name].validate_python(value)
        except (KeyError, ValidationError):
            return False
        return True

    def preset(self) -> Mapping[str, Any]:
        """The values of settings that are not given, where another setting stands for several."""
        return {}

    @property
    def step_limit_s(self) -> float | None:
        """Time limit of one step of the graph in seconds; None without a limit."""
        return None

    def search_settings(self) -> SearchSettings:
        """The settings of the run's searches."""
        return SearchSettings()

    def differences(self, other: Self) -> list[str]:
        """The names of the settings that differ from those of another context of this type."""
        return [name for name in _adapters(type(self)) if getattr(self, name) != getattr(other, name)]

    @cached_property
    def changed(self) -> Mapping[str, Any]:
        """The settings that differ from the defaults, as traces show them: without secrets, instructions as "changed"."""
        names = self.differences(_default(type(self)))
        return {
            name: "changed" if name.endswith("_instructions") else redacted(getattr(self, name))
            for name in names
        }

    @cached_property
    def chosen(self) -> list[str]:
        """The names of the settings that differ from the defaults, without those that another setting stands for."""
        preset = self.preset()
        names = self.differences(_default(type(self)))
        return [name for name in names if name not in preset or preset[name] != getattr(self, name)]

    def for_state(self) -> dict[str, Any]:
        """The settings that differ from the defaults, as JSON that `current` reads when the run is resumed.

        `values` holds them by name; `withheld` names those that hold a secret, which no checkpoint may have.
        """
        names = self.differences(_default(type(self)))
        given = [name for name in self.preset() if name in self.__dict__["_given"] and name not in names]
        values = {name: getattr(self, name) for name in [*names, *given]}
        withheld = [name for name, value in values.items() if redacted(value) != value]
        return {
            "values": {name: value for name, value in values.items() if name not in withheld},
            "withheld": withheld,
        }

    def resumption_warnings(self, state: Mapping[str, Any]) -> list[str]:
        """A warning where this run has other settings than those that it was begun with, according to its state."""
        kept = _kept(state)
        if kept is None or kept["values"] == self._values_for_state:
            return []
        begun = _from_values(type(self), kept["values"])
        names = [name for name in self.differences(begun) if name not in kept["withheld"]]
        if not names:
            return []
        return [f"the run was resumed with other settings than it was begun with: {', '.join(names)}"]

    @cached_property
    def _values_for_state(self) -> dict[str, Any]:
        """Kept, because every node compares with it."""
        values: dict[str, Any] = self.for_state()["values"]
        return values

    @classmethod
    def _restored(cls, kept: Mapping[str, Any]) -> Self:
        if kept["withheld"]:
            raise BadInput(
                f"the run was begun with a secret in {', '.join(kept['withheld'])}, which is not kept with its thread; "
                "resume it with the context that it was begun with"
            )
        return _from_values(cls, kept["values"])


def in_nodes(*nodes: str) -> JsonDict:
    """The metadata of a field that some nodes read; Studio shows it with them."""
    return {"langgraph_nodes": [*nodes]}


def prompt_of(node: str) -> Any:  # noqa: ANN401 - what pydantic calls a field is untyped
    """The metadata of a field that holds a node's instructions; Studio shows it as the node's prompt."""
    return Field(
        min_length=1,
        max_length=50_000,
        description=f"Instructions of the node {node}.",
        json_schema_extra={**in_nodes(node), "langgraph_type": "prompt"},
    )


def with_names(cls: type[C], names: Iterable[str]) -> type[C]:
    """A context whose schema shows the names that a deployment registered for memories and sources."""
    listed, hints = list(names), get_type_hints(cls, include_extras=True)
    shown = Field(json_schema_extra={"examples": [*listed]})
    described = [
        (name, Annotated[hints[name], shown], getattr(cls, name))
        for name in ("memory", "retriever")
        if listed and name in hints
    ]
    if not described:
        return cls
    made = make_dataclass(
        cls.__name__, described, bases=(cls,), frozen=True, namespace={"__doc__": cls.__doc__}
    )
    made.__module__ = cls.__module__
    return made


_ADAPTERS: dict[type, dict[str, TypeAdapter[Any]]] = {}
_DEFAULTS: dict[type, Any] = {}


def _adapters(cls: type[Context]) -> dict[str, TypeAdapter[Any]]:
    """The validator of each field, by name; kept, because every context is validated when it is made."""
    if cls not in _ADAPTERS:
        hints = get_type_hints(cls, include_extras=True)
        _ADAPTERS[cls] = {one.name: TypeAdapter(hints[one.name]) for one in fields(cls)}
    return _ADAPTERS[cls]


def _default(cls: type[C]) -> C:
    """The context that changes nothing; kept, because every node compares with it."""
    if cls not in _DEFAULTS:
        _DEFAULTS[cls] = cls()
    default: C = _DEFAULTS[cls]
    return default


def _from_values(cls: type[C], values: Mapping[str, Any]) -> C:
    """The context with these values; one that was made before, because every node of a resumed run asks for it."""
    key: Any = cls  # to mypy a class is not hashable
    return cast("C", _parsed(key, json.dumps(values, sort_keys=True)))


@lru_cache(maxsize=256)
def _parsed(cls: type[Context], values: str) -> Context:
    return cls(**json.loads(values))


def _kept(state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What `for_state` gave when the run began; None for a state without it."""
    settings = state.get("settings") if state else None
    return settings if isinstance(settings, Mapping) and "values" in settings else None


def _sentence(name: str, value: object, error: ValidationError) -> str:
    should_be = "Input should be "
    first, *others = dict.fromkeys(found["msg"] for found in error.errors())
    # Of a value that may be one of several types, each says what it should be.
    also = [
        one.removeprefix(should_be).partition(",")[0]
        for one in others
        if one.startswith(should_be) and first.startswith(should_be)
    ]
    why = " or ".join([first.replace(should_be, "it should be "), *also])
    if not isinstance(value, str | int | float | bool | Mapping | None):
        why = f"{why} (pass objects to the function that builds the graph; a context holds names)"
    return f"{name}={excerpt(value)} cannot be used: {why}"
