"""What lectures bring to the app: the page Lecture, a button on every other page, and the routes of lecturers and classes."""

import streamlit as st

from viz.feature import Feature, FeaturePage
from viz.features.lectures import editor
from viz.features.lectures.classroom.event_feed import end_streams_at_exit
from viz.features.lectures.classroom.file_limit import allow_many_connections
from viz.features.lectures.classroom.join_codes import process
from viz.features.lectures.presenter import lobby
from viz.features.lectures.presenter.routes import REGISTRY, ROUTES
from viz.i18n.translate import N_, _


def _add_button(path: str) -> None:
    """Offers to add the view of a page to the draft of a lecture; `path`: that of its URL."""
    label = _("Add this view to a lecture")
    st.button(label, icon=":material/playlist_add:", key="add-to-lecture", on_click=editor.add, args=(path,))


FEATURE = Feature(
    pages=(FeaturePage(path="lecture", title=N_("Lecture"), icon="co_present", show=lobby.show, needs_run=False),),
    parts={"sidebar": _add_button},
    routes=tuple(ROUTES),
    settings=(process,),
    starts=(end_streams_at_exit, allow_many_connections),
    ends=(REGISTRY.end,),
)
