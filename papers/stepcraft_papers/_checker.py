"""Run a program and its benchmark's tests in the sandbox, using only the standard library.

This script reads a job as JSON from standard input. Once the benchmark's own solution has run, it
writes a line with only the job's token. For each suite of tests, up to the first that fails, it
then writes a line with the token, the number of the suite, and whether the program passed it.
Output of the program cannot be mistaken for a result unless the program searches this process's
memory for the token.

The comparison rules and time limits are those of evalplus 0.3.1, except that the limits apply to
processor time instead of wall-clock time, so that a busy machine does not affect the scores.
"""

import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from io import TextIOBase
from types import ModuleType
from typing import Any

LEAST_SECONDS = 1.0
"""The minimum processor time that a call is allowed, in seconds."""
FACTOR = 4.0
"""The most processor time that a call may take, as a multiple of the reference solution's."""
SUITE_SECONDS = 60.0
"""The maximum processor time that a suite is allowed, in seconds."""
CLOCK = 3
"""The allowed ratio of a call's wall-clock time to its processor time limit."""
_RELATIVE = 1e-7
"""The relative tolerance of comparisons that have an absolute tolerance."""

_SAME_ELEMENTS = {
    *("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly"),
    *("larg_nnum", "intersection_array", "find_dissimilar", "Diff"),
}
"""Functions in MBPP+ whose results are compared as sets, because their order is not specified."""
_ANY_VALUE = {"check_str", "text_match_three", "text_starta_endb"}
"""MBPP+ functions whose results are only checked for being None."""

Arguments = Sequence[Any]


class Overtime(BaseException):
    """A call took too long.

    It does not derive from Exception, so that a program that catches every Exception does not catch
    it.
    """


class _Nowhere(TextIOBase):
    """A stream that discards the output of a program."""

    def write(self, text: str, /) -> int:
        return len(text)


def main() -> None:
    """Read a job, and test its program."""
    job: dict[str, Any] = json.load(sys.stdin.buffer)
    token: str = job["token"]
    signal.signal(signal.SIGPROF, _stop)
    signal.signal(signal.SIGALRM, _stop)
    sys.stdout = _Nowhere()
    results = _compare(job) if "atol" in job else _assert(job)
    next(results)  # the benchmark's own solution has done its part
    os.write(1, f"{token}\n".encode())
    sys.stderr = _Nowhere()
    for number, passed in enumerate(results):
        os.write(1, f"\n{token} {number} {int(passed is True)}\n".encode())
    os._exit(0)


def _assert(job: Mapping[str, Any]) -> Iterator[bool | None]:
    """Run the program and then its tests, within a single time limit."""
    yield None
    try:
        with _limited(job["seconds"]):
            names = _run(job["prelude"], job["program"])
            exec(compile(job["suites"][0], "tests.py", "exec"), names)
    except BaseException:
        yield False
    else:
        yield True


def _compare(job: Mapping[str, Any]) -> Iterator[bool | None]:
    """Compare the function with the benchmark's own solution, up to the first suite that fails."""
    entry, shape = job["entry"], _SHAPES[job["shape"]]
    reference = _run("", job["solution"])[entry]
    suites = [[list(shape(arguments)) for arguments in suite] for suite in job["suites"]]
    expected = [[_timed(reference, arguments) for arguments in suite] for suite in suites]
    yield None
    try:
        with _limited(sum(limit for _, limit in expected[0])):
            function = _run(job["prelude"], job["program"])[entry]
    except BaseException:
        return
    for suite, results in zip(suites, expected, strict=True):
        passed = _passes(function, suite, results, entry, job["atol"])
        yield passed
        if not passed:
            return


def _timed(reference: Callable[..., Any], arguments: Arguments) -> tuple[Any, float]:
    """Return the expected result, and the processor time that a call is allowed."""
    copy = deepcopy(arguments)
    began = time.process_time()
    result = reference(*copy)
    return result, max(LEAST_SECONDS, FACTOR * (time.process_time() - began))


def _passes(
    function: Callable[..., Any],
    suite: Sequence[Arguments],
    expected: Sequence[tuple[Any, float]],
    entry: str,
    atol: float,
) -> bool:
    # The kernel ends the process, because C code hears no signal.
    seconds = time.process_time() + min(SUITE_SECONDS, sum(limit for _, limit in expected)) + 2
    highest = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (min(math.ceil(seconds), highest), highest))
    for arguments, (wanted, limit) in zip(suite, expected, strict=True):
        try:
            copy = deepcopy(arguments)
            with _limited(limit):
                result = function(*copy)
            # Once a result was a float, all later ones of the suite have the tolerance of floats.
            atol = atol or (1e-6 if _is_floats(wanted) else 0)
            if not _is_right(entry, arguments, result, wanted, atol):
                return False
        except BaseException:
            return False
    return True


def _is_right(
    entry: str,
    arguments: Arguments,
    result: Any,
    expected: Any,
    atol: float,
) -> bool:
    if entry == "find_zero":
        powers = (
            coefficient * math.pow(result, power) for power, coefficient in enumerate(arguments[0])
        )
        return bool(abs(sum(powers)) <= atol)
    if entry in _SAME_ELEMENTS:
        return bool(set(result) == set(expected))
    if entry in _ANY_VALUE:
        is_match = result if isinstance(result, bool) else result is not None
        return is_match == (expected is not None)
    if entry == "surface_Area":
        # The height of a pyramid is that of its apex or that of its sides.
        base, height = arguments
        other = round(base**2 + 2 * base * math.hypot(base / 2, height))
        return abs(result - other) <= atol or _is_close(result, expected, atol)
    if entry == "digit_distance_nums" and result != expected:
        # The distance of two numbers is that of their digits, or the digits of their distance.
        digits = [str(number) for number in arguments]
        width = max(map(len, digits))
        pairs = zip(*(text.zfill(width) for text in digits), strict=True)
        return bool(result == sum(abs(int(a) - int(b)) for a, b in pairs))
    if result == expected or entry == "are_equivalent" or (entry == "sum_div" and result == 0):
        return True
    return bool(atol) and type(result) is type(expected) and _is_close(result, expected, atol)


def _is_floats(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def _is_close(result: Any, expected: Any, atol: float) -> bool:
    if isinstance(expected, list | tuple):
        return len(result) == len(expected) and all(
            map(_is_close, result, expected, [atol] * len(expected))
        )
    numbers = (int, float, complex)
    if not isinstance(result, numbers) or not isinstance(expected, numbers):
        return False
    if result == expected or math.isinf(abs(expected)):
        return result == expected
    return abs(result - expected) <= atol + _RELATIVE * abs(expected)


def _run(*texts: str) -> dict[str, Any]:
    """Run source texts as one module, and return its namespace.

    The module is not `__main__`, so code that is guarded by that name does not run.
    """
    module = ModuleType("solution")
    sys.modules["solution"] = module
    for text in texts:
        exec(compile(text, "solution.py", "exec"), module.__dict__)
    return module.__dict__


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    """Raise Overtime after this many seconds of processor time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, CLOCK * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(*_: object) -> None:
    raise Overtime


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _inner(value: Sequence[Any]) -> list[Any]:
    return [tuple(item) if isinstance(item, list) else item for item in value]


_SHAPES: Mapping[str, Callable[[Arguments], Arguments]] = {
    "": lambda arguments: arguments,
    "tuples": lambda arguments: [*map(tuple, arguments)],
    "lists of tuples": lambda arguments: [*map(_inner, arguments)],
    "tuples of tuples": lambda arguments: [tuple(_inner(each)) for each in arguments],
    "list of tuples first": lambda arguments: [_inner(arguments[0]), *arguments[1:]],
    "tuple first": lambda arguments: [tuple(arguments[0]), *arguments[1:]],
    "tuple second": lambda arguments: [arguments[0], tuple(arguments[1])],
    "sets first": lambda arguments: [
        [set(item) if isinstance(item, list) and item else {} for item in arguments[0]],
        *arguments[1:],
    ],
    "dictionary of tuples first": lambda arguments: [
        {key: tuple(item) for key, item in arguments[0].items()},
        *arguments[1:],
    ],
    "float and complex": lambda arguments: [float(arguments[0]), complex(arguments[1])],
    "complex": lambda arguments: [complex(arguments[0])],
    "all tuples": _tuples,
}
"""Functions that restore the argument types of a task that JSON cannot represent, by shape name."""

if __name__ == "__main__":
    main()
