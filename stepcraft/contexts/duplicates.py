"""The settings of the comparison of two procedures, with the instructions of its node."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from stepcraft.contexts.base import Context, in_nodes, prompt_of

COMPARE_INSTRUCTIONS = """\
Two procedures stand in a memory in which people and programs look up how something is done. Say whether both are for the
same task, so that whoever looks for the one is served as well by the other.
They are for the same task where both reach the same result, by the same product and interface, from like resources,
however differently they are worded, ordered or detailed. Values that stand for any value of their kind make no
difference: names of files, keys, models and nodes, sizes, times, an example's contents.
They are for different tasks where they differ in what is reached or what it is done with: another product, library,
service or version; a graph in the own process or one on a server; synchronous or asynchronous; code, command line or a
user interface; one direction or the other (save or load, turn on or off); the whole or a part of it; one kind of
object or another. So are two ways to the same result that one has to choose between.
Judge by the steps as well as by the titles. Where you are in doubt, they are different."""

MERGE_INSTRUCTIONS = """\
Where they are for the same task, also write the one procedure that takes the place of both.
Its output says the result in the clearer of the two wordings. Its input names the resources that its steps need.
Its steps hold every action, name, call, option, value, condition and warning that either procedure has for this task, each
once and in the order in which it is done, one action a step, in their words. Where both say the same, take the more exact
wording. Where they use different example values, take those of one of them throughout. Add nothing of your own, and do not
say that there were two procedures.
Where they contradict each other, or cannot be followed as one procedure, do not write it: both are kept then."""


@dataclass(frozen=True)
class DuplicatesContext(Context, nodes=("compare",)):
    """The settings of one comparison of two procedures.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    merge: Annotated[
        bool,
        Field(
            description="Write one procedure in place of two that are for the same task.",
            json_schema_extra=in_nodes("compare"),
        ),
    ] = True
    compare_instructions: Annotated[str, prompt_of("compare")] = COMPARE_INSTRUCTIONS
    merge_instructions: Annotated[str, prompt_of("compare")] = MERGE_INSTRUCTIONS
