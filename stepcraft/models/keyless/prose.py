"""The keyless model's prose replies: plans, queries, drafts, answers and changes to them."""

import re

from stepcraft.contexts.base import UNCHANGED
from stepcraft.models.keyless.correction import corrected, sentence, supports
from stepcraft.models.keyless.material import Material, best, heading, nearest, statements
from stepcraft.models.keyless.procedures import missing_steps
from stepcraft.text.citations import without_marks
from stepcraft.text.claims import without_numbers
from stepcraft.text.clean import stems, terms
from stepcraft.text.sentences import sentences

_NOTHING = "No evidence was found for this."
_ONE_FACT = re.compile(
    r"(?i)\s*(?:who|when|where|whose|how (?:many|much|old|long|tall|far)"
    r"|(?:in )?(?:which|what) \w+ (?:was|is|did|does))\b"
)
_GOAL = re.compile(
    r"(?i)how (?:do|can|should|would|could) (?:i|we|you|one)\b|how to\b"
    r"|(?:step by step|instructions for|steps to|guide to)\b"
    r"|^\W{0,3}(?:please )?(?:set up|install|build|create|configure|deploy|implement|make|bake|cook"
    r"|write|add|migrate|connect|integrate|prepare|plan|fix|repair|assemble)\b"
)
_TALK = re.compile(
    r"(?i)\W*(?:hi|hello|hey|thanks?|thank you|good \w+|bye|goodbye|okay|ok|great)\b[^?]{0,40}\Z"
)
_REFERS = re.compile(
    r"(?i)\b(?:it|its|that|this|these|those|they|them|their|he|she|his|her|ones?|former|latter)\b"
    r"|^\W{0,3}(?:and|but|or|so|then|why|what about|how about)\b|\A\W*+(?:\S++\s*+){1,3}\Z"
)
_PERSON = re.compile(r"(?m)^Person: (.+)")
_NUMBERED = re.compile("\u27e6([\\d.]+)\u27e7\\s?([^\u27e6]*)")
_MAX_CORRECTED, _MAX_STATEMENTS, _MAX_SENTENCES = 200, 2_000, 1_000
"""The maximum numbers of statements to correct, statements to judge, and sentences of evidence."""
_LABEL = re.compile(r"(?i)\A[*_]{0,3}answer[*_]{0,3}:[*_]{0,3} ")
_CODE = re.compile(r"(?ms)^```[^\n]*\n(.*?)^```")


def plan(material: Material) -> str:
    """Plan queries: the words of the question, and the question combined with each resource."""
    question = material.question
    queries = [_query(question), *(f"{question} with {thing}" for thing in material.resources)]
    lines = [f"- {query}" for query in queries]
    if "KIND" in material.form:
        lines.insert(0, f"KIND: {'short' if _ONE_FACT.match(question) else 'long'}")
    return "\n".join(lines)


def gaps(_material: Material) -> str:
    """Report that nothing is missing, since only a language model could tell otherwise."""
    return "NOTHING"


def look_up(material: Material) -> str:
    """Write a query for each part, or for the thought, from its words and the question's."""
    head = f"{material.question} {material.text('thought')}"
    lines = [f"PART {part.id}: {_query(f'{head} {part.text}')}" for part in material.named("part")]
    return "\n".join(lines) or _query(head)


def _query(text: str) -> str:
    return " ".join(terms(text)[:30]) or text.strip()


def draft(material: Material) -> str:
    """Write sentences from the passages or, if there are none, a question, which claims nothing."""
    return write(material) if material.statements else f"{material.question.rstrip(' .?!')}?"


def reason(material: Material) -> str:
    """Write a draft, then state that no answer was found."""
    return f"{draft(material)}\n\nANSWER\n{_NOTHING}"


def write(material: Material) -> str:
    """Write sentences of the passages that fit the question and plan and are new to the text."""
    wanted = stems(f"{material.question}\n{material.text('plan')}")
    return "\n\n".join(best(wanted, material.statements, 6, material.text("text"))) or _NOTHING


def write_shortly(material: Material) -> str:
    """Write sentences from passages, with the best-matching one as the short answer."""
    text = write(material)
    plain = without_marks(text)
    answer = best(stems(material.question), statements(plain), 1) or [plain]
    return f"{text}\n\nAnswer: {answer[0]}"


def check(material: Material) -> str:
    """Judge each statement by the words that it shares with passages, and append what is missing.

    A missing sentence is added to the part that it fits best; if the parts are steps, it becomes a
    new step after that part.
    """
    parts = [part for part in material.named("part") if "Answer:" not in part.text]
    texts = [without_numbers(part.text) for part in parts]
    added: list[str] = []
    label = "AFTER" if "<<<<<<< AFTER" in material.form else "PART"
    if label == "AFTER":
        added = missing_steps(material, texts)
    elif "added to the end" in material.form:
        prose = "\n".join(texts)
        # A statement that does not begin a paragraph was added by an earlier check.
        if not any(f" {statement}" in prose for statement in material.statements):
            added = _missing(material, prose)
    blocks = [
        f"<<<<<<< {label} {parts[nearest(text, texts)].id}\n=======\n{text}\n>>>>>>> END"
        for text in added
        if parts
    ]
    if label == "AFTER":
        return "\n\n".join(blocks) or UNCHANGED
    verdicts, corrections = _judged(material)
    return "\n\n".join(filter(None, ["\n".join(verdicts), *corrections, *blocks])) or UNCHANGED


def _judged(material: Material) -> tuple[list[str], list[str]]:
    """Return a verdict on each statement, and changes to those that are contradicted."""
    passages = {f"p{each.id.strip('p')}": each.text for each in material.named("passage")}
    evidence = [
        sentence(each, title, id_)
        for id_, text in passages.items()
        for title in [heading(text)]
        for whole in statements(text, titles=True)
        for each in dict.fromkeys([whole, *whole.split("; ")])
    ][:_MAX_SENTENCES]
    verdicts: list[str] = []
    changes: list[str] = []
    compared = 0
    for part in material.named("part"):
        for name, text in _NUMBERED.findall(part.text) or [(part.id, part.text)]:
            supporting: list[str] = []
            deciding: list[str] = []
            missing: list[str] = []
            for whole in sentences(text):
                statement = _LABEL.sub("", whole)
                compared += 1
                others = evidence if compared <= _MAX_STATEMENTS else ()
                read = sentence(without_marks(statement))
                alike = [*dict.fromkeys(each.place for each in others if supports(each, read))]
                can_correct = not alike and compared <= _MAX_CORRECTED
                if can_correct and (change := corrected(sentence(statement), evidence)):
                    deciding.append(change[1])
                    block = f"{statement}\n=======\n{change[0]}"
                    changes.append(f"<<<<<<< PART {part.id}\n{block}\n>>>>>>> END")
                elif alike:
                    supporting += alike[:2]
                else:
                    missing.append(without_marks(statement))
            places = " ".join(dict.fromkeys(deciding or supporting))
            if deciding:
                verdicts.append(f"{name} contradicted {places}")
            elif missing:
                quotes = ", ".join(f'"{each}"' for each in missing) if supporting else ""
                verdicts.append(f"{name} not found {quotes}".strip())
            else:
                verdicts.append(f"{name} supported {places}")
    return verdicts, changes


def _missing(material: Material, text: str) -> list[str]:
    """Return the two most informative statements, except those that the text contains.

    The choice does not depend on the text, so once both have been added, nothing more is missing.
    """
    wanted = stems(material.question)
    return [
        statement
        for statement in best(wanted, material.statements, 2)
        if len(stems(statement) & wanted) > 1 and best(wanted, [statement], 1, text)
    ]


def write_article(material: Material) -> str:
    """Put the question above the text as its title."""
    return f"# {material.question}\n\n{material.text('text')}"


def write_code(material: Material) -> str:
    """Join the code blocks in the text, or turn the text into comments if it has none."""
    text = material.text("text")
    return f"```\n{''.join(_CODE.findall(text)) or re.sub('(?m)^', '# ', text)}\n```"


def route(material: Material) -> str:
    """Choose a graph using rules; a message that refers to an earlier one is appended to it."""
    message = material.question
    kind = "TALK" if _TALK.match(message) else "GOAL" if _GOAL.search(message) else "QUESTION"
    before = _PERSON.findall(material.text("conversation"))[-1:] if _REFERS.search(message) else []
    return f"KIND: {kind}\nQUESTION: {' '.join([*before, message])}"


def begin(material: Material) -> str:
    """Return the first sentences of the passages, or else of the last message."""
    text = material.text("passage") or material.last_message
    return " ".join(sentences(text[:2000])[:3]) or "There is nothing to work with."
