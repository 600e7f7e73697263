"""Who comes for the first time, and what a returning visitor left: a cookie of the browser holds the link of its last page."""

from urllib.parse import parse_qsl, unquote, urlsplit

import streamlit as st

from viz.session.state import known_view

COOKIE = "headlight-last"
LONGEST = 3000
"""Most characters of a link that the cookie holds; browsers keep 4,096 bytes. Of a longer one only that somebody was here."""

_FIRST = "first-picture"
_PAGES_OF_ITS_OWN = "explore"
"""Path of the first page where it is named; the address of the app alone has none."""


def begin() -> None:
    """Decides what a new session shows; comes first in a script run.

    A link shows what it says. At the app's address alone, a browser that was here gets its page as it left it, another one the
    first picture.
    """
    if _FIRST in st.session_state:
        return
    place = st.context.url or ""
    bare = bool(place) and not known_view() and not st.query_params and not urlsplit(place).path.endswith(_PAGES_OF_ITS_OWN)
    st.session_state[_FIRST] = bare and COOKIE not in st.context.cookies
    if bare and (left := st.context.cookies.get(COOKIE)):
        st.query_params.from_dict(dict(parse_qsl(unquote(left))))


def shows_first_picture() -> bool:
    """Whether this session still shows the first picture."""
    return bool(st.session_state.get(_FIRST))


def leave_first_picture() -> None:
    """Shows the whole page from now on; for callbacks."""
    st.session_state[_FIRST] = False


KEEPS = (
    f"const COOKIE = {COOKIE!r};\nconst LONGEST = {LONGEST};\n"
    + """
// Keeps the link of the page for the next visit to the app's address, when the page is left; not that of the first picture.
function keepLink(wanted) {
  const root = document.documentElement;
  const listens = "headlightKeeps" in root.dataset;
  root.dataset.headlightKeeps = wanted;
  if (listens) return;
  const keep = () => {
    if (root.dataset.headlightKeeps !== "true") return;
    const link = encodeURIComponent(location.search.slice(1));
    document.cookie = `${COOKIE}=${link.length > LONGEST ? "" : link}; path=/; max-age=31536000; samesite=lax`;
  };
  addEventListener("pagehide", keep);
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") keep(); });
}
"""
)
"""Defines `keepLink(wanted)` in a page."""
