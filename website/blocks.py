"""The code blocks of a page, run in order as a reader would: `python -m website.blocks PAGE…`.

Blocks marked `sh` and `python` run in one new folder, which holds copies of what a clone of the
repository has; Python blocks share their names. A model of OpenAI is a local server there, behind
which the keyless model replies. HTML comments on the lines before a fence say what is special:

    <!-- run: COMMAND -->        run a command that is not shown before the block
    <!-- exit: 1 -->             the block ends with this status
    <!-- not run: REASON -->     the block is shown only
    <!-- ci: NAME -->            the block is run by .ci/run alone

`<!-- output -->` on the line after a fence comes before what the block prints, in a fence of its
own that `python -m website.blocks --write PAGE…` brings up to date; `<!-- output of one run -->`
before one that differs from run to run, and stays. `<!-- picture: FILE TEXT -->` is the place of a
picture of a page that a block wrote, with a text for those who do not see it.
"""

import argparse
import ast
import asyncio
import inspect
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.chromium import opened
from tests.servers.openai_server import OpenAIServer, keyless_reply
from website.warm import warm

ROOT = Path(__file__).resolve().parents[1]
_COPIED = ("docs", "examples", "README.md", "langgraph.json")
_LONGEST_S = 120
_BLOCK = re.compile(
    r"(?P<marks>(?:^[ ]*<!-- [^\n]* -->\s*\n)*)"
    r"^(?P<indent>[ ]*)(?P<fence>`{3,})(?P<language>sh|python)\b[^\n`]*\n"
    r"(?P<code>.*?)^(?P=indent)(?P=fence)[ ]*$"
    r"(?P<output>\s*\n[ ]*<!-- (?P<name>output(?: of one run)?) -->[ ]*$"
    r"(?:\s*\n[ ]*`{4}text\b.*?^[ ]*`{4}[ ]*$)?)?",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"<!-- (run|exit|not run|ci): (.*?) -->")
_MOST_LINES = 40
_VARIES = re.compile(
    r"\d[\d,]*\.\d+|\d+ (?:ms|s|seconds?)\b|\d{4}-\d\d-\d\d(?:[T ][\d:.+Z-]+)?|/tmp/[^\s:]+"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=:)\d{5}\b"
)
"""Seconds, scores, times, folders, ids and ports, which are other ones in each run or machine."""
PICTURE = re.compile(r"^<!-- picture: (\S+) (.+) -->[ ]*$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block."""

    language: str
    code: str
    line: int
    """The line of its fence, from 1."""
    is_run: bool
    before: tuple[str, ...]
    """Commands that are run before it and are not shown."""
    status: int
    """The status that it ends with."""
    output: tuple[int, int]
    """Where what it prints is shown: offsets in the page, -1 where it is not."""
    output_name: str
    """"output" or "output of one run"."""
    indent: str


@dataclass
class Ran:
    """What became of the blocks of a page."""

    outputs: dict[int, str] = field(default_factory=dict[int, str])
    """What each block printed, by its line."""
    failure: str = ""
    """What went wrong, "" if nothing did; the blocks after that were not run."""


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page that a reader runs, in order."""
    parsed: list[Block] = []
    for block in _BLOCK.finditer(page):
        marks = _MARK.findall(block["marks"])
        values = dict(marks)
        parsed.append(
            Block(
                language=block["language"],
                code=re.sub(f"^{block['indent']}", "", block["code"], flags=re.MULTILINE),
                line=page.count("\n", 0, block.start("indent")) + 1,
                is_run=not values.keys() & {"not run", "ci"},
                before=tuple(text for name, text in marks if name == "run"),
                status=int(values.get("exit", 0)),
                output=block.span("output"),
                output_name=block["name"] or "",
                indent=block["indent"],
            )
        )
    return parsed


def with_outputs(page: str, ran: Ran) -> str:
    """Return a page with what its blocks printed, where it shows that."""
    for block in reversed(blocks(page)):
        start, stop = block.output
        if start < 0 or (block.output_name != "output" and "````" in page[start:stop]):
            continue
        lines = re.sub(r"\x1b\[[0-9;]*m", "", ran.outputs.get(block.line, "")).strip().splitlines()
        if len(lines) > _MOST_LINES:
            lines = [*lines[:_MOST_LINES], "\N{HORIZONTAL ELLIPSIS}"]
        # Four backticks hold whatever is printed: no command prints more than three.
        lines = [f"<!-- {block.output_name} -->", '````text title="Output"', *lines, "````"]
        shown = "\n".join(f"{block.indent}{line}".rstrip() for line in lines)
        page = f"{page[:start]}\n{shown}{page[stop:]}"
    return page


def is_current(page: str, ran: Ran) -> bool:
    """Tell whether a page shows what its blocks printed, but for what differs from run to run."""
    return _VARIES.sub("", page) == _VARIES.sub("", with_outputs(page, ran))


@dataclass(frozen=True)
class Runner:
    """Runs pages by commands that start at once."""

    environment: Mapping[str, str]

    def run(self, page: Path, pictures: Path | None = None) -> Ran:
        """Run the blocks of a page in a new folder, in a process of their own.

        Args:
            page: The page.
            pictures: The folder for pictures of the pages that blocks wrote; None for no pictures.
        """
        # A browser of the page may still write its profile while the folder is deleted.
        with tempfile.TemporaryDirectory(
            prefix="stepcraft-page-", ignore_cleanup_errors=True
        ) as name:
            folder = Path(name) / "work"
            folder.mkdir()
            for copied in _COPIED:
                source = ROOT / copied
                copy = shutil.copytree if source.is_dir() else shutil.copy
                copy(source, folder / copied)
            result = Path(name) / "result.json"
            done = subprocess.run(
                ["run-page", page.resolve(), result],
                executable=shutil.which("run-page", path=self.environment["PATH"]),
                cwd=folder,
                env={**self.environment, "HOME": name},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if not result.exists():
                return Ran(failure=f"{page}: {done.stdout}{done.stderr}")
            outputs, failure = json.loads(result.read_text("utf-8"))
            shown = PICTURE.findall(page.read_text("utf-8")) if pictures and not failure else []
            for number, (file, _) in enumerate(shown):
                assert pictures
                with opened(folder / file, Path(name) / f"browser{number}") as tab:
                    tab.resize(1000, 700)
                    tab.colours("light")
                    (pictures / picture_of(page, file)).write_bytes(tab.picture())
            return Ran({int(line): text for line, text in outputs.items()}, failure)


@contextmanager
def runner(base_url: str) -> Iterator[Runner]:
    """Yield what runs pages; a model of OpenAI is asked at this endpoint."""
    environment = {name: os.environ[name] for name in ("LANG", "TZ") if name in os.environ}
    environment |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    with tempfile.TemporaryDirectory(prefix="stepcraft-") as folder:
        path = os.pathsep.join([folder, str(Path(sys.executable).parent), os.environ["PATH"]])
        environment["PATH"] = path
        with warm(Path(folder), environment):
            yield Runner(
                environment | {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"},
            )


def picture_of(page: Path, file: str) -> str:
    """Return the name of the picture of a file that a page wrote."""
    return f"{page.stem}-{Path(file).stem}.png"


def run_here(page: Path) -> Ran:
    """Run the blocks of a page in the working directory and this process."""
    ran = Ran()
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8")):
        if not block.is_run:
            continue
        where = f"{page}:{block.line}"
        for command in block.before:
            status, printed = _run_shell(command)
            if status:
                ran.failure = f"{where}: `{command}` ended with status {status}:\n{printed}"
                return ran
        status, printed = (
            _run_shell(block.code) if block.language == "sh" else _run_python(block, page, names)
        )
        ran.outputs[block.line] = printed
        if status != block.status:
            ran.failure = (
                f"{where}: status {status} instead of {block.status}:\n{block.code}\n{printed}"
            )
            return ran
    return ran


def _run_shell(code: str) -> tuple[int, str]:
    # A file takes the output, so that a process in the background does not keep this one waiting.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        file.seek(0)
        return status, file.read()


def _run_python(block: Block, page: Path, names: dict[str, object]) -> tuple[int, str]:
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            code = compile(
                "\n" * block.line + block.code,
                str(page),
                "exec",
                flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
                dont_inherit=True,
            )
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, names))
            else:
                exec(code, names)
        except BaseException:
            traceback.print_exc()
            return 1, printed.getvalue()
    return 0, printed.getvalue()


def main() -> None:
    """Run a page for a `Runner`, in the folder and the environment that it made."""
    page, result = map(Path, sys.argv[1:])
    ran = run_here(page)
    result.write_text(json.dumps([ran.outputs, ran.failure]), "utf-8")


def run_pages() -> int:
    """Run the pages that are named; print what fails."""
    parser = argparse.ArgumentParser(prog="python -m website.blocks")
    parser.add_argument("--show", action="store_true", help="print what each block prints")
    parser.add_argument("--write", action="store_true", help="write it into the page")
    parser.add_argument("pages", type=Path, nargs="+")
    options = parser.parse_args()
    failed = False
    with OpenAIServer(keyless_reply) as server, runner(server.base_url) as pages:
        for page in options.pages:
            began = time.monotonic()
            ran = pages.run(page)
            for line, text in ran.outputs.items() if options.show else ():
                print(f"-- {page}:{line}\n{text}")
            text = page.read_text("utf-8")
            if options.write and not ran.failure and not is_current(text, ran):
                page.write_text(with_outputs(text, ran), "utf-8")
            seconds = time.monotonic() - began
            print(ran.failure or f"{page}: {len(ran.outputs)} blocks in {seconds:.1f} s")
            failed = failed or bool(ran.failure)
    return int(failed)


if __name__ == "__main__":
    sys.exit(run_pages())
