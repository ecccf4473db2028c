"""The public names of the package, and what importing it costs."""

import pickle
import subprocess
import sys

import pytest

import stepcraft
from stepcraft.errors import AddReport, AddStopped, BadInput, NoAnswer, UnreadableReply

HEAVY = (
    "langchain",
    "langchain_core",
    "langchain_openai",
    "langgraph",
    "langsmith",
    "numpy",
    "openai",
    "weaviate",
    "wordllama",
)


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_public_names() -> None:
    assert stepcraft.__all__ == sorted(stepcraft.__all__)
    assert dir(stepcraft) == stepcraft.__all__
    for name in stepcraft.__all__:
        assert getattr(stepcraft, name).__name__ == name
        assert getattr(stepcraft, name).__doc__, f"{name} says what it is"


def test_every_exception_is_public() -> None:
    from stepcraft import errors  # noqa: PLC0415

    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert raised <= set(stepcraft.__all__)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="No stepcraft attribute build_tag"):
        _ = stepcraft.build_tag  # type: ignore[attr-defined]


def test_importing_loads_nothing_heavy() -> None:
    heavy = (*HEAVY, "pydantic")
    code = f"import sys, stepcraft.cli; print([name for name in {heavy} if name in sys.modules])"
    assert python(code) == "[]\n"


@pytest.mark.parametrize("command", [[], ["aag"], ["memory"], ["source"], ["doctor"]])
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    code = f"""
import sys
from stepcraft.cli import app
app({[*command, "--help"]}, standalone_mode=False)
print([name for name in {HEAVY} if name in sys.modules])
"""
    assert python(code).splitlines()[-1] == "[]"


def test_the_logging_of_the_process_is_left_alone() -> None:
    code = """
import logging, stepcraft
stepcraft.open_memory().search("add memory")
print(logging.getLogger().handlers, logging.getLogger().level)
"""
    assert python(code) == "[] 30\n"


def test_every_exception_can_be_sent_to_another_process() -> None:
    stopped = AddStopped("the disk is full", AddReport(added=3), 3)
    unreadable = UnreadableReply("no list", update={"steps": []})
    for error in (stopped, unreadable, NoAnswer("why"), BadInput("what")):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert str(stopped).startswith("the disk is full; the first 3 procedures")
    assert not isinstance(NoAnswer("why"), ConnectionError)
