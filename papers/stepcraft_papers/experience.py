"""Learn by experience: an agent does task after task in the text world, using its memory.

Every item and every kind of action has a made-up name, drawn with a seed, so that no model knows
the world in advance. Each task is to obtain one item, and the world decides whether the agent has
succeeded. The tasks come in rounds; later rounds have longer plans that share sub-goals with
earlier ones (as in the evaluation of procedural memory in Mem^p, arXiv 2508.06433).
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolCallLimitMiddleware
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, StructuredTool

from stepcraft import BadInput, ProceduralMemoryMiddleware, ProcedureMemory, memory_tools
from stepcraft_papers.textworld import Variant, solve, world

Arm = Literal["none", "notes", "memory"]

ROUNDS = 3
LENGTHS = ((3, 6), (6, 9), (8, 13))
"""The minimum and maximum number of plan steps in each round."""
MOST_CALLS = 40
"""The maximum number of tool calls in a task."""
_SYLLABLES = [first + last for first in "bdfgklmnprstvz" for last in ("a", "e", "i", "o", "u")]

TASK = "Get hold of one {}. Nothing else counts, and you begin with empty hands."
AGENT = """\
You are in a world that you do not know. Names are made up, and mean nothing elsewhere. Reach the
goal with as few tool calls as you can: each counts, failed ones and those made at once, too.
Say in one sentence that it is reached, or why not. Calls that you make at once may run in any
order: make one that needs another's result after it. What your other tasks were, you know only if
you are told here."""
NOTES = """\
Write a note for your next task in this world, which will be another one: what you found out about
what can be had how. At most 80 words, and only what your notes do not say yet."""


class World:
    """The text world with made-up names.

    Args:
        seed: The random seed for the names.
        items: The items to include, along with everything needed to make them; by default, those of
            all tasks.
    """

    def __init__(self, seed: int, items: Sequence[str] = ()) -> None:
        draw = random.Random(seed)  # noqa: S311 - it guards nothing
        self.items = sorted(_needed(items or [item for each in tasks_of(10) for item in each]))
        words = draw.sample(
            [a + b for a in _SYLLABLES for b in _SYLLABLES], len(self.items) + len(_KINDS)
        )
        self.verbs = dict(zip(_KINDS, words, strict=False))
        self.names = dict(zip(self.items, words[len(_KINDS) :], strict=True))
        self._items = {name: item for item, name in self.names.items()}
        self._kinds = {verb: kind for kind, verb in self.verbs.items()}

    def variants(self, verb: str, name: str) -> Sequence[Variant]:
        """Return the variants of an action; return none if there is no such action."""
        action = f"{self._kinds.get(verb)}_{self._items.get(name)}"
        return [
            each
            for each in world().get(action, ())
            if {*each.precondition, *each.tool} <= self.names.keys()
        ]

    def named(self, counts: Mapping[str, int]) -> str:
        """Return items with their counts as text."""
        return ", ".join(f"{count} {self.names[item]}" for item, count in counts.items() if count)

    def actions(self) -> str:
        """Return a line for each kind of action, with the items that it can produce."""
        lines = (
            (verb, [name for name in sorted(self._items) if self.variants(verb, name)])
            for verb in sorted(self._kinds)
        )
        return "\n".join(f"{verb}: {', '.join(names)}" for verb, names in lines)


class Room:
    """A task in a world: the items the agent holds, and the tools that change them.

    Args:
        world: The world.
        target: The item to obtain.
    """

    def __init__(self, world: World, target: str) -> None:
        self.world, self.target = world, target
        self.held: Counter[str] = Counter()
        self._lock = Lock()

    @property
    def is_reached(self) -> bool:
        """Whether the target is held."""
        return self.held[self.target] > 0

    def outcome(self, _state: Mapping[str, object]) -> bool:
        """Return whether the agent reached its goal, for `ProceduralMemoryMiddleware`."""
        return self.is_reached

    def tools(self) -> list[BaseTool]:
        """Return the tools for the agent."""
        return [
            StructuredTool.from_function(
                self.act,
                description="Do an action with an item, so many times; a failure says what lacks.",
            ),
            StructuredTool.from_function(self.inventory, description="Say what you hold."),
            StructuredTool.from_function(
                self.look, description="List the actions, each with the items that it can give."
            ),
        ]

    def act(self, action: str, item: str, times: int = 1) -> str:
        """Do an action and return a description of the result."""
        with self._lock:
            return self._act(action, item, times)

    def _act(self, action: str, item: str, times: int) -> str:
        variants = self.world.variants(action, item)
        if not variants:
            return f"There is no {action} of {item}; look says what there is."
        for done in range(max(1, min(times, 64))):
            variant = next((each for each in variants if not each.lacks(self.held)), None)
            if variant is None:
                lacks = min((each.lacks(self.held) for each in variants), key=_size)
                tools = {name: count for name, count in lacks.items() if name in variants[0].tool}
                used = {name: count for name, count in lacks.items() if name not in tools}
                missing = " and ".join(
                    filter(
                        None,
                        [
                            self.world.named(used),
                            f"{self.world.named(tools)} to do it with" if tools else "",
                        ],
                    )
                )
                return (
                    f"Done {done} times; then it failed: for one more you lack {missing}. "
                    f"{self._holding()}"
                )
            self.held.subtract(variant.precondition)
            self.held.update(variant.output)
        return f"Done. {self._holding()}"

    def inventory(self) -> str:
        """Return a description of the items the agent holds."""
        return self._holding()

    def look(self) -> str:
        """Return the available actions and the items that they can produce."""
        return self.world.actions()

    def _holding(self) -> str:
        return f"You hold {self.world.named(self.held) or 'nothing'}."


@dataclass
class Played:
    """The result of a task."""

    arm: str
    round: int
    task: str
    succeeded: bool
    tool_calls: int
    model_calls: int
    """Includes calls by the agent and calls made to learn from the task."""
    input_tokens: int
    output_tokens: int
    seconds: float
    messages: list[str] = field(default_factory=list[str])


def tasks_of(number: int) -> list[list[str]]:
    """Return `number` targets for each round, spread evenly over its range of plan lengths."""
    lengths = {item: len(solve(item, 1)) for item in _targets()}
    rounds: list[list[str]] = []
    used: set[str] = set()
    for least, most in LENGTHS:
        fitting = sorted(
            (length, item)
            for item, length in lengths.items()
            if least <= length <= most and item not in used
        )
        step = max(1, (len(fitting) - 1) // max(1, number - 1))
        rounds.append([item for _, item in fitting[::step]][:number])
        used.update(rounds[-1])
    return rounds


def play(
    arm: Arm,
    model: BaseChatModel,
    *,
    seed: int,
    number: int = 10,
    memory: ProcedureMemory | None = None,
    on_task: Callable[[Played], object] = lambda _played: None,
) -> list[Played]:
    """Have an agent do the tasks of all rounds, one after the other.

    Args:
        arm: What the agent remembers: nothing, its own notes, or procedures.
        model: The model used by the agent and for learning.
        seed: The random seed for the names in the world. In the arm without memory, each task has
            its own names, so that nothing can be carried over from one task to the next.
        number: The number of tasks in each round.
        memory: The procedural memory for the arm "memory".
        on_task: Called with the result of each task.
    """
    rounds = tasks_of(number)
    items = [item for each in rounds for item in each]
    shared, notes, results = World(seed, items), list[str](), list[Played]()
    for place, target in ((at, item) for at, each in enumerate(rounds, 1) for item in each):
        here = World(seed * 1000 + len(results), items) if arm == "none" else shared
        room, usage, began = Room(here, target), _Calls(), time.monotonic()
        middleware: list[AgentMiddleware[Any, Any, Any]] = [
            ToolCallLimitMiddleware(run_limit=MOST_CALLS, exit_behavior="continue")
        ]
        if arm == "memory" and memory:
            middleware.append(
                ProceduralMemoryMiddleware(
                    memory,
                    learn=model,
                    repair=True,
                    approve=False,
                    outcome=room.outcome,
                    least_score=0.0,
                    k=5,
                    k_results=2,
                )
            )
        told = "\n\n".join([AGENT, *(["Your notes:\n" + "\n".join(notes)] if notes else [])])
        tools = room.tools()
        if arm == "memory" and memory:
            tools += [each for each in memory_tools(memory) if each.name == "search_procedures"]
        agent: Any = create_agent(model, tools, system_prompt=told, middleware=middleware)
        task = TASK.format(here.names[target])
        result = agent.invoke(
            {"messages": [HumanMessage(task)]},
            {"callbacks": [usage], "recursion_limit": 10 * MOST_CALLS},
        )
        if arm == "notes":
            shown = "\n".join(_shown(each) for each in result["messages"])
            asked = [SystemMessage(f"{told}\n\n{NOTES}"), HumanMessage(shown)]
            notes.append(str(model.invoke(asked, {"callbacks": [usage]}).text))
        played = Played(
            arm,
            place,
            target,
            room.is_reached,
            sum(each.type == "tool" for each in result["messages"]),
            usage.calls,
            *usage.tokens(),
            round(time.monotonic() - began, 1),
            [_shown(each) for each in result["messages"]],
        )
        results.append(played)
        on_task(played)
    return results


def table(played: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row per arm and round: tasks, successes, and mean numbers of calls and tokens."""
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for each in played:
        groups.setdefault((each["arm"], each["round"]), []).append(each)

    def mean(rows: Sequence[Mapping[str, Any]], name: str) -> str:
        return f"{sum(row[name] for row in rows) / len(rows):,.1f}"

    means = ("tool_calls", "model_calls", "input_tokens", "output_tokens")
    return [
        (
            arm,
            str(number),
            str(len(rows)),
            str(sum(row["succeeded"] for row in rows)),
            *(mean(rows, name) for name in means),
        )
        for (arm, number), rows in sorted(groups.items())
    ]


def append(path: Path, played: Played) -> None:
    """Append the result of a task to a JSON Lines file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(played), ensure_ascii=False) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the task results in a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def checked_arm(name: str) -> Arm:
    """Return an arm by its name.

    Raises:
        BadInput: There is no such arm.
    """
    arms: dict[str, Arm] = {"none": "none", "notes": "notes", "memory": "memory"}
    if name not in arms:
        raise BadInput(f"there is no arm {name!r}; take {', '.join(arms)}")
    return arms[name]


_KINDS = ("mine", "craft", "smelt")


class _Calls(UsageMetadataCallbackHandler):
    """Counts calls and tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def on_chat_model_start(self, *_: object, **__: object) -> None:
        self.calls += 1

    def tokens(self) -> tuple[int, int]:
        """Return the numbers of input and output tokens."""
        used = self.usage_metadata.values()
        return sum(each["input_tokens"] for each in used), sum(
            each["output_tokens"] for each in used
        )


def _targets() -> Iterator[str]:
    """Yield the items that are made rather than mined, without variants in wood or colour."""
    made = {action.split("_", 1)[1] for action in world() if not action.startswith("mine_")}
    words = ("spruce", "birch", "jungle", "acacia", "dark_oak", "crimson", "warped", "wool", "dye")
    colours = ("orange", "magenta", "blue", "yellow", "lime", "pink", "gray", "cyan", "purple")
    others = (*words, *colours, "brown", "green", "red", "black", "white", "stripped")
    for item in sorted(made):
        if not any(word in item for word in others):
            try:
                solve(item, 1)
            except ValueError:
                continue
            yield item


def _needed(items: Sequence[str]) -> set[str]:
    """Return the items together with everything their plans use."""
    return {step.item for item in items for step in solve(item, 1)} | {*items}


def _size(lacks: Counter[str]) -> tuple[int, int]:
    return len(lacks), lacks.total()


def _shown(message: BaseMessage) -> str:
    """Return a message as a line of a record."""
    if isinstance(message, AIMessage) and message.tool_calls:
        calls = (f"{call['name']}({call['args']})" for call in message.tool_calls)
        return f"CALL {'; '.join(calls)}"
    return f"{message.type.upper()} {message.text}"
