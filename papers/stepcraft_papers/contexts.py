"""Settings for the papers' graphs, including their nodes' instructions and their ablations."""

from typing import Literal, TypeAlias

from pydantic import Field

from stepcraft.contexts.base import (
    UNCHANGED,
    Name,
    SearchSettings,
    Settings,
    in_nodes,
    instructions,
)

STEP_BY_STEP = """\
Answer the question from what you know. First think it through step by step in writing; then answer
it for a reader who sees the answer alone."""

LIKE_EXAMPLES = """\
Answer the question. The evidence holds procedures for other goals, picked at random: they show how
detailed a good procedure is and what it looks like, not what to say. Where the question asks how
something is done, write a procedure like them; else answer it as it asks. Do not mention the
examples."""

THINK_INSTRUCTIONS = """\
Answer the question by thinking it through in writing, one thought after the other.
Each thought makes a claim of its own that can be looked up and found right or wrong, with the
names, dates, numbers or calls that it rests on, and brings the answer nearer. What the claim is
about is named in full, not by "it" or "they". Where you are not sure, write what you hold
likeliest. No thought repeats the question, says what will be done, or sums up what was said. Where
a program is asked for, the thoughts plan it part by part: what each part does, and with which
functions."""

THOUGHT_QUERY_INSTRUCTIONS = """\
An answer to the question is being written thought by thought, and each thought is looked up as soon
as it stands. The text is the answer so far; the thought is the part of it that is looked up now.
Write the search query that would best show whether the thought is right: short and specific, with
the names of the persons, places, works or products in full, and with what is claimed of them as
what is sought, not as known. What the text says before the thought has been checked: where the
thought contradicts it, ask about what the question asks about, in the text's terms.
Whoever searches knows neither the question nor the text."""

REVISE_INSTRUCTIONS = f"""\
The text is the beginning of an answer to the question. Its last thought was looked up, and the
passages are what was found. Correct what they show to be wrong, and add what the text lacks, the
question needs and the passages give. A passage about something else shows nothing; where they are
silent, the text stands. What comes before the last thought has been checked: where the thought
contradicts it, the thought is corrected. Where a correction makes another sentence of the text
wrong, correct that as well. What stands in rest follows the text and is not yours to write: do not
bring it forward or repeat it. Leave all other words, the paragraphs and the headings as they are.
Do not mention the passages or the correction. If nothing has to be corrected or added, reply
{UNCHANGED}."""

FINISH_INSTRUCTIONS = """\
The text holds thoughts that lead to the answer to the question; they were checked one by one. Write
for a reader who sees nothing but your reply. Use what the text says and nothing that it does not
say. Say nothing twice, and do not speak of thoughts, steps or checks."""


class RatPaperContext(SearchSettings):
    """The settings for a run of RAT as described in its paper (arXiv 2403.05313)."""

    k: int = in_nodes(2, "retrieve", ge=1)
    """Number of passages that a search returns; the paper uses 1 for planning and code."""
    query: Literal["model", "draft"] = in_nodes("model", "to_query")
    """Whether the model writes the query, or the draft so far is the query."""
    query_from: Literal["thought", "draft", "question"] = in_nodes("thought", "split", "to_query")
    """The text to search for: each thought (RAT), the draft once (CoT+RAG), or the question once
    (RAG-1).
    """
    causal: bool = in_nodes(True, "to_query", "revise")
    """Revise thought by thought. If off, all queries come from the draft, which is revised once."""
    revise_scope: Literal["prefix", "thought"] = in_nodes("prefix", "revise")
    """The text that a revision rewrites: everything so far (as in the paper), or only the thought.
    """
    show_rest: bool = in_nodes(True, "revise")
    """Show the thoughts that follow to the model that revises one; the paper does not."""
    max_retrievals: int | None = in_nodes(None, "to_query", ge=1)
    """Maximum number of thoughts that are looked up; by default all of them are."""
    finish: Literal["answer", "thoughts", "article", "code"] = in_nodes("answer", "finish")
    """The form of the answer; returning the revised thoughts themselves takes no model call."""
    language: Name = in_nodes("Python", "finish")
    """Programming language for finish="code"."""
    draft_instructions: str = instructions("draft", THINK_INSTRUCTIONS)
    to_query_instructions: str = instructions("to_query", THOUGHT_QUERY_INSTRUCTIONS)
    revise_instructions: str = instructions("revise", REVISE_INSTRUCTIONS)
    finish_instructions: str = instructions("finish", FINISH_INSTRUCTIONS)


Kind: TypeAlias = Literal["long", "short", "multihop"]
"""The forms of answer that RPG can give."""

PLAN_INSTRUCTIONS = """\
An answer to the question is written segment by segment, and you plan its next segment. The plans
are those that were made so far, and the text is what was written for them.
Name the topic of the next segment: one thing that the question asks for, or that has to be known to
answer it, and that the text does not say yet. Where the question can be read in several ways, each
way is a topic of its own. Whoever looks the topic up sees neither the question nor the text: name
persons, places, works and things in full, as the text found them out.
Do not answer the question, and do not plan anything again that was planned before."""

SEGMENT_INSTRUCTIONS = """\
An answer to the question is written segment by segment. The text, if there is one, is the answer so
far; the plan, if there is one, is the topic of the segment that you write now; the passages, if
there are any, hold the sentences that were selected for it.
Write what they say on the plan, in your own words, and pass over what is about something else.
Without passages write only what you are sure of. Repeat nothing that the text says. Do not speak of
plans, segments or passages."""

COMBINE_INSTRUCTIONS = """\
The text holds what was found out, piece by piece, to answer the question. Put the pieces together
and give the final answer to the question, and nothing that it does not ask for. Go by the text."""


class RpgPaperContext(SearchSettings):
    """The settings for a run of RPG as described in its paper (arXiv 2406.14979)."""

    temperature: float | None = Field(0.0, ge=0, le=2)
    """Sampling temperature; null sends none, for models that do not accept one."""
    k: int = in_nodes(5, "retrieve", ge=1)
    """Number of passages that are retrieved for the question."""
    kind: Kind | None = in_nodes(None, "answer", "combine")
    """The form of the answer; by default the form named in the input, or else long."""
    max_cycles: int = in_nodes(3, "plan", ge=1)
    """Maximum number of segments; a short answer has one."""
    plan: bool = in_nodes(True, "plan")
    """Plan each segment. If off, the question serves as the plan for every segment."""
    retrieve: bool = in_nodes(True, "retrieve")
    """Search for evidence. If off, the model answers from its own knowledge."""
    select: bool = in_nodes(True, "select")
    """Select sentences for each plan. If off, the model sees whole passages."""
    threshold: float | None = in_nodes(None, "select")
    """Score above which a sentence is selected; by default the reranker's own threshold."""
    max_evidence_tokens: int = in_nodes(800, "select", ge=1)
    """Maximum number of tokens of evidence selected for a segment."""
    segment_tokens: int = in_nodes(100, "answer", ge=20)
    """Maximum length of a segment in tokens."""
    plan_instructions: str = instructions("plan", PLAN_INSTRUCTIONS)
    answer_instructions: str = instructions("answer", SEGMENT_INSTRUCTIONS)
    combine_instructions: str = instructions("combine", COMBINE_INSTRUCTIONS)


DRAFT_INSTRUCTIONS = """\
You write procedures for people who will follow them to the letter.
Write the steps that reach the goal with the resources at hand, in the order in which they are done.
Each step is one action, in one to three sentences beside its code, concrete enough to be done
without asking back. Use every resource that the goal needs. Do not repeat the goal or the resources
as a step. The passages hold procedures that were written for similar goals, the most similar first.
Carry over what serves this goal, with its exact names, calls, settings and amounts; change what
differs; leave out the rest. Where they are silent, write what you know.
Where you are not sure that a step, or part of one, is right for this goal, put it between [[ and
]]."""

QUESTIONS_INSTRUCTIONS = """\
Somebody is about to write a procedure for the goal, with the resources at hand.
Outline the steps that it will need, then ask the questions whose answers would help most to get
them right. They are answered from a memory of procedures for other goals in the same field, so ask
how a part of the work is done in general ("How is ... set up?"), neither how the whole goal is
reached nor for a detail that only this goal has. Each question is about another part of the work,
asks one thing in one short sentence, and names what it is about. Begin with the part where a
mistake is likeliest."""

ANSWER_INSTRUCTIONS = """\
Answer the question from the passages and from nothing else. They hold procedures for other goals.
Answer in one to five sentences that are complete in themselves: say what is done, in which order,
with the exact names, calls, settings and amounts that the passages give. Do not mention the
passages, a procedure or an example. If they answer only a part of the question, answer that
part."""

UPDATE_INSTRUCTIONS = """\
Improve the steps of a procedure with what has been looked up since they were drafted: the notes, or
the passages. Correct what these contradict, and add steps or details that they show to be missing
for this goal. What they say of another product, version or setting contradicts nothing.
What stands between [[ and ]] is what the writer doubted: settle it with what was looked up; where
that is silent, keep it if it is right as far as you know, and drop or mend it if it is not.
Leave every other step as it is, in its words. Add nothing that the goal does not need.
Do not mention what was looked up, and write no [[ or ]] around doubts."""

CRITIC_INSTRUCTIONS = """\
You are the last to check a procedure before somebody follows it to the letter.
Go through it step by step. Does following the steps in this order reach the goal? Is every resource
used where it is needed? Is anything wrong, missing, contradictory, doubled or in the wrong place?
Ask for an edit only where somebody who follows the steps would fail, be misled or get stuck.
Wording, taste, longer explanations and optional extras are no reason for an edit.
Each edit names the step and says what to change, add, move or remove, in one sentence."""

EDIT_INSTRUCTIONS = """\
Apply the edits to the steps of a procedure.
Change what the edits ask for and nothing else: every other step stays as it is, word for word and
in its order. Where an edit leaves details open, take them from the notes or the passages if they
have them. Do not mention the edits, the notes or the passages."""


class AagPaperContext(SearchSettings):
    """The settings for a run of AAG as described in its paper (arXiv 2409.01344)."""

    k: int = in_nodes(3, "retrieve", ge=1, le=50)
    """Number of procedures that a search returns."""
    alpha: float | None = in_nodes(None, "retrieve", ge=0, le=1)
    """Weight of the vectors in a memory search: 1 means vectors alone (as in the paper)."""
    n_questions: int = in_nodes(4, "to_query", ge=1)
    """Number of questions that are looked up (N)."""
    questions: bool = in_nodes(True, "to_query", "revise")
    """Ask questions, and update the draft with what is found. If off, this is the ablation NOQG."""
    answers: bool = in_nodes(True, "answer")
    """Answer the questions. If off, the procedures found for them are shown instead (NOAG)."""
    critic: bool = in_nodes(True, "critic")
    """Criticise and edit the steps. If off, this is the ablation NOCR."""
    max_updates: int = in_nodes(3, "critic", "edit", ge=0)
    """Maximum number of times that edits are applied."""
    draft_instructions: str = instructions("draft", DRAFT_INSTRUCTIONS)
    to_query_instructions: str = instructions("to_query", QUESTIONS_INSTRUCTIONS)
    answer_instructions: str = instructions("answer", ANSWER_INSTRUCTIONS)
    revise_instructions: str = instructions("revise", UPDATE_INSTRUCTIONS)
    critic_instructions: str = instructions("critic", CRITIC_INSTRUCTIONS)
    edit_instructions: str = instructions("edit", EDIT_INSTRUCTIONS)


class CotContext(Settings):
    """The settings for a run of the chain-of-thought baseline."""

    answer_instructions: str = instructions("answer", STEP_BY_STEP)


class FewShotContext(SearchSettings):
    """The settings for a run of the few-shot baseline."""

    k: int = in_nodes(3, "sample", ge=1, le=50)
    """Number of procedures that are shown."""
    sample_seed: int = in_nodes(0, "sample")
    """Seed for the random choice of procedures."""
    answer_instructions: str = instructions("answer", LIKE_EXAMPLES)
