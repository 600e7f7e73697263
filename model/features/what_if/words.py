"""Words: what each target token depended on among the tokens that were read, by four measures beside attention.

Leaving out: a token is replaced by the unknown token, or by padding, which the masks then hide, too. The rest stays as it is, the
tokens that are predicted included. gradients.py has the two measures by gradients.

Beside them are the weights of the row that predicted the token, averaged over all heads and layers for each strip, and the
rollout of that row (model/trace/rollout.py). Jain and Wallace 2019, "Attention is not Explanation", and Wiegreffe and Pinter 2019,
"Attention is not not Explanation", compare such rankings.

Their rank correlations compare amounts, whatever their sign: |measure|. Inputs that come after a token, and measures that are not
there, do not count. Source: Spearman 1904, "The Proof and Measurement of Association between Two Things"; used for attention by
Jain and Wallace, section 4.1 (with Kendall's τ there).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from model.errors import Phrase, phrase
from model.features.what_if.copies import Copies
from model.features.what_if.example import Example
from model.features.what_if.gradients import PARTS, POINTS, TOLERANCE, Gradients, gradients
from model.features.what_if.results import WordEffects
from model.features.what_if.scoring import Scorer
from model.requests.external import AnySpec
from model.trace.progress import OnCount, ignore_count
from model.trace.rollout import origins
from model.trace.types import Array, Attention, Trace, sites


@dataclass(frozen=True)
class _Inputs:
    """The tokens that an example reads: those of the encoder, then those of the decoder.

    Attributes:
        source: how many the encoder reads; 0: a language model.
        fed: how many the decoder reads.
    """

    source: int
    fed: int

    def __len__(self) -> int:
        """Number of inputs: source words and fed target words."""
        return self.source + self.fed

    def later(self, example: Example) -> Array:
        """[token, input] of bool: True where the input comes after the row that predicts the token."""
        # The row that predicts a token has read the tokens up to itself, and the whole source.
        rows = example.first + np.arange(len(example.following))[:, None]
        return np.concatenate([np.zeros((len(rows), self.source), bool), np.arange(self.fed) > rows], axis=1)


class _Tally:
    """One count of all that is computed: copies in which a token is left out, then gradients, of which there may be ever more."""

    def __init__(self, on_count: OnCount, least: int) -> None:
        self._on_count, self._least, self._done = on_count, least, 0

    def first(self, done: int, of: int) -> None:
        """Counts copies."""
        self._on_count(self._done + done, self._least)
        self._done += of if done == of else 0

    def then(self, done: int, of: int) -> None:
        """Counts gradients."""
        self._on_count(self._done + done, self._done + of)


def word_effects(scorer: Scorer, trace: Trace, on_count: OnCount = ignore_count) -> WordEffects:
    """Measures of what each token of the example depended on.

    Args:
        trace: the run, whose weights are returned, too.
    """
    example, spec = scorer.example, scorer.example.runner.info.spec
    inputs = _Inputs(0 if example.source is None else example.source.shape[1], example.fed.shape[1])
    missing = dict[str, Phrase]()
    # Two kinds of leaving out, each with one copy as it is; and gradients at the points of PARTS parts and of their halves, which
    # are twice as many: three times PARTS. Halving further comes on top.
    tally = _Tally(on_count, 2 * (1 + len(inputs)) + 3 * PARTS * POINTS * len(example.following))
    base, unknown = _left_out(scorer, inputs, dict.fromkeys(spec.stacks, spec.unk_id), tally.first)
    padding = _left_out(scorer, inputs, _padding(spec), tally.first)[1]
    if np.isnan(unknown).all():
        missing["unknown"] = phrase("No token was replaced by the unknown token: this model has none, or reads no ids.")
    if np.isnan(padding).all():
        missing["padding"] = phrase("No token was replaced by padding: this model has none, or reads no ids.")
    stand_in, named = _baseline(spec, example)
    by_gradient = gradients(scorer, stand_in, tally.then)
    missing |= _unsettled(by_gradient, example.tokens)
    # A token cannot depend on what comes after the row that predicts it. NaN says so: a 0 would say that it was measured.
    later = inputs.later(example)
    attention, rolled = _attention(trace, example, inputs), _rollout(trace, example, inputs)
    hidden = {
        "unknown": unknown,
        "padding": padding,
        "gradient": by_gradient.gradient,
        "integrated": by_gradient.integrated,
        "integrated_change": by_gradient.changed,
        "attention": attention,
        "rollout": rolled,
    }
    # The inputs of both strips stand in one row, the source first. Positions count in each strip by itself.
    strips = ("source",) * inputs.source + (example.written,) * inputs.fed
    positions = (*range(inputs.source), *range(inputs.fed))
    return WordEffects(
        tokens=example.tokens,
        ids=tuple(example.following.tolist()),
        first=example.first + 1,
        log_probabilities=base,
        inputs=tuple(example.strips[strip].texts[position] for strip, position in zip(strips, positions, strict=True)),
        strips=strips,
        positions=positions,
        difference=by_gradient.difference,
        residue=by_gradient.difference - by_gradient.integrated.sum(axis=1),  # NaN where there are none
        baseline=named,
        missing=missing,
        **{name: np.where(later, np.nan, array) for name, array in hidden.items()},
    )


def _padding(spec: AnySpec) -> dict[str, int | None]:
    return {stack: spec.source_padding if stack == "encoder" else spec.pad_id for stack in spec.stacks}


def _baseline(spec: AnySpec, example: Example) -> tuple[Mapping[str, int | None], str]:
    """The id or vector at every position of the baseline, by stack, and its name."""
    reads_ids = example.source is None or not example.source.is_floating_point()
    choices: Mapping[str, Mapping[str, int | None]] = {
        "the unknown token": dict.fromkeys(spec.stacks, spec.unk_id),
        "padding": _padding(spec),
        "the end token": dict.fromkeys(spec.stacks, spec.end_id),
    }
    # The first of these that every stack has: a baseline has to be one and the same thing in both stacks. Features have no ids.
    for name, ids in choices.items():
        if reads_ids and None not in ids.values():
            return ids, name
    return dict.fromkeys(spec.stacks), "zeros"


def _unsettled(gradients: Gradients, tokens: tuple[str, ...]) -> dict[str, Phrase]:
    """Why some tokens have no integrated gradients, with what the first of them lacks."""
    without = np.flatnonzero(np.isnan(gradients.integrated).all(axis=1))
    if not len(without):
        return {}
    why = phrase(
        "Integrated gradients were not found for {count} of {all} target tokens: with {points} points, their sum still misses the "
        "difference in log-probability by more than {share:.0%}. The sum of the first of them, {token}, misses {difference:.2f} by "
        "{lacking:.2f}.",
        count=len(without),
        all=len(tokens),
        points=gradients.points,
        share=TOLERANCE,
        token=tokens[without[0]],
        difference=float(gradients.difference[without[0]]),
        lacking=float(gradients.lacking[without[0]]),
    )
    return {"integrated": why}


def _left_out(scorer: Scorer, inputs: _Inputs, ids: Mapping[str, int | None], on_count: OnCount) -> tuple[Array, Array]:
    """Log-probabilities [token] as they are, and the changes [token, input] where each input is replaced by the id of its stack."""
    example = scorer.example
    encoder_id, decoder_id = ids.get("encoder"), ids["decoder"]
    # Only ids can be replaced by an id: of features nothing is left out.
    sources = None if example.source is None or example.source.is_floating_point() else example.source.cpu().numpy()
    places = [("encoder", position) for position in range(inputs.source if sources is not None and encoder_id is not None else 0)]
    places += [("decoder", position) for position in range(inputs.fed if decoder_id is not None else 0)]
    # One copy for each input, behind one as it is (row 0): copy i differs from it in the one id that `places[i - 1]` names.
    read = np.repeat(example.fed.cpu().numpy(), len(places) + 1, axis=0)
    source = None if sources is None else np.repeat(sources, len(places) + 1, axis=0)
    for row, (stack, position) in enumerate(places, start=1):
        if stack == "decoder":
            read[row, position] = decoder_id
        elif source is not None:
            source[row, position] = encoder_id
    scores = scorer.score(Copies(sites(example.runner.info.spec), source=source, fed=read), on_count)
    changes = np.full((len(example.following), len(inputs)), np.nan)
    # Inputs whose stack has no such id were not replaced: their columns stay NaN.
    columns = [position + (inputs.source if stack == "decoder" else 0) for stack, position in places]
    changes[:, columns] = (scores[1:] - scores[0]).T
    return scores[0], changes


def _attention(trace: Trace, example: Example, inputs: _Inputs) -> Array:
    """[token, input]: the mean of the weights over heads and layers, for each strip."""
    # Each strip by itself: weights of self-attention sum to 1 over the decoder's tokens, those of cross-attention over the source.
    within = _mean(list(trace.of("decoder", "self")), example)
    across = _mean([site for site in trace.attention.values() if site.site.kind == "cross"], example)
    parts = [across] if inputs.source else []
    return np.concatenate([*parts, within[:, : inputs.fed]], axis=1)


def _mean(attentions: list[Attention], example: Example) -> Array:
    """[token, key] of the rows that predict the tokens."""
    if not attentions:
        return np.zeros((len(example.following), 0))
    rows = slice(example.first, example.first + len(example.following))
    # The mean over heads first, site by site: so float64 is needed for one site's weights at a time, not for those of the run.
    means = [np.asarray(attention.weights, np.float64)[:, rows].mean(axis=0) for attention in attentions]
    return np.asarray(np.mean(means, axis=0))


def _rollout(trace: Trace, example: Example, inputs: _Inputs) -> Array:
    """[token, input]: the rollout of the rows that predict the tokens, after the last layer."""
    rows = slice(example.first, example.first + len(example.following))
    to_target, to_source = origins(trace)
    return np.concatenate([to_source[rows], to_target[rows, : inputs.fed]], axis=1)


MEASURES = ("unknown", "padding", "gradient", "integrated", "attention", "rollout")
"""The measures of words, by the fields of WordEffects, in the order of the axes of correlations."""


def rank_correlations(effects: WordEffects, strip: str = "") -> Array:
    """Spearman's ρ between all pairs of MEASURES, for each target token.

    Args:
        strip: compare only the inputs of one strip; empty: all of them.

    Returns:
        [token, measure, measure]; NaN where fewer than two inputs can be compared, or a measure has the same amount for all.
    """
    import pandas as pd  # takes a third of a second: the command line starts without it

    of_strip = np.array([not strip or name == strip for name in effects.strips])
    # Amounts, since weights of attention have no sign: an input that made the token much less likely ranks high, too.
    amounts = [np.abs(getattr(effects, name)[:, of_strip]) for name in MEASURES]
    tables = [pd.DataFrame(dict(zip(MEASURES, token, strict=True))) for token in zip(*amounts, strict=True)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([table.corr(method="spearman", min_periods=2).to_numpy() for table in tables])


def mean_correlation(effects: WordEffects, first: str, second: str, strip: str = "") -> float:
    """The mean over the target tokens of the correlation of two measures; NaN where no token has one."""
    correlations = rank_correlations(effects, strip)[:, MEASURES.index(first), MEASURES.index(second)]
    return float(np.nanmean(correlations)) if np.isfinite(correlations).any() else float("nan")
