"""Download buttons of tables."""

import pandas as pd
import streamlit as st

from model.trace.types import Trace
from viz.export import tables
from viz.i18n.translate import _


def csv(table: pd.DataFrame, trace: Trace, *parts: str, label: str = "", key: str | None = None) -> None:
    """Draws a button that saves a table as CSV; the file is made when it is pressed.

    Args:
        trace: the run that the table is about; its model begins the file's name.
        parts: the rest of the file's name.
        label: text of the button; empty: "Download as CSV".
        key: the button's key, for tables that a page may have twice.
    """
    st.download_button(
        label or _("Download as CSV"),
        lambda: tables.csv(table),
        tables.file_name(trace, *parts, ending="csv"),
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key=key,
    )
