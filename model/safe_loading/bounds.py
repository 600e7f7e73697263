"""Resource limits of a child process: memory, files and core dumps for its whole life, CPU time for one question.

They need the module `resource` (Linux, macOS). macOS seldom grants the memory limit; Windows has none of these limits.
"""

from contextlib import suppress

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # Windows


def limit_this_process(memory: int, seconds: int | None = None, written: int = 0) -> None:
    """Limits memory and the size of written files, and forbids core dumps, for the life of the process.

    Args:
        memory: bytes of address space.
        seconds: CPU time for the life of the process; None: see `allow_seconds`.
        written: most bytes of a file that it writes; 0: it can write none.
    """
    if resource is None:
        return
    wanted = [(resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, written), (resource.RLIMIT_CORE, 0)]
    for what, most in wanted + ([] if seconds is None else [(resource.RLIMIT_CPU, seconds)]):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def allow_seconds(seconds: int) -> None:
    """Limits the CPU time from now on; then the system kills the process, even if its parent is gone."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, hard))
