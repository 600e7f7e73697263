"""Slots for opening files: how many are opened at the same time."""

import threading

from model.errors import TookTooLong

SLOT_SECONDS = 120.0
"""How long a caller waits for a slot to open a file."""


class OpeningSlots:
    """Semaphore for opening files: lets `at_once` threads into a `with` block; others wait, with a timeout.

    Args:
        at_once: number of slots.
    """

    def __init__(self, at_once: int) -> None:
        self._free = threading.BoundedSemaphore(at_once)

    def __enter__(self) -> None:
        """Waits for a slot.

        Raises:
            TookTooLong: none became free in time.
        """
        if not self._free.acquire(timeout=SLOT_SECONDS):
            raise TookTooLong(seconds=round(SLOT_SECONDS))

    def __exit__(self, *_: object) -> None:
        """Frees the slot, also after an error."""
        self._free.release()
