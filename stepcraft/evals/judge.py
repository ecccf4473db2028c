"""A chat model as a judge, which votes on pairs of answers and grades single ones in "readings".

A reading says for each sentence whether the passages support it, or for each fact or criterion
whether the answer covers it.

Votes follow AAG's evaluation: each pair gets several votes at temperature 0.7, half of them in each
order and each vote with its own seed, and the majority decides. A reply that does not have the
requested form counts as unreadable and is not interpreted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from stepcraft.errors import REFUSED, BadInput, RunStopped, UnreadableReply, status_of
from stepcraft.evals.calls import no_tokens, reason_of, total_tokens
from stepcraft.evals.directory import Outcome
from stepcraft.evals.kinds import READINGS, Kind
from stepcraft.evals.samples import Sample
from stepcraft.evals.votes import Item, Judgement, basis_of, is_shown_first
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.llm.reply import Refused, reply_text
from stepcraft.llm.usage import token_counts
from stepcraft.models.resolve import EXTRACTIVE, ChatModel, aresolve_model, model_name
from stepcraft.secrets import without_secrets
from stepcraft.text.citations import cited_sentences, without_marks
from stepcraft.text.clean import tokens, unfenced
from stepcraft.text.lists import numbered, without_number
from stepcraft.text.sections import Section

_PAIRWISE = """\
Two answers to the same question are given, A and B. Decide which of them is better.

The better answer is the one that takes the reader further: what it says is true, it covers what was
asked, and whoever follows it reaches the goal. Sections with the id "right" hold
what is known of a right answer; measure both answers by it. An answer may be worded, ordered or
divided in another way and be just as right. Length, style, confidence and the place in which an
answer is shown make it neither better nor worse: a bare phrase that has all that was asked for is
as good as a paragraph that has no more of it. To say openly that something is not known is better
than to invent it or to get it wrong, and worse than to have it right. Where neither answer is
better, it is a tie."""
_PAIRWISE_FORM = """\
On the last line one letter and nothing else: A if answer A is better, B if answer B is better, T
for a tie. A short reasoning may stand before it."""
_LINES = """\
For each number one line and nothing else: the number, a colon, and one of the words {}. Unless it
is {}, a dash and the reason in a few words follow. Leave no number out."""
_VERDICT = re.compile(
    r"[\W_]*(?:(?:verdict|vote|winner|better|final answer|answer)[\W_]+)*(A|B|T|tie)[\W_]*",
    re.IGNORECASE,
)
_REPLY_CHARACTERS = 2_000
PASSAGE_TOKENS = 16_000


class Request(NamedTuple):
    """A single call to a judge: a vote on two answers, or the grading of one."""

    kind: Kind
    outcome: Outcome
    items: Sequence[tuple[str, set[int]]] = ()
    """For a reading, the sentences, facts or criteria, with the passage numbers they cite."""
    against: Outcome | None = None
    """For a vote, the outcome to compare with."""
    number: int = 0
    """For a vote, its number from 0, which is also its seed."""

    @property
    def basis(self) -> str:
        """A fingerprint of the judged answers and the right answers."""
        return basis_of(self.kind, *filter(None, (self.outcome, self.against)))


def _right(sample: Sample) -> Iterator[Section]:
    """Yield the right answers, steps and names of a sample, as sections with the id "right"."""
    if answers := [*sample.get("answers", []), *sample.get("long_answers", [])]:
        yield Section("answer", "right", "\nor: ".join(answers))
    if steps := sample.get("steps"):
        yield Section("steps", "right", numbered(steps))
    if parts := sample.get("contains"):
        lines = [f"- {' or '.join(names)}" for names in parts]
        yield Section("notes", "right", "\n".join(["A right answer names:", *lines]))


def read_pairwise(reply: str) -> str:
    """Return the letter on the last line: A, B or T.

    Raises:
        UnreadableReply: The last line is none of these.
    """
    _, _, last = unfenced(reply).rstrip("`~ \t\n").rpartition("\n")
    verdict = _VERDICT.fullmatch(unfenced(last))
    if not verdict:
        raise UnreadableReply("the last line is none of A, B and T.")
    return verdict[1][0].upper()


def read_items(reply: str, kind: str, count: int) -> list[tuple[str, str]]:
    """Return the verdict and the reason for each numbered item, in order.

    Raises:
        UnreadableReply: A number has no line or more than one, or there are other lines.
    """
    words = "|".join(READINGS[kind].verdicts)
    line_form = re.compile(rf"[^\w\n]*(?:[a-z]+ )?(\d{{1,4}})\W+({words})\b\W*(.*)", re.IGNORECASE)
    lines = filter(None, map(str.strip, unfenced(reply).splitlines()))
    matches = [line_form.fullmatch(line) for line in lines]
    read = {int(match[1]): (match[2].lower(), match[3]) for match in matches if match}
    if len(read) < len(matches) or read.keys() != {*range(1, count + 1)}:
        raise UnreadableReply(f"it is not one line with a verdict for each of the {count} numbers.")
    return [read[number] for number in range(1, count + 1)]


def sentences_of(output: Mapping[str, Any]) -> list[tuple[str, set[int]]]:
    """Return an answer's sentences without citation marks, each with the numbers it cites."""
    # RPG's sentences are its reasoning, from which a short answer is taken.
    traced = "".join(each["text"] for each in output.get("sentences") or ())
    numbers = range(1, len(output.get("evidence") or ()) + 1)
    text = traced or str(output.get("answer") or "")
    pairs = cited_sentences(text, {number: number for number in numbers})
    bare = [
        (without_number(without_marks(sentence).strip(), bullets=True).strip(), {*cited})
        for sentence, cited in pairs
    ]
    return [(sentence, cited) for sentence, cited in bare if sentence]


def shown_passages(output: Mapping[str, Any], limit: int) -> list[int]:
    """Return the numbers of the passages that fit within a token limit, cited ones first."""
    cited = {number for _, numbers in sentences_of(output) for number in numbers}
    sizes = {n: tokens(each["text"]) for n, each in enumerate(output["evidence"], 1)}
    shown: list[int] = []
    for number in sorted(sizes, key=lambda number: number not in cited):
        if sizes[number] <= limit:
            limit -= sizes[number]
            shown.append(number)
    return sorted(shown)


class Judge:
    """A chat model that acts as a judge.

    Args:
        model: The model, or its name.
        passage_tokens: The maximum total length of the passages shown with an answer, in tokens.

    Raises:
        BadInput: The model is the keyless model.
    """

    def __init__(self, model: ChatModel | str, passage_tokens: int = PASSAGE_TOKENS) -> None:
        self.name = model_name(model)
        if self.name in {EXTRACTIVE, ""}:
            raise BadInput("the keyless model cannot judge; name a language model with --judge")
        self.model = model
        self.passage_tokens = passage_tokens
        self._is_plain = False
        self._has_answered = False

    def judgement(self, request: Request) -> Judgement:
        """Return a judgement that identifies the request but does not contain a reply yet."""
        return Judgement(
            kind=request.kind,
            judge=self.name,
            method=request.outcome["method"],
            against=request.against["method"] if request.against else "",
            id=request.outcome["id"],
            number=request.number,
            reply="",
            error="",
            usage=no_tokens(),
            basis=request.basis,
        )

    async def answer(self, request: Request) -> Judgement:
        """Ask the model for its vote, or for a verdict on each item.

        Raises:
            BadInput: There is no such model.
            RunStopped: The model refuses every call.
        """
        judgement = self.judgement(request)
        if request.kind == "support":
            judgement["left_out"] = self.left_out(request.outcome["output"])
        messages = self.messages(request)
        try:
            reply = reply_text(await self._call(messages, judgement))
            judgement["reply"] = reply[-_REPLY_CHARACTERS:]
            if request.against:
                letter = read_pairwise(reply)
                is_win = (letter == "A") == is_shown_first(request.number)
                judgement["verdict"] = "tie" if letter == "T" else "win" if is_win else "loss"
            else:
                read = read_items(reply, request.kind, len(request.items))
                judgement["items"] = [
                    Item(text=text, verdict=verdict, reason=reason, is_cited=bool(cited))
                    for (text, cited), (verdict, reason) in zip(request.items, read, strict=True)
                ]
        except (Refused, UnreadableReply) as failure:
            refusal = without_secrets(str(failure))[:_REPLY_CHARACTERS]
            judgement["reply"] = judgement["reply"] or refusal
        except BadInput:
            raise
        except Exception as failure:
            judgement["error"] = reason_of(failure)
            if not self._has_answered and status_of(failure) in REFUSED:
                raise RunStopped(
                    f"the model {self.name!r} refuses every call of the judge: "
                    f"{judgement['error']}. Check its name and its key."
                ) from failure
        return judgement

    def left_out(self, output: Mapping[str, Any]) -> int:
        """Return the number of passages that are left out because they are too long."""
        return len(output["evidence"]) - len(shown_passages(output, self.passage_tokens))

    def messages(self, request: Request) -> list[BaseMessage]:
        """Return the messages that show the question, the answers and the criteria."""
        outcome, kind = request.outcome, request.kind
        sample, output = outcome["sample"], outcome["output"]
        material = asked(sample["question"], sample.get("resources", ""))
        if kind in {"vote", "reference"}:
            material += _right(sample)
        if request.against:
            order = 1 if is_shown_first(request.number) else -1
            both = [outcome, request.against][::order]
            answers = zip("AB", map(_answer, both), strict=True)
            material += [Section("answer", letter, text) for letter, text in answers]
            return prompt(_PAIRWISE, _PAIRWISE_FORM, "pairwise", material)
        lines = numbered(
            [text + "".join(f" [p{n}]" for n in sorted(cited)) for text, cited in request.items]
        )
        if kind == "support":
            material += passages(output["evidence"], shown_passages(output, self.passage_tokens))
            material.append(Section("answer", "", lines))
        else:
            material += [] if kind == "reference" else [Section(kind, "", lines)]
            material.append(Section("answer", "", _answer(outcome)))
        instructions, _, verdicts = READINGS[kind]
        words = [*map(str.upper, verdicts)]
        return prompt(instructions, _LINES.format(", ".join(words), words[0]), kind, material)

    async def _call(self, messages: list[BaseMessage], judgement: Judgement) -> AIMessage:
        """Call the model with a seed and a temperature, unless the provider rejects them."""
        model = await aresolve_model(self.model)
        options: dict[str, Any] = {}
        if not self._is_plain:
            options["temperature"] = 0.7 if judgement["kind"] == "vote" else 0.0
            if hasattr(model, "seed"):
                options["seed"] = judgement["number"]
        judgement["usage"]["calls"] += 1
        try:
            message = await model.ainvoke(messages, **options)
        except Exception as failure:
            # Some providers refuse a seed or a temperature.
            if status_of(failure) not in {400, 422} or not options:
                raise
            judgement["usage"]["calls"] += 1
            message = await model.ainvoke(messages)
            self._is_plain = True
        self._has_answered = True
        judgement["usage"].update(counts := token_counts(message))
        if not total_tokens(counts):
            judgement["usage"]["uncounted"] = 1
        return message


def _answer(outcome: Outcome) -> str:
    """Return a method's answer as a judge sees it."""
    output = outcome["output"]
    return str(output.get("answer") or numbered(output.get("steps") or []) or "(no answer)")
