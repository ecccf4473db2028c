"""The settings of AAG, with the instructions of its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from stepcraft.contexts.base import Context, Name, Names, SearchSettings, in_nodes, prompt_of

ASSESS_INSTRUCTIONS = """\
Somebody wants a procedure for the goal, with the resources at hand, from what you know. Say whether you can write it.
The names, where there are any, stand in procedures for similar goals; they are no list of what this one needs.
You can where you know the products, libraries and calls that it cannot do without well enough to write real steps; single
gaps do not matter. You cannot where they are unknown to you, so that you would write in general words or guess."""

DRAFT_INSTRUCTIONS = """\
You write procedures for people who will follow them to the letter.
Write the steps that reach the goal with the resources at hand, in the order in which they are done.
Each step is one action, in one to three sentences beside its code, concrete enough to be done without asking back.
Use every resource that the goal needs. Do not repeat the goal or the resources as a step."""

EXAMPLES_INSTRUCTIONS = """\
The evidence holds procedures that were written for similar goals, the most similar first. Carry over what serves
this goal, with its exact names, calls, settings and amounts; change what differs; leave out the rest. Where the
evidence is silent, write what you know.
Where you are not sure that a step, or part of one, is right for this goal, put it between [[ and ]]."""
"""What the draft is told of the evidence with `examples=True`."""

KNOWLEDGE_INSTRUCTIONS = """\
Write the procedure as you know it should be done.
What you do not know by name (a call, an option, a value, a product), do not make up: write what it is for, and put that
between [[ and ]]. Mark nothing that you know."""
"""What the draft is told with `examples="auto"` where the model knows what the goal is about."""

FACTS_INSTRUCTIONS = """\
The evidence holds procedures for similar goals, and the notes, where there are any, what was looked up for this one. Take
from them the facts of the procedure: exact names, calls, options, values and the steps that this goal cannot do without.
They are no model of how long or how careful a procedure is: they may be shorter than its reader needs, and their goals are
others. Where they are silent, write what you know.
What you do not know by name (a call, an option, a value, a product) and cannot take from them, do not make up: write what
it is for and how to find it. Where code would be mostly such gaps, say in a sentence or two what it does instead."""
"""What the draft is told of the evidence with `examples="auto"` where the model does not know what the goal is about."""

TO_QUERY_INSTRUCTIONS = """\
Somebody is about to write a procedure for the goal, with the resources at hand.
Ask the questions whose answers would help most to get its steps right. They are answered from a memory of
procedures for other goals in the same field, so ask how a part of the work is done in general ("How is ... set up?",
"How does one ...?"), neither how the whole goal is reached nor for a detail that only this goal has.
Each question is about another part of the work, asks one thing in one short sentence, and stands on its own: it
names what it is about. Begin with the part where a mistake is likeliest."""

ANSWER_INSTRUCTIONS = """\
Answer the question from the evidence and from nothing else. The evidence holds procedures for other goals.
Answer in one to five sentences that are complete in themselves: say what is done, in which order, with the exact
names, calls, settings and amounts that the evidence gives. Do not mention the evidence, a procedure or an example.
If the evidence answers only a part of the question, answer that part. Add nothing that you know from elsewhere, and
do not carry over to one product, version or setting what the evidence says of another; name the one it speaks of."""

REVISE_INSTRUCTIONS = """\
Improve the steps of a procedure with what has been looked up since they were drafted: the notes, or the evidence.
Correct what it contradicts, and add steps or details that it shows to be missing for this goal. What it says of
another product, version or setting contradicts nothing.
What stands between [[ and ]] is what the writer doubted: settle it with what was looked up; where that is silent,
keep it if it is right as far as you know, and drop or mend it if it is not.
Leave every other step as it is, in its words. Add nothing that the goal does not need, and say nothing twice.
If there are no steps yet, write them.
Do not mention what was looked up, and write no [[ or ]] around doubts."""

CRITIC_INSTRUCTIONS = """\
You are the last to check a procedure before somebody follows it to the letter.
Go through it step by step. Does following the steps in this order reach the goal? Is every resource used where it is
needed? Does the code run as it stands, with all that it needs, also where an input is empty or something fails? Is
anything wrong, missing, contradictory, unsafe, doubled or in the wrong place?
Ask for an edit only where somebody who follows the steps would fail, be misled or get stuck. Wording, taste, longer
explanations and optional extras are no reason for an edit; where nothing else is left, ask for none.
The evidence and the notes, where there are any, go before what you remember. The evidence holds procedures for similar
goals; use it as a check. Where it shows that a name, a call, a value or a necessary step is wrong or missing, ask for
that edit and quote the words that show it. Its brevity and its choice of way are no model for these steps, and what it
says of another product, version or setting contradicts nothing.
The names, where there are any, are those of the steps that stand neither in the goal nor in any procedure. Keep what
is common knowledge in its field; where such a name may be invented, ask that the step says how to find the right one.
Each edit names the step and says what to change, add, move or remove, in one sentence where that is enough."""

EDIT_INSTRUCTIONS = """\
Apply the edits to the steps of a procedure.
Change what the edits ask for and nothing else: every other step stays as it is, word for word and in its order.
Where an edit leaves details open, take them from the notes or the evidence if they have them.
Do not mention the edits, the notes or the evidence."""

_PAPER = {
    "examples": True,
    "questions": True,
    "answers": True,
    "critic_evidence": False,
    "names": False,
    "rewrite": "whole",
}
"""The paper's values of the settings whose defaults are ours."""


@dataclass(frozen=True)
class AagContext(Context, nodes=("assess", "draft", "to_query", "answer", "revise", "critic", "edit")):
    """The settings of one run of AAG (analogy-augmented generation).

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    memory: Annotated[
        Name | None,
        Field(
            description="The procedural memory: procedures.db, x.jsonl, store: …; by default the bundled procedures.",
            json_schema_extra=in_nodes("retrieve", "look_up", "check_names", "remember"),
        ),
    ] = None
    embeddings: Annotated[
        Name | None,
        Field(
            description='The embedding model: "wordllama", "none" (search by words alone), or as init_embeddings names it.',
            json_schema_extra=in_nodes("retrieve", "look_up"),
        ),
    ] = None
    alpha: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Weight of the vectors in a search: 1 is vectors alone (the paper), 0 is words alone.",
            json_schema_extra=in_nodes("retrieve", "look_up"),
        ),
    ] = None
    feedback_weight: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="By how much votes and stale marks move a procedure's score at most; by default 0.1, 0 switches it off.",
            json_schema_extra=in_nodes("retrieve", "look_up"),
        ),
    ] = None
    k: Annotated[
        int,
        Field(
            ge=1,
            le=50,
            description="Procedures retrieved for each query.",
            json_schema_extra=in_nodes("retrieve", "look_up"),
        ),
    ] = 3
    compose: Annotated[
        bool,
        Field(
            description="Show the draft two procedures as one where the first yields what the second needs.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = False
    answer_from: Annotated[
        Literal["memory", "memory+source"],
        Field(
            description="What the questions are answered from: procedures, or procedures and passages of other sources.",
            json_schema_extra=in_nodes("retrieve", "answer"),
        ),
    ] = "memory"
    retriever: Annotated[
        Name | Names | None,
        Field(
            description='The sources of passages for answer_from="memory+source": corpus:docs/, web, …',
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = None
    n_questions: Annotated[
        int,
        Field(
            ge=1,
            le=20,
            description="Questions asked before the draft is revised (N); with questions=auto, at most.",
            json_schema_extra=in_nodes("to_query"),
        ),
    ] = 4
    max_updates: Annotated[
        int,
        Field(
            ge=0,
            le=20,
            description="Limit on how often edits are applied.",
            json_schema_extra=in_nodes("critic", "edit"),
        ),
    ] = 3
    examples: Annotated[
        Literal["auto", True],
        Field(
            description="Show the draft the procedures where the model does not know what the goal is about (auto), or "
            "always, as examples to write from (true, the paper).",
            json_schema_extra=in_nodes("assess", "draft"),
        ),
    ] = "auto"
    questions: Annotated[
        Literal["auto"] | bool,
        Field(
            description="Ask questions and revise with the answers: for what the draft doubts or leaves out, and where answer_from names sources (auto), always "
            "(true, the paper), or never (false, the ablation NOQG).",
            json_schema_extra=in_nodes("to_query", "revise"),
        ),
    ] = "auto"
    answers: Annotated[
        Literal["auto"] | bool,
        Field(
            description="Answer the questions (true, the paper), or show the procedures that were found for them instead "
            "(false, the ablation NOAG). auto answers those about a draft that there is already.",
            json_schema_extra=in_nodes("answer"),
        ),
    ] = "auto"
    critic: Annotated[
        bool,
        Field(
            description="Criticise and edit; off is the ablation NOCR.", json_schema_extra=in_nodes("critic")
        ),
    ] = True
    max_edits: Annotated[
        int,
        Field(
            ge=1,
            le=50,
            description="Limit on the edits of a critique, the most important first.",
            json_schema_extra=in_nodes("critic"),
        ),
    ] = 5
    critic_evidence: Annotated[
        bool,
        Field(
            description="Show the critic the procedures for the goal and the answers as a check, and search the memory for "
            "edits that name what these do not have.",
            json_schema_extra=in_nodes("critic", "look_up"),
        ),
    ] = True
    names: Annotated[
        bool,
        Field(
            description="Look up the names in the code of the steps, without a model, and tell the critic which stand "
            "in no procedure.",
            json_schema_extra=in_nodes("check_names", "critic"),
        ),
    ] = True
    rewrite: Annotated[
        Literal["patch", "whole"],
        Field(
            description="What revision and edits write: the changed steps alone, or all steps (the paper).",
            json_schema_extra=in_nodes("revise", "edit"),
        ),
    ] = "patch"
    review: Annotated[
        bool,
        Field(
            description="Pause before the answer is final, until a person accepts the steps, edits them, or rejects them with "
            "a reason, which is applied as an edit. It needs a checkpointer.",
            json_schema_extra=in_nodes("review"),
        ),
    ] = False
    remember: Annotated[
        bool,
        Field(
            description="Add the steps that a person approved to the memory, as a procedure for the goal; pauses as review "
            "does. The deployment has to allow it.",
            json_schema_extra=in_nodes("review", "remember"),
        ),
    ] = False
    paper: Annotated[
        bool,
        Field(
            description="The calls and prompts of the paper's method: settings that differ from it take its values.",
            json_schema_extra=in_nodes(
                "assess", "draft", "to_query", "answer", "revise", "critic", "edit", "check_names", "look_up"
            ),
        ),
    ] = False
    assess_instructions: Annotated[str, prompt_of("assess")] = ASSESS_INSTRUCTIONS
    draft_instructions: Annotated[str, prompt_of("draft")] = DRAFT_INSTRUCTIONS
    to_query_instructions: Annotated[str, prompt_of("to_query")] = TO_QUERY_INSTRUCTIONS
    answer_instructions: Annotated[str, prompt_of("answer")] = ANSWER_INSTRUCTIONS
    revise_instructions: Annotated[str, prompt_of("revise")] = REVISE_INSTRUCTIONS
    critic_instructions: Annotated[str, prompt_of("critic")] = CRITIC_INSTRUCTIONS
    edit_instructions: Annotated[str, prompt_of("edit")] = EDIT_INSTRUCTIONS

    def preset(self) -> Mapping[str, Any]:
        """The settings of the paper's method."""
        return _PAPER if self.paper else {}

    @property
    def pauses(self) -> bool:
        """Whether a person approves the steps before they are the answer."""
        return self.review or self.remember

    def search_settings(self) -> SearchSettings:
        """The memory, with the sources where the questions are answered from both."""
        return SearchSettings(
            memory=self.memory,
            embeddings=self.embeddings,
            retriever=self.retriever,
            alpha=self.alpha,
            feedback_weight=self.feedback_weight,
            k=self.k,
            compose=self.compose,
            both=self.answer_from == "memory+source",
        )
