"""A graph of this package inside of other programs: as a node of a parent with other keys, and as a tool of an agent.

A graph can also be added to a parent as it is; then the two share the keys and the context's fields that they have under
the same names. Here nothing is shared that is not named.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.graph import StateGraph
from langgraph.runtime import get_runtime
from pydantic import Field, ValidationError, create_model

from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, StepcraftError
from stepcraft.evidence import Evidence
from stepcraft.graphs.compile import Graph, check_name, resources_of
from stepcraft.graphs.registry import CHAT, GRAPHS
from stepcraft.secrets import without_secrets
from stepcraft.text.citations import marks

Given = Context | Mapping[str, Any] | None
"""The settings of a graph's runs: its context, some of its fields by name, or None for the defaults."""

MAX_SOURCES = 20
"""Sources that the content of a tool's reply lists; the artifact has all."""

_ABSENT = object()


def as_node(
    graph: Graph,
    /,
    *,
    state: type[Any] | None = None,
    context: Given | Callable[[Any], Given] = None,
    context_from: Mapping[str, str] | None = None,
    **keys: str,
) -> Runnable[Any, dict[str, Any]]:
    """A graph as a node of a parent whose state has other keys.

    `add_node("research", as_node(rat, question="task", answer="notes"))` reads the question from the parent's `task` and
    writes the answer to its `notes`. To LangGraph the node is a subgraph: streams, interrupts, checkpoints, time travel
    and drawings show what is inside. No other key is read or written, and of the parent's context nothing is taken but
    what is named here.

    Args:
        graph: A compiled graph of this package.
        state: The schema of the parent's state, or of what else reads the node's result. With it these keys are
            checked now, without it when the node runs.
        context: The settings of the graph, or a function that makes them from the parent's context.
        context_from: Settings that the parent's context has: the name of the setting, and that of the parent's field.
            They precede those in `context`. A field that is None, or absent from a mapping, changes nothing.
        keys: The graph's key and the parent's. `question` and at least one key of the output are required.

    Raises:
        BadInput: A key or a setting is unknown, missing or used twice, or a setting has a value that cannot be used.
    """
    settings = _settings_class(graph)
    inputs, outputs = (
        list(get_type_hints(schema)) for schema in (graph.builder.input_schema, graph.builder.output_schema)
    )
    for ours in keys:
        check_name(ours, [*inputs, *outputs], f"{graph.name} has no key {ours!r}")
    if "question" in inputs and "question" not in keys:
        raise BadInput(f"as_node needs the key that {graph.name} reads: question=<the parent's key>")
    written = [theirs for ours, theirs in keys.items() if ours in outputs]
    if not written:
        raise BadInput(
            f"as_node needs a key for the result of {graph.name}: answer=<the parent's key>, or another of "
            f"{', '.join(outputs)}"
        )
    for theirs in written:
        if written.count(theirs) > 1:
            raise BadInput(f"as_node writes two results to the key {theirs!r}; give each its own")
    if state is not None:
        known = list(StateGraph(state).channels)
        for ours, theirs in keys.items():
            check_name(
                theirs, known, f"{state.__name__} has no key {theirs!r}, which as_node uses for {ours!r}"
            )
    for name in context_from or {}:
        check_name(name, [one.name for one in fields(settings)], f"there is no setting {name!r}")
    fixed = None if callable(context) else _context_of(settings, context)

    def context_for(held: object) -> Context:
        base = _context_of(settings, cast("Any", context)(held)) if fixed is None else fixed
        taken = {ours: _field_of_parent(held, ours, theirs) for ours, theirs in (context_from or {}).items()}
        taken = {ours: value for ours, value in taken.items() if value is not None}
        return replace(base, **taken) if taken else base

    return EmbeddedNode(
        graph,
        {ours: theirs for ours, theirs in keys.items() if ours in inputs},
        {ours: theirs for ours, theirs in keys.items() if ours in outputs},
        fixed if fixed is not None and not context_from else context_for,
        is_parent_known=state is not None,
    )


class EmbeddedNode(RunnableLambda[Any, dict[str, Any]]):
    """A graph with the keys and the context of a parent; made by `as_node`.

    A RunnableLambda, because LangGraph looks for a node's subgraph in the `deps` of one.

    Args:
        graph: The graph.
        inputs: The graph's keys and those of the parent that they are read from.
        outputs: The graph's keys and those of the parent that they are written to.
        context: The settings of every run, or a function that makes them from the parent's context.
        is_parent_known: Whether the parent's keys were checked; else a run checks them.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        context: Context | Callable[[object], Context],
        *,
        is_parent_known: bool,
    ) -> None:
        super().__init__(self.invoke, self.ainvoke, name=graph.name)
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs
        self.context = context
        self.is_parent_known = is_parent_known

    @cached_property
    def deps(self) -> list[Runnable[Any, Any]]:
        """The graph."""
        return [self.graph]

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """Run the graph on the parent's state; return what the parent's keys are updated with.

        Raises:
            BadInput: The parent's state or context lacks what the node reads or writes.
        """
        given = self._given(input, config)
        return self._update(self.graph.invoke(given, config, context=self._context()))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, on the running event loop."""
        given = self._given(input, config)
        return self._update(await self.graph.ainvoke(given, config, context=self._context()))

    def _given(self, state: object, config: RunnableConfig | None) -> dict[str, Any]:
        """The input of the graph from the parent's state."""
        known = _names(state)
        given = {ours: _value(state, theirs) for ours, theirs in self.inputs.items()}
        if given.get("question") is _ABSENT:
            theirs = self.inputs["question"]
            check_name(
                theirs, known, f"the parent's state has no {theirs!r}, where {self.name} reads its question"
            )
        for ours, theirs in self.outputs.items():
            if not (self.is_parent_known or _is_key_of_parent(theirs, config)):
                check_name(
                    theirs, known, f"the parent's state has no {theirs!r}, where {self.name} writes {ours!r}"
                )
        return {ours: value for ours, value in given.items() if value is not _ABSENT}

    def _context(self) -> Context:
        return self.context if isinstance(self.context, Context) else self.context(get_runtime().context)

    def _update(self, result: Mapping[str, Any] | None) -> dict[str, Any]:
        return {theirs: result[ours] for ours, theirs in self.outputs.items() if result and ours in result}


def as_tool(
    graph: Graph,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    arguments: Sequence[str] | None = None,
    context: Given = None,
) -> BaseTool:
    """A graph as a tool for `create_agent` and any other program whose model calls tools.

    The model reads the answer with its sources, numbered where the answer cites them; the artifact of the reply holds the
    whole output, with evidence, warnings and usage. A failure is a reply with our sentence, so that the model can correct what it asked;
    interrupts pass through to the agent. A run has the callbacks, the thread and the checkpointer of the agent, but
    nothing of its context.

    Args:
        graph: A compiled graph of this package.
        name: The tool's name; by default that of the graph.
        description: What the model is told about the tool; by default what the graph does.
        arguments: The keys of the graph's input that the model may fill beside `question`; by default `resources`,
            where the graph takes them.
        context: The settings of all runs.

    Raises:
        BadInput: There is no such argument, or a setting is unknown or has a value that cannot be used.
    """
    settings = _context_of(_settings_class(graph), context)
    hints = get_type_hints(graph.builder.input_schema)
    check_name("question", hints, f"{graph.name} cannot be a tool, because it takes no question")
    shown = graph.get_input_jsonschema()["properties"]
    if arguments is None:
        arguments = [one for one in ("resources",) if one in hints]
    for one in arguments:
        check_name(one, list(hints), f"{graph.name} takes no argument {one!r}")
    optional: dict[str, Any] = {
        one: (hints[one] | None, Field(default=None, description=shown[one].get("description")))
        for one in arguments
        if one != "question"
    }
    question: Any = (str, Field(description=shown["question"].get("description")))
    named = name or str(graph.name)

    def run(config: RunnableConfig, **given: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401 - what the schema allows
        try:
            return _reply(graph.invoke(_filled(given), config, context=settings))
        except StepcraftError as failure:
            raise ToolException(str(failure)) from failure

    async def arun(config: RunnableConfig, **given: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401 - what the schema allows
        try:
            return _reply(await graph.ainvoke(_filled(given), config, context=settings))
        except StepcraftError as failure:
            raise ToolException(str(failure)) from failure

    return StructuredTool.from_function(
        run,
        arun,
        name=named,
        description=description or _description(graph),
        args_schema=create_model(named, question=question, **optional),
        infer_schema=False,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=argument_sentence,
    )


def _description(graph: Graph) -> str:
    sentence = {**GRAPHS, **CHAT}[resources_of(graph).method].sentence
    return f"{sentence}. It sees nothing of this conversation: the question has to say all that it needs."


def _filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the model filled."""
    return {name: value for name, value in given.items() if value is not None}


def _reply(result: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The content for the model and the artifact for the program."""
    evidence: list[Evidence] = result["evidence"]
    is_cited = bool(marks(result["answer"]))
    sources = [
        f"{f'[{number}]' if is_cited else '-'} {_source(passage)}"
        for number, passage in enumerate(evidence[:MAX_SOURCES], 1)
    ]
    if len(evidence) > MAX_SOURCES:
        sources.append(f"and {len(evidence) - MAX_SOURCES} more")
    listed = "\n".join(["\n\nSources:", *sources]) if sources else ""
    return result["answer"] + without_secrets(listed), result


def _source(passage: Evidence) -> str:
    """A line that says which passage it is."""
    title = " ".join((passage["title"] or passage["text"]).split())[:100]
    return f"{title} ({passage['source']})" if passage["source"] else title


def argument_sentence(error: Any) -> str:  # noqa: ANN401 - pydantic's error, of either version
    """What is wrong with the arguments of a call."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return (
        f"{'.'.join(map(str, first['loc'][:1]))} cannot be used: {first['msg'][0].lower()}{first['msg'][1:]}"
    )


def _settings_class(graph: Graph) -> type[Context]:
    """The class of a graph's settings.

    Raises:
        BadInput: It is not a graph of this package.
    """
    try:
        return resources_of(graph).context
    except (KeyError, AttributeError):
        raise BadInput(
            f"{type(graph).__name__} is no graph of this package: pass what build_aag, build_rat, build_rpg or "
            "get_graph returns"
        ) from None


def _context_of(settings: type[Context], given: Given) -> Context:
    """The settings of a graph; other than in a parent's context, every field of a mapping has to be one of them."""
    if isinstance(given, Context) and not (isinstance(given, settings) or issubclass(settings, type(given))):
        raise BadInput(f"the context is a {type(given).__name__}; this graph takes {settings.__name__}")
    return settings(**given) if isinstance(given, Mapping) else settings.of(given)


def _value(held: object, name: str) -> Any:  # noqa: ANN401 - any value of a parent
    return held.get(name, _ABSENT) if isinstance(held, Mapping) else getattr(held, name, _ABSENT)


def _is_key_of_parent(name: str, config: RunnableConfig | None) -> bool:
    """Whether the parent can be written to under a name; LangGraph drops what is written to another without a word.

    The reader of the parent's channels is an implementation detail of LangGraph: without it every name passes.
    """
    read = (config or {}).get("configurable", {}).get("__pregel_read")
    try:
        if read is not None:
            read([name])
    except KeyError:
        return False
    return True


def _names(held: object) -> list[str]:
    """The names of the values of a parent's state or context."""
    if isinstance(held, Mapping):
        return list(held)
    if is_dataclass(held):  # one with slots has no __dict__
        return [one.name for one in fields(held)]
    return list(getattr(held, "__dict__", ()))


def _field_of_parent(held: object, ours: str, theirs: str) -> Any:  # noqa: ANN401 - any value of a parent
    """A field of the parent's context; None where the run has no context, or a mapping without it."""
    value = None if held is None else _value(held, theirs)
    if value is not _ABSENT:
        return value
    if not isinstance(held, Mapping):
        check_name(
            theirs,
            _names(held),
            f"the parent's context has no {theirs!r}, from which as_node takes {ours!r}",
        )
    return None
