"""The first node of every graph: checks the input, opens what the run needs, and resets the state."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Overwrite

from stepcraft.access import access
from stepcraft.concurrency import in_thread, within
from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, StepcraftError
from stepcraft.limits import allowance
from stepcraft.llm.budget import no_usage
from stepcraft.llm.resources import GraphResources
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import resolve_model
from stepcraft.progress import ProgressData, Said, tell
from stepcraft.secrets import excerpt
from stepcraft.text.clean import clean, normalised

MAX_CHARACTERS = 50_000
"""Length limit of a question, and of a list of resources."""

KEYLESS = (
    "no language model wrote this: the keyless extractive model recombines sentences of the evidence; "
    'name a model with model="openai:gpt-5-mini", --model or STEPCRAFT_MODEL'
)

_OPENING_SHARE = 0.5
"""Part of the deadline that may pass before the first model call; the rest is left to write an answer."""


class BeginNode(Runnable[Any, dict[str, Any]]):
    """Checks a run's input and settings before any work is done, and resets what an earlier run left on the thread.

    Models and what is searched are opened here, so that a wrong name fails before the first model call. With
    `deadline_s`, half of it may be spent on opening; after that the run goes on, and a node whose model or source is
    not open by then waits for it as long as the deadline allows.

    Args:
        model_nodes: The names of the nodes that ask a model.
        initial_state: Makes the state that the run starts with from its input and settings; raises BadInput.
        resources: What the graph was built with.
        searches: Whether a run with this input and these settings searches at all.
        prepare: Opens whatever else the run needs, from the initial state and the settings; raises BadInput.
        late_update: Keys of the state of a run that goes on before everything is open.
        other_nodes: Nodes of the graphs that this one runs; they may have models of their own, which are not opened here.
        asks: Whether the input has a question; without one, `initial_state` checks all of the input.
    """

    def __init__(
        self,
        model_nodes: Sequence[str],
        initial_state: Callable[[Any, Any], dict[str, Any]],
        resources: GraphResources,
        *,
        searches: Callable[[Any, Any], bool] = lambda _input, _context: True,
        prepare: Callable[[Mapping[str, Any], Any], None] = lambda _state, _context: None,
        late_update: Mapping[str, Any] | None = None,
        other_nodes: Sequence[str] = (),
        asks: bool = True,
    ) -> None:
        self.name = self.node = "begin"
        self.description = "Check the question and the settings, and open the models and what is searched."
        self.model_nodes = model_nodes
        self.initial_state = initial_state
        self.resources = resources
        self.searches = searches
        self.prepare = prepare
        self.late_update = late_update or {}
        self.other_nodes = other_nodes
        self.asks = asks

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """The cleaned question with the initial state.

        Raises:
            BadInput: The question, another part of the input, a setting, a model or what is searched cannot be used.
            MemoryFailure: The memory cannot be opened.
            SourceFailure: A source cannot be opened.
            LimitsFailure: The limits of the run's user cannot be counted.
        """
        try:
            update = self._begin(input, config)
        except StepcraftError as error:
            why = str(error)
            tell(self.resources.method, self.node, "failed", lambda: Said(why, {"reason": why}))
            raise
        warnings: list[str] = update["warnings"].value
        data: ProgressData = {"warnings": warnings} if warnings else {}
        what = "question" if self.asks else "input"
        read = Said(f"The {what} is read, and what the run needs is open.", data)
        tell(self.resources.method, self.node, "finished", lambda: read)
        return update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, in a thread, because opening models and memories blocks."""
        return await asyncio.wrap_future(in_thread(partial(self.invoke, input, config)))

    def _begin(self, given: Any, config: RunnableConfig | None) -> dict[str, Any]:  # noqa: ANN401 - the graph's input
        started = time.monotonic()
        access(refresh=True)
        context = self.resources.settings()
        self.resources.traced(config, context)
        asked: dict[str, str] = {}
        if self.asks:
            asked["question"] = checked_text("question", given.get("question"))
            if not asked["question"]:
                raise BadInput("the question is empty; say what is wanted")
        state = self.initial_state(given, context)
        limit = None if context.deadline_s is None else _OPENING_SHARE * context.deadline_s
        try:
            warnings = within(limit, partial(self._open, given, state, context))
        except TimeoutError:
            state |= self.late_update
            warnings = [
                f"begin: the run went on before its models and sources were open, because opening them took longer "
                f"than {limit:g} s, half of deadline_s"
            ]
        # Absent without a limit: what nobody limits shows in no stream.
        allowed = allowance()
        calls = allowed.calls_left() if allowed else None
        return {
            **state,
            **({} if calls is None else {"calls_allowed": calls}),
            **asked,
            "warnings": Overwrite([*warnings, *state.pop("warnings", [])]),
            "usage": Overwrite(no_usage()),
            "settings": context.for_state(),
            "started": started,
        }

    def _open(self, given: Any, state: Mapping[str, Any], context: Context) -> list[str]:  # noqa: ANN401 - the graph's input
        """Open the models and what is searched; what a reader should know of them is returned as warnings."""
        models = self.resources.models
        named = {**models.node_models, **context.node_models}
        if unknown := sorted(set(named) - {*self.model_nodes, *self.other_nodes}):
            raise BadInput(
                f"node_models names {unknown[0]!r}; the nodes with a model are {', '.join(self.model_nodes)}"
            )
        self.prepare(state, context)
        opened = [resolve_model(models.choice(node, context)) for node in self.model_nodes]
        warnings = [KEYLESS] if any(isinstance(model, ExtractiveModel) for model in opened) else []
        if self.searches(given, context):
            warnings += self.resources.searched.warnings(context)
        return warnings


def checked_text(name: str, value: object) -> str:
    """A part of the input as cleaned text; a list of texts is joined by commas.

    Raises:
        BadInput: It is not a text, or it is too long.
    """
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(item, str) for item in value)
    ):
        value = ", ".join(value)
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a text, not {type(value).__name__}: {excerpt(value)}")
    if len(value) > MAX_CHARACTERS:
        raise BadInput(
            f"{name} has {len(value):,} characters; at most {MAX_CHARACTERS:,} are taken, so shorten it"
        )
    return clean(value).strip() if normalised(value) else ""


def checked_option(name: str, value: object, options: Sequence[str]) -> str:
    """A part of the input that is one of a few words; the first of them where it is not given.

    Raises:
        BadInput: It is another word.
    """
    if not value:
        return options[0]
    if value not in options:
        raise BadInput(f"{name}={excerpt(value)} cannot be used: it should be one of {', '.join(options)}")
    return str(value)
