"""Memories built from documents: what is asked, what is kept, what is added, and what is refused."""

import asyncio
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
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
from stepcraft.building.dedupe import dedupe
from stepcraft.building.duplicates import Placer
from stepcraft.building.ledger import Ledger, ledger_of
from stepcraft.building.provenance import Provenance
from stepcraft.building.report import write_page
from stepcraft.errors import AddReport
from stepcraft.memory.local import LocalMemory
from tests.building.built import NOTHING, name_in, page, procedure, read, write_pages
from tests.kitchen import dish
from tests.scripted import Reply, ScriptedModel
from tests.servers.chromium import opened
from tests.servers.pages_server import PagesServer, Served, html

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
    """The procedures in `folder/m.db` by what their last steps say first."""
    with open_memory(str(folder / "m.db"), embeddings="none") as memory:
        return {each.steps[-1].split()[0]: each for each in memory}


def marks(folder: Path) -> dict[str, str | None]:
    """Why these procedures are stale; None for what is not."""
    return {last: each.metadata.get("stale") for last, each in procedures(folder).items()}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """The folder that is built, with a page."""
    return write_pages(tmp_path / "docs", "alpha")


def test_pages_become_procedures_that_say_where_they_come_from(docs: Path, tmp_path: Path) -> None:
    write_pages(docs, "beta")
    (docs / "about.md").write_text("# About\n\nNothing is done here.\n")
    report = build(tmp_path)
    assert (report.documents, report.procedures, report.placed) == (3, 2, {"added": 2})
    assert (report.flagged, report.rejected, report.failed) == (0, 1, [])
    assert report.usage["calls"] == 3
    procedure = procedures(tmp_path)["alphaclose"]
    assert procedure.steps == ("alphaopen `alpha.start`.", "alphaclose `alpha.close`.")
    assert procedure.source == f"{docs}/alpha.md#task-alpha"
    provenance = Provenance.of(procedure)
    assert [each.document for each in provenance.teachers] == [f"{docs}/alpha.md"]
    assert provenance.model == "ScriptedModel"


def test_the_page_shows_what_was_found_rejected_and_flagged(docs: Path, tmp_path: Path) -> None:
    (docs / "about.md").write_text("# About <b>us</b>\n\nNothing is done here.\n")
    (docs / "torn.md").write_bytes(b"\0")
    invented = procedure("alpha").replace("alpha.close", "alpha.invented()")
    model = ScriptedModel(
        lambda _node, prompt: invented if "alphastuff" in prompt else NOTHING.format("us")
    )
    report = build(tmp_path, model)
    assert report.flagged == 1
    text = report.page.read_text("utf-8")
    shown = "alphaware|Nothing is done here.|it teaches nothing|alpha.invented|it is binary"
    assert [each for each in shown.split("|") if each not in text] == []
    assert ("<b>us</b>" in text, "<script" in text) == (False, False)


@pytest.mark.usefixtures("docs", "browser")
def test_wide_code_does_not_widen_the_page(tmp_path: Path) -> None:
    code = "alpha.made(" + "x" * 400 + ")"
    wide = procedure("alpha").replace("`alpha.start`", f"so:\n```\n{code}\n```")
    with opened(build(tmp_path, ScriptedModel([wide])).page, tmp_path / "profile") as tab:
        tab.js("document.querySelector('details').open = true")
        assert tab.js("document.documentElement.scrollWidth <= window.innerWidth")
        assert tab.js("document.querySelector('li.flagged .missing').textContent").startswith(
            "Not in the document:"
        )


def test_what_is_done_is_not_asked_again(docs: Path, tmp_path: Path) -> None:
    write_pages(docs, "beta")
    build(tmp_path)
    write_pages(docs, "alpha", "gamma", beta="shut")
    report = build(tmp_path, model := ScriptedModel(read))
    assert (report.documents, report.unchanged, report.stale, len(model.calls)) == (3, 1, 1, 2)
    assert build(tmp_path, ScriptedModel([])).unchanged == 3


def test_a_changed_page_leaves_the_old_procedure_stale_and_brings_it_back(
    docs: Path, tmp_path: Path
) -> None:
    build(tmp_path)
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.add([replace(each, metadata={**each.metadata, "by": "cook"}) for each in memory])
    reason = f"{docs}/alpha.md no longer teaches it"
    write_pages(docs, alpha="shut")
    build(tmp_path)
    assert marks(tmp_path) == {"alphaclose": reason, "alphashut": None}
    write_pages(docs, "alpha")
    build(tmp_path)
    assert marks(tmp_path) == {"alphaclose": None, "alphashut": reason}
    assert procedures(tmp_path)["alphaclose"].metadata["by"] == "cook"


def test_a_file_that_was_only_touched_is_read_once_more(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path)
    os.utime(docs / "alpha.md", (0, 0))
    assert build(tmp_path, ScriptedModel([])).unchanged == 1
    monkeypatch.delattr("stepcraft.building.sources.read_content")
    report = build(tmp_path, ScriptedModel([]))
    assert (report.unchanged, report.failed, report.placed) == (1, [], {"added": 1})


def test_the_page_counts_the_documents_that_it_does_not_show(docs: Path, tmp_path: Path) -> None:
    write_pages(docs, "beta", "gamma")
    facts = r"3 documents\W.*3 procedures\W.*3 model calls\W"
    text = build(tmp_path).page.read_text("utf-8")
    assert (re.search(facts, text, re.DOTALL) is None, "are shown" in text) == (False, False)
    memory = str(tmp_path / "m.db")
    with Ledger(tmp_path / "m.db.build", memory) as ledger:
        write_page(ledger, memory, [], most=2)
        text = ledger.page.read_text("utf-8")
    assert re.search(rf"{facts}.*the latest 2 are shown", text, re.DOTALL)


@pytest.mark.usefixtures("docs")
def test_a_page_that_cannot_be_written_is_a_warning_and_hides_no_reason(tmp_path: Path) -> None:
    (tmp_path / "m.db.build.html").mkdir()
    with (
        Unwritable(tmp_path / "m.db", embeddings="none") as full,
        pytest.raises(RunStopped, match="the disk is full; make room"),
    ):
        build(tmp_path, memory=full)
    report = build(tmp_path)
    assert report.placed == {"added": 1}
    assert f"{report.page} cannot be written: " in report.warnings[-1]


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
    build(tmp_path, memory=str(tmp_path / "other.db"), ledger=tmp_path / "other")
    with open_memory(str(tmp_path / "other.db"), embeddings="none") as other:
        assert {each.id for each in other} == {each.id for each in procedures(tmp_path).values()}


def test_what_was_found_but_not_added_is_added_without_asking(docs: Path, tmp_path: Path) -> None:
    write_pages(docs, "beta")
    key = "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12"
    (docs / "alpha.md").write_text(f"{page('alpha')}\nThe key is `{key}`.\n")

    def reply(node: str, prompt: str) -> str:
        return read(node, prompt).replace("alpha.start", key)

    with (
        Unwritable(tmp_path / "m.db", embeddings="none") as full,
        pytest.raises(RunStopped) as stopped,
    ):
        build(tmp_path, ScriptedModel(reply), memory=full, concurrency=1)
    assert "the disk is full; make room" in str(stopped.value)
    assert f"what was found is kept in {tmp_path}/m.db.build" in str(stopped.value)
    assert build(tmp_path, model := ScriptedModel(reply)).placed == {"added": 2}
    assert len(model.calls) == 1
    assert procedures(tmp_path)["alphaclose"].steps[0] == f"alphaopen `{key}`."


def test_another_memory_is_filled_again_whatever_it_holds(docs: Path, tmp_path: Path) -> None:
    write_pages(docs, "beta", "gamma")
    build(tmp_path)
    (tmp_path / "m.db").unlink()
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        memory.add([Procedure("flour", "a cake", ("Bake it.",))])
    nothing = ScriptedModel([])
    assert build(tmp_path, nothing, [str(docs / "alpha.md")]).placed == {"added": 1}
    assert build(tmp_path, nothing).placed == {"added": 3}
    assert {*procedures(tmp_path)} == {"Bake", "alphaclose", "betaclose", "gammaclose"}


def test_another_memory_is_filled_again_although_the_latest_pages_taught_nothing(
    docs: Path, tmp_path: Path
) -> None:
    for number in range(25):
        (docs / f"reference{number}.md").write_text(
            f"# Reference {number}\n\nNothing is done here.\n"
        )
    build(tmp_path, concurrency=1)
    assert build(tmp_path, ScriptedModel([])).placed == {"added": 1}
    (tmp_path / "m.db").unlink()
    build(tmp_path, ScriptedModel([]))
    assert {*procedures(tmp_path)} == {"alphaclose"}
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.delete([procedures(tmp_path)["alphaclose"].id])
    build(tmp_path, ScriptedModel([]))
    assert procedures(tmp_path) == {}, "somebody removed it"


@pytest.mark.parametrize("left", [{"betaclose"}, {"Bake"}, set[str]()], ids=len)
def test_what_was_removed_from_the_memory_stays_out(
    docs: Path, tmp_path: Path, left: set[str]
) -> None:
    write_pages(docs, "beta")
    build(tmp_path)
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.add([Procedure("flour", "a cake", ("Bake it.",))])
        memory.delete([each.id for last, each in procedures(tmp_path).items() if last not in left])
    for _ in range(2):
        build(tmp_path, ScriptedModel([]))
        assert {*procedures(tmp_path)} == left


@pytest.mark.usefixtures("docs")
def test_what_was_removed_stays_out_although_a_part_of_its_page_cannot_be_read(
    tmp_path: Path,
) -> None:
    text = f"{procedure('alpha')}\n\n{procedure('beta')[:30]}"
    length = {"finish_reason": "length"}
    model = ScriptedModel(lambda _node, _prompt: AIMessage(text, response_metadata=length))
    assert build(tmp_path, model).placed == {"added": 1}
    (tmp_path / "m.db").unlink()
    assert build(tmp_path, model).placed == {"added": 1}, "it is another memory"
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.delete([procedures(tmp_path)["alphaclose"].id])
    for _ in range(2):
        assert build(tmp_path, model).placed == {"removed": 1}
        assert procedures(tmp_path) == {}


class Forgetful(LocalMemory):
    """A memory that does not record what was deleted, as most do not."""

    def has_deleted(self, id: str) -> bool:  # noqa: A002 - its name in the protocol
        return False


@pytest.mark.usefixtures("docs")
def test_a_memory_that_has_none_of_the_latest_procedures_is_named(tmp_path: Path) -> None:
    with Forgetful(tmp_path / "m.db", embeddings="none") as memory:
        assert build(tmp_path, memory=memory).warnings == []
        memory.delete([each.id for each in memory])
        report = build(tmp_path, ScriptedModel([]), memory=memory)
    assert (report.placed, len(report.warnings)) == ({"added": 1}, 1)
    assert "so all are added again, even if they were removed since" in report.warnings[0]


def test_what_was_removed_from_the_memory_does_not_come_back_with_a_copy_of_its_page(
    docs: Path, tmp_path: Path
) -> None:
    write_pages(docs, "beta")
    (docs / "other.md").write_text("# About\n\nNothing is done here.\n")
    build(tmp_path)
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.delete([procedures(tmp_path)["alphaclose"].id])
    for copy in ("copy.md", "other.md"):
        (docs / copy).write_text((docs / "alpha.md").read_text())
        assert build(tmp_path, ScriptedModel([])).placed["removed"]
        assert {*procedures(tmp_path)} == {"betaclose"}
    (docs / "again.md").write_text((docs / "beta.md").read_text())
    assert build(tmp_path, ScriptedModel([])).placed["present"] == 1


@pytest.mark.usefixtures("docs")
def test_what_another_memory_does_not_have_is_not_taken_for_removed(tmp_path: Path) -> None:
    ledger = tmp_path / "builds"
    build(tmp_path, ledger=ledger)
    report = build(tmp_path, ScriptedModel([]), memory=str(tmp_path / "n.db"), ledger=ledger)
    assert report.placed == {"added": 1}


def test_a_backup_from_before_a_build_is_filled_again(docs: Path, tmp_path: Path) -> None:
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        memory.add([cake := Procedure("flour", "a cake", ("Bake it.",)), dish(1)])
        memory.delete([cake.id])
    backup = (tmp_path / "m.db").read_bytes()
    build(tmp_path)
    (tmp_path / "m.db").write_bytes(backup)
    build(tmp_path, ScriptedModel([]))
    assert "alphaclose" in procedures(tmp_path)


def test_a_backup_is_filled_again_although_pages_were_touched_since(
    docs: Path, tmp_path: Path
) -> None:
    build(tmp_path)
    backup = (tmp_path / "m.db").read_bytes()
    names = [f"{first}{second}" for first in "bcdef" for second in "ghklm"]
    write_pages(docs, *names)
    build(tmp_path)
    (docs / "alpha.md").touch()
    build(tmp_path, ScriptedModel([]))
    (tmp_path / "m.db").write_bytes(backup)
    build(tmp_path, ScriptedModel([]))
    assert {*procedures(tmp_path)} == {"alphaclose", *(f"{name}close" for name in names)}


def test_what_was_removed_from_the_memory_stays_out_when_its_page_is_renamed(
    docs: Path, tmp_path: Path
) -> None:
    write_pages(docs, "beta")
    build(tmp_path)
    with open_memory(str(tmp_path / "m.db")) as memory:
        memory.delete([procedures(tmp_path)["alphaclose"].id])
    (docs / "guide").mkdir()
    for before, now in (("alpha.md", "first.md"), ("first.md", "guide/alpha.md")):
        (docs / before).rename(docs / now)
        assert build(tmp_path, ScriptedModel([])).placed["removed"] == 1
        assert {*procedures(tmp_path)} == {"betaclose"}


@pytest.mark.usefixtures("docs")
@pytest.mark.parametrize("ledger", [None, Path("builds")], ids=["one folder", "one ledger"])
def test_memories_share_no_records(tmp_path: Path, ledger: Path | None) -> None:
    """Staging and production had the same records where the last part of their names is the same.

    In one ledger a page that was read for the one is not paid for again for the other.
    """
    for name in ("staging", "prod"):
        (tmp_path / name).mkdir()
        url = str(tmp_path / name / "m.db")
        report = build(tmp_path, memory=url, ledger=ledger and tmp_path / ledger)
        assert report.placed == {"added": 1}
        assert report.unchanged == (1 if ledger and name == "prod" else 0)
    servers = (f"weaviate://{host}:8080/Recipes" for host in ("staging", "prod"))
    assert len({*map(ledger_of, servers)}) == 2


def test_what_two_documents_taught_is_stale_when_neither_does(docs: Path, tmp_path: Path) -> None:
    write_pages(docs, "beta")
    (docs / "again.md").write_text(page("alpha") + "\nMore.\n")
    build(tmp_path)
    for name, stale in (("alpha", 0), ("again", 1)):
        (docs / f"{name}.md").write_text("# About\n\nNothing is done here.\n")
        assert build(tmp_path).stale == stale
        procedure = procedures(tmp_path)["alphaclose"]
        assert ("stale" in procedure.metadata) == bool(stale)
        assert procedure.source == f"{docs}/again.md#task-alpha"
    write_pages(docs, "alpha")
    assert build(tmp_path).placed == {"added": 1, "present": 1}
    procedure = procedures(tmp_path)["alphaclose"]
    assert ("stale" in procedure.metadata, procedure.source) == (
        False,
        f"{docs}/alpha.md#task-alpha",
    )


def test_what_a_file_that_is_gone_taught_is_stale_until_it_is_back(
    docs: Path, tmp_path: Path
) -> None:
    write_pages(docs, "beta")
    build(tmp_path)
    (docs / "alpha.md").rename(tmp_path / "away.md")
    assert [build(tmp_path, ScriptedModel([])).stale for _ in range(2)] == [1, 0]
    reason = f"{docs}/alpha.md no longer teaches it"
    assert marks(tmp_path) == {"alphaclose": reason, "betaclose": None}
    (tmp_path / "away.md").rename(docs / "alpha.md")
    report = build(tmp_path, ScriptedModel([]))
    assert (report.unchanged, report.placed) == (2, {"present": 1, "added": 1})
    assert marks(tmp_path) == {"alphaclose": None, "betaclose": None}


def test_a_file_that_cannot_be_read_is_not_gone_whatever_its_folder_is_called(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(docs, "beta")
    docs.rename(folder := tmp_path / "my:docs")
    monkeypatch.chdir(tmp_path)
    build(tmp_path, sources=["my:docs"])
    (folder / "alpha.md").unlink()
    (folder / "alpha.md").symlink_to("nowhere.md")
    report = build(tmp_path, sources=["my:docs"])
    assert ([each.where for each in report.failed], report.stale) == (["my:docs/alpha.md"], 0)
    (folder / "alpha.md").unlink()
    assert build(tmp_path, sources=["my:docs"]).stale == 1


def test_a_page_that_cannot_be_fetched_is_not_gone_where_the_cache_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with PagesServer({}) as server:
        host = server.url.removesuffix("/")
        monkeypatch.setenv("STEPCRAFT_ALLOW_HOSTS", host.partition("//")[2])
        names = ("alpha", "beta", "gamma")
        lines = "".join(f"<url><loc>{host}/{name}</loc></url>" for name in names)
        server.routes |= {
            "/sitemap.xml": Served(
                f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{lines}</urlset>'.encode(),
                type="application/xml",
            ),
            **{f"/{name}": html(page(name).split("\n")[2] * 4, title=name) for name in names},
        }
        assert build(tmp_path, sources=[f"corpus:{host}/sitemap.xml"]).placed == {"added": 3}
        shutil.rmtree(tmp_path / "cache")
        server.routes |= {"/alpha": Served(status=503)}
        report = build(tmp_path, sources=[f"corpus:{host}/sitemap.xml"])
        assert ([each.where for each in report.failed], report.stale) == ([f"{host}/alpha"], 0)


def test_what_was_merged_later_is_stale_when_no_document_teaches_it(
    docs: Path, tmp_path: Path
) -> None:
    (docs / "again.md").write_text(page("alpha", "shut"))

    class Other(ScriptedModel):
        """Not asked by the build, so that no answer of it is known."""

    different = "DIFFERENCE: the end.\nVERDICT: DIFFERENT"
    model = ScriptedModel(lambda node, text: different if node == "compare" else read(node, text))
    assert build(tmp_path, model).placed == {"added": 2}
    steps = "OUTPUT: alphaware\nINPUT: alphastuff\nSTEPS:\n1. alphaopen `alpha.start`."
    same = Other([f"DIFFERENCE: NONE\nVERDICT: SAME\n{steps}"])
    with (
        open_memory(str(tmp_path / "m.db")) as memory,
        Ledger(tmp_path / "m.db.build", str(tmp_path / "m.db")) as ledger,
    ):
        assert asyncio.run(dedupe(Placer(memory, same, ledger=ledger))).count("merged") == 1
    assert build(tmp_path, ScriptedModel([])).unchanged == 2
    for name, left in (("alpha", ["again"]), ("again", ["again"])):
        (docs / f"{name}.md").unlink()
        write_pages(docs, "beta")
        assert build(tmp_path).stale == (name == "again")
        [merged] = [each for each in procedures(tmp_path).values() if each.output == "alphaware"]
        teachers = Provenance.of(merged).teachers
        assert [Path(each.document).stem for each in teachers] == left


def test_what_was_merged_from_two_documents_is_stale_when_neither_teaches_it(
    docs: Path, tmp_path: Path
) -> None:
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
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(docs, "beta")
    (tmp_path / "link").symlink_to(docs)
    build(tmp_path)
    monkeypatch.chdir(tmp_path)
    for other in ("docs", "./link/../docs/", "link"):
        report = build(tmp_path, ScriptedModel([]), [other, str(docs)])
        assert (report.documents, report.unchanged) == (2, 2)
    write_pages(docs, "gamma", alpha="shut")
    assert build(tmp_path, sources=["docs"]).stale == 1
    assert {each.source.partition("#")[0] for each in procedures(tmp_path).values()} == {
        "docs/alpha.md",
        "docs/beta.md",
        "docs/gamma.md",
    }


def test_a_project_that_was_moved_asks_nothing_again(docs: Path, tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "one", tmp_path / "two"
    write_pages(docs, "beta", "gamma")
    project.mkdir()
    docs.rename(project / "docs")
    build(project)
    project.rename(elsewhere)
    report = build(elsewhere, ScriptedModel([]))
    assert (report.unchanged, report.stale) == (3, 0)
    (elsewhere / "docs" / "alpha.md").write_text("# About\n\nNothing is done here.\n")
    (elsewhere / "docs" / "beta.md").unlink()
    assert build(elsewhere).stale == 2
    moved = f"{elsewhere}/docs"
    assert marks(elsewhere) == {
        "alphaclose": f"{moved}/alpha.md no longer teaches it",
        "betaclose": f"{moved}/beta.md no longer teaches it",
        "gammaclose": None,
    }
    assert procedures(elsewhere)["gammaclose"].source == f"{moved}/gamma.md#task-gamma"


def test_a_page_that_was_deleted_when_its_folder_was_moved_is_stale(
    docs: Path, tmp_path: Path
) -> None:
    write_pages(docs, "beta")
    build(tmp_path)
    elsewhere = docs.rename(tmp_path / "elsewhere")
    (elsewhere / "beta.md").unlink()
    report = build(tmp_path, ScriptedModel([]), [str(elsewhere)])
    assert (report.unchanged, report.stale) == (1, 1)
    assert marks(tmp_path)["betaclose"] == f"{elsewhere}/beta.md no longer teaches it"


def test_what_a_model_has_read_under_another_name_is_not_paid_for_again(
    docs: Path, tmp_path: Path
) -> None:
    (docs / "latest.md").symlink_to(docs / "alpha.md")
    assert build(tmp_path).usage["calls"] == 1
    (docs / "alpha.md").rename(docs / "renamed.md")
    (docs / "latest.md").unlink()
    report = build(tmp_path, ScriptedModel([]))
    assert (report.unchanged, report.placed) == (1, {"present": 1})
    assert marks(tmp_path) == {"alphaclose": None}
    assert procedures(tmp_path)["alphaclose"].source == f"{docs}/renamed.md#task-alpha"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_no_text_are_built_like_others(docs: Path, tmp_path: Path) -> None:
    folder = docs.rename(tmp_path / os.fsdecode(b"caf\xe9"))
    for name, last in (
        (b"caf\xe9.md", "shut"),
        (b"caf\xe8.md", "lock"),
        (b"caf\xc3\xa9.md", "bar"),
    ):
        (folder / os.fsdecode(name)).write_text(page("beta", last))
    assert build(tmp_path, sources=[str(folder)]).placed == {"added": 4}
    report = build(tmp_path, ScriptedModel([]), [str(folder)])
    assert (report.unchanged, report.failed, report.stale) == (4, [], 0)
    for name in (b"caf\xe9.md", b"caf\xc3\xa9.md"):
        (folder / os.fsdecode(name)).unlink()
    assert build(tmp_path, ScriptedModel([]), [str(folder)]).stale == 2
    stale = {last for last, why in marks(tmp_path).items() if why}
    assert stale == {"betabar", "betashut"}


def test_two_folders_may_have_files_of_the_same_path(docs: Path, tmp_path: Path) -> None:
    other = write_pages(tmp_path / "other", alpha="shut")
    report = build(tmp_path, sources=[str(docs), str(other)])
    assert (report.documents, report.placed) == (2, {"added": 2})
    assert build(tmp_path, ScriptedModel([]), [str(other), str(docs)]).unchanged == 2
    assert build(tmp_path, ScriptedModel([]), [str(other)]).stale == 0
    assert set(marks(tmp_path).values()) == {None}


@pytest.mark.usefixtures("docs")
def test_what_is_no_file_is_left_alone_when_a_file_has_the_name_of_another_document(
    tmp_path: Path,
) -> None:
    """All documents that are not files were taken for files of the folder, and for deleted ones."""
    names = {"alpha": "alpha.md", "beta": "https://tea.example/beta"}
    loaded = [Document(page(name), metadata={"source": url}) for name, url in names.items()]
    build(tmp_path, sources=[loaded])
    assert build(tmp_path).stale == 0
    beta = procedures(tmp_path)["betaclose"]
    assert (beta.metadata.get("stale"), beta.source) == (None, names["beta"] + "#task-beta")


@pytest.mark.usefixtures("docs")
def test_a_procedure_that_a_person_approved_is_named_when_it_becomes_stale(
    docs: Path, tmp_path: Path
) -> None:
    build(tmp_path)
    stored = procedures(tmp_path)["alphaclose"]
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        approved = {**stored.metadata, "approved": {"by": "cook"}}
        memory.update(stored.id, lambda kept: replace(kept, metadata=approved))
    write_pages(docs, alpha="shut")
    report = build(tmp_path)
    assert (report.stale, {*procedures(tmp_path)}) == (1, {"alphaclose", "alphashut"})
    [warning] = report.warnings
    assert f"no longer teaches 'alphaware' ({stored.id}), which a person approved" in warning


@pytest.mark.usefixtures("docs")
@pytest.mark.parametrize("words", ["task", "renamed task"])
@pytest.mark.parametrize("moved", [False, True])
def test_a_procedure_that_was_removed_stays_out_after_its_page_is_edited(
    docs: Path, tmp_path: Path, words: str, moved: bool
) -> None:
    write_pages(docs, "beta")
    build(tmp_path)
    if moved:
        docs.rename(tmp_path / "elsewhere")
        docs = tmp_path / "elsewhere"
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        memory.delete([procedures(tmp_path)["alphaclose"].id])
    for edit in ("A typo less.", "Another one."):
        with (docs / "alpha.md").open("a") as file:
            file.write(f"\n{edit}\n")
        model = ScriptedModel(lambda node, prompt: read(node, prompt).replace("ware", f" {words}"))
        assert build(tmp_path, model, [str(docs)]).placed == {"added": 1, "removed": 1}
        assert {*procedures(tmp_path)} == {"betaclose"}


@pytest.mark.parametrize("name", ["alpha", "again"])
def test_a_linked_procedure_that_was_removed_stays_out_after_its_page_is_edited(
    docs: Path, tmp_path: Path, name: str
) -> None:
    (docs / "again.md").write_text(page("alpha", "shut"))

    def reply(node: str, prompt: str) -> str:
        return "DIFFERENCE: NONE\nVERDICT: SAME" if node == "compare" else read(node, prompt)

    assert build(tmp_path, ScriptedModel(reply)).placed == {"added": 1, "linked": 1}
    last, other = ("close", "shut") if name == "alpha" else ("shut", "close")
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        memory.delete([procedures(tmp_path)[f"alpha{last}"].id])
    (docs / f"{name}.md").write_text(page("alpha", last) + "\nA typo less.\n")
    assert build(tmp_path, ScriptedModel(reply)).placed["removed"] == 1
    [left] = procedures(tmp_path).values()
    assert left.steps[-1].startswith(f"alpha{other}")
    assert len(Provenance.of(left).teachers) == 1


def test_one_of_two_tasks_below_a_heading_stays_out_after_both_are_edited(
    docs: Path, tmp_path: Path
) -> None:
    both = f"{page('alpha')}{page('beta').partition(chr(10))[2]}"

    def read_both(_node: str, prompt: str) -> str:
        last = "shut" if "betashut" in prompt else "close"
        replies = [procedure("alpha", last), procedure("beta", last)]
        return "\n\n".join(replies).replace("Heading: Task beta", "Heading: Task alpha")

    def built() -> Counter[str]:
        return build(tmp_path, ScriptedModel(read_both)).placed

    (docs / "alpha.md").write_text(both)
    assert built() == {"added": 2}
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        memory.delete([procedures(tmp_path)["alphaclose"].id])
    (docs / "alpha.md").write_text(both.replace("close", "shut"))
    assert built() == {"added": 1, "removed": 1}
    assert {*procedures(tmp_path)} == {"betaclose", "betashut"}  # the first is stale


@pytest.mark.parametrize(
    ("options", "message"), [({"concurrency": 0}, "0 and None"), ({"max_calls": -1}, "8 and -1")]
)
@pytest.mark.usefixtures("docs")
def test_wrong_numbers_are_refused(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(BadInput, match=f"at least 1 and max_calls at least 0, not {message}"):
        build(tmp_path, **options)


@pytest.mark.usefixtures("docs")
def test_with_no_calls_no_model_is_asked(tmp_path: Path) -> None:
    with pytest.raises(RunStopped, match="budget of 0 calls is used up: 0 of 1 documents"):
        build(tmp_path, ScriptedModel([]), max_calls=0)


def test_with_no_calls_no_procedures_are_compared(docs: Path, tmp_path: Path) -> None:
    (docs / "again.md").write_text(page("alpha", "shut"))
    pages = [str(docs / f"{name}.md") for name in ("alpha", "again")]

    def into(name: str, *sources: str, **options: Any) -> Counter[str]:
        options = {"memory": str(tmp_path / name), "ledger": tmp_path / "builds", **options}
        return build(tmp_path, sources=[*sources], concurrency=1, **options).placed

    def reply(node: str, prompt: str) -> str:
        return "DIFFERENCE: NONE\nVERDICT: SAME" if node == "compare" else read(node, prompt)

    for place, source in enumerate(pages):
        assert into(f"{place}.db", source) == {"added": 1}
    for _ in range(2):
        with pytest.raises(RunStopped, match="budget of 0 calls is used up: 1 of 2 documents"):
            into("m.db", *pages, model=ScriptedModel([]), max_calls=0)
    assert into("m.db", *pages, model=ScriptedModel(reply), max_calls=1)["linked"] == 1
    assert into("n.db", *pages, model=ScriptedModel([]), max_calls=0)["linked"] == 1


@pytest.mark.usefixtures("docs")
def test_a_build_does_not_read_its_own_records(tmp_path: Path) -> None:
    for _ in range(2):
        report = build(tmp_path, sources=[str(tmp_path)])
        assert (report.documents, report.page.exists()) == (1, True)
    assert build(tmp_path, sources=[str(tmp_path), str(report.page)]).documents == 2


async def test_two_builds_into_one_memory_lose_and_double_nothing(tmp_path: Path) -> None:
    docs = write_pages(tmp_path / "docs", *(f"page{number}x" for number in range(12)))
    memory = str(tmp_path / "m.db")
    builds = (
        build_memory([str(docs)], memory, model=ScriptedModel(read), ledger=tmp_path / name)
        for name in "ab"
    )
    reports = await asyncio.gather(*builds)
    assert [(each.procedures, each.failed) for each in reports] == [(12, []), (12, [])]
    assert len(procedures(tmp_path)) == 12


@pytest.mark.usefixtures("docs")
def test_two_builds_with_one_ledger_are_refused(tmp_path: Path) -> None:
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


def test_a_file_that_is_no_ledger_is_refused(docs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"alpha\.md cannot be a ledger: .*; name another file"):
        build(tmp_path, ledger=docs / "alpha.md")
    open_memory(str(tmp_path / "other.db")).close()
    (tmp_path / "locked").write_text("")
    with pytest.raises(BadInput, match=r"cannot be a ledger: .*; name another file"):
        build(tmp_path, ledger=tmp_path / "locked" / "m.build")
    with pytest.raises(BadInput, match=r"other\.db is a memory or an index; name another file"):
        build(tmp_path, ledger=tmp_path / "other.db")


def test_a_page_that_fails_costs_the_page_and_is_tried_again(docs: Path, tmp_path: Path) -> None:
    write_pages(docs, "beta", "gamma")
    fault = ZeroDivisionError("a fault in the model")

    def reply(node: str, prompt: str) -> Reply:
        return fault if "betastuff" in prompt else read(node, prompt)

    (failed,) = build(tmp_path, ScriptedModel(reply), concurrency=1).failed
    assert failed.where == f"{docs}/beta.md"
    assert failed.reason.startswith("1 part of it could not be read: ")
    assert failed.reason.endswith("ZeroDivisionError: a fault in the model")
    report = build(tmp_path, model := ScriptedModel(read))
    assert (len(model.calls), report.failed, len(procedures(tmp_path))) == (1, [], 3)
    with Ledger(tmp_path / "m.db.build", str(tmp_path / "m.db")) as ledger:
        assert ledger.calls() == 4, "the call that failed is paid for, too"


def test_a_page_whose_reply_was_cut_off_is_read_again_with_a_larger_limit(tmp_path: Path) -> None:
    write_pages(tmp_path / "docs", "alpha")
    cut = AIMessage(procedure("alpha")[:-3], response_metadata={"finish_reason": "length"})
    report = build(tmp_path, ScriptedModel([cut]))
    assert ("was cut off" in report.failed[0].reason, procedures(tmp_path)) == (True, {})
    assert (build(tmp_path).failed, len(procedures(tmp_path))) == ([], 1)


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


def test_a_source_that_disappears_in_the_middle_costs_what_is_left_of_it(
    docs: Path, tmp_path: Path
) -> None:
    write_pages(docs, "beta", "gamma")

    def reply(node: str, prompt: str) -> str:
        docs.rename(tmp_path / "away")
        return read(node, prompt)

    seen: list[int] = []
    model = ScriptedModel(reply)
    report = build(tmp_path, model, concurrency=1, on_progress=lambda it: seen.append(it.done))
    assert report.placed == {"added": 1}
    reasons = [each.reason for each in report.failed]
    assert reasons == ["it cannot be read: No such file or directory"] * 2
    assert seen == [1, 2, 3]
    (tmp_path / "away").rename(docs)
    build(tmp_path, model := ScriptedModel(read))
    assert (len(model.calls), len(procedures(tmp_path))) == (2, 3)


@pytest.mark.usefixtures("docs")
def test_what_cannot_be_used_is_refused_before_any_call(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"input": "a", "output": "b", "steps": ["c"]}\n')
    with pytest.raises(ReadOnlyMemory, match="can be searched, not changed"):
        build(tmp_path, ScriptedModel([]), memory=str(tmp_path / "m.jsonl"))
    with pytest.raises(ModelUnknown, match="nowhere:model"):
        build(tmp_path, model="nowhere:model")  # type: ignore[arg-type]


@pytest.mark.usefixtures("docs")
def test_each_document_is_a_root_run_with_its_name(tmp_path: Path) -> None:
    with collect_runs() as traced:
        build(tmp_path)
    (run,) = (run for run in traced.traced_runs if run.run_type == "chain")
    metadata = (run.extra or {})["metadata"]
    assert (run.name, metadata["stepcraft_graph"]) == ("Task alpha", "extract")
    assert metadata["stepcraft_source"] == f"{tmp_path}/docs/alpha.md"


def test_sections_of_a_long_document_share_the_calls_at_the_same_time(docs: Path) -> None:
    parts = (f"# Task part{number}x\n\n" + "Nothing is done here. " * 40 for number in range(9))
    (docs / "alpha.md").write_text("\n\n".join(parts))
    model = ScriptedModel(read, latency=0.02)
    build(docs.parent, model, concurrency=3, context={"max_characters": 1_000, "overlap": 0})
    at_once = [
        sum(each.started <= call.started < (each.ended or math.inf) for each in model.calls)
        for call in model.calls
    ]
    assert (len(at_once), max(at_once)) == (9, 3)
