"""The pages of the navigation by the path of their URL, for links and buttons that lead from one page to another."""

from collections.abc import Iterable

import streamlit as st
from streamlit.navigation.page import StreamlitPage

_PAGES = "pages"


def keep(pages: Iterable[StreamlitPage]) -> None:
    """Remembers the pages of this script run; its first one has the path of Explore, which Streamlit serves at the root."""
    st.session_state[_PAGES] = {page.url_path or "explore": page for page in pages}


def page_at(path: str) -> StreamlitPage:
    """The page of a path.

    Raises:
        KeyError: there is no such page.
    """
    page: StreamlitPage = st.session_state[_PAGES][path]
    return page
