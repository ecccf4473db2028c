"""Memories built from documents: what is asked, what is kept, what is added, and what is refused."""

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langchain_core.tracers.context import collect_runs

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
from stepcraft.building.ledger import Ledger
from stepcraft.building.provenance import Provenance
from stepcraft.errors import AddReport
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
    report = build(tmp_path)
    assert (report.documents, report.procedures, report.placed) == (3, 2, {"added": 2})
    assert (report.flagged, report.rejected, report.failed) == (0, 1, [])
    assert report.usage["calls"] == 3
    procedure = procedures(tmp_path)["alphaware"]
    assert procedure.steps == ("alphaopen `alpha.start`.", "alphaclose `alpha.close`.")
    assert procedure.source == f"{tmp_path}/docs/alpha.md#task-alpha"
    provenance = Provenance.of(procedure)
    assert [each.document for each in provenance.teachers] == [f"{tmp_path}/docs/alpha.md"]
    assert provenance.model == "ScriptedModel"


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
            [Procedure.from_dict({**old.to_dict(), "metadata": {**old.metadata, "by": "cook"}})]
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
        assert kept.metadata["by"] == "cook"
        assert [one.steps[1] for one in memory if "stale" in one.metadata] == [
            "alphashut `alpha.shut`."
        ]


@pytest.mark.parametrize("moment", ["a call", "an addition"])
def test_a_killed_build_goes_on_and_asks_nothing_twice(tmp_path: Path, moment: str) -> None:
    names = [f"page{number}x" for number in range(20)]
    folder = write_pages(tmp_path / "docs", *names)
    command = [sys.executable, "-m", "tests.building.built", str(folder), str(tmp_path / "m.db")]
    killed = subprocess.run(
        [*command, moment], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    before = killed.stdout.split()
    assert len(before) == 7
    model = ScriptedModel(read)
    assert build(tmp_path, model).documents == 20
    asked = Counter([*before, *(name_in(call.prompt) for call in model.calls)])
    assert asked == Counter(names)
    whole = write_pages(tmp_path / "docs", *names)
    build(tmp_path, memory=str(tmp_path / "other.db"), sources=[str(whole)])
    with open_memory(str(tmp_path / "other.db"), embeddings="none") as other:
        assert {each.output: each.id for each in other} == {
            each.output: each.id for each in procedures(tmp_path).values()
        }


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
        build(tmp_path, ScriptedModel([]))
        assert set(procedures(tmp_path)) == {"betaware"}


@pytest.mark.parametrize("shared", ["one ledger", "one folder"])
def test_memories_share_no_records(tmp_path: Path, shared: str) -> None:
    """Staging and production had the same records where the last part of their names is the same."""
    write_pages(tmp_path / "docs", "alpha", "beta")
    ledger = tmp_path / "builds" if shared == "one ledger" else None
    common: list[Procedure] = []
    for name in ("staging", "prod"):
        (tmp_path / name).mkdir()
        url = str(tmp_path / name / "m.db")
        with open_memory(url, embeddings="none") as memory:
            memory.add(common)
        report = build(tmp_path, memory=url, ledger=ledger)
        assert sum(report.placed.values()) == 2
        with open_memory(url, embeddings="none") as memory:
            common = [*memory][:1]
            assert memory.count() == 2


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
    assert ("stale" in found.metadata, found.source) == (False, f"{docs}/alpha.md#task-alpha")


def test_what_a_file_that_is_gone_taught_is_stale_until_it_is_back(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", "alpha", "beta")
    build(tmp_path)
    (docs / "alpha.md").rename(tmp_path / "away.md")
    assert [build(tmp_path, ScriptedModel([])).stale for _ in range(2)] == [1, 0]
    stale = {name: each.metadata.get("stale") for name, each in procedures(tmp_path).items()}
    assert stale == {"alphaware": f"{docs}/alpha.md no longer teaches it", "betaware": None}
    (tmp_path / "away.md").rename(docs / "alpha.md")
    report = build(tmp_path, ScriptedModel([]))
    assert (report.unchanged, report.placed) == (2, {"present": 1, "added": 1})
    assert "stale" not in procedures(tmp_path)["alphaware"].metadata


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

    report = build(tmp_path, ScriptedModel(reply), context={"max_characters": 5_000})
    assert (report.placed, report.usage["nodes"]["compare"]["calls"]) == (
        {"added": 1, "merged": 1},
        1,
    )
    again = build(tmp_path, ScriptedModel(reply))
    assert (again.unchanged, again.stale) == (0, 0), "both are read again, and teach it"
    for name, stale in (("alpha", 0), ("again", 1)):
        (docs / f"{name}.md").write_text("# About\n\nNothing is done here.\n")
        assert build(tmp_path).stale == stale


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
    assert {each.source.partition("#")[0] for each in procedures(tmp_path).values()} == {
        "docs/alpha.md",
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
                docs, memory, model=ScriptedModel(read), ledger=tmp_path / name
            )

    async def both() -> list[BuildReport]:
        return await asyncio.gather(one("a"), one("b"))

    reports = asyncio.run(both())
    assert [(one.procedures, one.failed) for one in reports] == [(12, []), (12, [])]
    assert len(procedures(tmp_path)) == 12


def test_two_builds_with_one_ledger_are_refused(tmp_path: Path) -> None:
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
        f"a build is running with {tmp_path}/m.db.build; wait for it or name another ledger"
    ]


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", "alpha")
    with pytest.raises(BadInput, match=r"alpha\.md cannot be a ledger: .*; name another file"):
        build(tmp_path, ledger=docs / "alpha.md")


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
    with Ledger(tmp_path / "m.db.build", str(tmp_path / "m.db")) as ledger:
        assert ledger.calls() == 4, "the call that failed is paid for, too"
    assert len(procedures(tmp_path)) == 3


def test_a_model_that_refuses_every_call_stops_the_build(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", *(f"page{number:02}x" for number in range(20)))
    model = ScriptedModel(lambda _node, _prompt: Refusal("no such key"))
    with pytest.raises(RunStopped, match=r"no such key.*the same command goes on from there"):
        build(tmp_path, model, concurrency=1)
    assert len(model.calls) == 1
    assert len(build(tmp_path).failed) == 0


def test_a_budget_holds_over_resumed_builds(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", *(f"page{number}x" for number in range(6)))
    for calls, asked in ((2, 2), (2, 0), (4, 2)):
        reason = rf"the budget of {calls} calls is used up: {calls} of 6 documents are done"
        with pytest.raises(RunStopped, match=reason):
            build(tmp_path, model := ScriptedModel(read, latency=0.01), max_calls=calls)
        assert len(model.calls) == asked
    seen: list[int] = []
    assert build(tmp_path, max_calls=6, on_progress=lambda it: seen.append(it.done)).unchanged == 4
    assert seen == [1, 2, 3, 4, 5, 6]
    assert build(tmp_path, max_calls=6).unchanged == 6
    (docs / "page0x.md").write_text(page("other"))
    with pytest.raises(RunStopped, match="5 of 6 documents are done"):
        build(tmp_path, ScriptedModel([]), max_calls=6)
    assert build(tmp_path, max_calls=7).unchanged == 5


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


def test_each_document_is_a_root_run_with_its_name(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha", "beta")
    with collect_runs() as traced:
        build(tmp_path)
    roots = [run for run in traced.traced_runs if run.run_type == "chain"]
    runs = {run.name: (run.extra or {})["metadata"] for run in roots}
    assert set(runs) == {"Task alpha", "Task beta"}
    assert runs["Task alpha"]["stepcraft_graph"] == "extract"
    assert runs["Task alpha"]["stepcraft_source"] == f"{tmp_path}/docs/alpha.md"
    assert runs["Task alpha"]["stepcraft_version"]


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
