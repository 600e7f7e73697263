"""Watches the uploaders: Streamlit rejects files that are too large in the browser, and the script does not learn of it.

What is dropped beside them, anywhere on the page, is handed to an uploader that is not seen.
"""

from collections.abc import Callable

import streamlit as st

_WATCH = st.components.v2.component(
    "headlight.file_limit",
    html="<span hidden></span>",
    js="""
const watching = new WeakMap();

// Listens before Streamlit's uploader does. Streamlit calls this at each script run.
export default ({ parentElement, data, setTriggerValue }) => {
  watching.get(parentElement)?.abort();
  const controller = new AbortController();
  watching.set(parentElement, controller);
  const look = (event) => {
    if (!event.target.closest?.(`.st-key-card-${data.card} [data-testid=stFileUploader]`)) return;
    const files = [...(event.dataTransfer ?? event.target).files ?? []];
    const large = files.find((file) => file.size > data.megabytes * 2 ** 20);
    if (large) setTriggerValue("refused", { name: large.name, megabytes: large.size / 2 ** 20 });
  };
  for (const name of ["change", "drop"]) document.addEventListener(name, look, { capture: true, signal: controller.signal });
  return () => controller.abort();
};
""",
)


def watch(card: str, megabytes: int, refuse: Callable[[str, float], None]) -> None:
    """Reports files that are too large to upload. Takes no space on the page.

    Args:
        card: watches the uploaders in the container with the key `card-CARD`.
        megabytes: size limit of a file.
        refuse: called with the file's name and size in megabytes, before the script runs again.
    """
    key = f"file-limit-{card}"

    def tell() -> None:
        found = st.session_state[key].refused
        refuse(str(found["name"])[:200], float(found["megabytes"]))

    _WATCH(key=key, data={"card": card, "megabytes": megabytes}, on_refused_change=tell, height="content")


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


def catch_drops(label: str, megabytes: int, refuse: Callable[[str, float], None]) -> None:
    """Hands files that are dropped beside the uploaders of a page to the one in the container with the key `dropped`.

    Args:
        label: shown over the page while a file is dragged over it.
        megabytes, refuse: as for `watch`.
    """
    key = "drops"

    def tell() -> None:
        found = st.session_state[key].refused
        refuse(str(found["name"])[:200], float(found["megabytes"]))

    _DROPS(key=key, data={"label": label, "megabytes": megabytes}, on_refused_change=tell, height="content")
