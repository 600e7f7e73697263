"""The first picture: one head as lines between words, or over an image; a sentence on what is seen, and the way to all heads."""

from html import escape

import streamlit as st

from model.engine.api import ModelInfo, Models
from viz.canvas.scenes import overlay
from viz.features.tour import first_scene, tour
from viz.i18n.translate import _, join_sentences
from viz.labels import tokens
from viz.session.state import Page, update
from viz.url.links import language_model
from viz.url.view_state import another_model
from viz.views.explore import reading
from viz.widgets.sentence_box import reads_a_language


def show(page: Page) -> None:
    """Draws the first picture of a new visitor; everything else comes after a click."""
    with st.container(key="first-picture", gap="small"):
        st.html(f"<h1>{_title(page)}</h1><p>{join_sentences((_sentence(page), escape(_hint(page))))}</p>")
        head = first_scene.clearest_head(page.trace, page.attention)
        tour.picture(page, head, "first-lines")
        with st.container(horizontal=True, horizontal_alignment="center"):
            if reading.fits(page):  # its map is a step of the tour
                tours = _("Show me in five steps")
                st.button(tours, key="tour-first", icon=":material/directions_walk:", on_click=tour.begin)
            if st.button(tour.all_heads(page), key="all-heads-first", icon=":material/grid_view:"):
                tour.show_all_heads(page)
                st.rerun()  # the whole page: its settings open
            if (other := _other(page)) is not None:
                words, title = _("Language model") if other.continues else _("Translation"), tokens.markdown(other.title)
                asked = another_model() | {"model": other.name}
                st.button(words, key="other-first", icon=":material/forum:", help=title, on_click=update, kwargs=asked)


def _other(page: Page) -> ModelInfo | None:
    """The model that is offered: a language model, or, where one is shown, a model that translates."""
    models = page.engine.ask(Models()).models
    if not page.info.continues:
        return language_model(models)
    return next((info for info in models if info.translates and not info.problem), None)


def _hint(page: Page) -> str:
    """What to type, and what the special tokens at the ends of the text are."""
    info, sentences = page.info, list[str]()
    if info.reads == "words" and info.continues:
        sentences.append(_("Type the beginning of a text into the box above; the network continues it."))
    elif info.reads == "words" and reads_a_language(info):
        sentences.append(_("Type a sentence in {language} into the box above.", language=info.languages["source"]))
    first, last = first_scene.boundaries(page.trace.tokens[page.attention.key_tokens])
    if first and last:
        sentences.append(_("{first} and {last} are special tokens that mark the beginning and the end.", first=first, last=last))
    elif first:
        sentences.append(_("{token} is a special token that marks the beginning.", token=first))
    elif last:
        sentences.append(_("{token} is a special token that marks the end.", token=last))
    return join_sentences(sentences)


def _title(page: Page) -> str:
    if overlay.fits(page.trace, page.attention.site):
        writes = page.attention.site.kind == "cross"
        return (
            _("What a network attends to while it writes about an image") if writes else _("What a network attends to in an image")
        )
    if page.attention.site.kind == "cross":
        return _("What a network attends to while it translates")
    return _("What a network attends to while it reads")


def _sentence(page: Page) -> str:
    if overlay.fits(page.trace, page.attention.site) and page.attention.site.kind == "cross":
        return _(
            "Orange is what one head attended to when a token was generated. Point at another token above the image to see its row."
        )
    if overlay.fits(page.trace, page.attention.site):
        return _(
            "Orange is what one head attended to: the stronger, the more. "
            "Click a patch to see what the head attended to from there."
        )
    if page.attention.site.kind == "cross":
        return _(
            "Each line leads from a word that the network wrote to a word of the sentence that it attended to: the wider, the more."
        )
    return _("Each line leads from a word to a word that the network attended to for it: the wider, the more.")
