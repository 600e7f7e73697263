"""The panels of curves over a training: a measure of every head, losses, when each head specialized, and the numbers."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from model.trace.types import Array
from viz.features.training import figures
from viz.features.training.metrics import Course, moments, numbers, specialised
from viz.features.training.view import TrainingView
from viz.i18n.translate import _, join_sentences, localized, number, titled
from viz.labels import alt_text, measures, tokens
from viz.panels import Curves, Panel, Table
from viz.session.state import Page


def snapshot_of(page: Page, measured: Course) -> int:
    """The step of the snapshot that is shown; the first one if the view names none, the last one if that does not exist."""
    asked = page.view.of(TrainingView).snapshot
    return asked if asked in measured.steps else measured.steps[0 if asked < 0 else -1]


def of_heads(page: Page, measured: Course) -> Panel:
    """The measure that the view asks for: one line for each head."""
    measure, at = page.view.of(TrainingView).measure, snapshot_of(page, measured)
    title, values = measures.of_training()[measure], measured.values[measure]
    selected = measured.heads.index((page.attention.site, page.head))
    names = [tokens.site(site, head) for site, head in measured.heads]
    groups = [tokens.kind(site.stack, site.kind) for site, _head in measured.heads]
    chosen = selected, specialised(measured.steps, values[:, selected])
    described = _worth_describing(values, selected)
    alt = alt_text.curves(
        [names[head] for head in described], [measured.steps] * len(described), [values[:, head] for head in described]
    )
    curves = Curves(
        measured.steps,
        values.T,
        names,
        selected,
        lambda dark: figures.measure(measured.steps, values, names, groups, at, chosen, title, dark),
        titled(title, alt),
    )
    fields = {"head": names[selected], "step": number(at, ",d")}
    fields |= {"value": number(float(values[measured.steps.index(at), selected]), ".2f")}
    words = [_("{head} (bold), at step {step}: {value}.", **fields)]
    words.append(_("One line per head. Point at a line or tap it to see its name."))
    return Panel("measure", title, curves, join_sentences(words))


def _worth_describing(values: Array, selected: int) -> list[int]:
    """The selected head, and those with the largest and the smallest number at the last snapshot: [snapshot, head] of numbers."""
    last = values[-1]
    ends = [int(np.nanargmax(last)), int(np.nanargmin(last))] if np.isfinite(last).any() else []
    return list(dict.fromkeys([selected, *ends]))


def of_losses(page: Page, measured: Course) -> Panel:
    """The losses of the training and of the sentence; a lecture draws that of the sentence."""
    epochs, at = [epoch.step for epoch in page.info.losses], snapshot_of(page, measured)
    training, validation = (np.array([getattr(epoch, name) for epoch in page.info.losses]) for name in ("training", "validation"))
    names = [_("training"), _("validation"), _("this sentence")]
    described = [training, validation, np.asarray(measured.losses, float)]
    curves = Curves(
        measured.steps,
        measured.losses[None],
        names[2:],
        0,
        lambda dark: figures.losses(epochs, training, validation, measured.steps, measured.losses, at, dark),
        titled(_("Loss"), alt_text.curves(names, [epochs, epochs, measured.steps], described)),
    )
    return Panel("losses", _("Loss"), curves)


def titles_of_moments() -> dict[str, str]:
    """Titles of the columns of `moments`."""
    titles = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "moment": _("specializes at step")}
    return titles | {"start": _("start"), "end": _("end"), "change": _("end − start")}


def of_moments(page: Page, measured: Course) -> Panel:
    """When each head specialized by the measure that the view asks for."""
    measure = page.view.of(TrainingView).measure
    title = _("When each head specializes: {measure}", measure=measures.of_training()[measure])
    words = _(
        "The first snapshot after which the head has made, and keeps, more than half of its total change. If the "
        "total change is near 0, the step means nothing: the head did not specialize by this measure."
    )
    return Panel("moments", title, Table(moments(measured, measure), titles=titles_of_moments(), named=False), words)


def of_numbers(page: Page, measured: Course) -> Iterator[Panel]:
    """The measure of every head, and the losses, as tables."""
    measure = page.view.of(TrainingView).measure
    table = numbers(measured, measure).rename(columns=localized)
    yield Panel("training-numbers", measures.of_training()[measure], Table(table, decimals=4))
    yield Panel("loss-numbers", _("Loss"), Table(losses(page, measured).rename(columns=localized), decimals=4))


def losses(page: Page, measured: Course) -> pd.DataFrame:
    """Table of losses by step; a step may be the end of an epoch, a snapshot, or both."""
    sentence = pd.DataFrame({_("this sentence"): measured.losses}, index=pd.Index(measured.steps, name=_("step")))
    index = pd.Index([epoch.step for epoch in page.info.losses], name=_("step"))
    columns = {
        _("training"): [epoch.training for epoch in page.info.losses],
        _("validation"): [epoch.validation for epoch in page.info.losses],
    }
    return pd.DataFrame(columns, index=index).join(sentence, how="outer").sort_index()
