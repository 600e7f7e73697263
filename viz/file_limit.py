"""Watches the uploaders: Streamlit refuses a file that is too large in the browser, where no script run hears of it."""

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
    """Hears of files that are too large to be sent. Takes no room on the page.

    Args:
        card: the uploaders in the container with the key `card-CARD` are watched.
        megabytes: what a file may have.
        refuse: is told the name of such a file and its megabytes, before the script runs again.
    """
    key = f"file-limit-{card}"

    def tell() -> None:
        found = st.session_state[key].refused
        refuse(str(found["name"])[:200], float(found["megabytes"]))

    _WATCH(key=key, data={"card": card, "megabytes": megabytes}, on_refused_change=tell, height="content")
