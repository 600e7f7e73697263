"""Engines: `base` says what one does, `local` runs networks in this process."""

from model.engine.base import Engine


def open_engine() -> Engine:
    """The engine for this process: the networks of `checkpoints/` on this machine's best device.

    Imported here and not at the top, so that whoever only speaks of engines does not load torch.
    """
    from model.engine.local import LocalEngine

    return LocalEngine.from_environment()
