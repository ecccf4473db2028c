"""A chat model as a judge: which of two answers is better, and which sentences their passages do not bear out.

Pairs are voted on as in AAG's evaluation: several votes a pair, half of them with each answer first, each with a seed of
its own, at temperature 0.7; the majority decides. A reply that is not in the form that was asked for counts as
unreadable and is not interpreted.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.errors import GraphBubbleUp

from stepcraft.errors import BadInput, RunStopped, StepcraftError, UnreadableReply
from stepcraft.evals.directory import Outcome
from stepcraft.evals.prices import add_tokens, no_tokens
from stepcraft.evals.samples import Sample
from stepcraft.evals.shortening import cited_ids, passage_tokens, shortened
from stepcraft.evals.votes import Judgement
from stepcraft.evidence import Evidence
from stepcraft.llm.prompt import asked, passages, prompt, prompt_tokens
from stepcraft.llm.reply import Refused, answer_text, reply_text
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import EXTRACTIVE, aresolve_model, model_name
from stepcraft.secrets import excerpt, without_secrets
from stepcraft.text.citations import cited_sentences
from stepcraft.text.clean import clean, unfenced
from stepcraft.text.lists import numbered
from stepcraft.text.sections import Section

RIGHT = "right"
"""The id of the sections that hold what is known of a right answer."""

_PAIRWISE = """\
Two answers to the same question are given, A and B. Decide which of them is better.

The better answer is the one that whoever asked gets further with: what it says is true, it covers what was asked, and
it leads to the goal where it is followed. Sections with the id "right" hold what is known of a right answer; measure both
answers by it. An answer may be worded, ordered or divided in another way and be just as right. Length, style, confidence
and the place in which an answer is shown make it neither better nor worse: a bare phrase that has all that was asked for
is as good as a paragraph that has no more of it. To say openly that something is not known is better than to invent it or
to get it wrong, and worse than to have it right. Where neither answer is better, it is a tie."""
_PAIRWISE_FORM = """\
On the last line one letter and nothing else: A if answer A is better, B if answer B is better, T for a tie. A short
reasoning may stand before it."""
_SUPPORT = """\
An answer to a question is given, sentence by sentence, with the passages that it is to rest on. Decide for each sentence
whether the passages bear it out.

A sentence is borne out if the passages say the same in whatever words, or if it follows from them alone. It is not borne
out if anything that it claims, such as a name, a number, an order or a cause, is missing from the passages or differs
there, even where you know it to be true. A phrase without a verb claims that it answers the question, and an instruction
that it is to be followed. Code claims its calls, options and settings; imports, its own names and example values claim
nothing. A sentence that says that something is not known is borne out if the passages do not tell it. A sentence that claims
nothing, such as a heading, is borne out."""
_SUPPORT_FORM = """\
The numbers of the sentences that the passages do not bear out, one a line and nothing else.
Or exactly NONE if the passages bear out all of them."""

_VERDICT = re.compile(
    r"[\W_]*(?:(?:verdict|vote|winner|better|final answer|answer)[\W_]+)*(A|B|T|tie)[\W_]*",
    re.IGNORECASE,
)
_NONE = re.compile(r"[\W_]*none[\W_]*", re.IGNORECASE)
_FLAGGED = re.compile(
    r"\W*(?:sentences? )?\d{1,4}(?:(?:\s*[,;]\s*|\s+)(?:and )?\d{1,4})*\W*", re.IGNORECASE
)
_BULLET = re.compile(r"\A(?:\d{1,3}[.)]|[-*\u2022])(?:\s+|\Z)")
"""The number or mark of a list item, which the number of the sentence would stand before."""
_KEPT = 2_000
"""How many characters of a reply are kept."""
_VOTING, _READING = 0.7, 0.0
"""The temperature of votes, as in AAG's evaluation, and of a reading, which is asked for once."""
PASSAGE_TOKENS = 16_000
"""How many tokens of passages a judge is shown with an answer, where it is not told otherwise."""


class _TooLong(StepcraftError):
    """A prompt is longer than what the judge takes, and what is left to shorten is the answer."""


def ask_pairwise(sample: Sample, a: str, b: str) -> list[BaseMessage]:
    """Show the question, what is known of a right answer, and both answers."""
    question = asked(sample["question"], sample.get("resources", ""))
    answers = [Section("answer", "A", a), Section("answer", "B", b)]
    return prompt(_PAIRWISE, _PAIRWISE_FORM, "pairwise", [*question, *_right(sample), *answers])


def _right(sample: Sample) -> Iterator[Section]:
    if answers := sample.get("answers"):
        yield Section("answer", RIGHT, "\nor: ".join(answers))
    if steps := sample.get("steps"):
        yield Section("steps", RIGHT, numbered(steps))
    if parts := sample.get("contains"):
        lines = [f"- {' or '.join(names)}" for names in parts]
        yield Section("notes", RIGHT, "\n".join(["A right answer names:", *lines]))


def read_pairwise(reply: str) -> str:
    """The letter on the last line: A, B or T.

    Raises:
        UnreadableReply: There is none.
    """
    lines = [line for line in unfenced(clean(reply)).splitlines() if line.strip("`~ \t")]
    verdict = _VERDICT.fullmatch(answer_text(lines[-1].strip())) if lines else None
    if not verdict:
        raise UnreadableReply("the last line is none of A, B and T.")
    return verdict[1][0].upper()


def ask_support(
    question: str, evidence: Sequence[Evidence], sentences: Sequence[str]
) -> list[BaseMessage]:
    """Show the question, the passages and the sentences, both numbered from 1."""
    answer = Section("answer", "", numbered(sentences))
    return prompt(
        _SUPPORT, _SUPPORT_FORM, "support", [*asked(question), *passages(evidence), answer]
    )


def read_support(reply: str, count: int) -> list[int]:
    """The numbers of the sentences that are not borne out, in order.

    Raises:
        UnreadableReply: There are neither numbers of these sentences in it nor NONE, or anything else.
    """
    text = answer_text(reply)
    if _NONE.fullmatch(text):
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbers = {int(number) for line in lines for number in re.findall(r"\d+", line)}
    if (
        not lines
        or not all(map(_FLAGGED.fullmatch, lines))
        or not numbers <= set(range(1, count + 1))
    ):
        raise UnreadableReply("it has something else than numbers of sentences or NONE in it.")
    return sorted(numbers)


def sentences_of(output: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    """The sentences of an answer without their marks and bullets, and the numbers of those that count for its support.

    Those that cite a passage count, or all where none does. RPG says itself which sentences cite what.
    """
    if "sentences" in output:
        pairs = [(one["text"], bool(one["evidence"])) for one in output["sentences"]]
    else:
        passages = range(1, len(output.get("evidence") or []) + 1)
        answer = str(output.get("answer") or "")
        pairs = [(text, bool(cited)) for text, cited in cited_sentences(answer, passages)]
    pairs = [(bare, cited) for text, cited in pairs if (bare := _BULLET.sub("", text.strip()))]
    marked = [number for number, (_, cited) in enumerate(pairs, 1) if cited]
    return [text for text, _ in pairs], marked or list(range(1, len(pairs) + 1))


@dataclass(frozen=True)
class MarkedPassage:
    """A bundled procedure, and sentences about it that were marked by hand."""

    evidence: Evidence
    sentences: tuple[str, ...]
    unsupported: tuple[int, ...]
    """The numbers of the sentences that the procedure does not bear out, from 1."""


_Ask = Callable[[int | None], list[BaseMessage]]
"""Makes a prompt that is within so many tokens; None is no limit. What cannot be shortened is left as it is."""


class Judge:
    """A chat model that judges.

    Args:
        model: The model, or its name.
        passage_tokens: How many tokens of passages it is shown with an answer; longer ones are shortened.

    Raises:
        BadInput: It is no model, or the keyless one.
    """

    def __init__(self, model: BaseChatModel | str, passage_tokens: int = PASSAGE_TOKENS) -> None:
        if not isinstance(model, BaseChatModel | str):
            raise BadInput(f"a judge is a chat model or its name, not {excerpt(model)}")
        if model == EXTRACTIVE or isinstance(model, ExtractiveModel):
            raise BadInput("the keyless model cannot judge; name a language model with --judge")
        self.choice = model
        self.name = model if isinstance(model, str) else model_name(model)
        self.passage_tokens = passage_tokens
        self._refused_options: set[str] = set()
        self._has_answered = False

    async def vote(self, sample: Sample, ours: Outcome, theirs: Outcome, number: int) -> Judgement:
        """Vote on two outputs; with an even number the first is shown first, with an odd number the second.

        Raises:
            RunStopped: The model refuses every call.
        """
        answers = [str(one["output"].get("answer") or "") for one in (ours, theirs)]
        first = number % 2 == 0
        messages = ask_pairwise(sample, *(answers if first else reversed(answers)))
        judgement = self._judgement("vote", ours["method"], sample["id"], theirs["method"], number)
        judgement["longer"], judgement["shown_first"] = len(answers[0]) - len(answers[1]), first
        reply = await self._ask(lambda _: messages, _VOTING, judgement, seed=number)
        if reply is not None:
            try:
                letter = read_pairwise(reply)
            except UnreadableReply:
                judgement["verdict"] = "unreadable"
            else:
                judgement["verdict"] = (
                    "tie" if letter == "T" else "win" if (letter == "A") == first else "loss"
                )
        return judgement

    async def read(self, outcome: Outcome) -> Judgement:
        """Say which sentences of an output its passages do not bear out.

        Raises:
            RunStopped: The model refuses every call.
        """
        sentences, counted = sentences_of(outcome["output"])
        judgement = self._judgement("support", outcome["method"], outcome["id"])
        judgement["sentences"] = counted

        def ask(limit: int | None) -> list[BaseMessage]:
            question, evidence = outcome["sample"]["question"], outcome["output"]["evidence"]
            bare = ask_support(question, [], sentences)
            room = self.passage_tokens if limit is None else limit - prompt_tokens(bare)
            room = min(room, self.passage_tokens)
            counting = [sentences[number - 1] for number in counted]
            shown = shortened(evidence, counting, cited_ids(outcome["output"]), room)
            if not shown:
                raise _TooLong(
                    f"the answer leaves {max(0, room):,} tokens to its passages, into which none of their sentences fits, "
                    "and it is not cut; take a judge that reads more, or raise --passage-tokens"
                )
            if shown != evidence:
                before, after = passage_tokens(evidence), passage_tokens(shown)
                judgement["note"] = (
                    f"the passages were shortened from about {before:,} tokens to {after:,}"
                )
            return ask_support(question, shown, sentences)

        await self._read(ask, len(sentences), judgement)
        return judgement

    async def read_marked(self, passage: MarkedPassage) -> Judgement:
        """Say which of the sentences that were marked by hand their passage does not bear out.

        Raises:
            RunStopped: The model refuses every call.
        """
        judgement = self._judgement("agreement", "", passage.evidence["id"])
        judgement["sentences"] = list(range(1, len(passage.sentences) + 1))
        judgement["by_hand"] = list(passage.unsupported)
        messages = ask_support(passage.evidence["title"], [passage.evidence], passage.sentences)
        await self._read(lambda _: messages, len(passage.sentences), judgement)
        return judgement

    def _judgement(
        self,
        kind: Literal["vote", "support", "agreement"],
        method: str,
        id_: str,
        against: str = "",
        number: int = 0,
    ) -> Judgement:
        return Judgement(
            kind=kind,
            judge=self.name,
            method=method,
            against=against,
            id=id_,
            number=number,
            reply="",
            error="",
            usage={**no_tokens()},
        )

    async def _read(self, ask: _Ask, count: int, judgement: Judgement) -> None:
        reply = await self._ask(ask, _READING, judgement, seed=0)
        judgement["unsupported"] = None
        if reply is not None:
            with suppress(UnreadableReply):
                judgement["unsupported"] = read_support(reply, count)

    async def _ask(
        self, ask: _Ask, temperature: float, judgement: Judgement, seed: int
    ) -> str | None:
        """Return the reply, "" for a refusal or an empty one; None, with the error in the judgement, where it failed."""
        try:
            model = await aresolve_model(self.choice)
            limit = (model.profile or {}).get("max_input_tokens")
            messages = await asyncio.to_thread(self._prompt, ask, limit)
            seeded = {"seed": seed} if "seed" in type(model).model_fields else {}
            message = await self._call(
                model, messages, {"temperature": temperature, **seeded}, judgement
            )
            reply = reply_text(message)
        except (Refused, UnreadableReply) as failure:
            judgement["reply"] = without_secrets(str(failure))[:_KEPT]
            return ""
        except _TooLong as failure:
            judgement["error"] = str(failure)
        except (GraphBubbleUp, BadInput):
            raise
        except Exception as failure:
            text = f"{type(failure).__name__}: {without_secrets(str(failure))[:1000]}"
            if not self._has_answered and getattr(failure, "status_code", None) in {401, 403, 404}:
                raise RunStopped(
                    f"the judge was stopped: the model {self.name!r} refuses every call: {text}. Check its name and "
                    "its key."
                ) from failure
            judgement["error"] = text
        else:
            judgement["reply"] = reply[-_KEPT:]
            return reply
        return None

    def _prompt(self, ask: _Ask, limit: int | None) -> list[BaseMessage]:
        """Return the prompt; _TooLong where it is longer than the limit."""
        messages = ask(limit)
        if limit is not None and (size := prompt_tokens(messages)) > limit:
            raise _TooLong(
                f"the prompt has about {size:,} tokens and {self.name} takes {limit:,}: the answers are too long for it "
                "and are not cut; take a judge that reads more"
            )
        return messages

    async def _call(
        self,
        model: BaseChatModel,
        messages: list[BaseMessage],
        options: Mapping[str, Any],
        judgement: Judgement,
    ) -> AIMessage:
        """Ask with a seed and a temperature, and without what the provider refuses of them."""
        used = judgement["usage"]
        while True:
            sent = {
                name: value for name, value in options.items() if name not in self._refused_options
            }
            used["calls"] += 1
            try:
                message = await model.ainvoke(messages, **sent)
            except Exception as failure:
                refused = {name for name in sent if name in str(failure).lower()}
                if getattr(failure, "status_code", None) not in {400, 422} or not refused:
                    raise
                self._refused_options |= refused
            else:
                self._has_answered = True
                add_tokens(used, message)
                return message
