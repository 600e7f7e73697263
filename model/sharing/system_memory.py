"""Memory of the machine, and memory that is given back to it."""

import ctypes
import math
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

CONTAINER = Path("/sys/fs/cgroup/memory.max")
"""The limit of the container that the process runs in, on Linux; `max`: there is none."""


FREE = Path("/proc/meminfo")
"""What Linux tells of the machine's memory."""


def machine_bytes() -> float:
    """Memory that this process may count on: the machine's, or its container's; infinity: unknown."""
    smallest = math.inf
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        smallest = min(smallest, float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    with suppress(ValueError, OSError):
        # A container may allow less than the machine has; then the process is killed at the smaller number.
        smallest = min(smallest, float(CONTAINER.read_text(encoding="ascii")))
    return smallest


def free_bytes() -> float:
    """Memory that this process can still take without making the machine swap; infinity: unknown. Linux tells it."""
    with suppress(ValueError, OSError, StopIteration):
        lines = FREE.read_text(encoding="ascii").splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        return min(1024.0 * int(available.split()[1]), machine_bytes())
    return math.inf


@cache
def _glibc() -> Any:
    """The C library, if it is the one that keeps freed memory until it is asked; else None."""
    try:
        library = ctypes.CDLL("libc.so.6")
        return library if hasattr(library, "malloc_trim") else None
    except OSError:
        return None


def give_back() -> None:
    """Returns freed memory to the system: glibc keeps what lies below memory in use, hundreds of MB after runs of 500 tokens."""
    if (library := _glibc()) is not None:
        library.malloc_trim(0)
