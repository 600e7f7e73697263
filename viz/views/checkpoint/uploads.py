"""Files that are opened: by path for the owner of this machine, by upload for everybody else."""

from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from model.engine.api import Describe, Engine, Receive
from model.engine.sent_files import VOCABULARY_PREFIX
from model.errors import BadImage, BadSound, HeadlightError
from model.requests.inputs import IMAGE_PREFIX, SOUND_PREFIX
from viz.i18n.translate import _, error_message
from viz.session import access
from viz.session.state import get_view_state, remember, the_engine, update
from viz.url.view_state import another_model, new_sentence
from viz.views.checkpoint import tensor_roles, vocabulary
from viz.widgets import sidebar
from viz.widgets.upload_limit import watch

PATH = "widget:path"
"""The field for a path or a name."""

_SENT, _DROPPED, _ROUND = "widget:upload", "widget:dropped", "checkpoint:round"
_REFUSED, _ARRIVED, _MORE = "checkpoint:refused", "checkpoint:arrived", "checkpoint:more"


_DROPS = st.components.v2.component(
    "headlight.drops",
    html="<span hidden></span>",
    js="""
const watching = new WeakMap();

// Streamlit calls this at each script run.
export default ({ parentElement, data, setTriggerValue }) => {
  watching.get(parentElement)?.abort();
  const life = new AbortController();
  watching.set(parentElement, life);
  const hint = Object.assign(document.createElement("div"), { className: "headlight-drop", textContent: data.label });
  const beside = (node) => !node.closest?.("[data-testid=stFileUploader]");
  const ours = ({ dataTransfer, target }) => dataTransfer?.types.includes("Files") && beside(target);
  const on = (name, act) => document.addEventListener(name, act, { signal: life.signal });
  on("dragover", (event) => {
    if (!ours(event)) return hint.remove();
    event.preventDefault(); // the browser would leave the page for the file
    if (!hint.isConnected) document.body.append(hint);
  });
  on("dragleave", ({ relatedTarget }) => { if (!relatedTarget) hint.remove(); });
  on("drop", (event) => {
    hint.remove();
    if (!ours(event)) return;
    event.preventDefault();
    const files = [...event.dataTransfer.files];
    const large = files.find((file) => file.size > data.megabytes * 2 ** 20);
    if (large) return setTriggerValue("refused", { name: large.name, megabytes: large.size / 2 ** 20 });
    const input = document.querySelector(".st-key-dropped input[type=file]");
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  life.signal.addEventListener("abort", () => hint.remove());
  return () => life.abort();
};
""",
)


def offer(engine: Engine) -> None:
    """Draws the inputs for a file."""
    if access.is_public():
        st.caption(_("This public server does not accept uploads. Run Headlight on your own machine to inspect your files."))
        return
    st.file_uploader(
        _(
            "Or upload weights (safetensors, GGUF, or written by torch.save), at most {size} MB each, with their vocabularies "
            "if you have them",
            size=limit(),
        ),
        accept_multiple_files=True,
        key=(key := _key(_SENT)),
        on_change=_receive,
        args=(engine, key),
    )
    st.caption(
        _("Nothing in a file is executed. Uploads stay in this server’s memory for a while, and anyone with the link can see them.")
    )
    st.caption(_("A recorded run opens here, too: a trace (*.trace.safetensors), or the archive of a run (.zip)."))
    watch("choose", limit(), _refuse_too_large)


def take_drops(engine: Engine, refuse_here: Callable[[str], None] | None) -> None:
    """Takes files that are dropped anywhere on the page; `arrived` tells the next run. Takes no space on the page.

    An image or a sound that the model reads is shown on the page where it was dropped.

    Args:
        refuse_here: has this page say why an image or a sound is not read; None: the page shows neither, and Checkpoint says it.
    """
    if access.is_public():
        return
    with st.container(key="dropped"):
        label = _("Drop a checkpoint to open it")
        key = _key(_DROPPED)

        def receive() -> None:
            _receive(engine, key, refuse_here)
            st.session_state[_ARRIVED] = st.session_state[_MORE]

        def refuse() -> None:
            refused = st.session_state[catcher].refused
            _refuse_too_large(str(refused["name"])[:200], float(refused["megabytes"]))
            st.session_state[_ARRIVED] = True

        st.file_uploader(label, accept_multiple_files=True, key=key, label_visibility="collapsed", on_change=receive)
        # Hands files that are dropped beside the uploaders of a page to the one above; shows `label` while one is dragged.
        catcher = "drops"
        _DROPS(key=catcher, data={"label": label, "megabytes": limit()}, on_refused_change=refuse, height="content")


def arrived() -> bool:
    """Whether files were dropped since the last call: the page Checkpoint shows them, or why they were refused."""
    return bool(st.session_state.pop(_ARRIVED, False))


def _key(field: str) -> str:
    """The key of an uploader: another one after each file, so that Streamlit drops its copy."""
    return f"{field}:{st.session_state.get(_ROUND, 0)}"


def limit() -> int:
    """Size limit of an upload in megabytes."""
    return int(st.get_option("server.maxUploadSize"))


def refused() -> str:
    """Why the last file was not opened; empty if it was."""
    return str(st.session_state.get(_REFUSED, ""))


def forget_refusal(kept: str = "") -> None:
    """Clears the refusal, and the field that it is about but for `kept`; called when something else is chosen."""
    if st.session_state.pop(_REFUSED, None) is not None:
        st.session_state[PATH] = kept


def open_path(typed: str) -> None:
    """Opens a path of this machine, or remembers why not."""
    try:
        path = Path(typed).expanduser()
        _take({path.name: the_engine().open_path(path)})
    except (HeadlightError, RuntimeError) as error:  # RuntimeError: "~somebody" is no user of this machine
        st.session_state[_REFUSED] = error_message(error) if isinstance(error, HeadlightError) else str(error)
    else:
        st.session_state[PATH] = ""


def _receive(engine: Engine, key: str, refuse_here: Callable[[str], None] | None = None) -> None:
    """Opens the files of the uploader with this key, or remembers why not, and whether the page Checkpoint has more to show."""
    forget_refusal()
    st.session_state[PATH] = ""  # what is said from now on is about these files
    files, more = st.session_state[key], True
    try:
        more = _take({file.name: engine.ask(Receive(file.getvalue(), file.name)) for file in files})
    except HeadlightError as error:
        if refuse_here is not None and isinstance(error, BadImage | BadSound):
            refuse_here(error_message(error))
            more = False
        else:
            st.session_state[_REFUSED] = error_message(error)
    st.session_state[_MORE] = more
    _empty()


def _take(known: Mapping[str, str]) -> bool:
    """Selects the weights as the model, and offers it the layout file and the vocabularies; gives it an image or a sound.

    Args:
        known: the engine's names, by file name.

    Returns:
        Whether there is more than images and sounds that the model reads.
    """
    more = False
    sent = {sent_name: name for name, sent_name in known.items() if sent_name.startswith(VOCABULARY_PREFIX)}
    layouts = {sent_name: name for sent_name, name in sent.items() if tensor_roles.is_layout(name)}
    words = {sent_name: name for sent_name, name in sent.items() if sent_name not in layouts}
    for sent_name in known.values():
        if sent_name.startswith((IMAGE_PREFIX, SOUND_PREFIX)):
            more = not _show_sent(sent_name) or more
            continue
        more = True
        if sent_name not in sent:
            remember(the_engine().ask(Describe(sent_name)))
            end_dialog()
            update(**another_model() | {"model": sent_name})
    tensor_roles.use_sent(layouts)
    if words:
        vocabulary.offer(the_engine(), get_view_state()[0].model, words)
    return more


def _show_sent(name: str) -> bool:
    """Gives an image or a sound to the model that is shown, or says that it reads none. Returns whether it does."""
    model = get_view_state()[0].model
    encoder = the_engine().ask(Describe(model)).spec.get("encoder") or {}
    sound = name.startswith(SOUND_PREFIX)
    if encoder.get("sound" if sound else "image"):
        update(text=name, **new_sentence())
        return True
    if sound:
        st.session_state[_REFUSED] = _(
            "This is an audio file, which {model} cannot read. Open a model that can, such as a Whisper folder, and drop the file "
            "again.",
            model=model,
        )
        return False
    st.session_state[_REFUSED] = _(
        "This is an image file, which {model} cannot read. Open a model that can, such as a ViT folder, and drop the file again.",
        model=model,
    )
    return False


def end_dialog() -> None:
    """Ends the dialog: a model was chosen."""
    st.session_state.pop(sidebar.ASKS, None)


def _empty() -> None:
    """Replaces the uploader by a new one, so that Streamlit drops its copy of the files."""
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1


def _refuse_too_large(name: str, megabytes: float) -> None:
    """Says why the browser did not upload a file, and how it can be opened."""
    fields = {"name": name, "size": megabytes, "most": limit()}
    if access.is_owner():
        text = _(
            "{name} is {size:,.0f} MB, but an upload may be at most {most} MB. Type its path into the field above instead.",
            **fields,
        )
    else:
        text = _(
            "{name} is {size:,.0f} MB, but this server accepts at most {most} MB. Start Headlight on the machine "
            "where the file is, with python -m model view FILE: then nothing is uploaded.",
            **fields,
        )
    st.session_state[_REFUSED], st.session_state[PATH] = text, ""
    _empty()
