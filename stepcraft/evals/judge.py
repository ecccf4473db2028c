"""A chat model as a judge: which of two answers is better, and what their passages bear out.

Pairs are voted on as in AAG's evaluation: several votes a pair, half of them with each answer
first, each with a seed of its own, at temperature 0.7; the majority decides. A reply that is not in
the form that was asked for counts as unreadable and is not interpreted.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

from stepcraft.errors import BadInput, RunStopped, UnreadableReply
from stepcraft.evals.calls import no_tokens, tokens_of
from stepcraft.evals.directory import Outcome
from stepcraft.evals.samples import Sample
from stepcraft.evals.votes import Judgement
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.llm.reply import Refused, reply_text
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import EXTRACTIVE, ChatModel, aresolve_model, model_name
from stepcraft.secrets import without_secrets
from stepcraft.text.citations import cited_sentences, without_marks
from stepcraft.text.clean import tokens, unfenced
from stepcraft.text.lists import numbered, without_number
from stepcraft.text.sections import Section

_PAIRWISE = """\
Two answers to the same question are given, A and B. Decide which of them is better.

The better answer is the one that whoever asked gets further with: what it says is true, it covers
what was asked, and it leads to the goal where it is followed. Sections with the id "right" hold
what is known of a right answer; measure both answers by it. An answer may be worded, ordered or
divided in another way and be just as right. Length, style, confidence and the place in which an
answer is shown make it neither better nor worse: a bare phrase that has all that was asked for is
as good as a paragraph that has no more of it. To say openly that something is not known is better
than to invent it or to get it wrong, and worse than to have it right. Where neither answer is
better, it is a tie."""
_PAIRWISE_FORM = """\
On the last line one letter and nothing else: A if answer A is better, B if answer B is better, T
for a tie. A short reasoning may stand before it."""
_SUPPORT = """\
An answer to a question is given, sentence by sentence, with the passages that it is to rest on.
Decide for each sentence whether the passages bear it out.

A sentence is borne out if the passages say the same in whatever words, or if it follows from them
alone. It is not borne out if anything that it claims, such as a name, a number, an order or a
cause, is missing from the passages or differs there, even where you know it to be true. A phrase
without a verb claims that it answers the question, and an instruction that it is to be followed.
Code claims its calls, options and settings; imports, its own names and example values claim
nothing. A sentence that says that something is not known is borne out if the passages do not tell
it. A sentence that claims nothing, such as a heading, is borne out."""
_SUPPORT_FORM = """\
The numbers of the sentences that the passages do not bear out, one a line and nothing else. Or
exactly NONE if the passages bear out all of them."""

_VERDICT = re.compile(
    r"[\W_]*(?:(?:verdict|vote|winner|better|final answer|answer)[\W_]+)*(A|B|T|tie)[\W_]*",
    re.IGNORECASE,
)
_NONE = re.compile(r"[\W_]*none[\W_]*", re.IGNORECASE)
_NUMBERS = re.compile(
    r"\W*(?:sentences? )?\d{1,4}(?:(?:\s*[,;]\s*|\s+)(?:and )?\d{1,4})*\W*", re.IGNORECASE
)
_REPLY_CHARACTERS = 2_000
PASSAGE_TOKENS = 16_000


def ask_pairwise(sample: Sample, a: str, b: str) -> list[BaseMessage]:
    """Show the question, what is known of a right answer, and both answers."""
    question = asked(sample["question"], sample.get("resources", ""))
    answers = [Section("answer", "A", a), Section("answer", "B", b)]
    return prompt(_PAIRWISE, _PAIRWISE_FORM, "pairwise", [*question, *_right(sample), *answers])


def _right(sample: Sample) -> Iterator[Section]:
    """Yield what is known of a right answer, in sections with the id "right"."""
    if answers := sample.get("answers"):
        yield Section("answer", "right", "\nor: ".join(answers))
    if steps := sample.get("steps"):
        yield Section("steps", "right", numbered(steps))
    if parts := sample.get("contains"):
        lines = [f"- {' or '.join(names)}" for names in parts]
        yield Section("notes", "right", "\n".join(["A right answer names:", *lines]))


def read_pairwise(reply: str) -> str:
    """Return the letter on the last line: A, B or T.

    Raises:
        UnreadableReply: There is none.
    """
    lines = [line for line in unfenced(reply).splitlines() if line.strip("`~ \t")]
    verdict = _VERDICT.fullmatch(unfenced(lines[-1])) if lines else None
    if not verdict:
        raise UnreadableReply("the last line is none of A, B and T.")
    return verdict[1][0].upper()


def read_support(reply: str, count: int) -> list[int]:
    """Return the numbers of the sentences that are not borne out, in order.

    Raises:
        UnreadableReply: The reply has neither numbers of these sentences nor NONE, or more.
    """
    text = unfenced(reply).strip()
    if _NONE.fullmatch(text):
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbers = {int(number) for line in lines for number in re.findall(r"\d+", line)}
    if not numbers or not all(map(_NUMBERS.fullmatch, lines)) or numbers - {*range(1, count + 1)}:
        raise UnreadableReply("it has something else than numbers of sentences or NONE in it.")
    return sorted(numbers)


def sentences_of(output: Mapping[str, Any]) -> list[tuple[str, set[int]]]:
    """Return the sentences of an answer, bare, each with the numbers of the passages it cites."""
    evidence = output.get("evidence") or []
    if "sentences" in output:  # RPG says itself what each rests on
        pairs = [
            (each["text"], [n for n, p in enumerate(evidence, 1) if p["id"] in each["evidence"]])
            for each in output["sentences"]
        ]
    else:
        answer = str(output.get("answer") or "")
        pairs = cited_sentences(answer, {n: n for n in range(1, len(evidence) + 1)})
    plain = [(without_marks(text).strip(), {*cited}) for text, cited in pairs]
    # The number of a list item would stand behind the number of the sentence.
    return [
        (bare, cited)
        for text, cited in plain
        if (bare := without_number(text, bullets=True).strip())
    ]


def shown_passages(output: Mapping[str, Any], limit: int) -> list[int]:
    """Return the numbers of the passages that fit a limit of tokens, cited ones before others."""
    cited = {number for _, numbers in sentences_of(output) for number in numbers}
    sizes = {n: tokens(each["text"]) for n, each in enumerate(output["evidence"], 1)}
    shown: list[int] = []
    for number in sorted(sizes, key=lambda number: number not in cited):
        if sizes[number] <= limit:
            limit -= sizes[number]
            shown.append(number)
    return sorted(shown)


class Judge:
    """A chat model that judges.

    Args:
        model: The model, or its name.
        passage_tokens: How many tokens of passages it is shown with an answer.

    Raises:
        BadInput: It is the keyless model.
    """

    def __init__(self, model: ChatModel | str, passage_tokens: int = PASSAGE_TOKENS) -> None:
        if model == EXTRACTIVE or isinstance(model, ExtractiveModel):
            raise BadInput("the keyless model cannot judge; name a language model with --judge")
        self.model = model
        self.name = model if isinstance(model, str) else model_name(model)
        self.passage_tokens = passage_tokens
        self._refused_options: set[str] = set()
        self._has_answered = False

    async def vote(self, ours: Outcome, theirs: Outcome, number: int) -> Judgement:
        """Vote on two outputs; the first is shown first where the number is even.

        Raises:
            RunStopped: The model refuses every call.
        """
        a, b = (str(each["output"].get("answer") or "") for each in (ours, theirs))
        first = number % 2 == 0
        judgement = self._judgement("vote", ours, theirs["method"], number)
        judgement["shown_first"] = first
        messages = ask_pairwise(ours["sample"], *((a, b) if first else (b, a)))
        reply = await self._ask(messages, judgement, temperature=0.7, seed=number)
        if reply is not None:
            try:
                letter = read_pairwise(reply)
            except UnreadableReply:
                judgement["verdict"] = "unreadable"
            else:
                is_win = (letter == "A") == first
                judgement["verdict"] = "tie" if letter == "T" else "win" if is_win else "loss"
        return judgement

    async def read(self, outcome: Outcome) -> Judgement:
        """Say which sentences of an output its passages do not bear out.

        Those that cite a passage count, or all where none does.

        Raises:
            RunStopped: The model refuses every call.
        """
        evidence, sentences = outcome["output"]["evidence"], sentences_of(outcome["output"])
        citing = [number for number, (_, cited) in enumerate(sentences, 1) if cited]
        shown = shown_passages(outcome["output"], self.passage_tokens)
        judgement = self._judgement("support", outcome)
        judgement["sentences"] = citing or list(range(1, len(sentences) + 1))
        judgement["left_out"] = len(evidence) - len(shown)
        material = [
            *asked(outcome["sample"]["question"]),
            *passages(evidence, shown),
            Section("answer", "", numbered([text for text, _ in sentences])),
        ]
        messages = prompt(_SUPPORT, _SUPPORT_FORM, "support", material)
        reply = await self._ask(messages, judgement, temperature=0.0, seed=0)
        try:
            judgement["unsupported"] = read_support(reply or "", len(sentences))
        except UnreadableReply:
            judgement["unsupported"] = None
        return judgement

    def _judgement(
        self,
        kind: Literal["vote", "support"],
        outcome: Outcome,
        against: str = "",
        number: int = 0,
    ) -> Judgement:
        return Judgement(
            kind=kind,
            judge=self.name,
            method=outcome["method"],
            against=against,
            id=outcome["id"],
            number=number,
            reply="",
            error="",
            usage={**no_tokens()},
        )

    async def _ask(
        self, messages: list[BaseMessage], judgement: Judgement, *, temperature: float, seed: int
    ) -> str | None:
        """Return the reply, "" for a refusal; None, with the error noted, where the call failed."""
        try:
            model = await aresolve_model(self.model)
            options = {"temperature": temperature}
            if hasattr(model, "seed"):
                options["seed"] = seed
            reply = reply_text(await self._call(model, messages, options, judgement))
        except (Refused, UnreadableReply) as failure:
            judgement["reply"] = without_secrets(str(failure))[:_REPLY_CHARACTERS]
            return ""
        except BadInput:
            raise
        except Exception as failure:
            reason = f"{type(failure).__name__}: {without_secrets(str(failure))[:1000]}"
            if not self._has_answered and getattr(failure, "status_code", None) in {401, 403, 404}:
                raise RunStopped(
                    f"the model {self.name!r} refuses every call of the judge: {reason}. Check its "
                    "name and its key."
                ) from failure
            judgement["error"] = reason
            return None
        judgement["reply"] = reply[-_REPLY_CHARACTERS:]
        return reply

    async def _call(
        self,
        model: ChatModel,
        messages: list[BaseMessage],
        options: Mapping[str, float],
        judgement: Judgement,
    ) -> AIMessage:
        """Ask with a seed and a temperature, and without what the provider refuses of them."""
        usage = judgement["usage"]
        while True:
            sent: Any = {name: options[name] for name in options.keys() - self._refused_options}
            usage["calls"] += 1
            try:
                message = await model.ainvoke(messages, **sent)
            except Exception as failure:
                refused = {name for name in sent if name in str(failure).lower()}
                if getattr(failure, "status_code", None) not in {400, 422} or not refused:
                    raise
                self._refused_options |= refused
            else:
                self._has_answered = True
                usage.update(tokens_of(message))
                return message
