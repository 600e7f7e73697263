"""Who comes for the first time, and what a returning visitor left: a cookie of the browser holds the link of its last page."""

from collections.abc import Collection
from urllib.parse import parse_qsl, unquote, urlsplit

import streamlit as st

from viz.session.state import FIRST_PICTURE, known_view

COOKIE = "headlight-last"
"""Name of the cookie that says where a visitor was last."""

LONGEST = 3000
"""Most characters of a link that the cookie holds; browsers keep 4,096 bytes. Of a longer one only that somebody was here."""

_LEFT = "left"


def begin(paths: Collection[str]) -> None:
    """Decides what a new session shows; comes first in its first script run.

    A link shows what it says, and so does the address of a page. At the app's address alone, a browser that was here gets its page
    as it left it, another one the first picture.

    Args:
        paths: of the pages, as in their addresses.
    """
    address = urlsplit(st.context.url or "")
    named = address.path.rstrip("/").rpartition("/")[2] in paths
    bare = bool(address.netloc) and not named and not known_view() and not st.query_params
    left = st.context.cookies.get(COOKIE)
    st.session_state[FIRST_PICTURE] = bare and left is None
    st.session_state[_LEFT] = unquote(left) if bare and left else ""


def take_left() -> tuple[str, dict[str, str]] | None:
    """Path and URL parameters of the page that a returning visitor left; None after the first call, and if nothing was kept."""
    path, _mark, query = str(st.session_state.pop(_LEFT, "")).partition("?")
    return (path, dict(parse_qsl(query, keep_blank_values=True))) if path or query else None


def leave_first_picture() -> None:
    """Shows the whole page from now on."""
    st.session_state[FIRST_PICTURE] = False


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
    const link = encodeURIComponent(location.pathname.split("/").pop() + location.search);
    document.cookie = `${COOKIE}=${link.length > LONGEST ? "" : link}; path=/; max-age=31536000; samesite=lax`;
  };
  addEventListener("pagehide", keep);
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") keep(); });
}
"""
)
"""Defines `keepLink(wanted)` in a page."""
