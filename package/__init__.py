"""What every attention head of a Transformer computes: recorded, shown in a notebook, or explored in an app.

    import headlight

    with headlight.record(model) as recording:
        model(ids)

`headlight` on the command line starts the app. Nothing is imported before it is asked for, because torch alone takes seconds.
"""

from importlib import import_module
from typing import Any

__all__ = ["Recording", "Site", "record"]


def __getattr__(name: str) -> Any:
    """A name of the recorder, which needs torch."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module("headlight.recorder"), name)


def __dir__() -> list[str]:
    return __all__
