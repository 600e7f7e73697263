"""Single flight: however many ask at once, one computes, and all get what it made or raised."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from model.sharing.caches import SingleFlight
from tests.flights import at_once
from tests.patience import HANG_S

THREADS = 8


def test_overlapping_equal_computations_run_once_and_others_do_not_wait_for_them() -> None:
    flight: SingleFlight[str, int] = SingleFlight()
    begun = list[str]()

    def compute(meet: Callable[[], None]) -> int:
        begun.append("a")
        assert flight.do("b", lambda: 2) == 2, "another key goes on meanwhile"
        meet()
        return 1

    assert at_once(THREADS, lambda meet: flight.do("a", lambda: compute(meet))) == [1] * THREADS
    assert begun == ["a"]
    assert flight.do("a", lambda: 3) == 3, "a later one computes anew"


def test_whoever_waited_gets_the_error_and_the_next_one_tries_again() -> None:
    flight: SingleFlight[str, int] = SingleFlight()

    def fail(meet: Callable[[], None]) -> int:
        meet()
        raise KeyError

    def told(meet: Callable[[], None]) -> BaseException:
        with pytest.raises(KeyError) as caught:
            flight.do("a", lambda: fail(meet))
        return caught.value

    assert len(set(map(id, at_once(THREADS, told)))) == 1
    assert flight.do("a", lambda: 1) == 1


def test_a_computation_can_begin_in_another_thread_and_nobody_waits_for_it() -> None:
    flight: SingleFlight[str, str] = SingleFlight()
    go = threading.Event()

    def compute() -> str:
        assert go.wait(HANG_S)
        return threading.current_thread().name

    with ThreadPoolExecutor(1, "elsewhere") as pool:
        first = flight.begin("a", compute, pool.submit)
        assert flight.begin("a", compute, pool.submit) is first
        assert not first.done()
        go.set()
        assert first.result(HANG_S).startswith("elsewhere")
