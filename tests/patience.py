"""How long tests wait: as long as only a program that hangs takes, however busy the machine is. What has come is not waited for."""

import sys
import time
from collections.abc import Callable

HANG_S = 120
"""Limit of every wait: with four others on two cores, the first survey of a process took 89 s (28 November 2026)."""

PROGRAM_LIMITS = {
    "model.tokenizers.subwords.limits": "SECONDS_TO_CUT",
    "model.engine.model_list": "PATIENCE_S",
    "model.features.serving.http.client": "HEALTH_SECONDS",
    "model.engine.guards.connections": "REQUEST_SECONDS",
    "model.features.serving.http.server": "BODY_SECONDS",
    "viz.features.survey.making": "UNWATCHED_S",
    "viz.features.lectures.classroom.routes": "SEND_SECONDS",
}
"""Limits of the program that a test of something else would meet on a busy machine alone. Tests of a limit set their own."""


def lift_program_limits() -> None:
    """Gives the program as long as the tests, in the modules that are imported."""
    for module, name in PROGRAM_LIMITS.items():
        if module in sys.modules:
            assert getattr(sys.modules[module], name) < HANG_S
            setattr(sys.modules[module], name, HANG_S)


def settled(so: Callable[[], bool]) -> None:
    """Waits until `so`."""
    until = time.monotonic() + HANG_S
    while not so():
        assert time.monotonic() < until
        time.sleep(0.002)
