"""What every attention head of a Transformer computes: recorded, shown in a notebook, or explored in an app.

    import headlight

    headlight.show(outputs.attentions, tokens)  # below a notebook's cell

    with headlight.record(model) as recording:
        model(ids)
    recording.show()

`headlight` on the command line starts the app. Nothing is imported before it is asked for, because torch alone takes seconds.
"""

from importlib import import_module
from typing import Any

__all__ = ["Recording", "Site", "record", "save", "show"]


_OF_THE_VIEWER = ("Picture", "save", "show")


def __getattr__(name: str) -> Any:
    """A name of the viewer, which needs numpy and safetensors, or of the recorder, which needs torch, too."""
    if name.startswith("__"):
        raise AttributeError(name)
    module = "headlight.viewer.viz.features.notebook.show" if name in _OF_THE_VIEWER else "headlight.recorder"
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return __all__
