"""Watches the uploaders: Streamlit rejects files that are too large in the browser, and the script does not learn of it."""

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
        refused = st.session_state[key].refused
        refuse(str(refused["name"])[:200], float(refused["megabytes"]))

    _WATCH(key=key, data={"card": card, "megabytes": megabytes}, on_refused_change=tell, height="content")
