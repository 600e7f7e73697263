"""The diagnosis of a file: its layout and the evidence, its numbers, and all its tensors."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from model.inspection.report import Freshness, HeadNote, Inspection, TensorInfo
from model.trace.types import Site
from viz.i18n.translate import _, _n, join_clauses, join_list, join_sentences, number, said, translated
from viz.labels import tokens
from viz.session.state import decimals
from viz.widgets import numeric_tables


def summary(inspection: Inspection) -> None:
    """Draws the layout, the size of the network, and what is missing."""
    st.markdown(f"**{tokens.markdown(what(inspection))}**")
    _counts(inspection)


def evidence_of(inspection: Inspection) -> None:
    """Draws the evidence for the layout, and notes."""
    if inspection.in_favour:
        st.caption(
            tokens.markdown(_("Evidence for this layout: {evidence}.", evidence=join_clauses(map(said, inspection.in_favour))))
        )
        against = join_clauses(map(said, inspection.against))
        st.caption(
            tokens.markdown(_("Evidence against it: {evidence}.", evidence=against)) if against else _("No evidence against it.")
        )
    if inspection.prefix:
        st.caption(tokens.markdown(_("Wrappers had put “{prefix}” into the names, which was removed.", prefix=inspection.prefix)))
    if inspection.candidate:
        st.caption(tokens.markdown(_("The weights are stored under “{keys}” in the file.", keys=inspection.candidate)))
    for note in inspection.notes:
        st.caption(tokens.markdown(said(note)))


def what(inspection: Inspection) -> str:
    """The kind of the file: its name, and the layout's title in the language of the page."""
    return said(inspection.what)


def _counts(inspection: Inspection) -> None:
    statuses = [tensor.status for tensor in inspection.tensors]
    known, unknown = bool(inspection.spec), "?"
    most, layers = (
        max(inspection.sites.values(), default=0),
        {(site.stack, site.layer) for site in map(Site.parse, inspection.sites)},
    )
    values = {
        **({_("Layers × heads"): f"{len(layers)} × {most}"} if most else {}),
        _("parameters"): number(inspection.parameters, ",") if known else unknown,
        _("matched tensors"): number(statuses.count("matched"), ","),
        _("missing"): number(len(inspection.missing), ",") if known else unknown,
        _("unexpected"): number(statuses.count("unexpected"), ","),
        _("wrong shape"): number(statuses.count("misshapen"), ",") if known else unknown,
    }
    with st.container(horizontal=True, gap="medium"):
        for label, value in values.items():
            st.metric(label, value, width="content")


def numbers(inspection: Inspection) -> None:
    """Draws what the numbers say about the network, and the parameters by component."""
    said, where = st.columns(2, gap="large")
    with said:
        st.markdown("**" + _("Diagnosis") + "**")
        if inspection.heads_seen:
            st.html(head_grid(inspection))
        _not_finite(inspection)
        if inspection.freshness is not None:
            _trained(inspection.freshness)
        for names in inspection.tied:
            st.markdown(tokens.markdown(_("Tied (the same values under several names): {names}.", names=join_list(names))))
        _heads(inspection)
    with where:
        st.markdown("**" + _("Parameters by component") + "**")
        if inspection.parts:
            _parts(inspection)
        else:
            st.caption(_("Shown once the questions are answered and nothing is missing."))


def _not_finite(inspection: Inspection) -> None:
    bad = [tensor for tensor in inspection.tensors if tensor.nan or tensor.infinite]
    gaps = {"nan": sum(t.nan for t in bad), "infinite": sum(t.infinite for t in bad), "tensors": len(bad)}
    if bad:
        say = _n(
            "{tensors} tensor contains {nan:,} NaN and {infinite:,} infinite values; nothing computed from them is finite.",
            "{tensors} tensors contain {nan:,} NaN and {infinite:,} infinite values; nothing computed from them is finite.",
            len(bad),
            **gaps,
        )
        st.info(say, icon=":material/warning:")
    else:
        st.markdown(_("All values are finite."))


def _trained(fresh: Freshness) -> None:
    """Draws the verdict, trained or fresh, and the evidence below it."""
    if fresh.untrained:
        st.info(_("These weights look untrained: they resemble a random initialization."), icon=":material/warning:")
    else:
        st.markdown(_("These weights look trained."))
    st.caption(tokens.markdown(join_sentences(evidence(fresh))))


def evidence(fresh: Freshness) -> list[str]:
    """The evidence for and against untrained weights, a sentence each."""
    draws = join_list(_("{count} × {draw}", count=count, draw=translated(draw)) for draw, count in fresh.draws.items())
    counts = {"norms": fresh.norms, "untouched": fresh.untouched_norms, "matrices": fresh.matrices, "fresh": fresh.fresh_matrices}
    sentences = [
        _n(
            "{fresh} of {matrices} matrices has the mean, standard deviation and range of a random initialization.",
            "{fresh} of {matrices} matrices have the mean, standard deviation and range of a random initialization.",
            fresh.fresh_matrices,
            **counts,
        )
    ]
    if fresh.norms:
        sentences.insert(
            0,
            _n(
                "{untouched} of {norms} normalization layers still has gains of exactly 1 and biases of exactly 0.",
                "{untouched} of {norms} normalization layers still have gains of exactly 1 and biases of exactly 0.",
                fresh.untouched_norms,
                **counts,
            ),
        )
    if draws:
        sentences.append(_("The initializations that they resemble: {draws}.", draws=draws))
    if fresh.fresh_matrices and not fresh.untrained:
        sentences.append(
            _(
                "That is no contradiction: training often keeps the mean and spread of a matrix. In an untrained "
                "model nearly all matrices look like that, and every normalization layer is untouched."
            )
        )
    return sentences


def _heads(inspection: Inspection) -> None:
    for note in inspection.heads:
        st.markdown(tokens.markdown(_note(note)))
    if inspection.heads_seen:
        gaps = {"heads": inspection.heads_seen}
        if not inspection.heads:
            st.markdown(
                _n(
                    "The only head is not dead.",
                    "None of the {heads} heads is dead, and no two are duplicates.",
                    inspection.heads_seen,
                    **gaps,
                )
            )
        st.caption(
            _(
                "Dead: the norm of W_V W_O is below 1% of the largest in the same attention layer. Duplicate: the "
                "cosine similarity of W_Q W_Kᵀ or of W_V W_O is at least 0.99. Biases are ignored.",
            ).replace("_", "\\_")
        )


def head_grid(inspection: Inspection) -> str:
    """All heads as a table in HTML, a row for each attention layer; a head is colored by what was found about it, and says it."""
    about = {(note.site, note.head): note for note in inspection.heads if note.kind == "twin"}
    about |= {(note.site, note.head): note for note in inspection.heads if note.kind == "dead"}
    words, signs = {"dead": _("dead"), "twin": _("duplicate"), "": _("nothing found")}, {"dead": "×", "twin": "=", "": "·"}

    def cell(site: str, head: int) -> str:
        note = about.get((site, head))
        kind, label = (note.kind, _note(note)) if note else ("", tokens.site(Site.parse(site), head))
        return f'<td class="{kind}" title="{escape(label)}">{signs[kind]}</td>'

    rows = "".join(
        f'<tr><th scope="row">{escape(tokens.site(Site.parse(site)))}</th>{"".join(cell(site, head) for head in range(heads))}</tr>'
        for site, heads in inspection.sites.items()
    )
    legend = "".join(f'<span><i class="{kind}">{signs[kind]}</i> {escape(word)}</span>' for kind, word in words.items())
    many = len(inspection.sites) > MOST_ROWS  # then big mode shows them in two columns
    high = f'class="head-grid{" many" if many else ""}" style="--rows: {math.ceil(len(inspection.sites) / (1 + many))}"'
    return f'<div {high}><table>{rows}</table></div><p class="small head-grid">{legend}</p>'


MOST_ROWS = 12
"""Most attention layers that stand below each other where the grid of heads fills a screen."""


def _note(note: HeadNote) -> str:
    head = tokens.site(Site.parse(note.site), note.head)
    if note.other is None:
        return _("{head} is dead: the norm of its W_V W_O is {value:.3g}.", head=head, value=note.value)
    gaps = {"head": head, "other": note.other + 1, "value": number(note.value, decimals(4))}
    if note.product == "query-key":
        return _("{head} attends like head {other}: the cosine similarity of their W_Q W_Kᵀ is {value}.", **gaps)
    return _("{head} moves what head {other} moves: the cosine similarity of their W_V W_O is {value}.", **gaps)


def _parts(inspection: Inspection) -> None:
    words = {
        "embedding": _("embedding"),
        "positions": _("positions"),
        "attention": _("self-attention"),
        "cross_attention": _("cross-attention"),
        "feed_forward": _("feed-forward"),
        "norms": _("normalization"),
        "output": _("output layer"),
    }
    stacks = {"encoder": _("encoder"), "decoder": _("decoder")}
    same = [[(part.stack, part.kind), *part.shared] for part in inspection.parts if part.shared]
    for places in same:
        names = join_list(_("{part} ({stack})", part=words[kind], stack=stacks[stack]) for stack, kind in places)
        st.caption(_("Counted once, because they are the same numbers: {parts}.", parts=names))
    rows = [
        (stacks[part.stack], words[part.kind], part.parameters, part.parameters / inspection.parameters)
        for part in inspection.parts
    ]
    table = pd.DataFrame(rows, columns=[_("stack"), _("part"), _("parameters"), _("percent of all")])
    columns = {
        _("parameters"): st.column_config.NumberColumn(format="localized"),
        _("percent of all"): st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1, step=0.001, width=110),
    }
    numeric_tables.draw(table, columns=columns, hide_index=True, height="content", key="parts")


def tensors(inspection: Inspection) -> None:
    """Draws the table of all tensors of the file and those that are missing. A type that all tensors share is named above it."""
    types = {tensor.dtype for tensor in inspection.tensors}
    st.markdown("**" + _("Tensors") + "**")
    sentences = [
        _(
            "Search the table with the magnifying glass above it. Deviation is the standard deviation, norm the "
            "Euclidean norm, zeros the share of exact zeros; histograms have 24 bins from the smallest to the largest "
            "value. Only finite values are counted."
        ),
        _("Columns with the same value in every row are omitted."),
        *(_("All tensors are of type {dtype}.", dtype=tokens.markdown(dtype)) for dtype in types if len(types) == 1),
    ]
    st.caption(join_sentences(sentences))
    table = tensor_table(inspection)
    titles = {name: title for name, title in _titles().items() if name in table}
    columns = _columns(titles)
    if table["norm"].max() >= 1:
        columns["norm"] = st.column_config.NumberColumn(titles["norm"], format="localized", step=0.01)
    numeric_tables.draw(table, titles=titles, columns=columns, hide_index=True, key="tensors")


LEAST_ZEROS = 0.0005
"""Smallest share of zeros that is not written as 0 %."""


def tensor_table(inspection: Inspection) -> pd.DataFrame:
    """Table of the tensors of a file and those that are missing, problems first, without columns that say the same in each row."""
    words = _statuses()
    rows = [*map(_row, inspection.tensors), *({"name": tokens.plain(name), "status": "missing"} for name in inspection.missing)]
    rows.sort(key=lambda row: list(words).index(str(row["status"])))
    table = pd.DataFrame(rows, columns=list(_titles())).assign(status=[words[str(row["status"])] for row in rows])
    same = [name for name in ("nan", "infinite", "becomes") if not any(row.get(name) for row in rows)]
    same += ["status"] if all(row["status"] == "matched" for row in rows) else []
    same += [] if any((tensor.sparsity or 0) >= LEAST_ZEROS for tensor in inspection.tensors) else ["sparsity"]
    same += [] if any(tensor.bits for tensor in inspection.tensors) else ["bits"]
    same += ["dtype"] if len({tensor.dtype for tensor in inspection.tensors}) == 1 else []
    return table.drop(columns=same)


def _row(tensor: TensorInfo) -> dict[str, Any]:
    highest = max(tensor.histogram, default=1)
    return {
        "name": tokens.plain(tensor.name),
        "status": tensor.status,
        "shape": " × ".join(map(str, tensor.shape)),
        "dtype": tensor.dtype,
        "bits": math.nan if tensor.bits is None else tensor.bits,
        "mean": math.nan if tensor.mean is None else tensor.mean,
        "deviation": math.nan if tensor.deviation is None else tensor.deviation,
        "norm": math.nan if tensor.norm is None else tensor.norm,
        "sparsity": math.nan if tensor.sparsity is None else tensor.sparsity,
        "histogram": [count / highest for count in tensor.histogram],
        "nan": tensor.nan,
        "infinite": tensor.infinite,
        "becomes": tokens.plain(", ".join(tensor.becomes)),
    }


def _titles() -> dict[str, str]:
    """The columns of the table by the field that they show."""
    return {
        "name": _("tensor"),
        "status": _("status"),
        "shape": _("shape"),
        "dtype": _("type"),
        "bits": _("bits per number"),
        "histogram": _("histogram"),
        "mean": _("mean"),
        "deviation": _("deviation"),
        "norm": _("norm"),
        "sparsity": _("zeros"),
        "nan": _("NaN"),
        "infinite": _("infinite"),
        "becomes": _("used as"),
    }


def _columns(titles: Mapping[str, str]) -> dict[str, ColumnConfig]:
    """The columns that are drawn in their own way."""
    return {
        "name": st.column_config.TextColumn(titles["name"]),
        "histogram": st.column_config.BarChartColumn(titles["histogram"], y_min=0, y_max=1, width="small"),
        "sparsity": st.column_config.NumberColumn(titles.get("sparsity"), format="percent", step=0.001),
        "becomes": st.column_config.TextColumn(titles.get("becomes"), width="medium"),
    }


def _statuses() -> dict[str, str]:
    return {
        "missing": _("missing"),
        "misshapen": _("wrong shape"),
        "unexpected": _("unexpected"),
        "matched": _("matched"),
        "unneeded": _("left over, not used by any attention map"),
    }
