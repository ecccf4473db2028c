"""Threads, and values made once per key."""

import gc
import threading
import weakref
from functools import partial

import pytest

from stepcraft.concurrency import OncePerKey, in_thread, outcomes, within


class Opened:
    """A value that can be watched while it is kept."""


def test_a_value_is_made_once_for_all_who_ask_at_the_same_time():
    once, go, made = OncePerKey[str, Opened](), threading.Event(), list[Opened]()

    def make() -> Opened:
        go.wait(10)
        made.append(Opened())
        return made[-1]

    asking = [in_thread(lambda: once.get("a", make)) for _ in range(8)]
    go.set()
    assert {future.result(10) for future in asking} == {once.get("a", make)} == set(made)


def test_one_key_that_takes_long_holds_up_no_other():
    once, go = OncePerKey[str, str](), threading.Event()
    slow = in_thread(lambda: once.get("slow", lambda: "opened" if go.wait(10) else "never"))
    assert once.get("quick", lambda: "quick") == "quick"
    go.set()
    assert slow.result(10) == "opened"


def test_a_failure_reaches_all_who_wait_and_is_not_kept():
    once, go = OncePerKey[str, str](), threading.Event()

    def fail() -> str:
        go.wait(10)
        raise ConnectionError("refused")

    waiting = [in_thread(lambda: once.get("a", fail)) for _ in range(3)]
    go.set()
    assert {str(future.exception(10)) for future in waiting} == {"refused"}
    assert once.get("a", lambda: "at last") == "at last"


def test_a_stale_value_is_made_again_by_who_asks_for_a_fresh_one():
    once, numbers = OncePerKey[str, int](), iter(range(9))

    def make() -> int:
        return next(numbers)

    assert once.get("a", make) == once.get("a", make) == 0
    assert once.get("a", make, fresh=lambda value: value == 0) == 0
    assert once.get("a", make, fresh=lambda value: value > 0) == once.get("a", make) == 1


def test_only_so_many_values_are_kept_and_the_others_are_let_go():
    once = OncePerKey[int, Opened](2)
    watched = [weakref.ref(once.get(number, Opened)) for number in range(2)]
    in_use = once.get(1, Opened)
    for number in (0, 2, 3):
        once.get(number, Opened)
    gc.collect()
    assert watched[0]() is None, "the least recently used one of those that nobody holds"
    assert watched[1]() is in_use is not once.get(1, Opened)


def test_a_call_that_is_given_up_ends_and_keeps_nothing_alive():
    go, threads, results = threading.Event(), list[threading.Thread](), list[weakref.ref[Opened]]()

    def call() -> Opened:
        threads.append(threading.current_thread())
        go.wait(10)
        result = Opened()
        results.append(weakref.ref(result))
        return result

    with pytest.raises(TimeoutError):
        within(0.01, call)
    go.set()
    threads[0].join(10)
    assert not threads[0].is_alive()
    gc.collect()
    assert results[0]() is None


def test_calls_side_by_side_end_together_and_each_has_its_outcome():
    go, begun = threading.Event(), list[int]()

    def call(number: int) -> int:
        begun.append(number)
        if number == 1:
            go.wait(10)
        return 6 // number

    calls = [partial(call, number) for number in (3, 0, 1, 2)]
    quick, failed, hung, late = outcomes(calls, 0.2, 1)
    go.set()
    assert (quick, begun) == (2, [3, 0, 1]), "what has not begun by then never does"
    assert [type(each) for each in (failed, hung, late)] == [
        ZeroDivisionError,
        TimeoutError,
        TimeoutError,
    ]
    assert outcomes([], None, 4) == []
    assert outcomes([partial(call, 2)] * 9, None, 4) == [3] * 9
