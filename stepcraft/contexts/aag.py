"""The settings of AAG, with the instructions of its nodes."""

from stepcraft.contexts.base import CheckSettings, in_nodes, instructions

LOOK_UP_INSTRUCTIONS = """\
Somebody has to write the steps that reach a goal with the resources at hand, and sees only what
searches of a collection of procedures for other goals find. List what has to be looked up so that
every step can be written with exact names, calls, options and values: short search queries, each
about one thing that is done and naming it in full, in the order in which the steps need them."""

DRAFT_INSTRUCTIONS = """\
Write the steps that reach the goal with the resources at hand, for somebody who follows them to the
letter without looking anything up: in the order in which they are done, each one action in one to
three sentences beside its code, with the commands, values and imports that it needs. Use every
resource that the goal needs. Take the plainest way: no handling of errors, no options, variants or
advice that the goal does not ask for, and one step at the end that shows that it is reached.
The evidence holds procedures for other goals. Where they do the same thing, take their exact names,
calls, options and modules; they are no model of how complete steps are. Where they are silent,
write what you know of how such a thing is done. Write "(to be looked up)" behind a name that
neither gives. Do not speak of evidence or other procedures."""

CRITIC_INSTRUCTIONS = """\
You are the last to check the steps before somebody follows them to the letter. Each part is a step,
followed by procedures for other goals that were found for it. Their names, calls and options hold
here for the same action; do not imitate their brevity.
Is the goal reached at the end? Is every resource used where it is needed? Would somebody who
follows the steps fail, be misled or get stuck? Change the steps if
- the evidence contradicts one, or shows that a name, call, option or value is wrong;
- one leaves open or guesses a name, call, option or value that the evidence has;
- the goal needs a step, a check, an import or a value that is missing;
- code plainly cannot run with what the steps before it made, or another change makes a step wrong.
Wording, taste and optional extras are no reason for a change. A step that neither the evidence nor
your own knowledge contradicts stays as it is. The steps do not mention evidence or other
procedures."""


class AagContext(CheckSettings):
    """The settings of one run of AAG (analogy-augmented generation)."""

    alpha: float | None = in_nodes(None, "retrieve", ge=0, le=1)
    """Weight of the vectors in a search of the memory: 1 is vectors alone, 0 is words alone."""
    max_queries: int = in_nodes(8, "to_query", ge=1, le=20)
    """Limit on what is looked up before the steps are drafted."""
    names: bool = in_nodes(True, "check_names")
    """Look up the names in the code of the steps, without a model."""
    review: bool = in_nodes(False, "review")
    """Pause until a person approves the steps, edits them, or rejects them with a reason."""
    remember: bool = in_nodes(False, "review", "remember")
    """Pause as `review` does, and add the approved steps to the memory."""
    look_up_instructions: str = instructions("to_query", LOOK_UP_INSTRUCTIONS)
    draft_instructions: str = instructions("draft", DRAFT_INSTRUCTIONS)
    critic_instructions: str = instructions("critic", CRITIC_INSTRUCTIONS)
