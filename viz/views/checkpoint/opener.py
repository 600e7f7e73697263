"""Opens a model: by what somebody typed (a path, a name of the Hub, an address), a file, or a choice from what is here.

It stands on the page Checkpoint, and in a dialog that the list of models opens on every other page. What is typed is looked up
before anything is downloaded; a download is offered with what it takes, and can be stopped and continued.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from model.engine.api import Describe, Engine, Fetch, Find, Meaning, ModelInfo, Models, Offer, Offered, Offers, Plan
from model.errors import HeadlightError
from viz.i18n.translate import _, _n, amount_of_bytes, error_message, in_millions, said
from viz.labels import tokens
from viz.session import access, patient_engine
from viz.session.background_calls import Pending, Stopped
from viz.session.patient_engine import my_calls
from viz.session.state import get_view_state, my_engine, opened, remember, update
from viz.url.view_state import another_model
from viz.views.checkpoint import uploads
from viz.widgets import sidebar
from viz.widgets.cards import heading, say

_STATE, _EMPTIED = "opener", "opener:emptied"

_PATH = re.compile(r"[/\\~.]|[A-Za-z]:[/\\]")
"""How a path begins that is no name."""

_FILES = (".pt", ".pth", ".bin", ".safetensors", ".gguf", ".zip")


@dataclass
class Opening:
    """What a session is about to open.

    Attributes:
        typed: a name or an address, still to be looked up or found.
        found: what it means; None: not known yet.
        refused: why it cannot be opened; None: nothing is known against it.
        fetching: what is being downloaded: a name of the catalogue, or a plan; empty: nothing.
        stopped: whether the visitor stopped the download.
    """

    typed: str = ""
    found: Meaning | None = None
    refused: HeadlightError | None = None
    fetching: str | Plan = ""
    stopped: bool = False


def dialog() -> None:
    """Draws the dialog that the list of models opens when it is asked for another one (`sidebar.ASKS`)."""

    @st.dialog(_("Open a model"), width="large", on_dismiss=_dismiss)
    def opened() -> None:
        if not st.session_state.get(sidebar.ASKS):  # a model was chosen: the page shows it
            st.rerun()
        with st.container(key="card-choose"):
            draw(my_engine())
            if refused := uploads.refused():
                say(refused)

    opened()


def _dismiss() -> None:
    st.session_state.pop(sidebar.ASKS, None)
    uploads.forget_refusal()
    if not st.session_state[_STATE].fetching:  # a download goes on
        st.session_state[_STATE] = Opening()


def draw(engine: Engine) -> None:
    """Draws the field, what became of what was typed, the uploader, and the list of what can be opened."""
    mine: Opening = st.session_state.setdefault(_STATE, Opening())
    try:
        with patient_engine.raise_if_slow():
            if mine.fetching:
                _open(engine.ask(Fetch(mine.fetching)))
    except HeadlightError as error:
        mine.fetching, mine.refused = "", error
    except (Pending, Stopped) as pause:
        _wait(mine, pause)
        return
    asked, right = st.columns(2, gap="large")
    with asked:
        _field(mine)
        _answer(engine, mine)
        uploads.offer(engine)
    with right, st.container(height=340, border=False, key="model-list"), patient_engine.show_pending():
        _list(engine)


def is_busy() -> bool:
    """Whether something is being opened: a model shown below would be mistaken for it."""
    mine: Opening = st.session_state.get(_STATE, Opening())
    return bool(uploads.refused() or mine.typed or mine.fetching or mine.refused)


def _field(mine: Opening) -> None:
    """Draws the field for whatever people have."""
    if access.hub_mode() == "off" and not access.is_owner():
        return
    if st.session_state.pop(_EMPTIED, False):  # only before it is drawn can a field be emptied
        st.session_state[uploads.PATH] = ""
    st.session_state.setdefault(uploads.PATH, mine.typed)  # it was not drawn during a download
    st.text_input(
        _("Path, name or address of a model"),
        placeholder="gpt2, Qwen/Qwen3-0.6B, ~/mine.pt",
        help=_(
            "A path on this machine: the file is read in place and may be up to 8 GB. Or a model on the Hub: "
            "gpt2, ORG/NAME, ORG/NAME@REVISION, or the address of its page. Nothing is downloaded before you "
            "have seen how much it is."
        ),
        key=uploads.PATH,
        on_change=_take_typed,
    )


def _take_typed() -> None:
    """Opens a typed path at once; anything else is looked up when the page is drawn."""
    typed = str(st.session_state[uploads.PATH]).strip().strip("\"'")
    uploads.forget_refusal(typed)
    my_calls().resume()
    st.session_state[_STATE] = Opening()
    if access.is_owner() and typed and _is_path(typed):
        uploads.open_path(typed)
    else:
        st.session_state[_STATE].typed = typed


def _is_path(typed: str) -> bool:
    return bool(_PATH.match(typed)) or ("://" not in typed and (Path(typed).suffix in _FILES or Path(typed).exists()))


def _answer(engine: Engine, mine: Opening) -> None:
    """Looks up what was typed, and draws what it is, or why it cannot be opened."""
    try:
        with patient_engine.raise_if_slow():
            if mine.typed and mine.found is None and mine.refused is None:
                mine.found = engine.ask(Find(mine.typed))
    except HeadlightError as error:
        mine.refused = error
    except (Pending, Stopped) as pause:
        _wait(mine, pause)
        return
    if mine.refused is not None:
        say(error_message(mine.refused))
    elif mine.found is not None and mine.found.model:
        _open(mine.found.model)
    elif mine.found is not None and mine.found.known:
        with patient_engine.show_pending():
            _known(next(model for model in engine.ask(Offered()).known if model.name == mine.found.known), key="fetch")
    elif mine.found is not None and mine.found.plan is not None:
        _plan(mine.found.plan, mine.stopped)


def _plan(plan: Plan, stopped: bool) -> None:
    """Draws what a download takes and brings, with the button that begins it, or why it would not fit."""
    shape, files = plan.shape, len(plan.files)
    size = _n("{size} in {count} file", "{size} in {count} files", files, count=files, size=amount_of_bytes(plan.bytes))
    here = _("{there} of it is already here", there=amount_of_bytes(plan.bytes - plan.missing)) if plan.missing < plan.bytes else ""
    unknown = _("not stated")
    facts = {
        _("Download"): " · ".join(filter(None, (size, here))),
        _("License"): plan.license or unknown,
        _("Layers × heads"): _size(shape.layers, shape.heads) or unknown,
        _("Precision of its file"): shape.dtype or unknown,
        _("Memory"): _("{needed} of {there}", needed=amount_of_bytes(plan.memory), there=amount_of_bytes(plan.memory_there)),
        _("Disk"): _("{needed} of {there} free", needed=amount_of_bytes(plan.missing), there=amount_of_bytes(plan.disk_there)),
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items())
    commit = _("commit {commit}", commit=plan.commit[:12])
    st.html(f'{heading(plan.title, commit)}<dl class="facts">{rows}</dl>')
    if plan.refused is not None:
        say(error_message(plan.refused))
        return
    if stopped:
        st.caption(_("Stopped. What was downloaded is kept."))
    more = _("Continue: download the other {size} and open", size=amount_of_bytes(plan.missing))
    label = more if plan.missing < plan.bytes else _("Download {size} and open", size=amount_of_bytes(plan.bytes))
    st.button(label, key="fetch", icon=":material/download:", on_click=_fetch, args=(plan,))


def _fetch(what: str | Plan) -> None:
    my_calls().resume()
    st.session_state[_STATE].fetching = what


def _wait(mine: Opening, pause: Pending | Stopped) -> None:
    """Draws how far a download is, or that the Hub is asked, with a button that stops it."""
    if isinstance(pause, Stopped):
        mine.fetching, mine.found, mine.stopped = "", None, True
        my_calls().resume()
        st.rerun()

    def stop() -> None:
        my_calls().stop_one(pause.call)
        mine.found, mine.stopped = None, bool(mine.fetching)
        mine.typed = mine.typed if mine.fetching else ""
        mine.fetching = ""

    if isinstance(what := mine.fetching, Plan):
        st.html(heading(what.title))
    patient_engine.show_call(pause.call, stop, "download" if what else "name")


def _open(name: str) -> None:
    """Makes a model that is here the one of the page."""
    _choose(name)
    st.rerun()


def _choose(name: str) -> None:
    st.session_state[_STATE] = Opening()
    st.session_state[_EMPTIED] = True
    uploads.forget_refusal()
    uploads.end_dialog()
    update(**another_model() | {"model": name})


def _list(engine: Engine) -> None:
    """Draws what can be opened by a click: models of the folder, of this session, of the catalogue, of the Hub's cache."""
    bundled, mode = engine.ask(Models()).models, access.hub_mode()
    offers = Offers("off") if mode == "off" else engine.ask(Offered())
    titles, listed = sidebar.distinct_titles(bundled), {info.name for info in bundled} | {cached.name for cached in offers.cached}
    lately = [info for info in opened() if info.name not in listed]
    _group(_("Models of this server"))
    for info in bundled:
        _row(info.name, titles[info.name], _about(info))
    if lately:
        _group(_("Recently opened"))
        for info in lately:
            _row(info.name, info.title, _about(info))
    if offers.known and mode == "ask":
        _group(_("Well-known models"))
        for offer in offers.known:
            _known(offer)
    if offers.cached:
        _group(_("In this machine’s Hub cache"))
        for offer in offers.cached:
            facts = (_size(offer.layers, offer.heads), amount_of_bytes(offer.bytes), offer.dtype, said(offer.about))
            _row(offer.name, offer.title, facts)


def _group(title: str) -> None:
    st.html(f'<p class="small">{escape(title)}</p>')


def _row(name: str, title: str, facts: Sequence[str]) -> None:
    """Draws a button that opens a model."""
    text = " · ".join(tokens.markdown(fact) for fact in facts if fact)
    st.button(
        f"{tokens.markdown(title)} :small[{text}]" if text else tokens.markdown(title),
        key=f"open:{name}",
        type="tertiary",
        width="stretch",
        on_click=_choose,
        args=(name,),
    )


def _known(offer: Offer, key: str = "") -> None:
    """Draws a button that downloads a model of the catalogue."""
    fields: dict[str, Any] = {"title": offer.title, "size": offer.bytes / 1e6, "about": said(offer.about)}
    what = _("Get {title} ({size:,.0f} MB): {about}", **fields)
    facts = " · ".join(filter(None, (_size(offer.layers, offer.heads), offer.license)))
    st.button(
        f"{tokens.markdown(what)} :small[{tokens.markdown(facts)}]",
        key=key or f"get:{offer.name}",
        type="tertiary",
        width="stretch",
        icon=":material/download:",
        on_click=_fetch,
        args=(offer.name,),
    )


def _about(info: ModelInfo) -> tuple[str, ...]:
    """Layers × heads and parameters of a model of the folder."""
    stacks = [stack for name in ("encoder", "decoder") if (stack := info.spec.get(name)) is not None] if info.spec else []
    if info.problem or not stacks:
        return ()
    size = _size(sum(stack["layers"] for stack in stacks), stacks[-1]["attention"]["heads"])
    return (size, _("{millions} million parameters", millions=in_millions(info.parameters)))


def _size(layers: int, heads: int) -> str:
    return f"{layers} × {heads}" if layers and heads else ""


def current(engine: Engine) -> str:
    """The model that the page is about: that of the view by its pinned name; empty: none was chosen."""
    view = get_view_state()[0]
    if not view.model:
        return ""
    try:
        info = engine.ask(Describe(view.model, view.parsed_settings()))
    except HeadlightError:
        return view.model
    if info.name != view.model:
        update(model=info.name)  # the link names the commit from now on
    uploads.end_dialog()
    remember(info)
    return info.name
