"""Memories built from documents: what is asked, what is kept, what is added, and what is refused."""

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langchain_core.tracers import BaseTracer
from langchain_core.tracers.schemas import Run

from stepcraft import (
    BadInput,
    MemoryFailure,
    ModelUnknown,
    Procedure,
    ReadOnlyMemory,
    RunStopped,
    open_memory,
)
from stepcraft.building import build_memory
from stepcraft.building.build import BuildReport
from stepcraft.building.directory import read_records
from stepcraft.errors import AddReport
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Progress
from stepcraft.memory.local import LocalMemory
from tests.building.built import name_in, page, procedure, read, write_pages
from tests.scripted import Reply, ScriptedModel
from tests.servers.chromium import opened

ROOT = Path(__file__).parents[2]


class Refusal(Exception):
    """What a provider says to a wrong key."""

    status_code = 401


class Unwritable(LocalMemory):
    """A memory whose disk is full."""

    def add(self, procedures: Iterable[Procedure], **_: Any) -> AddReport:
        raise MemoryFailure(
            f"{self.name} cannot grow because the disk is full; make room and try again"
        )


def build(
    folder: Path,
    model: ScriptedModel | None = None,
    sources: list[Any] | None = None,
    **options: Any,
) -> BuildReport:
    """Build the pages in `folder/docs` into `folder/m.db`."""
    options = {"memory": str(folder / "m.db"), "embeddings": "none", **options}
    return asyncio.run(
        build_memory(
            sources or [str(folder / "docs")], model=model or ScriptedModel(read), **options
        )
    )


def procedures(folder: Path) -> dict[str, Procedure]:
    with open_memory(str(folder / "m.db"), embeddings="none") as memory:
        return {one.output: one for one in memory}


def test_pages_become_procedures_that_say_where_they_come_from(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    (tmp_path / "docs" / "about.md").write_text("# About\n\nNothing is done here.\n")
    report = build(tmp_path, prices=Prices.of(["1/1"]))
    assert (report.documents, report.procedures, report.placed) == (3, 2, {"added": 2})
    assert (report.flagged, report.rejected, report.failed) == (0, 1, [])
    assert report.usage["calls"] == 3
    tokens = report.usage["input_tokens"] + report.usage["output_tokens"]
    assert report.usd == pytest.approx(tokens / 1e6)
    found = procedures(tmp_path)["alphaware"]
    assert found.steps == ("alphaopen `alpha.start`.", "alphaclose `alpha.close`.")
    assert found.source == f"{tmp_path}/docs/alpha.md#task-alpha"
    built = found.metadata["built"]
    assert built["from"] == f"{tmp_path}/docs/alpha.md"
    assert (built["heading"], built["model"], built["spec"]) == (
        "Task alpha",
        "ScriptedModel",
        str(tmp_path / "docs"),
    )


def test_the_page_shows_what_was_found_rejected_and_flagged(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    (tmp_path / "docs" / "about.md").write_text("# About <b>us</b>\n\nNothing is done here.\n")
    (tmp_path / "docs" / "torn.md").write_bytes(b"\0")

    def reply(node: str, prompt: str) -> str:
        return read(node, prompt).replace("alpha.close", "alpha.invented()")

    report = build(tmp_path, ScriptedModel(reply))
    assert report.flagged == 1
    text = report.page.read_text("utf-8")
    for shown in (
        "alphaware",
        "Nothing is done here.",
        "it teaches nothing",
        "alpha.invented",
        "torn.md: it is binary",
    ):
        assert shown in text
    assert "<b>us</b>" not in text
    assert "<script" not in text


def test_wide_code_does_not_widen_the_page(tmp_path: Path, browser: str) -> None:
    write_pages(tmp_path / "docs", "alpha")
    code = "alpha.made(" + "x" * 400 + ")"
    wide = procedure("alpha").replace("`alpha.start`", f"so:\n```\n{code}\n```")
    with opened(build(tmp_path, ScriptedModel([wide])).page, tmp_path / "profile") as tab:
        tab.js("document.querySelector('details').open = true")
        assert tab.js("document.documentElement.scrollWidth <= window.innerWidth")
        assert tab.js("document.querySelector('li.flagged .missing').textContent").startswith(
            "Not in the document:"
        )


def test_strict_rejects_what_the_document_does_not_have(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    model = ScriptedModel(
        lambda node, prompt: read(node, prompt).replace("alpha.close", "alpha.invented()")
    )
    report = build(tmp_path, model, context={"strict": True})
    assert (report.procedures, report.rejected) == (0, 1)


def test_what_is_done_is_not_asked_again(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    build(tmp_path)
    (tmp_path / "docs" / "beta.md").write_text(page("beta", "shut"))
    write_pages(tmp_path / "docs", "gamma")
    model = ScriptedModel(read)
    report = build(tmp_path, model)
    assert len(model.calls) == 2
    assert (report.documents, report.unchanged, report.stale) == (3, 1, 1)
    again = ScriptedModel(read)
    assert build(tmp_path, again).unchanged == 3
    assert again.calls == []


def test_a_changed_page_leaves_the_old_procedure_stale_and_brings_it_back(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    build(tmp_path)
    (old,) = procedures(tmp_path).values()
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.add(
            [
                Procedure.from_dict(
                    {**old.to_dict(), "metadata": {**old.metadata, "votes": [{"vote": 1}]}}
                )
            ]
        )
    (tmp_path / "docs" / "alpha.md").write_text(page("alpha", "shut"))
    build(tmp_path)
    with open_memory(str(tmp_path / "m.db")) as memory:
        stale = memory.get(old.id)
        assert stale
        assert stale.metadata["stale"] == f"{tmp_path}/docs/alpha.md no longer teaches it"
        assert [one.steps[1] for one in memory if "stale" not in one.metadata] == [
            "alphashut `alpha.shut`."
        ]
    (tmp_path / "docs" / "alpha.md").write_text(page("alpha"))
    build(tmp_path)
    with open_memory(str(tmp_path / "m.db")) as memory:
        kept = memory.get(old.id)
        assert kept
        assert "stale" not in kept.metadata
        assert kept.metadata["votes"] == [{"vote": 1}]
        assert [one.steps[1] for one in memory if "stale" in one.metadata] == [
            "alphashut `alpha.shut`."
        ]


def test_other_settings_build_again(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    build(tmp_path)
    model = ScriptedModel({"extract": [procedure("alpha")], "verify": ["MISSING: a key"]})
    report = build(tmp_path, model, context={"verify": True})
    assert (report.placed, report.stale) == ({"present": 1}, 0)
    built = procedures(tmp_path)["alphaware"].metadata["built"]
    assert (built["verified"], built["missing"]) == (False, "a key")


def test_a_killed_build_goes_on_where_it_was(tmp_path: Path) -> None:
    names = [f"page{number}x" for number in range(24)]
    folder = write_pages(tmp_path / "docs", *names)
    command = [sys.executable, "-m", "tests.building.built", str(folder), str(tmp_path / "m.db")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        before = [process.stdout.readline().strip() for _ in range(9)]
        process.kill()
        before += process.stdout.read().split()
    assert process.returncode == -signal.SIGKILL
    model = ScriptedModel(read)
    build(tmp_path, model)
    asked = Counter([*before, *(name_in(call.prompt) for call in model.calls)])
    assert set(asked) == set(names)
    assert sum(asked.values()) - len(names) <= 7, (
        "only what was under way at the kill is asked again"
    )
    assert {record["source"] for record in read_records(tmp_path / "m.db.build")} == {
        str(folder / f"{name}.md") for name in names
    }
    assert sorted(procedures(tmp_path)) == sorted(f"{name}ware" for name in names)


def test_what_was_found_but_not_added_is_added_without_asking(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    (tmp_path / "docs" / "alpha.md").write_text(
        page("alpha") + "\nThe key is `sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12`.\n"
    )

    def reply(node: str, prompt: str) -> str:
        return read(node, prompt).replace("alpha.start", "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12")

    with (
        Unwritable(tmp_path / "m.db", embeddings="none") as full,
        pytest.raises(RunStopped) as stopped,
    ):
        build(tmp_path, ScriptedModel(reply), memory=full, concurrency=1)
    assert "the disk is full; make room" in str(stopped.value)
    assert f"what was found is kept in {tmp_path}/m.db.build" in str(stopped.value)
    model = ScriptedModel(reply)
    assert build(tmp_path, model).placed == {"added": 2}
    assert len(model.calls) == 1
    assert (
        procedures(tmp_path)["alphaware"].steps[0]
        == "alphaopen `sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12`."
    )


def test_an_emptied_memory_is_filled_again_without_asking(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    build(tmp_path)
    (tmp_path / "m.db").unlink()
    model = ScriptedModel(read)
    assert build(tmp_path, model).placed == {"added": 2}
    assert model.calls == []
    assert len(procedures(tmp_path)) == 2


def test_another_memory_is_filled_again_whatever_it_holds(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", "alpha", "beta", "gamma")
    build(tmp_path)
    (tmp_path / "m.db").unlink()
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        memory.add([Procedure("flour", "a cake", ("Bake it.",))])
    model = ScriptedModel(read)
    assert build(tmp_path, model, [str(docs / "alpha.md")]).placed == {"added": 1}
    assert build(tmp_path, model).placed == {"added": 3}
    assert model.calls == []
    assert set(procedures(tmp_path)) == {"a cake", "alphaware", "betaware", "gammaware"}


def test_what_was_removed_from_the_memory_stays_out(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    build(tmp_path)
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.delete([procedures(tmp_path)["alphaware"].id])
    for _ in range(2):
        report = build(tmp_path, ScriptedModel([]))
        assert report.placed == {"added": 1, "gone": 1}
        assert "no longer has 1 procedure of earlier builds" in report.warnings[0]
        assert set(procedures(tmp_path)) == {"betaware"}


def test_what_two_documents_taught_is_stale_when_neither_does(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", "alpha", "beta")
    (docs / "again.md").write_text(page("alpha") + "\nMore.\n")
    build(tmp_path)
    for name, stale in (("alpha", 0), ("again", 1)):
        (docs / f"{name}.md").write_text("# About\n\nNothing is done here.\n")
        assert build(tmp_path).stale == stale
        found = procedures(tmp_path)["alphaware"]
        assert ("stale" in found.metadata) == bool(stale)
        assert found.source == f"{docs}/again.md#task-alpha"
    (docs / "alpha.md").write_text(page("alpha"))
    assert build(tmp_path).placed == {"added": 1, "present": 1}
    found = procedures(tmp_path)["alphaware"]
    assert ("stale" in found.metadata, found.metadata["built"]["from"]) == (
        False,
        f"{docs}/alpha.md",
    )


def test_what_was_merged_from_two_documents_is_stale_when_neither_teaches_it(
    tmp_path: Path,
) -> None:
    docs = write_pages(tmp_path / "docs", "alpha")
    (docs / "again.md").write_text(page("alpha", "shut"))

    def reply(node: str, prompt: str) -> str:
        merged = "\nOUTPUT: alphaware\nINPUT: alphastuff\nSTEPS:\n1. alphaopen `alpha.start`."
        return (
            f"DIFFERENCE: NONE\nVERDICT: SAME{merged}" if node == "compare" else read(node, prompt)
        )

    build(tmp_path, ScriptedModel(reply), context={"max_characters": 5_000})
    assert build(tmp_path, ScriptedModel(reply)).stale == 0, "both are read again, and teach it"
    for name, stale in (("alpha", 0), ("again", 1)):
        (docs / f"{name}.md").write_text("# About\n\nNothing is done here.\n")
        assert build(tmp_path).stale == stale


def test_a_procedure_that_was_left_out_takes_the_place_of_a_stale_one(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", "alpha")
    (docs / "again.md").write_text(page("alpha", "shut"))

    def reply(node: str, prompt: str) -> str:
        return "DIFFERENCE: NONE\nVERDICT: SAME" if node == "compare" else read(node, prompt)

    def standing() -> dict[str, bool]:
        """Builds, and says of each second step whether it is stale."""
        build(tmp_path, ScriptedModel(reply), on_duplicate="skip", concurrency=1)
        with open_memory(str(tmp_path / "m.db")) as memory:
            return {one.steps[1]: "stale" in one.metadata for one in memory}

    close, shut = "alphaclose `alpha.close`.", "alphashut `alpha.shut`."
    assert standing() == {shut: False}
    (docs / "again.md").write_text("# About\n\nNothing is done here.\n")
    standing()
    for _ in range(3):
        assert standing() == {shut: True, close: False}


def test_a_folder_under_another_name_is_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    build(tmp_path)
    monkeypatch.chdir(tmp_path)
    model = ScriptedModel(read)
    for other in ("docs", "./link/../docs/", "link"):
        report = build(tmp_path, model, [other, str(tmp_path / "docs")])
        assert (report.documents, report.unchanged, model.calls) == (2, 2, [])
    write_pages(tmp_path / "docs", "gamma")
    (tmp_path / "docs" / "alpha.md").write_text(page("alpha", "shut"))
    assert build(tmp_path, sources=["docs"]).stale == 1
    assert {one.source.partition("#")[0] for one in procedures(tmp_path).values()} == {
        f"{tmp_path}/docs/alpha.md",
        f"{tmp_path}/docs/beta.md",
        "docs/gamma.md",
    }


def test_a_build_does_not_read_its_own_records(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    for _ in range(2):
        report = build(tmp_path, sources=[str(tmp_path)])
        assert (report.documents, report.page.exists()) == (1, True)
    assert build(tmp_path, sources=[str(tmp_path), str(report.page)]).documents == 2


def test_two_builds_into_one_memory_lose_and_double_nothing(tmp_path: Path) -> None:
    names = [f"page{number}x" for number in range(12)]
    write_pages(tmp_path / "docs", *names)

    async def one(name: str) -> BuildReport:
        with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
            docs = [str(tmp_path / "docs")]
            return await build_memory(
                docs, memory, model=ScriptedModel(read), directory=tmp_path / name
            )

    async def both() -> list[BuildReport]:
        return await asyncio.gather(one("a"), one("b"))

    reports = asyncio.run(both())
    assert [(one.procedures, one.failed) for one in reports] == [(12, []), (12, [])]
    assert len(procedures(tmp_path)) == 12


def test_two_builds_in_one_directory_are_refused(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    refused: list[str] = []

    def second() -> None:
        with pytest.raises(BadInput) as error:
            build(tmp_path, ScriptedModel([]))
        refused.append(str(error.value))

    def reply(node: str, prompt: str) -> str:
        other = Thread(target=second)
        other.start()
        other.join()
        return read(node, prompt)

    build(tmp_path, ScriptedModel(reply))
    assert refused == [
        f"a build is running into {tmp_path}/m.db.build; wait for it or name another directory"
    ]


def test_a_directory_of_another_memory_or_of_other_files_is_refused(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    build(tmp_path)
    with pytest.raises(
        BadInput, match=r"belongs to builds of m\.db, not of other\.db; name another directory"
    ):
        build(tmp_path, memory=str(tmp_path / "other.db"), directory=tmp_path / "m.db.build")
    with pytest.raises(BadInput, match=r"holds other files, such as 'alpha\.md'"):
        build(tmp_path, directory=tmp_path / "docs")


def test_a_page_that_fails_costs_the_page_and_is_tried_again(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta", "gamma")

    def reply(node: str, prompt: str) -> Reply:
        return (
            ZeroDivisionError("a fault in the model")
            if "betastuff" in prompt
            else read(node, prompt)
        )

    (failed,) = build(tmp_path, ScriptedModel(reply), concurrency=1).failed
    assert failed.where == f"{tmp_path}/docs/beta.md"
    assert failed.reason.startswith("1 part of it could not be read: ")
    assert failed.reason.endswith("ZeroDivisionError: a fault in the model")
    model = ScriptedModel(read)
    report = build(tmp_path, model)
    assert (len(model.calls), report.failed) == (1, [])
    assert report.usage["calls"] == 4, "the call that failed is paid for, too"
    assert len(procedures(tmp_path)) == 3


@pytest.mark.parametrize("refusing_from", [0, 2])
def test_a_model_that_refuses_every_call_stops_the_build(
    tmp_path: Path, refusing_from: int
) -> None:
    """At once where it has answered nothing; else one page may be what it refuses."""
    write_pages(tmp_path / "docs", *(f"page{number:02}x" for number in range(20)))
    answered = iter(range(100))

    def reply(node: str, prompt: str) -> Reply:
        return read(node, prompt) if next(answered) < refusing_from else Refusal("no such key")

    model = ScriptedModel(reply)
    with pytest.raises(RunStopped, match=r"the build was stopped: .*no such key"):
        build(tmp_path, model, concurrency=1)
    assert len(model.calls) == (12 if refusing_from else 1)


def test_a_budget_stops_the_build_which_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", *(f"page{number}x" for number in range(6)))
    with pytest.raises(
        RunStopped, match="the budget of 2 calls is used up: 2 of 6 documents are done"
    ):
        build(tmp_path, concurrency=1, budget=Budget(calls=2))
    with pytest.raises(
        RunStopped, match="the budget of 2 calls is used up: 2 of 6 documents are done"
    ):
        build(tmp_path, model := ScriptedModel(read), budget=Budget(calls=2))
    assert model.calls == [], "what earlier builds used counts from the start"
    seen: list[Progress] = []
    assert build(tmp_path, budget=Budget(calls=100), on_progress=seen.append).unchanged == 2
    assert (seen[-1].done, seen[-1].calls) == (6, 6)
    with pytest.raises(BadInput, match="needs the price of every model"):
        build(tmp_path, budget=Budget(usd=1.0))


def test_what_is_unchanged_uses_nothing_of_a_budget(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", *(f"page{number}x" for number in range(6)))
    for calls in (2, 4):
        with pytest.raises(
            RunStopped, match=f"{calls} calls is used up: {calls} of 6 documents are done"
        ):
            build(tmp_path, budget=Budget(calls=calls))
    assert build(tmp_path, budget=Budget(calls=6)).unchanged == 4
    assert build(tmp_path, budget=Budget(calls=6)).unchanged == 6
    (docs / "page0x.md").write_text(page("other"))
    with pytest.raises(
        RunStopped, match="the budget of 6 calls is used up: 5 of 6 documents are done"
    ):
        build(tmp_path, model := ScriptedModel(read), budget=Budget(calls=6))
    assert model.calls == []
    assert build(tmp_path, budget=Budget(calls=7)).unchanged == 5


def test_no_more_documents_are_begun_than_a_budget_has_calls(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", *(f"page{number}x" for number in range(20)))
    with pytest.raises(
        RunStopped, match="the budget of 3 calls is used up: 3 of 20 documents are done"
    ):
        build(tmp_path, model := ScriptedModel(read, latency=0.01), budget=Budget(calls=3))
    assert len(model.calls) == 3


def test_documents_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", "alpha")
    (docs / "binary.md").write_bytes(b"PK\0\1")
    (docs / "empty.md").write_text("  \n")
    with (docs / "huge.md").open("wb") as file:
        file.truncate(50_000_001)
    report = build(tmp_path)
    assert {Path(one.where).name: one.reason for one in report.failed} == {
        "binary.md": "it is binary",
        "huge.md": "it is larger than 20 MB",
    }
    assert (report.procedures, report.usage["calls"]) == (1, 1)


def test_a_source_that_disappears_in_the_middle_costs_what_is_left_of_it(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", "alpha", "beta", "gamma")

    def reply(node: str, prompt: str) -> str:
        docs.rename(tmp_path / "away")
        return read(node, prompt)

    report = build(tmp_path, ScriptedModel(reply), concurrency=1)
    assert report.placed == {"added": 1}
    assert [one.reason for one in report.failed] == [
        "it cannot be read: No such file or directory"
    ] * 2
    (tmp_path / "away").rename(docs)
    model = ScriptedModel(read)
    build(tmp_path, model)
    assert len(model.calls) == 2
    assert len(procedures(tmp_path)) == 3


def test_a_memory_that_cannot_be_changed_is_refused_before_any_call(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    (tmp_path / "m.jsonl").write_text(
        json.dumps({"input": "a", "output": "b", "steps": ["c"]}) + "\n"
    )
    model = ScriptedModel([])
    with pytest.raises(ReadOnlyMemory, match="can be searched, not changed"):
        build(tmp_path, model, memory=str(tmp_path / "m.jsonl"))
    with pytest.raises(ModelUnknown, match="nowhere:model"):
        build(tmp_path, model="nowhere:model")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("# 任务\n\n先打开 `a.start`，然后关闭 `a.stop`。\n", "zh"),
        ("# Aufgabe\n\nÖffne `a.start`.\n", "de"),
    ],
)
def test_documents_in_other_languages_are_read(tmp_path: Path, text: str, language: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(text, "utf-8")
    reply = (
        f"PROCEDURE\nOutput: 开始 {language}\nInput: 文件\n1. 打开 `a.start`。\n2. 关闭 `a.start`。"
    )
    assert build(tmp_path, ScriptedModel([reply])).placed == {"added": 1}


class Roots(BaseTracer):
    """Keeps root runs."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def test_each_document_is_a_root_run_with_its_name(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    tracer = Roots()
    build(tmp_path, callbacks=[tracer])
    runs = {run.name: (run.extra or {})["metadata"] for run in tracer.roots}
    assert set(runs) == {"Task alpha", "Task beta"}
    assert runs["Task alpha"]["stepcraft_graph"] == "extract"
    assert runs["Task alpha"]["stepcraft_source"] == f"{tmp_path}/docs/alpha.md"
    assert runs["Task alpha"]["stepcraft_version"]
    traces = {record["trace"] for record in read_records(tmp_path / "m.db.build")}
    assert traces == {str(run.id) for run in tracer.roots}


@pytest.mark.parametrize(("how", "count"), [("merge", 1), ("keep", 2), ("skip", 1)])
def test_procedures_for_the_same_task(tmp_path: Path, how: Any, count: int) -> None:
    write_pages(tmp_path / "docs", "alpha")
    (tmp_path / "docs" / "again.md").write_text(page("alpha", "shut"))
    replies: dict[str, Callable[[str], str]] = {
        "extract": lambda prompt: read("", prompt),
        "compare": lambda _: (
            "DIFFERENCE: NONE\nVERDICT: SAME\nOUTPUT: alphaware\nINPUT: alphastuff\nSTEPS:\n"
            "1. alphaopen `alpha.start`.\n2. alphaclose `alpha.close` or alphashut `alpha.shut`."
        ),
    }
    model = ScriptedModel(lambda node, prompt: replies[node](prompt))
    report = build(tmp_path, model, on_duplicate=how)
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        assert memory.count() == count
    assert set(report.placed) == {
        "added",
        {"merge": "merged", "keep": "linked", "skip": "skipped"}[how],
    }
    assert report.usage["nodes"]["compare"]["calls"] == 1


def test_a_memory_in_weaviate(tmp_path: Path, new_collection: Callable[..., str]) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    url, directory = new_collection(), tmp_path / "records"
    assert build(tmp_path, memory=url, directory=directory).placed == {"added": 2}
    (tmp_path / "docs" / "beta.md").write_text(page("beta", "shut"))
    model = ScriptedModel(read)
    assert build(tmp_path, model, memory=url, directory=directory).stale == 1
    assert len(model.calls) == 1
    with open_memory(url, embeddings="none") as memory:
        assert sorted((one.output, "stale" in one.metadata) for one in memory) == [
            ("alphaware", False),
            ("betaware", False),
            ("betaware", True),
        ]


def test_sections_of_a_long_document_share_the_calls_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    parts = (f"# Task part{number}x\n\n" + "Nothing is done here. " * 40 for number in range(9))
    (tmp_path / "docs" / "long.md").write_text("\n\n".join(parts))
    model = ScriptedModel(read, latency=0.02)
    build(tmp_path, model, concurrency=3, context={"max_characters": 1_000, "overlap": 0})
    begun = sorted(call.started for call in model.calls)
    ended = sorted(call.ended or 0.0 for call in model.calls)
    at_once = [
        sum(one <= moment for one in begun) - sum(one < moment for one in ended) for moment in begun
    ]
    assert len(begun) == 9
    assert max(at_once) == 3
