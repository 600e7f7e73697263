"""Numbers that leave the page are the run's, and harmless where they arrive."""

import io

import numpy as np
import pandas as pd

from model.trace import serialization
from model.trace.types import Attention, Trace
from tests import traces
from viz.export import tables
from viz.metrics import heads


def head_table(trace: Trace, attention: Attention, head: int) -> pd.DataFrame:
    """The weights of one head as they are exported."""
    return tables.map_table(trace, attention, attention.head(head), range(attention.weights.shape[2]))


HOSTILE = ["<sos>", "=1+1", "+x", "-x", "@sum(a1)", "der", "der", 'a"b,c', "\t=2", "雪", "<eos>"]


def test_the_table_has_a_row_and_a_column_for_each_token_repeated_ones_too() -> None:
    trace = traces.translation(source=["<sos>", "der", "der", "<eos>"], layers=1)
    attention = trace.at("decoder.0.0.cross")
    table = head_table(trace, attention, 3)
    assert list(table.columns) == ["1 <sos>", "2 der", "3 der", "4 <eos>"]
    assert table.index[2] == "3 young → dogs"
    assert (table.index.name, table.columns.name) == ("query: decoder (English)", "key: encoder (German)")
    assert np.array_equal(table.to_numpy(), attention.weights[3])


def test_a_csv_brings_the_same_numbers_back_and_opens_with_a_byte_order_mark() -> None:
    trace = traces.translation(source=HOSTILE, layers=1)
    table = head_table(trace, trace.at("encoder.0.0.self"), 0)
    content = tables.csv(table)
    assert content.startswith(b"\xef\xbb\xbf")
    back = pd.read_csv(io.BytesIO(content), index_col=0)
    assert list(back.columns) == list(table.columns)
    assert list(back.index) == list(table.index)
    assert np.array_equal(back.to_numpy(np.float32), table.to_numpy())
    assert back.index.name == "rows: query: encoder (German); columns: key: encoder (German)"


def cells(content: bytes) -> list[str]:
    read = pd.read_csv(io.BytesIO(content), header=None, dtype=str, keep_default_na=False)
    return [str(cell) for cell in read.to_numpy().ravel()]


def test_no_text_of_a_csv_is_a_formula() -> None:
    trace = traces.translation(source=HOSTILE, target=HOSTILE, layers=1)
    head = tables.csv(head_table(trace, trace.at("decoder.0.0.cross"), 0))
    other = tables.csv(pd.DataFrame({"=a": ["=1+1", "@x", "plain"], "b": [-1.5, 2.0, 3.0]}, index=pd.Index(["-1", "\t=", "+"])))
    for cell in cells(head) + cells(other):
        assert not cell.startswith(("=", "+", "@", "\t", "\r")), cell
        assert not cell.startswith("-") or float(cell) < 0
    assert "-1.5" in cells(other), "a negative number stays a number"
    assert "'=1+1" in cells(other)


def test_all_heads_as_csv() -> None:
    trace = traces.translation(layers=1, heads=2)
    table = heads.all_heads(trace)
    back = pd.read_csv(io.BytesIO(tables.csv(table)), index_col=[0, 1])
    assert back.index.names == ["site", "head"]
    assert back.loc[("decoder.0.0.cross", 1), "entropy"] == table.loc[("decoder.0.0.cross", 1), "entropy"]


def test_the_file_of_a_run_reads_back() -> None:
    trace = traces.translation(layers=1)
    back = serialization.from_bytes(tables.trace_file(trace))
    site = next(iter(trace.attention))
    assert np.array_equal(back.at(site).weights, trace.at(site).weights)


def test_file_names_suit_every_system() -> None:
    trace = traces.translation(layers=1)
    assert tables.file_name(trace, "decoder.0.2.cross", "head-5", ending="csv") == "made-up-decoder.0.2.cross-head-5.csv"
    assert tables.file_name(trace, "../über <b>", ending="csv") == "made-up-..-ber-b.csv"
