"""Resource limits of a child process: memory, files and core dumps for its whole life, CPU time for one question.

They need the module `resource` (Linux, macOS). macOS seldom grants the memory limit; Windows has none of these limits.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # Windows

_SIZES = Path("/proc/self/statm")
"""Where Linux tells the pages that this process has."""


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


@contextmanager
def more_memory(most: int) -> Iterator[None]:
    """Context in which this process may take so many bytes of address space more than it has; a MemoryError ends it.

    Without effect where the system does not tell what the process has, as on macOS and Windows.
    """
    if resource is None or not _SIZES.exists():
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = int(_SIZES.read_text().split()[0]) * resource.getpagesize() + most
    resource.setrlimit(resource.RLIMIT_AS, (allowed if hard == resource.RLIM_INFINITY else min(allowed, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


def allow_seconds(seconds: int) -> None:
    """Limits the CPU time from now on; then the system kills the process, even if its parent is gone."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, hard))
