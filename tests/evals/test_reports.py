"""What a report of evaluations shows: the page, Markdown, CSV, LaTeX and the comparison of two methods."""

import base64
import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft.cli import app
from stepcraft.evals.compare import paired_methods
from stepcraft.evals.directory import SAMPLES, Outcome, run_directory
from stepcraft.evals.reports.markdown import markdown, warnings
from stepcraft.evals.reports.page import page
from stepcraft.evals.summary import summarise
from tests.report.reports import HOSTILE, Reader, poisoned
from tests.servers.chromium import Tab, listener, opened

PASSAGE = {
    "id": "p",
    "title": "Stari Most",
    "text": "The bridge has one arch.",
    "source": "",
    "score": 1.0,
}
TAGS = set(
    re.findall(
        r"\w+",
        """html head meta title style body header nav main section footer div p h1 h2 h3 ul ol li a span details summary
        table thead tbody tr th td svg g line circle text figure figcaption noscript label select input button script""",
    )
)


def evaluation(
    directory: Path,
    scores: Mapping[str, Sequence[float | None]],
    *,
    votes: Mapping[str, str] | None = None,
    benchmark: str = "",
    poison: str = "",
) -> Path:
    """A finished evaluation: of each method the score on each sample, None where it failed.

    Args:
        directory: Where it is made.
        scores: The scores by method; the first is the cheapest.
        votes: For other methods, the verdicts of the judge: a letter (w, l, t, u) for each sample.
        benchmark: The name of the benchmark.
        poison: Text at the end of every text.
    """
    kinds = {"w": "win", "l": "loss", "t": "tie", "u": "unreadable"}
    poison = poison.replace("\ud800", "")  # which no configuration holds
    names = [f"{name}{poison}" for name in scores]
    configuration = {
        "methods": {
            name: {"graph": "rag", "settings": {}, "model": f"openai:writer{poison}"}
            for name in names
        },
        "benchmark": {"name": benchmark, "licence": "MIT", "citation": "A paper of 2021"}
        if benchmark
        else {},
    }
    with run_directory(directory, configuration, SAMPLES) as [kept]:
        for place, (name, own) in enumerate(zip(names, scores.values(), strict=True)):
            for number, score in enumerate(own):
                output = {"answer": f"Answer {number} of {name}.", "evidence": [PASSAGE]}
                outcome = Outcome(
                    method=name,
                    id=f"q{number}",
                    sample={
                        "id": f"q{number}",
                        "question": f"Question {number}?",
                        "answers": [f"Right {number}"],
                    },
                    output={} if score is None else output,
                    error="ValueError: no such luck" if score is None else "",
                    scores={} if score is None else {f"right{poison}": score},
                    usage={
                        "calls": 1 + place,
                        "input_tokens": 100 * (1 + place),
                        "output_tokens": 10,
                    },
                    seconds=1.0 + place,
                    warnings=["nothing was found"] if number == 1 else [],
                )
                safe = {
                    "method",
                    "scores",
                    "usage",
                    "seconds",
                    *(["error"] if score is not None else []),
                }
                hostile = {
                    key: value if key in safe else poisoned(value, poison)
                    for key, value in outcome.items()
                }
                kept.add(hostile if poison else outcome)  # type: ignore[arg-type]
    lines = [
        {
            "kind": "vote", "judge": f"openai:judge{poison}", "method": f"{name}{poison}", "against": names[0],
            "id": f"q{number}" + (f" {poison}" if poison else ""), "number": 0, "reply": "", "error": "", "usage": {}, "verdict": kinds[letter],
            "shown_first": number % 2 == 0,
        }
        for name, letters in (votes or {}).items()
        for number, letter in enumerate(letters)
    ]  # fmt: skip
    if poison:
        call = {
            "node": poison,
            "model": poison,
            "prompt": [[poison, poison]],
            "reply": poison,
            "error": "",
            "tokens": {},
            "seconds": 0.1,
        }
        for name in names:
            line = {"method": name, "id": "q0", "calls": [call]}
            with (directory / "calls.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(poisoned(line, "")) + "\n")
    if lines:
        support = {
            **lines[0],
            "kind": "support",
            "against": "",
            "sentences": [1, 2],
            "unsupported": [2],
        }
        text = "".join(json.dumps(line) + "\n" for line in [*lines, support])
        (directory / "votes.jsonl").write_text(text, "utf-8")
    return directory


def page_of(*directories: Path, **given: Any) -> str:
    named = {directory.name: directory for directory in directories}
    return page(named, {name: summarise(directory) for name, directory in named.items()}, **given)


def samples_of(text: str) -> Any:
    """The samples in a page."""
    [packed] = re.findall(r'<script id="data"[^>]*>([^<]*)<', text)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def stepcraft(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["eval", *map(str, arguments)])


HALF = [1, 0, 1, 0, 1, 0, 1, 0]
BETTER = [1, 1, 1, 1, 1, 1, 1, 0]


def test_the_page_has_the_figures_of_the_summary(tmp_path: Path) -> None:
    run = evaluation(
        tmp_path / "run", {"rag": HALF, "rat": BETTER}, votes={"rat": "wwwwwwtu"}, benchmark="gsm8k"
    )
    seen = Reader(page_of(run))
    assert seen.texts("h1") == ["gsm8k"]
    assert {"2 methods", "8 samples", "openai:writer"} <= set(seen.texts("li"))
    cells = seen.texts("td")
    assert any(cell.startswith("0.500 (") for cell in cells)
    assert "0.25" in cells  # the signs of three wins
    assert "gsm8k: licence: MIT; paper: A paper of 2021." in seen.texts("p", "note")
    [verdict] = seen.texts("p", "verdict")
    assert "No difference in right could be shown between rat and rag" in verdict
    assert (
        "rat takes 2.0 times the calls, 1.9 times the tokens and 2.0 times the seconds of rag."
        in verdict
    )
    assert "The judge openai:judge prefers rat to rag" in verdict
    plots = [str(plot.attributes["aria-label"]) for plot in seen.all("svg")]
    assert [plot.partition(". ")[0] for plot in plots] == [
        "right against tokens a sample",
        "right against calls a sample",
        "right against seconds a sample",
        "Difference in right",
        "Support, judge openai:judge",
    ]
    assert "1 of 8 replies of openai:judge on rat and rag could not be read" in " ".join(
        seen.texts("li")
    )


def test_costs_are_compared_on_the_samples_that_both_methods_have(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1, 1, 1, 1], "rat": [0, 0, None, None]})
    file = run / "samples.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for line in lines:
        line["usage"]["input_tokens"] = 190 if line["method"] == "rat" else 90
        line["usage"]["input_tokens"] *= 100 if line["id"] in {"q2", "q3"} else 1
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    summary = summarise(run)
    [comparison] = summary.comparisons
    assert (comparison.against, comparison.factors["tokens"]) == ("rag", 2.0)
    assert (
        "rat takes 2.0 times the calls, 2.0 times the tokens and 2.0 times the seconds of rag."
        in markdown(summary)
    )


def test_of_right_and_wrong_the_exact_test_decides(tmp_path: Path) -> None:
    """Five wins of twenty: the t-test has p = 0.021, the exact sign test 2/32."""
    [few] = summarise(
        evaluation(tmp_path / "a", {"rag": [0] * 20, "rat": [1] * 5 + [0] * 15})
    ).comparisons
    assert (few.wins, few.losses, few.p, few.sign_p, few.is_shown) == (5, 0, 2 / 32, 2 / 32, False)
    assert few.difference.p < 0.05
    [partly] = summarise(
        evaluation(tmp_path / "b", {"rag": [0] * 20, "rat": [0.5] * 5 + [0] * 15})
    ).comparisons
    assert (partly.sign_p, partly.p, partly.is_shown) == (2 / 32, partly.difference.p, True)


def test_directories_stand_side_by_side_and_share_their_samples(tmp_path: Path) -> None:
    one = evaluation(tmp_path / "mini", {"rag": HALF})
    two = evaluation(tmp_path / "large", {"rag": BETTER})
    text = page_of(one, two)
    assert Reader(text).texts("h1") == ["mini · large"]
    held = samples_of(text)
    assert len(held) == 8
    assert {name: run["scores"]["right"] for name, run in held[1]["runs"].items()} == {
        "mini: rag": 0,
        "large: rag": 1,
    }


def test_figures_of_judges_name_their_directory(tmp_path: Path) -> None:
    one = evaluation(tmp_path / "mini", {"rag": HALF, "rat": BETTER}, votes={"rat": "wwwwwwtu"})
    cells = Reader(page_of(one, evaluation(tmp_path / "large", {"rag": BETTER}))).texts("td")
    assert cells.count("mini: rat") == 2  # votes and support


def test_warnings_stand_on_every_page(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1, None], "rat": [1, 1]})
    file = run / "samples.jsonl"
    file.write_text(
        file.read_text("utf-8").replace("nothing was found", "there is no language model"), "utf-8"
    )
    told = warnings(summarise(run))
    assert told[0].startswith("The keyless model wrote these answers")
    assert told[1].startswith("rag failed on 1 of 2 samples; what failed has no score")
    shown = Reader(page_of(run)).texts("li")
    assert set(told) <= set(shown)
    assert all(f"**{one}**" in markdown(summarise(run)) for one in told)
    assert told[0] in stepcraft("compare", run, "rag", "rat").stdout


def test_long_texts_are_cut(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1] * 2})
    file = run / "samples.jsonl"
    file.write_text(file.read_text("utf-8").replace("Answer 1", "x" * 5_000), "utf-8")
    page = page_of(run)
    assert "Texts are cut after 4,000 characters" in page
    assert len(samples_of(page)[1]["runs"]["rag"]["answer"]) == 4_001


def test_the_calls_of_a_sample_are_on_the_page(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1]})
    call = {
        "node": "draft",
        "model": "openai:writer",
        "prompt": [["system", "Answer."], ["human", "Question 0?"]],
        "reply": "Answer 0.",
        "error": "",
        "tokens": {"input_tokens": 7, "output_tokens": 2},
        "seconds": 0.25,
    }
    line = {"method": "rag", "id": "q0", "calls": [call]}
    (run / "calls.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    assert samples_of(page_of(run))[0]["runs"]["rag"]["calls"] == [call]


def test_what_is_hostile_is_text(tmp_path: Path) -> None:
    run = evaluation(
        tmp_path / "run", {"rag": HALF, "rat": BETTER}, votes={"rat": "wwwwwwtu"}, poison=HOSTILE
    )
    text = page({f"run{HOSTILE}": run}, {f"run{HOSTILE}": summarise(run)})
    seen = Reader(text)
    assert {element.tag for element in seen.seen} <= TAGS
    assert len(seen.all("script")) == 2
    assert not {
        name
        for one in seen.seen
        for name in one.attributes
        if name.startswith(("on", "src", "style"))
    }
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\u202e\ud800]", text + json.dumps(samples_of(text), ensure_ascii=False)
    )
    [policy] = re.findall('Content-Security-Policy" content="([^"]+)"', text)
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[^ ]+'; script-src 'sha256-[^ ]+'; require-trusted-types-for 'script'; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )


@pytest.fixture(scope="module")
def hostile(
    browser: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Tab, list[str]]]:
    """The page of an evaluation that a hostile model wrote, and what was requested from it."""
    folder = tmp_path_factory.mktemp("page")
    with listener() as (port, asked):
        poison = f" {HOSTILE} ".replace("PORT", str(port))
        scores: dict[str, list[float | None]] = {
            "rag": [1, 0, None, *[1.0] * 60],
            "rat": [1, 1, 0.5, *[0.5] * 60],
        }
        run = evaluation(folder / "run", scores, votes={"rat": "wlt"}, poison=poison)
        (folder / "page.html").write_text(page_of(run), "utf-8")
        with opened(folder / "page.html", folder / "profile") as tab:
            tab.js(
                "new Promise(done => { const look = () => document.querySelector('#list li') ? done() : "
                "requestAnimationFrame(look); look(); })"
            )
            yield tab, asked


def drawn(tab: Tab) -> None:
    """Wait until the page has drawn what was changed."""
    tab.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def told(tab: Tab, selector: str) -> str:
    return str(tab.js(f"document.querySelector({json.dumps(selector)}).innerText"))


def choose(tab: Tab, name: str, value: str) -> str:
    """Choose in a filter and return what is said of the list."""
    tab.js(
        f"(chosen => {{ chosen.value = {json.dumps(value)}; chosen.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById({json.dumps(name)}))"
    )
    return told(tab, "#count")


def test_a_hostile_page_runs_and_fetches_nothing(hostile: tuple[Tab, list[str]]) -> None:
    tab, asked = hostile
    tab.js("document.querySelectorAll('#list details').forEach(one => { one.open = true; })")
    drawn(tab)
    assert "<script>console.error" in told(tab, "#list .answer")
    assert not str(tab.js("document.title")).startswith("owned")
    assert (
        tab.js(
            "document.querySelectorAll('#list img, #list iframe, #list style, base, link').length"
        )
        == 0
    )
    assert asked == []
    tab.js("document.querySelectorAll('#list details').forEach(one => { one.open = false; })")


def test_filters_find_samples(hostile: tuple[Tab, list[str]]) -> None:
    tab, _ = hostile
    assert told(tab, "#count") == "63 of 63 samples; the first 50 are listed."
    assert choose(tab, "show", "failed").startswith("1 of 63")
    assert choose(tab, "show", "right").startswith("61 of 63")
    assert choose(tab, "show", "worse").startswith("1 of 63")
    assert choose(tab, "show", "warned").startswith("1 of 63")
    assert choose(tab, "show", "differs").startswith("61 of 63")
    assert told(tab, "#list li").startswith("q1")  # the largest difference is first
    choose(tab, "show", "all")
    tab.js("document.getElementById('words').value = 'ANSWER q17 rat'")
    assert choose(tab, "score", str(tab.js("document.getElementById('score').value"))).startswith(
        "1 of 63"
    )
    tab.js("document.getElementById('words').value = ''")
    choose(tab, "show", "all")
    tab.click("#more")
    assert told(tab, "#count") == "63 of 63 samples; the first 63 are listed."


def test_a_sample_is_opened_by_keyboard_with_both_outputs(hostile: tuple[Tab, list[str]]) -> None:
    tab, _ = hostile
    choose(tab, "show", "all")
    tab.js("document.getElementById('words').focus()")
    tab.press("Tab")
    tab.press("Tab")
    tab.press("Enter")
    drawn(tab)
    shown = told(tab, "#list details[open]")
    for part in (
        "Question 1?",
        "Right 1",
        "Answer 1 of rag",
        "Answer 1 of rat",
        "Warnings",
        "beside rag",
        "Stari Most",
    ):
        assert part in shown


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(hostile: tuple[Tab, list[str]], width: int) -> None:
    tab, _ = hostile
    tab.resize(width, 800)
    tab.js("document.querySelectorAll('#list details').forEach(one => { one.open = true; })")
    assert tab.js("document.documentElement.scrollWidth") <= width


def test_it_prints_figures_and_samples(hostile: tuple[Tab, list[str]]) -> None:
    tab, _ = hostile
    choose(tab, "show", "failed")
    text = tab.printed()
    assert "Scores and costs" in text
    assert "Question 2?" in text
    assert "Beside" not in text


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return evaluation(tmp_path / "run", {"rag": HALF, "rat": BETTER})


def test_files_of_the_report(run: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("md", "html", "csv")}
    options = [
        "--to",
        files["md"],
        "--html",
        files["html"],
        "--csv",
        files["csv"],
    ]
    ran = stepcraft("report", run, *options)
    assert (ran.exit_code, ran.stdout) == (0, ""), ran.output
    assert files["md"].read_text("utf-8").strip() == stepcraft("report", run).stdout.strip()
    assert files["html"].read_text("utf-8").startswith("<!doctype html>")
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text("utf-8"))))
    assert len(rows) == 16
    assert rows[-1].pop("directory").endswith("run")
    assert rows[-1] == {
        "method": "rat", "id": "q7", "question": "Question 7?", "right": "0", "calls": "2",
        "input_tokens": "200", "output_tokens": "10", "seconds": "2.0", "usd": "", "warnings": "", "error": "",
    }  # fmt: skip


def test_a_text_is_no_formula_of_a_spreadsheet(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1, None]})
    file = run / "samples.jsonl"
    file.write_text(file.read_text("utf-8").replace("Question 0", "=1+2"), "utf-8")
    stepcraft("report", run, "--csv", tmp_path / "r.csv")
    assert ",'=1+2?," in (tmp_path / "r.csv").read_text("utf-8")


def test_two_methods_are_compared_sample_by_sample(run: Path) -> None:
    methods = paired_methods(run, "rat", "rag")
    [right] = methods.comparisons
    assert (right.score, right.wins, right.losses, right.samples) == ("right", 3, 0, 8)
    assert right.sign_p == 0.25
    differing = methods.most_different("right", 10)
    assert sorted(ours["id"] for ours, _ in differing) == ["q1", "q3", "q5"]
    assert len(methods.most_different("right", 1)) == 1
    ran = stepcraft("compare", run, "rat", "rag")
    assert ran.exit_code == 0, ran.output
    assert "+0.375" in ran.stdout
    assert "+0.375" not in stepcraft("compare", run, "rag", "rat").stdout


def test_both_outputs_for_a_sample_are_shown(run: Path) -> None:
    ran = stepcraft("compare", run, "rag", "rat", "--sample", "q1")
    assert re.search(r"Answer 1 of rag\..*Answer 1 of rat\.\n", ran.stdout, re.DOTALL)
    assert ran.stdout.count("[1] Stari Most") == 2
    assert "nothing was found" in ran.stdout


def no_common_sample(run: Path) -> None:
    file = run / "samples.jsonl"
    file.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[:8]), "utf-8")


@pytest.mark.parametrize(
    ("arguments", "prepare", "problem"),
    [
        (["compare", "{run}", "rag", "rta"], None, "'rag' and 'rta' cannot be compared"),
        (["compare", "{run}", "rag", "rag"], None, "'rag' and 'rag' cannot be compared"),
        (
            ["compare", "{run}", "rag", "rat", "--sample", "q9"],
            None,
            "there is no sample 'q9' that both",
        ),
        (
            ["compare", "{run}", "rag", "rat", "--score", "F1"],
            None,
            "'F1'; there is right",
        ),
        (
            ["compare", "{run}", "rag", "rat"],
            no_common_sample,
            "no sample in {run} is finished by both",
        ),
        (["compare", "{run}/x", "rag", "rat"], None, "is no directory of an evaluation"),
        (["report", "{run}", "--html", "{run}"], None, "{run} cannot be"),
        (["report", "{run}", "--csv", "{run}/no/file.csv"], None, "{run}/no/file.csv cannot be"),
        (
            ["report", "{run}/x", "--csv", "{run}/file.csv"],
            None,
            "is no directory of an evaluation",
        ),
    ],
)
def test_what_cannot_be_reported_is_one_line(
    run: Path, arguments: list[str], prepare: Callable[[Path], None] | None, problem: str
) -> None:
    if prepare:
        prepare(run)
    ran = stepcraft(*(part.format(run=run) for part in arguments))
    assert ran.exit_code == 2
    assert problem.format(run=run) in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
