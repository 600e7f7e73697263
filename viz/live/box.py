"""The script that listens to the sentence box of Explore, and its switch beside the box."""

import os
from contextlib import suppress
from pathlib import Path

import streamlit as st

from model.errors import BadSetting
from model.spec.sent_text import whole_number
from viz.canvas.assets import BASE, read
from viz.canvas.wire import strings
from viz.i18n.translate import _
from viz.live.route import PATH
from viz.live.sessions import attend as attend
from viz.live.sessions import fields_of, my_live
from viz.session.state import get_view_state, update

_KEY = "live"
HERE = Path(__file__).parent
_SCRIPTS = ("choices.js", "leaving.js", "answer.js", "history.js", "page_script.js", "live.js")
PAUSE_MS, LONGEST_MS = 120, 10_000
"""How long typing must pause until the sentence so far is shown, if HEADLIGHT_LIVE does not say it; and the longest such pause."""

_BOX = st.components.v2.component(
    "headlight.live",
    html='<button type="button" role="switch"></button>'
    '<div class="under"><p class="said" role="status"></p><button type="button" class="stop" hidden></button></div>',
    css=(HERE / "live.css").read_text(encoding="utf-8"),
    js="\n".join((read(*BASE), *((HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS))),
)


def pause_ms() -> int:
    """The pause of HEADLIGHT_LIVE in milliseconds; 0: nothing is shown while somebody types.

    Raises:
        BadSetting: it is not a valid number.
    """
    asked = os.environ.get("HEADLIGHT_LIVE") or str(PAUSE_MS)
    if (found := whole_number(asked, 0, LONGEST_MS)) is None:
        raise BadSetting(name="HEADLIGHT_LIVE", found=asked[:40], allowed=f"a whole number of ms from 0 to {LONGEST_MS:,}")
    return found


def switch() -> None:
    """Mounts the script with its switch; nothing if the server turned it off."""
    if not (pause := pause_ms()):
        return
    texts = {
        "live": _("Live"),
        "help": _("Show the sentence while you type"),
        "how_far": strings.how_far(),
        "stop": _("Stop"),
    }
    view = get_view_state()[0]
    data = {
        "path": f"{PATH}/{my_live().token}",
        "pause": pause,
        "texts": texts,
        "text": view.text or "",
        "seed": view.seed,
        "samples": view.method == "sample" and not view.target,
        "silence": view.silence,
        "silences": not (view.edits or view.off),
    }
    _BOX(key=_KEY, data=data, on_changed_change=_take, width="content", height="content")


def _take() -> None:
    """Takes what a person changed and the route has drawn."""
    with suppress(ValueError):
        update(**fields_of(st.session_state[_KEY].get("changed")))
