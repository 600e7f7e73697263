"""Engines: `api` is the protocol, `local` answers questions in this process with the networks of `runtime`.

`endpoints` says how questions travel, `guards` protect what listens.
"""

import os

from model.engine.api import SharedEngine
from model.engine.memory import set_budget
from model.engine.sent_files import paths_to_open
from model.errors import BadSetting, phrase
from model.feature import attribute, features


def open_engine() -> SharedEngine:
    """The engine for this process: the one at HEADLIGHT_ENGINE, or the networks of `checkpoints/` on this machine's best device.

    Imports are local, so that a process that only talks to a server does not load torch.

    Raises:
        BadSetting: a variable has a value that is not allowed.
        NotACheckpoint: HEADLIGHT_OPEN names a path that cannot be read.
        BadTrace: HEADLIGHT_OPEN names a trace that cannot be drawn.
    """
    if url := os.environ.get("HEADLIGHT_ENGINE"):
        set_budget()
        if not url.startswith(("http://", "https://")):
            raise BadSetting(
                name="HEADLIGHT_ENGINE", found=url, allowed=phrase("the address of an engine, such as http://127.0.0.1:8765")
            )
        remote = next(filter(None, (feature.remote for feature in features())), "")
        if not remote:
            raise BadSetting(
                name="HEADLIGHT_ENGINE", found=url, allowed=phrase("nothing: the feature that asks other machines is not here")
            )
        engine_elsewhere: SharedEngine = attribute(remote)(url, os.environ.get("HEADLIGHT_TOKEN", ""))
        return engine_elsewhere
    from model.engine.trace_engine import from_environment

    engine = from_environment()
    for path in paths_to_open(os.environ):
        engine.open_path(path)
    return engine
