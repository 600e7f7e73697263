"""AppTest without work that it repeats for each app and each run. What a script draws is the same."""

import sys
from functools import cache
from typing import Any


def spare() -> None:
    """Changes AppTest where a test module has imported it.

    Each app reads the metadata of all installed distributions, to find components among them: a quarter of a second. They are the
    same for all apps of a process. Each run compiles its script; it is compiled once. And a thread that waits for the script wakes
    a thousand times a second; it is joined instead.
    """
    runs: Any = sys.modules.get("streamlit.testing.v1.local_script_runner")
    if runs is None:
        return
    from streamlit.components.v2 import manifest_scanner

    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
    runs.ScriptCache = cache(runs.ScriptCache)
    wait = runs.require_widgets_deltas

    def join(runner: Any, timeout: float = 3) -> None:
        runner._script_thread.join(timeout)
        wait(runner, 0 if runner._script_thread.is_alive() else timeout)

    runs.require_widgets_deltas = join
