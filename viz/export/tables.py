"""Export of what is on screen: numbers as tables and CSV, and the whole run as a file.

A CSV file is UTF-8 with a byte order mark: spreadsheets need it to read accents and Chinese, pandas skips it. Text that a
spreadsheet would take for a formula (it begins with = + - @, a tab or a line end) gets an apostrophe in front; labels of tokens
begin with their position and are never in danger. Numbers stay as they are.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from model.requests.sent_text import spreadsheet_text
from model.trace.serialization import to_bytes
from model.trace.types import Array, Attention, Trace
from viz.i18n.translate import _
from viz.labels import tokens


def map_table(trace: Trace, attention: Attention, values: Array, keys: Iterable[int]) -> pd.DataFrame:
    """Values [query, key shown] of a site, with labeled queries as rows and labeled keys as columns.

    Labels begin with the position, counted from 1, so that repeated tokens keep their own rows: "3 hunde". Their text is not cut.
    The names of index and columns are those of the axes.

    Args:
        trace: the run.
        attention: one of its sites.
        values: the numbers.
        keys: indices of the site's keys, one per column.
    """
    columns = _numbered(tokens.keys(trace, attention, longest=None))
    return pd.DataFrame(
        values,
        index=_rows(trace, attention),
        columns=pd.Index([columns[key] for key in keys], name=tokens.key_axis(trace, attention.site)),
    )


def row_table(trace: Trace, attention: Attention, values: Array, name: str) -> pd.DataFrame:
    """One value for each query of a site, [query], in a column called `name`; rows as in `map_table`."""
    return pd.DataFrame({name: values}, index=_rows(trace, attention))


def lens_table(positions: Sequence[str], layers: Sequence[str], words: Array, probabilities: Array, title: str) -> pd.DataFrame:
    """Table of a logit lens, one row per position, layer and candidate.

    Args:
        positions: labels of the positions.
        layers: names of the layers.
        words: [layer, position, candidate] of texts.
        probabilities: [layer, position, candidate].
        title: title of the positions.
    """
    rows = [
        (f"{position + 1} {positions[position]}", layers[layer], rank + 1) for layer, position, rank in np.ndindex(*words.shape)
    ]
    index = pd.MultiIndex.from_tuples(rows, names=[title, _("after layer"), _("rank")])
    return pd.DataFrame({_("token"): words.ravel(), _("probability"): probabilities.ravel()}, index=index)


def csv(table: pd.DataFrame) -> bytes:
    """A table as CSV with its index; the first cell names the rows and, if they have a name, the columns.

    Floats have enough digits to be read back exactly.
    """
    safe = table.copy()
    for position, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            safe.isetitem(position, table.iloc[:, position].map(_text_only))
    content: str = safe.rename(index=_text_only, columns=_text_only).to_csv(index_label=_corner(table), lineterminator="\r\n")
    return content.encode("utf-8-sig")


def trace_file(trace: Trace) -> bytes:
    """The run as a `*.trace.safetensors` file, which `model.trace.serialization.from_bytes` reads back."""
    return to_bytes(trace)


def file_name(trace: Trace, *parts: str, ending: str) -> str:
    """A file name that every system accepts: letters, digits, dots and hyphens.

    Args:
        trace: the run; the name starts with its model.
        parts: further parts of the name, such as a site.
        ending: file extension, such as csv.
    """
    stem = "-".join((str(trace.model.get("name", "trace")), *parts))
    return re.sub(r"[^A-Za-z0-9.]+", "-", stem).strip("-.") + "." + ending


def _rows(trace: Trace, attention: Attention) -> pd.Index:
    return pd.Index(_numbered(tokens.queries(trace, attention, longest=None)), name=tokens.query_axis(trace, attention.site))


def _numbered(texts: list[str]) -> list[str]:
    return [f"{number} {text}" for number, text in enumerate(texts, start=1)]


def _text_only(value: Any) -> Any:
    return spreadsheet_text(value) if isinstance(value, str) else value


def _corner(table: pd.DataFrame) -> str | list[str] | None:
    if table.index.nlevels > 1:
        return [str(name) for name in table.index.names]
    if table.columns.name is None:
        return None
    return _("rows: {rows}; columns: {columns}", rows=table.index.name, columns=table.columns.name)
