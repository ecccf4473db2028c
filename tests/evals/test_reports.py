"""What a report of evaluations shows: the page, Markdown, CSV, the comparison of two methods."""

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from stepcraft.evals.directory import CALLS, SAMPLES, Outcome, read_outcomes, run_directory
from stepcraft.evals.reports._plots import Axis
from stepcraft.evals.reports.markdown import markdown, warnings
from stepcraft.evals.reports.page import page
from stepcraft.evals.summary import summarise
from stepcraft.evals.votes import VOTES
from tests.evals.judged import outcome, passage
from tests.evals.runs import problem_of, rewrite, stepcraft
from tests.report.reports import HOSTILE, Reader, poisoned
from tests.servers.chromium import Tab, listener, opened

TAGS = set(
    re.findall(
        r"\w+",
        """html head meta title style body header nav main section footer div p h1 h2 h3 ul ol li
        a span details summary table thead tbody tr th td svg g line circle text figure figcaption
        noscript label select input button script code strong""",
    )
)
VERDICTS = {"w": "win", "l": "loss", "t": "tie"}
CALL = {
    "node": "draft",
    "model": "openai:writer",
    "prompt": "System: Answer.\nHuman: Question 0?",
    "reply": "Answer 0.",
    "error": "",
    "tokens": {"input_tokens": 7, "output_tokens": 2},
    "seconds": 0.25,
}


def evaluation(
    directory: Path,
    scores: Mapping[str, Sequence[float | None]],
    *,
    votes: str = "",
    benchmark: str = "",
    poison: str = "",
) -> Path:
    """A finished evaluation: of each method the score on each sample, None where it failed.

    Args:
        directory: Where it is made.
        scores: The scores by method; the first is the cheapest.
        votes: For "rat", the verdicts of the judge: a letter (w, l, t, u) for each sample.
        benchmark: The name of the benchmark.
        poison: Text at the end of every text and name.
    """
    poison = poison.replace("\ud800", "")  # which no configuration holds
    about = poisoned({"graph": "rag", "settings": {}, "model": "openai:writer"}, poison)
    origin = {"name": benchmark, "licence": "MIT", "citation": "A paper of 2021"}
    configuration = {
        "methods": {poisoned(name, poison): about for name in scores},
        "benchmark": origin if benchmark else {},
    }
    with run_directory(directory, configuration, SAMPLES, VOTES, CALLS) as files:
        for file, lines in zip(files, _lines(scores, votes, poison), strict=True):
            for line in lines:
                file.add(poisoned(line, poison))
    return directory


def _lines(
    scores: Mapping[str, Sequence[float | None]], votes: str, poison: str
) -> Iterator[Iterator[Mapping[str, Any]]]:
    """The lines of the files of samples, of votes and of calls."""

    def scored(place: int, name: str, number: int, score: float | None) -> Outcome:
        evidence = [passage("p", "Stari Most", "The bridge has one arch.")]
        output = {"answer": f"Answer {number} of {name}.", "evidence": evidence}
        is_done = score is not None
        return outcome(
            name,
            number,
            output if is_done else None,
            right={"answers": [f"Right {number}"]},
            scores={poisoned("right", poison): score} if is_done else {},
            usage={"calls": place, "input_tokens": 100 * place, "output_tokens": 10},
            seconds=float(place),
            warnings=["nothing was found"] if number == 1 else [],
        )

    yield (
        scored(place, name, number, score)
        for place, (name, each) in enumerate(scores.items(), 1)
        for number, score in enumerate(each)
    )
    line = {"judge": "openai:judge", "method": "rat", "reply": "", "error": "", "usage": {}}
    vote = {**line, "kind": "vote", "against": "rag", "number": 0}
    support = {**line, "kind": "support", "against": "", "id": "0", "number": 0}
    supported = {"text": "It has one arch.", "verdict": "supported", "reason": "", "is_cited": True}
    unsupported = {"text": "It floats.", "verdict": "unsupported", "reason": "no passage says so"}
    yield chain(
        (
            {
                **vote,
                "id": str(n),
                "number": n,
                **({"verdict": VERDICTS[letter]} if letter in VERDICTS else {}),
            }
            for n, letter in enumerate(votes)
        ),
        [{**support, "items": [supported, {**unsupported, "is_cited": False}]}] if votes else [],
    )
    yield ({"method": name, "id": "0", "calls": [CALL]} for name in scores)


def page_of(*directories: Path) -> str:
    named = {directory.name: directory for directory in directories}
    return page(summarise(named))


def samples_of(text: str) -> Any:
    """The samples in a page."""
    [packed] = re.findall(r'<script id="data"[^>]*>([^<]*)<', text)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


HALF = [1, 0, 1, 0, 1, 0, 1, 0]
BETTER = [1, 1, 1, 1, 1, 1, 1, 0]


def test_the_page_has_the_figures_of_the_summary(tmp_path: Path) -> None:
    run = evaluation(
        tmp_path / "run", {"rag": HALF, "rat": BETTER}, votes="wwwwwwtu", benchmark="gsm8k"
    )
    seen = Reader(page_of(run))
    assert seen.texts("h1") == ["gsm8k"]
    facts, cells = seen.texts("li"), seen.texts("td")
    assert {"2 methods", "8 samples", "openai:writer"} <= set(facts)
    assert any(cell.startswith("0.500 (") for cell in cells)
    assert {"0.250", "0.062"} <= {*cells}  # the signs of three wins, and twice those of six votes
    assert "gsm8k: licence: MIT; paper: A paper of 2021." in seen.texts("p", "note")
    [verdict] = seen.texts("div", "verdict")
    assert (
        "No difference in right and votes of openai:judge could be shown between rat and rag"
        in verdict
    )
    costs = "2.0 times the calls, 2.0 times the tokens in, 1.0 times the tokens out and 2.0 times"
    assert f"rat takes {costs} the seconds of rag" in verdict
    plots = [str(plot.attributes["aria-label"]) for plot in seen.all("svg")]
    assert [plot.partition(". ")[0] for plot in plots] == [
        *(f"right against {cost} a sample" for cost in ("tokens in", "tokens out", "seconds")),
        *(
            f"support by openai:judge against {cost} a sample"
            for cost in ("tokens in", "tokens out", "seconds")
        ),
        *(
            f"citation recall by openai:judge against {cost} a sample"
            for cost in ("tokens in", "tokens out", "seconds")
        ),
    ]
    unreadable = "1 of 9 judgements of openai:judge on rat failed or could not be read"
    assert any(fact.startswith(unreadable) for fact in facts)


def test_costs_are_compared_on_the_samples_that_both_methods_have(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1, 1, 1, 1], "rat": [0, 0, None, None]})
    lines = list(read_outcomes(run))
    for line in lines:
        line["usage"]["input_tokens"] = 190 if line["method"] == "rat" else 90
        line["usage"]["input_tokens"] *= 100 if line["id"] in {"2", "3"} else 1
    (run / SAMPLES).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert (
        "rat takes 2.0 times the calls, 2.1 times the tokens in, 1.0 times the tokens out and 2.0 "
        "times the seconds of rag." in markdown(summarise(run))
    )


def test_of_right_and_wrong_the_exact_test_decides(tmp_path: Path) -> None:
    """Five wins of twenty: the t-test has p = 0.021, the exact sign test 2/32."""
    for score, is_significant in ((1, False), (0.5, True)):
        scores = {"rag": [0] * 20, "rat": [score] * 5 + [0] * 15}
        [comparison] = summarise(evaluation(tmp_path / str(score), scores)).comparisons
        assert (comparison.wins, comparison.losses) == (5, 0)
        assert comparison.p == (comparison.difference.p if is_significant else 2 / 32)
        assert comparison.difference.p < 0.05
        assert comparison.is_significant == is_significant


def test_directories_stand_side_by_side_and_share_their_samples(tmp_path: Path) -> None:
    small = evaluation(tmp_path / "mini", {"rag": HALF, "rat": BETTER}, votes="wwwwwwtu")
    text = page_of(small, evaluation(tmp_path / "large", {"rag": BETTER}))
    seen, samples = Reader(text), samples_of(text)
    assert seen.texts("h1") == ["mini · large"]
    assert "mini: rat" in seen.texts("td")
    assert len(samples) == 8
    scores = {name: run["scores"]["right"] for name, run in samples[1]["runs"].items()}
    assert scores == {"mini: rag": 0, "mini: rat": 1, "large: rag": 1}


def test_warnings_stand_on_every_page(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1, None], "rat": [1, 1]})
    configuration = run / "configuration.json"
    configuration.write_text(configuration.read_text().replace("openai:writer", "extractive"))
    keyless, failed, *_ = warnings(summarise(run))
    assert keyless.startswith("The keyless model wrote these answers")
    assert failed.startswith("rag failed on 1 of 2 samples, which have no score. Most often: Val")
    assert {keyless, failed} <= set(Reader(page_of(run)).texts("li"))
    text = markdown(summarise(run))
    assert all(f"**{warning}**" in text for warning in (keyless, failed))
    assert keyless in stepcraft(f"compare {run} rag rat").stdout


def test_long_texts_are_cut(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1] * 2})
    rewrite(run, "Answer 1", "x" * 5_000)
    page = page_of(run)
    assert "Texts are cut after 4,000 characters" in page
    assert len(samples_of(page)[1]["runs"]["rag"]["answer"]) == 4_001


def test_a_number_that_json_does_not_have_hides_no_samples(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1] * 2})
    rewrite(run, '"score": 1.0', '"score": NaN')
    assert samples_of(page_of(run))[0]["runs"]["rag"]["evidence"][0]["score"] is None


def test_the_calls_of_a_sample_are_on_the_page(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": [1]})
    assert samples_of(page_of(run))[0]["runs"]["rag"]["calls"] == [CALL]


def test_what_is_hostile_is_text(tmp_path: Path) -> None:
    run = evaluation(
        tmp_path / "run", {"rag": HALF, "rat": BETTER}, votes="wwwwwwtu", poison=HOSTILE
    )
    named = {f"run{HOSTILE}": run}
    text = page(summarise(named))
    seen = Reader(text)
    assert {element.tag for element in seen.seen} <= TAGS
    assert len(seen.all("script")) == 2
    attributes = {name for element in seen.seen for name in element.attributes}
    assert not [name for name in attributes if name.startswith(("on", "src", "style"))]
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\u202e\ud800]", text + json.dumps(samples_of(text), ensure_ascii=False)
    )
    [policy] = re.findall('Content-Security-Policy" content="([^"]+)"', text)
    assert re.sub("sha256-[^ ]+'", "…'", policy) == (
        "default-src 'none'; style-src '…'; script-src '…'; require-trusted-types-for 'script'; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[int, list[str]]]:
    """A port, and what is requested from it."""
    with listener() as listening:
        yield listening


@pytest.fixture(scope="module")
def tab(
    browser: str, server: tuple[int, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tab]:
    """The page of an evaluation that a hostile model wrote."""
    folder = tmp_path_factory.mktemp("page")
    poison = f" {HOSTILE} ".replace("PORT", str(server[0]))
    scores = {"rag": [1, 0, None, *[1.0] * 60], "rat": [1, 1, 0.5, *[0.5] * 60]}
    run = evaluation(folder / "run", scores, votes="wlt", poison=poison)
    (folder / "page.html").write_text(page_of(run), "utf-8")
    with opened(folder / "page.html", folder / "profile") as tab:
        tab.js(
            "new Promise(done => { const look = () => document.querySelector('#list li')"
            " ? done() : requestAnimationFrame(look); look(); })"
        )
        yield tab


def drawn(tab: Tab) -> None:
    """Wait until the page has drawn what was changed."""
    tab.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def fold(tab: Tab, *, is_open: bool) -> None:
    """Fold or open all samples."""
    each = f"each.open = {json.dumps(is_open)}"
    tab.js(f"document.querySelectorAll('#list details').forEach(each => {{ {each}; }})")
    drawn(tab)


def text_of(tab: Tab, selector: str) -> str:
    return str(tab.js(f"document.querySelector({json.dumps(selector)}).innerText"))


def choose(tab: Tab, name: str, value: str) -> str:
    """Choose in a filter and return what is said of the list."""
    tab.js(
        f"(filter => {{ filter.value = {json.dumps(value)};"
        " filter.dispatchEvent(new Event('change')); })"
        f"(document.getElementById({json.dumps(name)}))"
    )
    return text_of(tab, "#count")


def test_a_hostile_page_runs_and_fetches_nothing(tab: Tab, server: tuple[int, list[str]]) -> None:
    fold(tab, is_open=True)
    assert "<script>console.error" in text_of(tab, "#list .answer")
    assert not str(tab.js("document.title")).startswith("owned")
    elements = "#list img, #list iframe, #list style, base, link"
    assert tab.js(f"document.querySelectorAll('{elements}').length") == 0
    assert server[1] == []
    fold(tab, is_open=False)


def test_filters_find_samples(tab: Tab) -> None:
    assert text_of(tab, "#count").startswith("63 of 63 samples; the first 50 are listed. Scores")
    counts = {"failed": 1, "right": 61, "worse": 1, "warned": 1, "differs": 61}
    for filter_, count in counts.items():
        assert choose(tab, "show", filter_).startswith(f"{count} of 63")
    assert text_of(tab, "#list li").startswith("1")  # the largest difference is first
    choose(tab, "show", "all")
    tab.js("document.getElementById('words').value = 'ANSWER 17? rat'")
    score = str(tab.js("document.getElementById('score').value"))
    assert choose(tab, "score", score).startswith("1 of 63")
    tab.js("document.getElementById('words').value = ''")
    choose(tab, "show", "all")
    tab.click("#more")
    assert text_of(tab, "#count").startswith("63 of 63 samples. Scores shown: ")


def test_a_sample_is_opened_by_keyboard_with_both_outputs(tab: Tab) -> None:
    choose(tab, "show", "all")
    tab.js("document.getElementById('words').focus()")
    tab.press("Tab")
    tab.press("Tab")
    tab.press("Enter")
    drawn(tab)
    sample = text_of(tab, "#list details[open]")
    for part in ("Question 1?", "Right 1", "Answer 1 of rag", "Answer 1 of rat", "Warnings"):
        assert part in sample
    assert "against rag" in sample
    assert "Stari Most" in sample


def test_a_link_leads_to_a_sample(tab: Tab) -> None:
    choose(tab, "show", "all")
    tab.js("document.querySelectorAll('#list > li > details')[40].open = true")
    drawn(tab)
    link = str(tab.js("document.querySelector('#list details[open] a').hash"))
    choose(tab, "show", "failed")
    tab.js(f"location.hash = {json.dumps(link)}")
    drawn(tab)
    assert text_of(tab, "#list > li > details[open] .asked").startswith("40")
    assert tab.js("document.querySelectorAll('#list > li > details[open]').length") == 1
    assert tab.js("document.getElementById('show').value") == "all"
    fold(tab, is_open=False)


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(tab: Tab, width: int) -> None:
    tab.resize(width, 800)
    fold(tab, is_open=True)
    assert tab.js("document.documentElement.scrollWidth") <= width


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return evaluation(tmp_path / "run", {"rag": HALF, "rat": BETTER})


def test_files_of_the_report(run: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    ran = stepcraft(f"report {run} --to {report}.md --html {report}.html --csv {report}.csv")
    assert (ran.exit_code, ran.stdout) == (0, ""), ran.output
    text = report.with_suffix(".md").read_text("utf-8")
    assert text.strip() == stepcraft(f"report {run}").stdout.strip()
    assert report.with_suffix(".html").read_text("utf-8").startswith("<!doctype html>")
    _, *rows = report.with_suffix(".csv").read_text("utf-8").splitlines()
    assert (len(rows), rows[-1]) == (
        16,
        f"{run},rat,7,Question 7?,Answer 7 of rat.,2,200,,10,2.0,,,,0",
    )


def test_a_text_is_no_formula_of_a_spreadsheet(run: Path) -> None:
    rewrite(run, "Question 0", "=1+2")
    stepcraft(f"report {run} --csv {run}.csv")
    assert ",'=1+2?," in Path(f"{run}.csv").read_text("utf-8")


def test_two_methods_are_compared_sample_by_sample(run: Path) -> None:
    listed = stepcraft(f"compare {run} rat rag").stdout
    assert re.findall(r"^1\.000  0\.000  (\d+)  ", listed, re.MULTILINE) == ["1", "3", "5"]
    assert "+0.375" in listed
    assert "+0.375" not in stepcraft(f"compare {run} rag rat").stdout


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("compare {run} rag rta", "'rag' and 'rta' cannot be compared"),
        ("compare {run} rag rag", "'rag' and 'rag' cannot be compared"),
        ("compare {run} rag rat --score F1", "'F1'; there is right"),
        ("compare {run}/x rag rat", "is no directory of an evaluation"),
        ("report {run} --html {run}", "{run} cannot be"),
        ("report {run} --csv {run}/no/file.csv", "{run}/no/file.csv cannot be"),
    ],
)
def test_what_cannot_be_reported_is_one_line(run: Path, command: str, problem: str) -> None:
    assert problem.format(run=run) in problem_of(command.format(run=run))


def test_a_comparison_of_directories_opens_where_most_has_changed(
    browser: str, tmp_path: Path
) -> None:
    before = evaluation(tmp_path / "before", {"rag": HALF, "rat": HALF})
    after = evaluation(tmp_path / "after", {"rag": HALF, "rat": BETTER})
    for run in (before, after):
        rewrite(run, '{"right": ', '{"form": 1, "right": ')
    ran = stepcraft(f"compare {before} {after} --html {tmp_path}/page.html")
    assert "where they differ most in right:" in ran.stdout
    assert "no sample differs in form" in ran.stdout  # of rag
    with opened(tmp_path / "page.html", tmp_path / "profile") as tab:
        shown = f"right of {after}: rat and of {before}: rat"
        look = "document.querySelector('#list li') ? done() : requestAnimationFrame(look)"
        tab.js(f"new Promise(done => {{ const look = () => {look}; look(); }})")
        assert text_of(tab, "#count") == f"3 of 8 samples. Scores shown: {shown}."


@pytest.mark.parametrize(
    ("options", "score", "differing"), [("", "right", 3), ("--score F1", "F1", 8)]
)
def test_a_comparison_opens_at_the_score_that_has_changed_most(
    browser: str, tmp_path: Path, options: str, score: str, differing: int
) -> None:
    before = evaluation(tmp_path / "before", {"rat": HALF})
    after = evaluation(tmp_path / "after", {"rat": BETTER})
    for run, value in ((before, 0.5), (after, 0.51)):
        rewrite(run, '{"right": ', f'{{"F1": {value}, "right": ')
    assert (
        stepcraft(f"compare {before} {after} --html {tmp_path}/page.html {options}").exit_code == 0
    )
    with opened(tmp_path / "page.html", tmp_path / "profile") as tab:
        look = "document.querySelector('#list li') ? done() : requestAnimationFrame(look)"
        tab.js(f"new Promise(done => {{ const look = () => {look}; look(); }})")
        assert text_of(tab, "#count").startswith(
            f"{differing} of 8 samples. Scores shown: {score} "
        )


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.35, 0.9], ["0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([1200, 5000], ["1000", "2000", "3000", "4000", "5000"]),
        ([0.5], ["0.40", "0.45", "0.50", "0.55", "0.60"]),
    ],
)
def test_an_axis_has_round_ticks_around_its_values(values: list[float], labels: list[str]) -> None:
    axis = Axis(values, 0, 100)
    places, shown = zip(*axis.ticks(), strict=True)
    assert [label.replace(",", "") for label in shown] == labels
    assert (places[0], places[-1]) == (0, 100)
