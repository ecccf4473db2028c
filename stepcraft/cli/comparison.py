"""How `stepcraft eval compare` shows two methods: their scores, the samples where they differ, and one sample in full."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from stepcraft.cli.output import drawn, one_line, printable
from stepcraft.evals.compare import Pair, PairedMethods
from stepcraft.evals.directory import Outcome
from stepcraft.evals.reports.markdown import KEYLESS, p_text
from stepcraft.evals.stats import Difference
from stepcraft.evals.summary import is_keyless
from stepcraft.report.rendering import counted


def scores_text(found: PairedMethods, first: str, second: str, score: str, count: int) -> str:
    """The scores of both methods against each other, and the samples that differ most in one of them."""
    lines = [f"{first} against {second}, {counted(len(found.pairs), 'sample')}"]
    if is_keyless(one for pair in found.pairs.values() for _, one in _sides(pair)):
        lines.append(KEYLESS)
    failed = [(side, one) for pair in found.pairs.values() for side, one in _sides(pair) if one["error"]]
    for side, name in (("first", first), ("second", second)):
        if number := sum(one == side for one, _ in failed):
            lines.append(f"{counted(number, 'sample')} of {name} failed")
    table = Table(
        "score", "difference", "p", "p, McNemar", "p, signs", "wins", "losses", "ties", box=box.SIMPLE
    )
    for one in found.comparisons:
        exact = "" if one.mcnemar_p is None else p_text(one.mcnemar_p)
        cells = [one.score, _difference(one.difference), p_text(one.p), exact, p_text(one.sign_p)]
        table.add_row(*map(_line, [*cells, *map(str, one.record)]))
    lines.append(drawn(table) if found.comparisons else "no score is known of both on a sample")
    if differing := found.most_different(score, count):
        table = Table("sample", first, second, "question", box=box.SIMPLE, title_justify="left")
        for pair in differing:
            scores = [f"{one['scores'][score]:.3f}" for _, one in _sides(pair)]
            question = one_line(pair.first["sample"]["question"])
            table.add_row(*map(_line, [pair.first["id"], *scores, question[:160]]))
        lines += [f"where they differ most in {score}:", drawn(table)]
    elif score:
        lines.append(f"they differ in {score} on no sample")
    return "\n".join(lines)


def sample_text(pair: Pair) -> str:
    """One sample with both outputs side by side: scores, answer, warnings and evidence."""
    sample = pair.first["sample"]
    right = [
        *sample.get("answers", []),
        *(" or ".join(names) for names in sample.get("contains", [])),
        *sample.get("steps", []),
    ]
    table = Table(box=box.SIMPLE, expand=True)
    for _, one in _sides(pair):
        table.add_column(_line(one["method"]), ratio=1, overflow="fold")
    table.add_row(*(Text(_facts(one)) for _, one in _sides(pair)))
    table.add_row(*(Text(f"\n{_answer(one)}") for _, one in _sides(pair)))
    table.add_row(*(Text(f"\n{_evidence(one['output'])}") for _, one in _sides(pair)))
    head = [f"{one_line(sample['id'])}: {one_line(sample['question'])}"]
    head += [f"right: {one_line(text)}" for text in right]
    return "\n".join([*head, drawn(table)])


def _sides(pair: Pair) -> Sequence[tuple[str, Outcome]]:
    return ("first", pair.first), ("second", pair.second)


def _difference(one: Difference) -> str:
    return (
        f"{one.mean:+.3f}" if math.isinf(one.low) else f"{one.mean:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
    )


def _facts(one: Outcome) -> str:
    scores = [f"{name} {value:.3f}" for name, value in one["scores"].items()]
    usage = one["usage"]
    tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    costs = [counted(usage.get("calls", 0), "call"), f"{tokens:,} tokens", f"{one['seconds']:,.1f} s"]
    warnings = [f"warning: {one_line(text)}" for text in one["warnings"]]
    return "\n".join([*scores, ", ".join(costs), *warnings])


def _answer(one: Outcome) -> str:
    if one["error"]:
        return f"failed: {one_line(one['error'])}"
    output = one["output"]
    return printable(str(output.get("answer") or "\n".join(map(str, output.get("steps") or []))))


def _evidence(output: Mapping[str, Any]) -> str:
    passages = [part for part in output.get("evidence") or [] if isinstance(part, Mapping)]
    return "\n\n".join(
        f"[{number}] {one_line(str(part.get('title', '')))}\n{printable(str(part.get('text', ''))).strip()}"
        for number, part in enumerate(passages, 1)
    )


def _line(text: str) -> Text:
    return Text(one_line(text))
