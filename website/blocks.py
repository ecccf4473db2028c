"""The code blocks of a page, run in order as a reader would: `python -m website.blocks PAGE…`.

Blocks marked `sh` and `python` run in one new folder, which holds copies of what a clone of the
repository has; Python blocks share their names. A model of OpenAI is a local server there, behind
which the keyless model replies. HTML comments on the lines before a fence say what is special:

    <!-- run: COMMAND -->        run a command that is not shown before the block
    <!-- exit: 1 -->             the block ends with this status
    <!-- not run: REASON -->     the block is shown only
    <!-- ci: NAME -->            the block is run by .ci/run alone

`<!-- output -->` on the line after a fence is the place of what the block prints, and
`<!-- picture: FILE TEXT -->` that of a picture of a page that a block wrote, with a text for those
who do not see it.
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
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.chromium import opened
from tests.servers.openai_server import OpenAIServer, keyless_reply

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("sh", "python")
_COPIED = ("docs", "examples", "README.md", "langgraph.json")
_PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "TZ")
_LONGEST_S = 120
_FENCE = re.compile(
    r"^(?P<indent>[ ]*)(?P<fence>`{3,})(?P<language>[\w-]*)[^\n`]*\n"
    r"(?P<code>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"^\s*<!-- (run|exit|not run|ci): (.*?) -->\s*$")
PICTURE = re.compile(r"^<!-- picture: (\S+) (.+) -->[ ]*$", re.MULTILINE)
_OUTPUT = re.compile(r"\s*\n[ ]*<!-- output -->[ ]*$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block."""

    language: str
    code: str
    line: int
    """The line of its fence, from 1."""
    skip: str = ""
    """Why it is not run; "" if it is."""
    before: tuple[str, ...] = ()
    """Commands that are run before it and are not shown."""
    status: int = 0
    """The status that it ends with."""
    output: tuple[int, int] | None = None
    """Where what it prints is shown: offsets of the mark in the page."""
    indent: str = ""


@dataclass
class Ran:
    """What became of the blocks of a page."""

    outputs: dict[int, str] = field(default_factory=dict[int, str])
    """What each block printed, by its line."""
    failure: str = ""
    """What went wrong, "" if nothing did; the blocks after that were not run."""
    seconds: float = 0.0


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page that a reader runs, in order."""
    parsed: list[Block] = []
    for fence in _FENCE.finditer(page):
        if fence["language"] not in LANGUAGES:
            continue
        indent = fence["indent"]
        marks = _marks_before(page[: fence.start()])
        output = _OUTPUT.match(page, fence.end())
        code = "".join(
            line.removeprefix(indent) for line in fence["code"].splitlines(keepends=True)
        )
        parsed.append(
            Block(
                language=fence["language"],
                code=code,
                line=page.count("\n", 0, fence.start()) + 1,
                skip=next((text for name, text in marks if name == "not run"), "")
                or next(("by .ci/run" for name, _ in marks if name == "ci"), ""),
                before=tuple(text for name, text in marks if name == "run"),
                status=int(next((text for name, text in marks if name == "exit"), "0")),
                output=output.span() if output else None,
                indent=indent,
            )
        )
    return parsed


def _marks_before(text: str) -> list[tuple[str, str]]:
    marks: list[tuple[str, str]] = []
    for line in reversed(text.splitlines()):
        if mark := _MARK.match(line):
            marks.append((mark[1], mark[2]))
        elif line.strip():
            break
    return marks[::-1]


def run_page(page: Path, base_url: str, pictures: Path | None = None) -> Ran:
    """Run the blocks of a page in a new folder, in a process of their own.

    Args:
        page: The page.
        base_url: The OpenAI-compatible endpoint at which a model of OpenAI is asked.
        pictures: The folder for pictures of the pages that blocks wrote; None for no pictures.
    """
    with tempfile.TemporaryDirectory(prefix="stepcraft-page-") as name:
        folder = Path(name) / "work"
        folder.mkdir()
        for copied in _COPIED:
            source = ROOT / copied
            if source.is_dir():
                shutil.copytree(source, folder / copied)
            else:
                shutil.copy(source, folder)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(ROOT), environment.get("PYTHONPATH", "")))
        )
        environment |= {"HOME": name, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
        environment |= {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
        began = time.monotonic()
        result = Path(name) / "result.json"
        done = subprocess.run(
            [sys.executable, "-m", "website.blocks", "--inside", str(result), str(page.resolve())],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if not result.exists():
            return Ran(failure=f"{page}: {done.stdout}{done.stderr}")
        ran = json.loads(result.read_text("utf-8"))
        shown = PICTURE.findall(page.read_text("utf-8")) if pictures and not ran["failure"] else []
        for number, (file, _) in enumerate(shown):
            assert pictures
            with opened(folder / file, Path(name) / f"browser{number}") as tab:
                tab.resize(1000, 700)
                tab.colours("light")
                (pictures / f"{page.stem}-{Path(file).stem}.png").write_bytes(tab.picture())
        outputs = {int(line): text for line, text in ran["outputs"].items()}
        return Ran(outputs, ran["failure"], time.monotonic() - began)


def run_here(page: Path) -> Ran:
    """Run the blocks of a page in the working directory and this process."""
    ran = Ran()
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8")):
        if block.skip:
            continue
        status, printed = 0, ""
        for command in block.before:
            status, printed = _run_shell(command)
            if status:
                where = f"{page}:{block.line}"
                ran.failure = (
                    f"{where}: `{command}` ended with status {status}:\n{printed[-3_000:]}"
                )
                return ran
        status, printed = (
            _run_shell(block.code) if block.language == "sh" else _run_python(block, page, names)
        )
        ran.outputs[block.line] = printed
        if status != block.status:
            ran.failure = (
                f"{page}:{block.line}: status {status} instead of {block.status}:\n"
                f"{block.code}\n{printed[-3_000:]}"
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pages that are named; print what fails."""
    parser = argparse.ArgumentParser(prog="python -m website.blocks")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--show", action="store_true", help="print what each block prints")
    parser.add_argument("pages", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    if options.inside:
        sys.path[0] = ""  # modules that a page writes are found, as they are by `python`
        ran = run_here(options.pages[0])
        options.inside.write_text(
            json.dumps({"outputs": ran.outputs, "failure": ran.failure}), "utf-8"
        )
        return 0
    failed = False
    with OpenAIServer(keyless_reply) as server:
        for page in options.pages:
            ran = run_page(page, server.base_url)
            for line, text in ran.outputs.items() if options.show else ():
                print(f"-- {page}:{line}\n{text}")
            print(ran.failure or f"{page}: {len(ran.outputs)} blocks in {ran.seconds:.1f} s")
            failed = failed or bool(ran.failure)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
