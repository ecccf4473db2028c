"""What the baselines are given, what they hand on and give back: as the methods, so that whatever runs one runs all."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, get_args

from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.nodes.begin import checked
from stepcraft.nodes.retrieve import wanted
from stepcraft.nodes.rpg.input_passages import Passage, given_passages

Kind = Literal["long", "short", "multihop"]


class Input(TypedDict):
    """A question, and whatever else a method takes."""

    question: str
    """What is to be answered, or the goal that is to be reached."""
    resources: NotRequired[str | list[str]]
    """What is at hand, as a comma-separated text or a list."""
    kind: NotRequired[Kind]
    """How long the answer is to be: long (the default), or as short as it can be."""
    passages: NotRequired[list[str | Passage]]
    """What is to be answered from, where the baseline looks something up at all; then nothing is searched."""


class Output(TypedDict):
    """The answer and how it came about."""

    answer: str
    evidence: list[Evidence]
    """The passages or examples that the model was shown."""
    warnings: list[str]
    """What a reader of the answer should know of how it came about."""
    usage: Usage
    """Model calls and tokens, in all and by node."""


class State(Output, Budgeted):
    """All that the nodes hand to each other."""

    question: str
    resources: NotRequired[Annotated[Any, EphemeralValue]]
    """As they were given; a thread's next run does not find them."""
    kind: NotRequired[Annotated[Any, EphemeralValue]]
    """As it was given; a thread's next run does not find it."""
    passages: NotRequired[Annotated[Any, EphemeralValue]]
    """As they were given; a thread's next run does not find them."""
    given: bool
    """Whether the passages were given, so that nothing is searched."""
    resources_text: str
    """The resources as one text, "" if nothing was named."""
    task: Kind
    """How the question is answered."""


def fresh(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a run begins with.

    Raises:
        BadInput: the resources, the kind or the passages cannot be used.
    """
    kind, passages = given.get("kind") or "long", given.get("passages")
    if kind not in get_args(Kind):
        raise BadInput(f"kind={kind!r:.80} cannot be used: it should be one of {', '.join(get_args(Kind))}")
    evidence, warnings = ([], []) if passages is None else given_passages(passages)
    return {
        "answer": "",
        "resources_text": checked("resources", given.get("resources") or ""),
        "task": kind,
        "given": passages is not None,
        "evidence": evidence,
        "warnings": warnings,
    }


def fresh_alone(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a run begins with that shows the model no passages.

    Raises:
        BadInput: the resources, the kind or the passages cannot be used.
    """
    return {**fresh(given), "evidence": [], "warnings": []}


def searches(given: Mapping[str, Any]) -> bool:
    """Whether anything is looked up."""
    return given.get("passages") is None


def to_look_up(state: State) -> list[str]:
    """The question with what is at hand; nothing where the passages were given."""
    return [] if state["given"] else [wanted(state["question"], state["resources_text"])]


def keep_found(state: State, found: list[list[Evidence]], _failed: list[str]) -> dict[str, Any]:
    """What was found, or what there was."""
    return {"evidence": found[0] if found else state["evidence"]}
