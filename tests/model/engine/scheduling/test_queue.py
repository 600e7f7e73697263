"""The line of requests: first come, first served; one place for each session; equal requests wait together."""

from collections.abc import Callable
from typing import Any

import pytest

from model.engine.scheduling.queue import CANCEL_TOKEN, CancelToken, Queue, Ticket, Waiter, on_cancel
from model.errors import Busy, Superseded
from model.trace.progress import LISTENER, Progress


def work() -> None:
    raise AssertionError("nothing is worked on here")


def order(line: Queue) -> list[Any]:
    """The requests in the order in which their turn comes; the line is empty then."""
    found = list[Any]()
    while (ticket := line.next()) is not None:
        found.append(ticket.request)
    return found


def joined(line: Queue, *asked: tuple[str, str]) -> list[tuple[Ticket, Waiter]]:
    """Who asked for what, one after the other: (request, session)."""
    return [line.join(request, work, session) for request, session in asked]


def test_whoever_came_first_goes_first() -> None:
    line = Queue(9)
    joined(line, ("a", "one"), ("b", "two"), ("c", ""), ("d", ""))
    assert len(line) == 4
    assert order(line) == ["a", "b", "c", "d"]
    assert line.next() is None


def test_a_newer_request_of_a_session_takes_the_place_of_its_older_one_and_tells_it() -> None:
    line = Queue(9)
    (old, waiter), _, (new, newer) = joined(line, ("a", "one"), ("b", "two"), ("c", "one"))
    assert isinstance(waiter.outcome, Superseded)
    assert waiter.finished.is_set()
    assert not newer.finished.is_set()
    assert (old.given_up, new.given_up) == (True, False)
    assert order(line) == ["b", "c"]


def test_requests_of_nobodys_session_do_not_replace_each_other() -> None:
    line = Queue(9)
    (_, first), (_, second) = joined(line, ("a", ""), ("b", ""))
    assert not first.finished.is_set()
    assert not second.finished.is_set()
    assert order(line) == ["a", "b"]


def test_equal_requests_wait_for_one_piece_of_work() -> None:
    line = Queue(9)
    (first, one), (second, other) = joined(line, ("a", "one"), ("a", "two"))
    assert first is second
    assert first.waiters == [one, other]
    assert len(line) == 1
    first.finish("done")
    assert (one.outcome, other.outcome) == ("done", "done")


def test_the_same_request_again_of_the_same_session_replaces_nobody() -> None:
    line = Queue(9)
    (_, first), (_, second) = joined(line, ("a", "one"), ("a", "one"))
    assert first.outcome is None
    assert second.outcome is None
    assert order(line) == ["a"]


def test_work_that_another_caller_waits_for_goes_on_when_one_asks_for_something_else() -> None:
    line = Queue(9)
    (shared, gone), (_, other), _ = joined(line, ("a", "one"), ("a", "two"), ("b", "one"))
    assert isinstance(gone.outcome, Superseded)
    assert shared.waiters == [other]
    assert order(line) == ["a", "b"]


def test_a_full_line_refuses_and_nothing_has_changed() -> None:
    line = Queue(2)
    joined(line, ("a", "one"), ("b", "two"))
    with pytest.raises(Busy):
        line.join("c", work, "three")
    assert len(line) == 2
    line.join("a", work, "three")  # somebody waits for it already: it takes no place
    assert order(line) == ["a", "b"]


def test_a_session_that_waits_in_a_full_line_may_ask_for_something_else() -> None:
    line = Queue(2)
    joined(line, ("a", "one"), ("b", "two"), ("c", "one"))
    assert order(line) == ["b", "c"]


def test_a_session_whose_work_others_wait_for_as_well_frees_no_place_in_a_full_line() -> None:
    line = Queue(2)
    (_, waiter), *_ = joined(line, ("a", "one"), ("a", "three"), ("b", "two"))
    with pytest.raises(Busy):
        line.join("c", work, "one")
    assert not waiter.finished.is_set()


def test_a_session_whose_work_has_begun_frees_no_place_in_a_full_line() -> None:
    line = Queue(1)
    (_, waiter), *_ = joined(line, ("a", "one"))
    assert line.next() is not None
    line.join("b", work, "two")
    with pytest.raises(Busy):
        line.join("c", work, "one")
    assert not waiter.finished.is_set()


def test_how_many_are_ahead_counts_what_is_worked_on_too() -> None:
    line = Queue(1)
    joined(line, ("a", "one"))
    line.next()
    line.join("b", work, "two")
    with pytest.raises(Busy, match="2"):
        line.join("c", work, "three")


@pytest.mark.parametrize("end", [lambda line, ticket, waiter: line.done(ticket), lambda line, *place: line.leave(*place)])
def test_an_equal_request_after_the_end_is_a_new_piece_of_work(end: Callable[[Queue, Ticket, Waiter], None]) -> None:
    line = Queue(9)
    ((first, waiter),) = joined(line, ("a", "one"))
    assert line.next() is first
    end(line, first, waiter)
    again, _ = line.join("a", work, "two")
    assert again is not first
    assert order(line) == ["a"]


def test_who_leaves_last_gives_the_work_up_and_who_leaves_before_does_not() -> None:
    line = Queue(9)
    (ticket, one), (_, other), _ = joined(line, ("a", "one"), ("a", "two"), ("b", "three"))
    line.leave(ticket, one)
    assert not ticket.given_up
    assert len(line) == 2
    line.leave(ticket, other)
    assert ticket.given_up
    assert order(line) == ["b"]
    line.leave(ticket, other)


def test_who_has_left_is_not_told_that_a_newer_request_came() -> None:
    line = Queue(9)
    ((ticket, waiter),) = joined(line, ("a", "one"))
    line.leave(ticket, waiter)
    line.join("b", work, "one")
    assert waiter.outcome is None


def test_work_that_was_given_up_ends_without_ending_an_equal_one_that_began_since() -> None:
    line = Queue(9)
    ((old, waiter),) = joined(line, ("a", "one"))
    line.next()
    line.leave(old, waiter)
    new, _ = line.join("a", work, "two")
    line.done(old)
    assert line.join("a", work, "three")[0] is new


def test_a_caller_that_goes_away_ends_the_waiting_also_of_what_it_asks_for_afterwards() -> None:
    cancel_token, ended = CancelToken(), list[str]()
    with cancel_token.calling(lambda: ended.append("before")):
        assert ended == []
        assert not cancel_token.cancelled
        cancel_token.cancel()
        assert ended == ["before"]
    assert cancel_token.cancelled
    with cancel_token.calling(lambda: ended.append("after")):
        assert ended == ["before", "after"]


def test_what_has_ended_is_not_ended_again_when_its_caller_goes_away() -> None:
    """Its connection may serve another caller by then."""
    cancel_token, ended = CancelToken(), list[str]()
    with cancel_token.calling(lambda: ended.append("first")):
        pass
    cancel_token.cancel()
    assert ended == []


def test_who_cannot_leave_waits_as_well_as_who_can() -> None:
    cancel_token, ended = CancelToken(), list[str]()
    with on_cancel(lambda: ended.append("nobody's")):
        cancel_token.cancel()
    token = CANCEL_TOKEN.set(cancel_token)
    try:
        with on_cancel(lambda: ended.append("mine")):
            assert ended == ["mine"]
    finally:
        CANCEL_TOKEN.reset(token)


def test_the_first_outcome_of_a_waiter_counts() -> None:
    waiter = Waiter("one")
    waiter.finish("first")
    waiter.finish("second")
    assert waiter.outcome == "first"
    assert waiter.finished.is_set()


def test_progress_reaches_those_who_listen_and_is_not_made_for_nobody() -> None:
    line, heard, made = Queue(9), list[Progress](), list[Progress]()

    def make() -> Progress:
        made.append(Progress((5,), ("w5",), 9, 0.5))
        return made[-1]

    ticket, first = line.join("a", work, "one")
    ticket.report(make)
    assert made == []
    token = LISTENER.set(heard.append)
    _, second = line.join("a", work, "two")
    LISTENER.reset(token)
    ticket.report(make)
    assert heard == made
    assert len(made) == 1
    line.leave(ticket, second)
    ticket.report(make)
    assert len(heard) == len(made) == 1
    assert ticket.waiters == [first]


def test_who_joins_a_run_hears_at_once_how_far_it_has_come() -> None:
    queue, first, second = Queue(4), list[Progress](), list[Progress]()
    token = LISTENER.set(first.append)
    ticket, _waiter = queue.join("a", lambda: None, "one")
    ticket.report(lambda: Progress((), (), 9, 1.0, 3))
    LISTENER.set(second.append)
    queue.join("a", lambda: None, "two")
    LISTENER.reset(token)
    assert [progress.done for progress in second] == [3]
    assert len(first) == 1
