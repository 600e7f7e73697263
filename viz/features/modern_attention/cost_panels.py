"""The panels of what a decoder keeps and computes: its cache, its steps, and texts of many lengths."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from model.features.modern_attention.costs import Measures, Sizes
from viz.features.modern_attention.cost_numbers import (
    LENGTHS,
    about,
    byte_lines,
    bytes_of,
    decoded,
    kept_lines,
    length_lines,
    step_lines,
    ways,
)
from viz.i18n.translate import _, _n, amount_of_bytes, number
from viz.labels import tokens
from viz.panels import Chart, NotDrawable, Panel, Table
from viz.session.state import Page

AHEAD = 2
"""Tokens after those of the run that the curve of the cache goes on for: what the next one adds is seen."""


def sizes_of(page: Page) -> Sizes:
    """What the cost of the page's model follows from.

    Raises:
        NotDrawable: it keeps no cache, because it writes nothing.
        HeadlightError: it is not known.
    """
    if page.info.recorded or not page.trace.of("decoder", "self"):
        raise NotDrawable(_("It is not known here what this model keeps for each token."))
    return page.engine.ask(Measures(page.info.name, page.view.parsed_settings()))


def of_cache(page: Page) -> Iterator[Panel]:
    """The bytes that are kept after each token."""
    yield kept(page, sizes_of(page), page.trace.of("decoder", "self")[0].mask.shape[0])


def kept(page: Page, sizes: Sizes, count: int) -> Panel:
    """The bytes that are kept after each token, and after so many of them."""
    source = len(page.trace.tokens["source"]) if sizes.cross else 0
    across = range(1, page.trace.of("decoder", "self")[0].mask.shape[0] + AHEAD + 1)
    lines = kept_lines(sizes, bytes_of(page.trace), across, source)
    words = _("{bytes} after token {count}.", count=count, bytes=_in_bytes(lines[0].values[count - 1]))
    chart = Chart(across, lines, (_("tokens read"), _("bytes")), mark=(count, lines[0].values[count - 1]), alt=words)
    return Panel("cache", _("The cache"), chart, words)


def _in_bytes(count: float) -> str:
    """A number of bytes as questions and answers write it."""
    return _n("{count} byte", "{count} bytes", round(count), count=number(count, ",.0f"))


def of_operations(page: Page) -> Iterator[Panel]:
    """The operations of each step, with the cache and without.

    Raises:
        NotDrawable: nothing was generated.
    """
    if not page.trace.steps:
        raise NotDrawable(_("This run generated nothing."))
    yield computed(page, sizes_of(page))


def computed(page: Page, sizes: Sizes) -> Panel:
    """The operations of each step of a run, with the cache and without."""
    lengths, cached, whole = decoded(page, sizes)
    fields = {"cached": number(sum(cached) / 1e6, ".2f"), "whole": number(sum(whole) / 1e6, ".2f")}
    fields |= {"times": number(sum(whole) / sum(cached), ".1f")}
    words = _(
        "All steps together: {cached} million with the cache, {whole} million without, more by a factor of {times}.", **fields
    )
    last = _("Operations of the last step: {cached:,} with the cache, {whole:,} without.", cached=cached[-1], whole=whole[-1])
    chart = Chart(lengths, step_lines(cached, whole), (_("tokens read"), _("operations of this step")), alt=last)
    return Panel("operations", _("Operations of each step"), chart, words)


def of_ways(page: Page) -> Iterator[Panel]:
    """The ways to keep a token, and what each keeps."""
    yield ways_of(page, sizes_of(page))


def ways_of(page: Page, sizes: Sizes) -> Panel:
    """The ways to keep a token as a table."""
    names, counts = zip(*ways(sizes.layers[0]), strict=True)
    tokens_read, layers = page.trace.of("decoder", "self")[0].mask.shape[0], len(sizes.layers)
    in_all = [number(count * layers * bytes_of(page.trace) * tokens_read, ",.0f") for count in counts]
    frame = pd.DataFrame({_("numbers"): counts, _("bytes of this run"): in_all}, index=pd.Index(names, name=_("way")))
    words = _("How many numbers one layer keeps for one token, and how many bytes all layers keep for all tokens of this run:")
    return Panel("ways", "", Table(frame, 0, shades=np.array([[count / max(counts)] * 2 for count in counts])), words)


def of_length(page: Page) -> Iterator[Panel]:
    """Operations for texts of 1,000 to 1,000,000 tokens."""
    yield operations_over_length(sizes_of(page))


def operations_over_length(sizes: Sizes) -> Panel:
    """Operations to read texts of 1,000 to 1,000,000 tokens."""
    lines = length_lines(sizes)
    attention, others = (tokens.power_of_ten(line.values[-1]) for line in lines[:2])
    alt = _(
        "Operations at a length of 1,000,000: {attention} in attention, {others} elsewhere.", attention=attention, others=others
    )
    chart = Chart(LENGTHS, lines, (_("tokens of the text"), _("operations to read it")), (True, True), alt=alt)
    return Panel("operations", _("Operations over length"), chart, about(sizes))


def of_bytes(page: Page) -> Iterator[Panel]:
    """Bytes for texts of 1,000 to 1,000,000 tokens."""
    yield bytes_over_length(sizes_of(page), bytes_of(page.trace))


def bytes_over_length(sizes: Sizes, size: int) -> Panel:
    """The cache, and all weights, for texts of 1,000 to 1,000,000 tokens, with `size` bytes for a number."""
    lines = byte_lines(sizes, size)
    alt = _("1,000,000 tokens: a cache of {bytes}.", bytes=amount_of_bytes(lines[0].values[-1]))
    chart = Chart(LENGTHS, lines, (_("tokens of the text"), _("bytes")), (True, True), alt=alt)
    return Panel("bytes", _("Bytes over length"), chart)
