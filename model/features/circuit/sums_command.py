"""`python -m model why` and `writes`: one cell of a run, and one token that it wrote, taken apart."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import click
import numpy as np

from model.cli.explain import Runs, names_a_cell, traced
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.errors import BadSetting, HeadlightError
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.saved_sums import cell_to_save, sums_to_save
from model.features.circuit.score_parts import kept, score_sum
from model.features.circuit.sums import LogitSum, ScoreSum, Why, Writes
from model.spec.request import RunRequest
from model.trace.types import Array, Site, Trace

STRONGEST = 12
"""Parts, and pairs of parts, that a text lists; the others are summed up."""


@click.command()
@asks_for_a_run
@names_a_cell
@click.option("--minus", metavar="KEY", help="the difference from the score of this key, or from the mean of the row")
@AS_JSON
@DEVICE
def why(request: RunRequest, minus: str | None, as_json: bool, device: str, **cell: Any) -> None:
    """Takes the score of one cell of a run of CHECKPOINT apart: what wrote the query, times what wrote the key."""
    checkpoint, trace = kept(partial(traced, device=device), request)
    if minus not in (None, "mean") and not minus.isdecimal():
        raise BadSetting(name="--minus", found=minus, allowed="a key, counted from 0, or mean")
    other: Any = int(minus) if minus and minus.isdecimal() else minus
    found = score_sum(checkpoint.network, trace, Why(request, **cell, minus=other))
    click.echo(json.dumps(found.to_json()) if as_json else "\n".join(_of_score(found)))


@click.command()
@asks_for_a_run
@click.option("--token", type=click.IntRange(0), required=True, help="which written token, counted from 0")
@click.option("--minus", metavar="TOKEN", help="the difference from the logit of this token: an id, a text, or runner-up")
@AS_JSON
@DEVICE
def writes(request: RunRequest, token: int, minus: str | None, as_json: bool, device: str) -> None:
    """Takes the logit of one token that a run of CHECKPOINT wrote apart: what each head and each layer added to it."""
    checkpoint, trace = kept(partial(traced, device=device), request)
    found = logit_sum(checkpoint.network, trace, Writes(request, token, _id(trace, token, minus)))
    click.echo(json.dumps(found.to_json(), ensure_ascii=False) if as_json else "\n".join(_of_logit(found, trace)))


def with_sums(trace: Trace, runs: Runs, request: RunRequest, site: str | None, head: int) -> Trace:
    """A trace with why the strongest cell of a head's last row has its score, and why the first token was written.

    What cannot be taken apart is left out.

    Args:
        runs: makes the run again, with everything.
        request: of the trace.
        site, head: the head; None: of the last cross-attention, or else the last site.

    Raises:
        UnknownSite, UnknownHead: the run has no such head.
    """
    attention = trace.at(Site.parse(site)) if site else trace.last_cross()
    asked: list[Why | Writes] = [Why(request, str(attention.site), head, *cell_to_save(attention, head))]
    asked += [Writes(request, 0, "runner-up")] if trace.steps else []
    try:
        runner, whole = kept(runs, request)
    except HeadlightError:
        return trace

    def answer(question: Why | Writes) -> ScoreSum | LogitSum:
        if isinstance(question, Why):
            return score_sum(runner.network, whole, question)
        return logit_sum(runner.network, whole, question)

    return replace(trace, sums=sums_to_save(asked, answer))


def _id(trace: Trace, token: int, minus: str | None) -> int | Literal["runner-up"] | None:
    """The token that `--minus` names."""
    if minus is None or minus == "runner-up":
        return minus  # type: ignore[return-value]  # one of the two
    if minus.isdecimal():
        return int(minus)
    candidates = trace.steps[token].candidates if token < len(trace.steps) else ()
    found = next((candidate.id for candidate in candidates if candidate.text.strip() == minus.strip()), None)
    if found is None and candidates:
        texts = ", ".join(candidate.text for candidate in candidates)
        raise BadSetting(name="--minus", found=minus, allowed=f"an id, runner-up, or one of {texts}")
    return found


def _of_score(found: ScoreSum) -> Iterator[str]:
    """The sum of a score for people."""
    yield f"{found.site}, head {found.head}, query {found.query}, key {found.key}{_taken_away(found.minus)}"
    if found.closed:
        yield f"The mask closes this cell ({found.closed}): its score would be"
    yield f"score    {found.score:z12.7f}"
    yield f"recorded {found.recorded:z12.7f}{'' if found.scored else '  (computed now: the run never needed it)'}"
    yield _verdict(found)
    pairs = [f"{query} × {key}" for query in found.parts_query for key in found.parts_key]
    yield from _strongest("part of the query × part of the key", pairs, found.matrix.ravel())
    if found.distance:
        yield f"{found.distance:z12.4f}  the number for this distance"
    yield from _strongest("parts of the query", list(map(str, found.parts_query)), found.matrix.sum(axis=1))
    yield from _strongest("parts of the key", list(map(str, found.parts_key)), found.matrix.sum(axis=0))


def _of_logit(found: LogitSum, trace: Trace) -> Iterator[str]:
    """The sum of a logit for people."""
    yield f"token {found.token}: {found.text}{_taken_away(found.minus_text or None)}"
    yield f"logit    {found.logit:z12.7f}"
    yield f"recorded {found.recorded:z12.7f}"
    if found.minus is None:
        yield f"log Σ exp {found.log_sum_exp:z11.7f}, log-probability {found.recorded - found.log_sum_exp:z.7f}"
    yield _verdict(found)
    yield from _strongest("parts of the last state", list(map(str, found.parts)), found.values)
    sources = [
        (f"{part} from {strip} {key}, {trace.tokens[strip].texts[key]}", value)
        for part, strip, keys in zip(found.parts, found.strips, found.keys, strict=True)
        for key, value in enumerate(keys)
        if not np.isnan(value)
    ]
    yield from _strongest("heads by the token that they read", [name for name, _ in sources], np.array([own for _, own in sources]))


def _taken_away(other: int | str | None) -> str:
    return "" if other is None else f", minus {'the mean of the row' if other == 'mean' else other}"


def _verdict(found: ScoreSum | LogitSum) -> str:
    return f"difference {found.difference:.1e} ({'agrees' if found.agrees else 'does not agree'})"


def _strongest(title: str, names: list[str], values: Array) -> Iterator[str]:
    """The strongest summands, and the sum of all others."""
    order = np.argsort(-np.abs(values), kind="stable")
    yield f"{title}:"
    yield from (f"{values[place]:z12.4f}  {names[place]}" for place in order[:STRONGEST])
    if len(rest := order[STRONGEST:]):
        yield f"{values[rest].sum():z12.4f}  {len(rest):,} others"
