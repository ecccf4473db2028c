"""What runs in the sandbox: a program, and the tests of its benchmark; standard library alone.

It reads a job as JSON from its input. Each suite of tests, up to the first that fails, gives one
line of output: the token of the job, the number of the suite, and whether the program passed it.
Before them stands a line with the token alone, as soon as the benchmark's own solution has done its
part. A program that does not look for the token in this one's memory does not find it, so what it
prints is not taken for a result.

The rules of comparison and the limits of time are those of evalplus 0.3.1, with processor time in
the place of time by the clock, so that a busy machine changes no score.
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
"""Processor time that a call has at least."""
FACTOR = 4.0
"""How many times the processor time of the benchmark's own solution a call may take."""
SUITE_SECONDS = 60.0
"""Processor time that a suite has at most."""
CLOCK = 3
"""How many times its processor time a call may take by the clock."""
_RELATIVE = 1e-7
"""The relative tolerance of a comparison that has an absolute one."""

_SAME_ELEMENTS = {
    *("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly"),
    *("larg_nnum", "intersection_array", "find_dissimilar", "Diff"),
}
"""Functions of MBPP+ whose results are compared as sets, for their order is not told."""
_ANY_VALUE = {"check_str", "text_match_three", "text_starta_endb"}
"""Functions of MBPP+ of whose results it is compared whether they are None."""

Arguments = Sequence[Any]


class Overtime(BaseException):
    """A call took too long.

    It is no Exception, so that a program that catches everything does not catch it.
    """


class _Nowhere(TextIOBase):
    """Where the output of a program goes."""

    def write(self, text: str, /) -> int:
        return len(text)


def main() -> None:
    """Test the program of the job."""
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
    """Run the program and then its tests, in one time limit."""
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
    """Return the right result, and the processor time that a call has for it."""
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
    """Run texts as one module, and return its names.

    It is not `__main__`, so what stands under that is not run.
    """
    module = ModuleType("solution")
    sys.modules["solution"] = module
    for text in texts:
        exec(compile(text, "solution.py", "exec"), module.__dict__)
    return module.__dict__


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    """Raise Overtime after so much processor time."""
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
"""What JSON does not know of the arguments of a task, by the name of their shape."""

if __name__ == "__main__":
    main()
