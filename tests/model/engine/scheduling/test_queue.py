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


@pytest.mark.parametrize(
    ("asked", "turns", "superseded"),
    [
        ((("a", "one"), ("b", "two"), ("c", ""), ("d", "")), "abcd", ""),
        ((("a", "one"), ("b", "two"), ("c", "one")), "bc", "a"),
        ((("a", "one"), ("a", "one")), "a", ""),
        ((("a", "one"), ("a", "two"), ("b", "one")), "ab", "a"),
    ],
    ids=["first come, first served", "the newer one of a session", "the same again", "another waits for it, too"],
)
def test_whose_turn_it_is_and_who_is_told_that_a_newer_request_came(
    asked: tuple[tuple[str, str], ...], turns: str, superseded: str
) -> None:
    line = Queue(9)
    places = joined(line, *asked)
    assert len(line) == len(turns)
    assert all(isinstance(waiter.outcome, Superseded) for _ticket, waiter in places if waiter.finished.is_set())
    assert "".join(str(ticket.request) for ticket, waiter in places if waiter.finished.is_set()) == superseded
    assert all((not ticket.waiters) == (str(ticket.request) not in turns) for ticket, _waiter in places)
    assert order(line) == list(turns)
    assert line.next() is None


def test_equal_requests_wait_for_one_piece_of_work() -> None:
    line = Queue(9)
    (first, one), (second, other) = joined(line, ("a", "one"), ("a", "two"))
    assert first is second
    assert first.waiters == [one, other]
    first.finish("done")
    assert (one.outcome, other.outcome) == ("done", "done")


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
    assert ticket.waiters
    assert len(line) == 2
    line.leave(ticket, other)
    assert not ticket.waiters
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
