"""The page Lecture: the lectures of this machine, each with what it is about, a link to hold it and one to take it home."""

from contextlib import suppress
from urllib.parse import urljoin

import streamlit as st

from model.errors import BadLecture, EngineAway
from viz.features.lectures import editor
from viz.features.lectures.classroom import routes as class_routes
from viz.features.lectures.presenter.routes import path_of
from viz.features.lectures.script import library
from viz.features.lectures.script.lecture import Lecture
from viz.i18n.translate import LANGUAGES, _, _n, current, error_message
from viz.labels import tokens
from viz.session.state import my_engine


def show() -> None:
    """Draws the page."""
    st.markdown("### " + _("Lectures"))
    st.caption(
        _("A lecture shows one view after another, each beside its text. A class can follow on phones: press C while presenting.")
    )
    for lecture in _lectures():
        _card(lecture)
    address = urljoin(st.context.url or "", class_routes.base())
    st.caption(tokens.markdown(_("Students join at {address}.", address=address)))
    editor.draw()


def _lectures() -> list[Lecture]:
    """The lectures that can be read, those in the language of the page and English ones first; for others a warning is drawn."""
    lectures, engine = list[Lecture](), my_engine()
    for name in library.files():
        try:
            lecture = library.load(name)
            with suppress(EngineAway):  # then all steps are told
                lecture = lecture.shown_with(library.models_here(lecture, engine))
            lectures.append(lecture)
        except BadLecture as error:
            st.warning(tokens.markdown(error_message(error)), icon=":material/info:")
    return sorted(lectures, key=lambda lecture: (lecture.language != current(), lecture.language != "en"))


def _card(lecture: Lecture) -> None:
    """Draws one lecture."""
    with st.container(border=True, key=f"lecture-{lecture.name}"):
        st.markdown(f"**{tokens.markdown(lecture.title)}**")
        steps = len(lecture.steps)
        fields = {"minutes": lecture.minutes, "steps": steps, "language": LANGUAGES.get(lecture.language, lecture.language)}
        about = _n("{minutes} min · {steps} step · {language}", "{minutes} min · {steps} steps · {language}", steps, **fields)
        st.caption(tokens.markdown(about))
        if lecture.chapters:
            st.caption(tokens.markdown(" · ".join(title for title, _first in lecture.chapters)))
        if lecture.problems:
            problems = {"name": lecture.name, "count": len(lecture.problems)}
            text = _("Lines of {name} that could not be read: {count}. The command lecture check lists them.", **problems)
            st.caption(tokens.markdown(text))
        with st.container(horizontal=True):
            st.link_button(_("Start the lecture"), path_of(lecture.name), icon=":material/co_present:")
            st.link_button(_("Save as one file"), f"{path_of(lecture.name)}/file", icon=":material/download:")
            st.link_button(_("Handout as PDF"), f"{path_of(lecture.name)}/handout", icon=":material/picture_as_pdf:")
