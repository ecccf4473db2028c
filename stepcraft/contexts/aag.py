"""The settings of AAG, with the instructions of its nodes."""

from stepcraft.contexts.base import NEEDS, Length, LookSettings, in_nodes, instructions

LOOK_UP_INSTRUCTIONS = f"""\
Somebody has to write the steps that reach a goal with the resources at hand, and sees only what
searches of a collection of procedures for other goals, and of documents where there are any, find.
{NEEDS}
List what has to be looked up for that: short search queries, each about one thing that is done and
naming it in full, in the words that such procedures use."""

DRAFT_INSTRUCTIONS = """\
Write how to reach the goal with the resources at hand, as the most experienced colleague would for
somebody who carries it out without looking anything up. The passages are procedures and documents
that were found; some are for something else, and what holds for one product, version or case
applies to nothing else.
Each step is a stage: a short title in bold that says what it achieves, and under it, on lines of
their own, its actions, numbered in the order of execution. An action is one or two sentences, with
its exact command, code, name, value or place to click, and the check that shows that it worked. Use
a table for choices and limits. Where a few actions do the job, each step is one action without a
title. Stages and actions stand in the order in which one does them, and nothing is said twice.
Rely on the passages for names, values and order and use all that bears on the goal: who may do it
and who gives permission, exceptions, limits, what to leave alone. Do not take them as a model of
how complete steps should be.
Care is in proportion to the risk: where a step changes or destroys something that others depend on,
say what to check or save before, how to tell that it worked and how to go back, and take the safest
order; where something can simply be run again, such as code or a setting on one's own machine, give
it complete and runnable with its imports and one check at the end, and nothing more.
Prefer one complete program to fragments, and a few commands to a script.
Where the passages are silent, write what you know of how such a thing is done. A name that is
probably right is given with "(unconfirmed)" after it; one that cannot be guessed is described, with
where to find it. Where passages contradict each other, name both. The person knows of no passages
or other procedures."""

CRITIC_INSTRUCTIONS = """\
You are the last to check the steps before somebody follows them to the letter. Each part is a step.
The passages, before the parts or behind the step that they were found for, are procedures for other
goals, and documents. Their names, calls and options hold here for the same action; do not imitate
their brevity.
Is the goal reached at the end? Is every resource used where it is needed? Would somebody who
follows the steps fail, be misled or get stuck? Change the steps if
- the evidence contradicts one, or shows that a name, call, option or value is wrong;
- one leaves open, guesses or calls unconfirmed what the evidence has;
- the goal needs a step, a check, an import or a value that is missing;
- code plainly cannot run with what the steps before it made, or another change makes a step wrong.
Wording, taste and optional extras are no reason for a change. A step that neither the evidence nor
your own knowledge contradicts stays as it is, with what it calls "(unconfirmed)". The steps do not
mention evidence or other procedures."""


class AagContext(LookSettings):
    """The settings for a run of AAG (analogy-augmented generation)."""

    alpha: float | None = in_nodes(None, "retrieve", ge=0, le=1)
    """Weight of the vectors in a memory search: 1 means vectors alone, 0 means words alone."""
    where: dict[str, str] = in_nodes({}, "retrieve", "remember")
    """Tags that procedures in the memory must have, with their values."""
    length: Length = in_nodes("full", "draft")
    """The length of the steps."""
    names: bool = in_nodes(True, "check_names")
    """Look up the names in the code of the steps, without a model."""
    review: bool = in_nodes(False, "review")
    """Pause until a person approves the steps, edits them, or rejects them with a reason."""
    remember: bool = in_nodes(False, "review", "remember")
    """Pause as `review` does, and add the approved steps to the memory."""
    look_up_instructions: str = instructions("to_query", LOOK_UP_INSTRUCTIONS)
    draft_instructions: str = instructions("draft", DRAFT_INSTRUCTIONS)
    critic_instructions: str = instructions("critic", CRITIC_INSTRUCTIONS)
