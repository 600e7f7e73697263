"""The page Explore: overview of all heads, and one head in depth."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from html import escape
from urllib.parse import urlencode

import streamlit as st

from model.errors import HeadlightError
from model.requests.edits import Silence
from model.trace.unusual import about_head
from viz import canvas
from viz.canvas.scenes import overlay
from viz.canvas.scenes.sound import over_sound
from viz.canvas.wire import overviews
from viz.feature import draw_parts, features, folded_parts
from viz.i18n.translate import _, _n, error_message, join_list, number, said, translated
from viz.labels import measures, tokens
from viz.labels.sounds import hearing
from viz.metrics import heads
from viz.metrics.catalogue import catalogue
from viz.metrics.heads import SMALL_VALUE, Sink, sink
from viz.metrics.similar_heads import most_alike
from viz.panels import Panel, Table
from viz.session.state import Page, bind, decimals, instead_of_explore, update
from viz.url import links
from viz.url.parsers import READINGS, part_names, parts
from viz.views.explore import lens_panels, panels, reading, sound_panels
from viz.views.explore.reading import SiteReading
from viz.views.step import cell_dialog
from viz.widgets import download
from viz.widgets.cards import card, choose_picture, choosing_head, expander_state, heading, one_screen, panel, say
from viz.widgets.drawn_panels import draw_content, draw_text


def show(page: Page) -> None:
    """Draws the page; in big mode one of its pictures, as large as the screen."""
    if page.view.big:
        return _one_picture(page)
    if instead_of_explore() and any(feature.instead(page) for feature in features() if feature.instead is not None):
        return None
    overview = reading.overview(page)
    _strips(page, overview["strips"])
    if page.trace.sound is not None and hearing(page.trace) is not None:
        _sound(page)
    row = panels.next_row(page)
    maps, *beside = st.columns([5, 3]) if row is not None else [nullcontext()]
    with maps, panel("overview"):
        _INTRO(key="intro", data={"sentence": sentence(page.dark), "close": _("Hide this sentence")}, height="content")
        canvas.draw("atlas", overview["atlas"], key="atlas", chosen=update)
    if row is not None:
        with beside[0]:
            _next(page, panels.of_next(page, row))
    site_reading = reading.of_page(page)
    drawn = reading.selected_head(page, site_reading)
    columns = st.columns([5, 5, 3])
    heat, lines, facts = columns if "overlay" not in drawn else (columns[1], columns[0], columns[2])
    with heat, card("heat", helped=False):
        _reading(page, site_reading, drawn.get("cells"))
    if "overlay" in drawn:
        with lines, card("image", helped=False):
            _image(page, site_reading, drawn["overlay"])
    else:
        with lines, card("lines", helped=False):
            _lines(page, site_reading, drawn.get("lines"))
    with facts, card("facts", helped=False):
        _facts(page, site_reading)
    draw_parts("export", page, site_reading)
    _opened(page, "alike", _("Similar heads"), ":material/join_inner:", lambda: _alike(page))
    _opened(page, "numbers", _("Numbers and downloads"), ":material/table:", lambda: _numbers(page, site_reading))
    _opened(page, "heads", _("Statistics of all heads"), ":material/leaderboard:", lambda: _all_heads(page, site_reading))
    for folded in folded_parts():
        _opened(page, folded.name, translated(folded.title), f":material/{folded.icon}:", partial(folded.draw, page))
    _opened(page, "lens", _("Logit lens: what each layer would predict"), ":material/search:", lambda: _lens(page))
    if page.view.key >= 0 and site_reading.reading.name != "writes":
        cell_dialog.dialog(page)
    return None


def _one_picture(page: Page) -> None:
    """Draws the picture that big mode shows, and which one it is."""
    on_image = overlay.fits(page.trace, page.attention.site)
    names = {"heads": _("All heads"), "head": _("One head")} | ({"image": _("On the image")} if on_image else {"lines": _("Lines")})
    with one_screen():
        picture = choose_picture(names)
        site_reading = reading.of_page(page) if page.view.reading == "writes" else None
        scenes = reading.selected_head(page, site_reading) if picture != "heads" else {"atlas": reading.overview(page)["atlas"]}
        name = {"heads": "atlas", "head": "cells", "image": "overlay"}.get(picture, "lines")
        if name in ("cells", "overlay"):
            st.html(heading(tokens.site(page.attention.site, page.head)))
        if name in scenes:
            chosen = partial(update, site=str(page.attention.site), head=page.head) if name == "cells" else update
            canvas.draw(name, scenes[name], key={"cells": "heat-cells"}.get(name, name), chosen=chosen)
        else:
            st.info(_("Lines are drawn for at most {most} tokens per side.", most=reading.LONGEST))
    if page.view.key >= 0 and (site_reading is None or site_reading.reading.name != "writes"):
        cell_dialog.dialog(page)


def _opened(page: Page, name: str, title: str, icon: str, draw: Callable[[], None]) -> None:
    """Draws an expander whose content is computed only while it is open; the link names those that are open."""
    key = f"part-{name}"
    st.session_state.setdefault(key, name in page.view.opened.split())
    with st.expander(title, icon=icon, **expander_state(key) | {"on_change": _tell_opened}) as part:
        if part.open:
            draw()


def _tell_opened() -> None:
    update(opened=" ".join(name for name in part_names() if st.session_state.get(f"part-{name}")))


def _strips(page: Page, scene: bytes) -> None:
    """Draws the token strips, and sentences about unknown tokens and unfinished outputs."""
    canvas.draw("strips", scene, key="strips", chosen=update)
    for strip in page.trace.tokens.values():
        saw = page.trace.model.get("unknown", {}).get(strip.name, "<unk>")
        unknown = [text for text, not_known in zip(strip.texts, strip.unknown, strict=True) if not_known and text != saw]
        if unknown:  # what the model itself wrote is none of them
            language, words = page.info.languages.get(strip.name, strip.name), join_list(map(tokens.word, unknown))
            sentence = _(
                "Not in the {language} vocabulary, so the model saw {unknown} instead: {words}.",
                language=language,
                unknown=tokens.word(saw),
                words=words,
            )
            st.caption(tokens.markdown(sentence))
    ends = (page.info.spec.get("end_id"), *page.info.spec.get("more_ends", ()))
    decoded = page.trace.steps and page.trace.request.get("target") is None
    if decoded and page.trace.steps[-1].chosen.id not in ends:  # the model did not write its end token
        st.caption(
            tokens.markdown(
                _n(
                    "Stopped after {count} token; the model had not finished.",
                    "Stopped after {count} tokens; the model had not finished.",
                    count := len(page.trace.steps),
                    count=count,
                )
            )
        )


def _reading(page: Page, site_reading: SiteReading, cells: bytes | None) -> None:
    """Draws the card with one reading of the selected site: control, picture and explanation.

    Args:
        cells: the scene of the head's weights, if it is drawn.
    """
    query, key = tokens.query_axis(page.trace, page.attention.site), tokens.key_axis(page.trace, page.attention.site)
    has_axes = cells is not None and reading.fits(page)  # the drawing names its axes itself
    axes = "" if has_axes else _("{query} ↓ · {key} →", query=query, key=key)
    st.html(heading(reading.title(page, site_reading), axes, help_of="heat"))
    _controls(page, site_reading)
    if reading.fits(page):
        if cells is not None:
            canvas.draw("cells", cells, key="heat-cells", chosen=partial(update, site=str(page.attention.site), head=page.head))
        else:
            draw_content(page, panels.of_reading(page, site_reading), "heatmap", printable=False)
    else:
        queries, keys = page.attention.mask.shape
        sentence = _(
            "This map has {queries} × {keys} weights; at most {most} × {most} are drawn here. Enlarge the head in the "
            "overview to see every weight.",
            queries=queries,
            keys=keys,
            most=reading.LONGEST,
        )
        st.info(sentence, icon=":material/info:")
    for note in (*site_reading.notes, *_about_the_head(page, site_reading)):
        st.caption(tokens.markdown(note))


def _controls(page: Page, site_reading: SiteReading) -> None:
    titles = {name: reading.title for name, reading in catalogue(page.attention.site).items()}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.selectbox(
            _("View"),
            READINGS,
            format_func=titles.__getitem__,
            label_visibility="collapsed",
            width=190,
            **bind("reading", key=-1),
        )
        with st.popover(_("What is this?"), type="tertiary", key="about-reading", on_change="rerun") as part:
            if part.open:
                _explain(site_reading)
    if site_reading.reading.name == "writes":
        return
    with st.container(horizontal=True, gap="small"):
        _switch(page, "special", _("Leave out special tokens"), "widget:hide")
        _switch(page, "first", _("Leave out the first token"), "widget:hide-first")


def _switch(page: Page, what: str, label: str, key: str) -> None:
    """A switch of the parameter `hide`. Its default, which the run decides, is not written into the link."""
    default = overviews.leaves_out("", page.trace)
    st.session_state[key] = reading.hides(page) == what

    def switch() -> None:
        wanted = what if st.session_state[key] else "none"
        update(hide="" if wanted == default else wanted)

    st.toggle(label, key=key, on_change=switch)


def _explain(site_reading: SiteReading) -> None:
    """Draws the formula, what the reading is, and what it is not."""
    st.markdown(f"**{tokens.markdown(site_reading.reading.title)}**")
    for line in site_reading.reading.formula:
        st.latex(line)
    st.markdown(f":small[{tokens.markdown(site_reading.reading.meaning)}]")
    st.markdown(f":small[{tokens.markdown(site_reading.reading.caution)}]")


def _about_the_head(page: Page, site_reading: SiteReading) -> list[str]:
    """Sentences about the selected head: that it is silenced, has weights that are no probabilities, has an attention sink."""
    if not site_reading.reading.of_head:
        return []
    edits, site = page.view.request().edits, str(page.attention.site)
    notes = [] if page.trace.recorded is None else [said(phrase) for phrase in about_head(page.attention, page.head)]
    if any(isinstance(edit, Silence) and edit.by == "zeros" and edit.covers(site, page.head) for edit in edits):
        notes.append(_("This head is silenced: its weights were computed, but its output was replaced by zeros."))
    head_sink = sink(page.trace, page.attention, page.head)
    if head_sink is not None:  # only then the run that keeps values is asked for: they tell how little the sink moves
        with_values = reading.with_values(page)
        measured = None if isinstance(with_values, str) else sink(page.trace, with_values, page.head)
        notes.append(_about_sink(page, measured or head_sink))
    return notes


def _about_sink(page: Page, head_sink: Sink) -> str:
    strip = page.trace.tokens[page.attention.key_tokens]
    numbers = {"token": tokens.token(strip, head_sink.key), "key": head_sink.key + 1, "share": head_sink.share}
    if head_sink.value is None:
        return _("On average, {share:.0%} of a row’s weight goes to “{token}” (key {key}).", **numbers)
    numbers["value"] = head_sink.value
    if head_sink.value < SMALL_VALUE:
        return _(
            "Attention sink: on average, {share:.0%} of a row’s weight goes to “{token}” (key {key}), but the value "
            "vector there is only {value:.2f} times as long as the average. The head rests there: this weight moves "
            "little.",
            **numbers,
        )
    return _(
        "On average, {share:.0%} of a row’s weight goes to “{token}” (key {key}). The value vector there is "
        "{value:.2f} times as long as the average, so this weight does move something.",
        **numbers,
    )


def _lines(page: Page, site_reading: SiteReading, scene: bytes | None) -> None:
    """Draws the reading as lines, or the weights of the head if the reading has no number for each pair of tokens.

    Args:
        scene: None if there are too many tokens.
    """
    title = _("Lines") if reading.is_raw(page, site_reading) else _("Lines: {title}", title=reading.title(page, site_reading))
    st.html(heading(title, _("Lines lead from each query token to the tokens that it attends to"), help_of="lines"))
    if scene is None:
        st.caption(_("Lines are drawn for at most {most} tokens per side.", most=reading.LONGEST))
        return
    if site_reading.values.ndim == 1:
        st.caption(_("This view has one number for each row. The lines show the weights of the selected head instead."))
    canvas.draw("lines", scene, key="lines", chosen=update)


def _image(page: Page, site_reading: SiteReading, scene: bytes) -> None:
    """Draws the reading over the image, or the weights of the head if the reading has no number for each pair of patches."""
    title = _("On the image: {title}", title=reading.title(page, site_reading))
    st.html(heading(title, _("Gray: little weight. Orange: much, up to the largest weight of a patch"), help_of="image"))
    if site_reading.values.ndim == 1:
        st.caption(_("This view has one number for each row. The image shows the weights of the selected head instead."))
    canvas.draw("overlay", scene, key="overlay", chosen=update)


def _next(page: Page, likeliest: Panel) -> None:
    """Draws the card of a language model."""
    with card("next", "content"):
        st.html(heading(likeliest.title, likeliest.about))
        draw_content(page, likeliest, "next", chosen=update, printable=False)


def _sound(page: Page) -> None:
    """Draws the card of a run that has read a sound, with the times of its words."""
    heard = sound_panels.of_sound(page, panels.printed(page, "head"))
    site = over_sound(page.trace, page.attention.site)
    with card("sound", "content", helped=False):
        head = tokens.site(site.site, min(page.head, site.heads - 1))
        about = _("The line moves with the sound. Colors: the attention of {head}.", head=head)
        st.html(heading(heard.title, about, help_of="sound"))
        draw_content(page, heard, "sound", chosen=update, printable=False)
        st.caption(heard.about)
        if (timed := sound_panels.timed_words(page)).words:
            times = sound_panels.of_times(timed)
            with st.expander(times.title, icon=":material/timer:", **expander_state("word-times")) as part:
                if part.open:
                    st.caption(times.words)
                    draw_content(page, times, "times")


def _facts(page: Page, site_reading: SiteReading) -> None:
    """Draws statistics of the selected head with explanations; in a single element, since each element slows down a redraw."""
    statistics, meanings = panels.of_facts(page, site_reading), measures.meanings()
    assert isinstance(statistics.content, Table)
    facts = []
    for name, (title, value) in zip(heads.SHOWN, statistics.content.frame[""].items(), strict=True):
        meaning = escape(meanings[name])
        summary = f'<summary title="{meaning}"><span>{escape(str(title))}</span><b>{escape(value)}</b></summary>'
        facts.append(f'<details class="fact">{summary}{meaning}</details>')
    small = [f'<p class="small">{escape(note)}</p>' for note in panels.notes_of_facts(page, site_reading)]
    for folded in folded_parts():
        if sentence := folded.link(page):
            address = urlencode(links.write(replace(page.view, opened=parts(f"{page.view.opened} {folded.name}"))))
            small.append(f'<p class="small"><a href="?{escape(address)}" target="_self">{escape(sentence)}</a></p>')
    st.html("".join((heading(statistics.title, _("each row is a probability distribution"), help_of="facts"), *facts, *small)))


def _alike(page: Page) -> None:
    """Draws the heads most similar to the selected one; a click selects one of them."""
    similar = most_alike(page.trace, page.attention, page.head)
    words = panels.of_similar(page, similar)
    st.caption(words.words)
    with st.container(horizontal=True, gap="small", key="alike-heads"):
        for head in similar:
            name, bits = tokens.site(head.site, head.head), number(head.divergence, decimals(3))
            st.button(
                tokens.markdown(_("{head}: {bits} bits", head=name, bits=bits)),
                key=f"alike-{head.site}-{head.head}",
                type="tertiary",
                on_click=update,
                kwargs={"site": str(head.site), "head": head.head},
            )
    if not similar:
        st.caption(_("No other head attends to the same tokens."))
    st.caption(words.about)


def _numbers(page: Page, site_reading: SiteReading) -> None:
    """Draws the numbers of the picture above as a table, with downloads."""
    numbers = panels.of_numbers(page, site_reading)
    st.caption(tokens.markdown(numbers.title))
    if reading.fits(page):
        draw_content(page, numbers, "numbers")
    download.csv(reading.table(page, site_reading), page.trace, *reading.file_parts(page, site_reading))


def _all_heads(page: Page, site_reading: SiteReading) -> None:
    """Draws a sortable table of all heads' statistics; a click on a row selects the head."""
    if not reading.is_raw(page, site_reading):
        st.caption(panels.weights_alone())
    statistics = panels.of_heads(page)
    st.caption(statistics.about)
    choosing = choosing_head(heads.all_heads(page.trace), "all-heads")
    draw_content(page, statistics, choosing.pop("key"), selection_mode="single-row", **choosing)


def _lens(page: Page) -> None:
    """Draws the logit lens, or says why this model has none."""
    if reason := lens_panels.reason_against(page):
        st.caption(reason)
        return
    with st.popover(_("What is this?"), type="tertiary", key="about-lens"):
        draw_text(lens_panels.explanation(page), lambda sentence: st.markdown(f":small[{sentence}]"))
    try:
        lens = lens_panels.of_run(page)
    except HeadlightError as error:
        say(error_message(error))
        return
    draw_content(page, lens_panels.panel(page, lens), "lens")
    download.csv(lens.table, page.trace, "logit-lens")


_INTRO = st.components.v2.component(
    "headlight.intro",
    html='<p role="note" hidden><span></span><button type="button">×</button></p>',
    css="""
p {
  display: flex; gap: 10px; align-items: baseline; margin: 0; color: var(--st-text-color);
  font: calc(14px * var(--headlight-scale, 1))/1.4 var(--st-font);
}
p[hidden] { display: none; }
span { flex: 1; }
button { font: inherit; line-height: 1; color: inherit; background: none; border: 0; padding: 4px 8px; }
button { font-size: calc(18px * var(--headlight-scale, 1)); }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
p { margin-right: 34px; }
""",
    js="""
const KEY = "headlight.intro";

// A browser that keeps nothing shows the sentence again at the next visit.
const kept = (act) => { try { return act(localStorage); } catch { return null; } };

export default ({ parentElement, data }) => {
  const [note, text, button] = ["p", "span", "button"].map((tag) => parentElement.querySelector(tag));
  text.textContent = data.sentence;
  button.setAttribute("aria-label", data.close);
  button.title = data.close;
  note.hidden = kept((store) => store.getItem(KEY)) === "away";
  button.onclick = () => {
    note.hidden = true;
    kept((store) => store.setItem(KEY, "away"));
  };
};
""",
)


def sentence(dark: bool) -> str:
    """A sentence on what the overview of all heads shows; it stays away in a browser that put it away.

    Args:
        dark: whether the page is dark: large weights are dark on a light page, and bright on a dark one.
    """
    if dark:
        return _(
            "Each small square is one attention head. Row: token that attends. Column: token attended to. Bright: large weight."
        )
    return _("Each small square is one attention head. Row: token that attends. Column: token attended to. Dark: large weight.")
