"""What follows from the measurements of a class: paces that are tried, and the number of processes."""

from collections.abc import Callable

import pytest

from benchmarks import load

QUICK, SLOW = [0.01] * 40, [0.01] * 30 + [9.0] * 10


@pytest.mark.parametrize(
    ("most", "tried", "carried"),
    [
        (35, [30, 40], 30),
        (55, [30, 40, 50, 60], 50),
        (999, [30, 40, 50, 60, 80, 100], 100),
        (12, [30, 20, 15, 10], 10),
        (1, [30, 20, 15, 10, 5, 2], 0),
    ],
)
def test_paces_go_up_while_clicks_are_quick_or_down_until_they_are(most: float, tried: list[float], carried: float) -> None:
    clicks: dict[float, list[float]] = {}
    while (pace := load.next_pace(clicks)) is not None:
        clicks[pace] = QUICK if pace <= most else SLOW
    assert list(clicks) == tried
    assert load.carries(clicks) == carried


def test_processes_are_clicks_a_second_over_what_one_carries() -> None:
    assert load.processes(10_000, between_clicks=20.0, carried=30.0) == 17
    assert load.processes(300, between_clicks=10.0, carried=30.0) == 1


@pytest.mark.parametrize(("seconds", "inside"), [(QUICK, lambda found: found == 0.01), (SLOW, lambda found: found > 8), ([], None)])
def test_p95_is_what_19_of_20_stay_below(seconds: list[float], inside: Callable[[float], bool] | None) -> None:
    found = load.p95(seconds)
    assert inside(found) if inside else found == float("inf")
