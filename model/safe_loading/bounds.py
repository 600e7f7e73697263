"""Bounds of a child process: what it gives up for good, and the processor time that it may use for one question.

The system needs the module `resource` (Linux, macOS); macOS seldom grants the limit on memory, Windows has none of these bounds.
"""

from contextlib import suppress

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # Windows


def limit_this_process(memory: int, seconds: int | None = None) -> None:
    """Gives up, for good, what the work does not need: memory beyond a bound, files to write, core dumps.

    Args:
        memory: bytes of address space.
        seconds: of processor time in the process's whole life; None: see `allow_seconds`.
    """
    if resource is None:
        return
    wanted = [(resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)]
    for what, most in wanted + ([] if seconds is None else [(resource.RLIMIT_CPU, seconds)]):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def allow_seconds(seconds: int) -> None:
    """Lets this process use so much processor time from now on; then the system ends it, even where its parent is gone."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, hard))
