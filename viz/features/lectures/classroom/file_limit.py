"""Number of connections that this process may hold."""

import contextlib

with contextlib.suppress(ImportError):  # not on Windows, which has no such limit
    import resource

WANTED = 16_384
"""Connections wanted. Many systems allow 1,024 files to a process, and each follower is one."""


def allow_many_connections() -> None:
    """Raises the number of files that this process may open, as far as the system lets it."""
    if "resource" not in globals():
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
