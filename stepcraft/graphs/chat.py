"""The chat: a conversation in which each message is answered by the graph that suits it.

Each graph runs as a subgraph with the chat's settings. The answer is followed by its sources, the
statements not found in them, and warnings.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, get_args

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import EphemeralValue
from langgraph.constants import TAG_NOSTREAM
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, Unpack

from stepcraft.contexts.chat import ChatContext, MethodName
from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.graphs.registry import context_of, get_graph
from stepcraft.llm.calls import Call, Calls, Inline, Node
from stepcraft.llm.limits import limits_of
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.llm.usage import RunState, add_warnings
from stepcraft.models.resolve import resolve_model
from stepcraft.nodes.begin import Begin
from stepcraft.nodes.checks import final_checks
from stepcraft.nodes.route import route
from stepcraft.nodes.state import Answer, Messages
from stepcraft.progress import beginning
from stepcraft.schema import described
from stepcraft.secrets import excerpt
from stepcraft.text.citations import marks

__all__ = ["ChatContext", "ChatInput", "ChatOutput", "build_chat", "chat_builder", "graph"]

METHODS: tuple[MethodName, ...] = get_args(MethodName)
MAX_NOT_FOUND = 10
"""The maximum number of statements listed as not found below an answer."""
_SOON_S = 0.001
"""The deadline for a graph if the chat's own has passed, so that the graph ends without making
another call.
"""


@described
class ChatInput(TypedDict, total=False):
    """Messages to add to a conversation, the last of them from a person.

    A single message may be given as plain text instead.
    """

    messages: Messages
    question: Annotated[str, EphemeralValue]
    """A message as plain text."""


@described
class ChatOutput(Answer):
    """The conversation with its answer, and how the answer was written."""

    method: str
    """The graph that wrote the answer."""
    asked: str
    """The question passed to the graph: the last message, rewritten to stand on its own."""


class State(Answer, RunState, ChatInput):
    """The state of the chat."""

    task: str
    method: str
    asked: str


class Method(Node):
    """Runs a graph as a node of the chat.

    Args:
        graph: The compiled graph.
        resources: The resources that the chat is built with.
    """

    def __init__(
        self, graph: CompiledStateGraph[Any, Any, Any, Any], resources: Resources[ChatContext]
    ) -> None:
        self.name = graph.name
        self.graph = graph
        self.resources = resources

    async def run(self, state: Any, calls: Calls) -> dict[str, Any]:
        """Run the graph on the standalone question, and return its output for the chat."""
        options = {"context": self._context(state)}
        # The graph enforces the deadline itself, and still returns an answer.
        result = await calls.result(Call(self.graph, {"question": state["asked"]}, options), None)
        text = with_lists(result, add_warnings(state["warnings"], result["warnings"]))
        taken = {key: result[key] for key in ("answer", "evidence", "warnings", "usage")}
        return {**taken, "messages": [AIMessage(text)]}

    def _context(self, state: Mapping[str, Any]) -> Any:
        """Return the settings for the graph, with the remaining calls and time as limits."""
        settings = self.resources.settings(state)
        limits = limits_of(state, settings)
        context_type: Any = self.graph.context_schema
        values = _settings_of(context_type, settings).model_dump(exclude_unset=True)
        for name, left in {
            "max_calls": limits.max_calls and max(1, limits.max_calls - limits.calls),
            "deadline_s": limits.ends_at and max(_SOON_S, limits.seconds_left() or 0),
        }.items():
            if left:
                values[name] = min(left, values.get(name) or left)
        return context_type(**values)


def with_lists(result: Mapping[str, Any], warnings: Sequence[str], most: int = 10) -> str:
    """Return an answer with its sources, the statements not found in them, and warnings below.

    Args:
        result: The output of the graph that answered.
        warnings: The warnings to list.
        most: The maximum number of uncited sources.
    """
    below = "\n- ".join(["\n\nWarnings:", *warnings]) if warnings else ""
    return f"{result['answer']}{_sources(result, most)}{_not_found(result)}{below}"


def _sources(result: Mapping[str, Any], most: int) -> str:
    """Return the sources of an answer as lines below it, or "" if there are none.

    They are numbered as cited, except for RAT and AAG, which add no marks: a [1] in their text may
    come from a draft with its own sources. All cited sources are listed; an uncited one is listed
    only if its number is at most `most`.
    """
    evidence: Sequence[Evidence] = result["evidence"]
    is_numbered = "sentences" in result or "first_draft" not in result
    cited = marks(result["answer"]) if is_numbered else ()
    lines = [
        (f"[{number}]" if is_numbered else "-")
        + f" {' '.join((passage['title'] or passage['text']).split())[:100]}"
        + (f" ({passage['source']})" if passage["source"] else "")
        for number, passage in enumerate(evidence, 1)
        if number <= most or number in cited
    ]
    if len(evidence) > len(lines):
        lines.append(f"and {len(evidence) - len(lines)} more")
    return "\n".join(["\n\nSources:", *lines]) if lines else ""


def _not_found(result: Mapping[str, Any]) -> str:
    """Return lines that list the statements not found in the sources, or "" if there are none.

    A statement that has changed since it was judged is left out.
    """
    texts = [
        f'"{check["words"]}" in: {check["text"]}' if check["words"] else check["text"]
        for check, has_changed in final_checks(result)
        if check["verdict"] == "not found" and not has_changed
    ]
    lines = list(dict.fromkeys(map(beginning, texts)))
    shown = [f"- {line}" for line in lines[:MAX_NOT_FOUND]]
    if len(lines) > MAX_NOT_FOUND:
        shown.append(f"and {len(lines) - MAX_NOT_FOUND} more")
    return "\n".join(["\n\nNot found in the sources:", *shown]) if shown else ""


def _initial(
    state: Mapping[str, Any],
    settings: ChatContext,
    _searched: Sequence[Any],
    resources: Resources[ChatContext],
    of_graphs: Mapping[str, Resources[Any]],
) -> dict[str, Any]:
    """Return the initial state; before asking a model, refuse settings that no graph accepts.

    A question that begins a conversation becomes its first message.
    """
    is_auto = settings.method == "auto"
    names = METHODS if is_auto else [settings.method]
    # Graphs have different nodes, so a node's model can only be named for a single graph.
    fields = {field for name in names for field in context_of(name).model_fields}
    fields -= {"node_models"} if is_auto else set()
    if unknown := sorted(settings.method_settings.keys() - fields):
        raise BadInput(
            f"method_settings has {excerpt(unknown[0])}; with method={settings.method!r} it takes "
            f"{', '.join(sorted(fields))}"
        )
    resources.target.check_names(settings)
    for name in names:
        of_graph = _settings_of(context_of(name), settings)
        resources.target.check_names(of_graph)
        for node in ("", *of_graph.node_models):
            resolve_model(of_graphs[name].choice(node, of_graph))
    first = {} if state.get("messages") else {"messages": [HumanMessage(state["task"])]}
    return {"method": "", "asked": "", **first}


def _settings_of(context_type: Any, settings: ChatContext) -> Any:
    """Return the settings of a graph, ignoring those of the chat for which it has no field."""
    shared = settings.model_dump(exclude_unset=True, exclude={"node_models", "method_settings"})
    values = {**shared, **settings.method_settings}
    return context_type(**{key: values[key] for key in values.keys() & context_type.model_fields})


def _options_of(name: str, options: BuilderOptions, settings: ChatContext) -> Any:
    """Return the options of a graph: those of the chat, and the models that its settings name."""
    further = settings.method_settings
    left_out = {"settings", "node_models", *(["model"] if further.get("model") else [])}
    taken = {key: value for key, value in options.items() if key not in left_out}
    fields = {"model", "node_models"} if name == settings.method else {"model"}
    named: dict[str, Any] = {"model": settings.model, **further}
    own = context_of(name)(**{key: named[key] for key in fields & named.keys()})
    return {**taken, "settings": own}


@Inline
def chosen_method(state: State) -> str:
    return state["method"]


def chat_builder(
    **options: Unpack[BuilderOptions],
) -> StateGraph[State, ChatContext, ChatInput, ChatOutput]:
    """Return the uncompiled chat graph, whose RAT, RPG and AAG graphs get the same options."""
    resources = Resources.of("chat", ChatContext, options)
    own: dict[str, Any] = {}
    of_graphs: dict[str, Resources[Any]] = {}
    for name in METHODS:
        own[name] = _options_of(name, options, resources.defaults)
        of_graphs[name] = Resources.of(name, context_of(name), own[name])
    initial = partial(_initial, resources=resources, of_graphs=of_graphs)
    builder = StateGraph(State, ChatContext, input_schema=ChatInput, output_schema=ChatOutput)
    builder.add_node("begin", Begin(resources, ["route"], initial, searches=False))
    # A chat interface shows what is streamed, which should be the answer but not the routing.
    builder.add_node("route", route.bound(resources).with_config(tags=[TAG_NOSTREAM]))
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "route")
    builder.add_conditional_edges("route", chosen_method, [*METHODS])
    for name in METHODS:
        builder.add_node(name, Method(get_graph(name, **own[name]), resources))
        builder.add_edge(name, END)
    return builder


def build_chat(
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[State, ChatContext, ChatInput, ChatOutput]:
    """Build and compile the chat.

    The options are those of the builder and of LangGraph's `compile`.

    Raises:
        BadInput: An option has the wrong type.
    """
    return compiled(chat_builder, "chat", options)


graph = build_chat()
"""The chat configured by the context, the environment and the defaults, for servers and Studio."""
