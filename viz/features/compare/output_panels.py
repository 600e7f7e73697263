"""The panels of what two runs read and wrote: their tokens aligned, and the probabilities of the written ones in both runs."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from viz.features.compare.dumbbells import dumbbells
from viz.features.compare.probabilities import Both, both, effect
from viz.features.compare.run_difference import ROUNDING, Written, written
from viz.features.compare.runs import Runs
from viz.i18n.translate import _, _n, language_of, number
from viz.labels import tokens as labels
from viz.metrics.alignment import Pair, align
from viz.panels import Aligned, Panel, Plot, Table
from viz.session.state import Page

MOST_DRAWN = 24
"""Most tokens in the picture of the probabilities; the table of all tokens has them all."""


def about_alignment() -> str:
    """How tokens are aligned, and what marks those that only one side has."""
    return _(
        "Aligned with as few insertions, deletions and replacements as possible (Levenshtein). Struck through: "
        "only on side A; bold: only on side B."
    )


def of_strips(page: Page, runs: Runs, names: tuple[str, str]) -> Iterator[Panel]:
    """Every strip of the two runs in two aligned rows, and of the written strip a table of its log-probabilities.

    Args:
        names: what the sides are called.
    """
    for name in dict.fromkeys((*runs.first.tokens, *runs.second.tokens)):
        if name not in runs.first.tokens or name not in runs.second.tokens:
            continue
        sides = written(runs.first, name), written(runs.second, name)
        pairs = align(*([token.text for token in side] for side in sides))
        columns = [
            (
                None if pair.first is None else sides[0][pair.first].text,
                None if pair.second is None else sides[1][pair.second].text,
            )
            for pair in pairs
        ]
        generated = any(token.log_probability is not None for side in sides for token in side)
        words = _totals(sides, page.digits(3)) if generated else ""
        yield Panel(f"aligned-{name}", "", Aligned(language_of(runs.first, name), names, columns), words)
        if generated:
            table = Table(_table(sides, pairs), decimals=4, named=False)
            yield Panel(f"tokens-{name}", _("Log-probability of each token"), table)


def _totals(sides: Sequence[Sequence[Written]], digits: int) -> str:
    """The total log-probability of each side's output."""
    scores = [[token.log_probability for token in side if token.log_probability is not None] for side in sides]
    first, second = (number(sum(side), f".{digits}f") for side in scores)
    fields = {"first": first, "second": second, "tokens": len(scores[0]), "others": len(scores[1])}
    return _(
        "Log-probability of the output: {first} on side A (tokens: {tokens}), {second} on side B (tokens: {others}).", **fields
    )


def unmatched(runs: Runs) -> list[str]:
    """Sentences on strips that only one of the two runs has."""
    first, second = runs.first.tokens, runs.second.tokens
    only_first = [_("Only side A has “{name}” tokens.", name=name) for name in first if name not in second]
    return [*only_first, *(_("Only side B has “{name}” tokens.", name=name) for name in second if name not in first)]


def of_probabilities(page: Page, runs: Runs, names: tuple[str, str]) -> Iterator[Panel]:
    """The probability of each token on both sides, the largest change first; nothing where no token has one on both."""
    pairs = both(runs.first, runs.second, runs.since)
    if not pairs:
        return
    drawn = pairs[:MOST_DRAWN]
    texts = [labels.word(token.text) for token in drawn]
    first, second = np.exp([[token.first for token in drawn], [token.second for token in drawn]])
    title = _("The probability of each token on side A and on side B")
    plot = Plot(lambda dark: dumbbells(texts, first, second, names, dark), title, "dumbbells", title)
    words = "\n".join(_notes(runs, pairs, page.digits(4)))
    yield Panel("probabilities", _("How likely each token was"), plot, words)


def _notes(runs: Runs, pairs: Sequence[Both], digits: int) -> list[str]:
    """Sentences on the effect, on tokens that are left out, and on changes that are only rounding."""
    notes = [sentence] if (sentence := effect_in_words(runs, digits)) else []
    if not any(token.change for token in pairs):
        notes.append(_("No probability changed by more than the rounding error ({limit}).", limit=labels.power_of_ten(ROUNDING)))
    if len(pairs) > MOST_DRAWN:
        fields = {"most": MOST_DRAWN, "count": len(pairs)}
        notes.append(_("Showing the {most} tokens that changed most, of {count}. The table above has all of them.", **fields))
    if not runs.fed and len(pairs) < max(len(runs.first.steps), len(runs.second.steps)):
        notes.append(
            _("Only tokens that both sides generated are compared. The switch above lets both sides read the same tokens.")
        )
    return notes


def effect_in_words(runs: Runs, digits: int) -> str:
    """A sentence on the change of the output's log-probability; empty if no token can be compared, or none changed."""
    tokens = both(runs.first, runs.second, runs.since)
    difference = effect(tokens) if any(token.change for token in tokens) else None
    if difference is None:
        return ""
    form = f"+z.{digits}f"  # z: no minus before a zero
    most = number(difference.most.second - difference.most.first, form)
    fields = {"count": difference.tokens, "total": number(difference.total, form), "most": most}
    fields["token"] = labels.word(difference.most.text)
    return _n(
        "Effect on the output: the log-probability of the one token that both sides have, “{token}”, changed by {total}.",
        "Effect on the output: the log-probability of the {count} tokens that both sides have changed by {total} in "
        "total, most at “{token}”: {most}.",
        difference.tokens,
        **fields,
    )


def _table(sides: Sequence[Sequence[Written]], pairs: Sequence[Pair]) -> pd.DataFrame:
    """Table with one row per place of the alignment."""
    first, second = sides
    rows = [
        (
            "" if pair.first is None else labels.word(first[pair.first].text),
            _sign(pair),
            "" if pair.second is None else labels.word(second[pair.second].text),
            log_a := np.nan if pair.first is None else _number(first[pair.first]),
            log_b := np.nan if pair.second is None else _number(second[pair.second]),
            log_b - log_a if pair.same else np.nan,
        )
        for pair in pairs
    ]
    columns = [_("side A"), _("comparison"), _("side B"), _("log-probability (A)"), _("log-probability (B)")]
    return pd.DataFrame(rows, columns=[*columns, _("difference (B − A)")])


def _number(token: Written) -> float:
    return np.nan if token.log_probability is None else token.log_probability


def _sign(pair: Pair) -> str:
    if pair.same:
        return _("same")
    if pair.second is None:
        return _("deleted")
    return _("inserted") if pair.first is None else _("replaced")
