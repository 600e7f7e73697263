"""Errors of the transformers library while it computes: one sentence of ours, wherever a run was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

from model.errors import HeadlightError, RunFailed
from model.transformer.networks import is_out_of_memory

MOST_WORDS = 20
"""Most words of what the library says."""


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Makes an error of the library one of a run. That of a device without memory stays as it is: a smaller batch may fit.

    What our own code raises, which the library calls as its attention and by hooks, stays as it is, too.

    Raises:
        RunFailed: there was an error.
    """
    try:
        yield
    except HeadlightError:
        raise
    except Exception as error:
        if is_out_of_memory(error) or _is_ours(error):
            raise
        raise RunFailed(error=f"{type(error).__name__}: {' '.join(str(error).split()[:MOST_WORDS])}") from error


def _is_ours(error: Exception) -> bool:
    """Whether code of this program raised an error."""
    frames = [frame for frame, _line in walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__", "")).startswith("model.")
