"""`python -m model explain`, `why` and `writes`: one cell of a run, and one token that it wrote, calculated and taken apart."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import click
import numpy as np

from model.attribution.logit_parts import logit_sum
from model.attribution.saved_sums import cell_to_save, sums_to_save
from model.attribution.score_parts import kept, score_sum
from model.attribution.sums import LogitSum, ScoreSum, Why, Writes
from model.checkpoints import loader
from model.checkpoints.hub.cache import pinned
from model.checkpoints.loader import Runner, lowered
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.cli.telling import going_on, told
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS
from model.errors import BadSetting, HeadlightError
from model.inference.cell import explain_cell
from model.inference.run import run_in
from model.spec.request import KEEP, RunRequest
from model.trace.progress import Progress
from model.trace.types import Array, Site, Trace

STRONGEST = 12
"""Parts, and pairs of parts, that a text lists; the others are summed up."""


def _names_a_cell(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that name one cell."""
    for name, help_ in (
        ("--key", "the key, counted from 0"),
        ("--query", "the query row, counted from 0"),
        ("--head", "the head, counted from 0"),
    ):
        command = click.option(name, type=int, required=True, help=help_)(command)
    return click.option("--site", required=True, help="the attention site: stack.pass.layer.kind, such as decoder.0.2.cross")(
        command
    )


@click.command()
@asks_for_a_run
@_names_a_cell
@AS_JSON
@DEVICE
def explain(request: RunRequest, site: str, head: int, query: int, key: int, as_json: bool, device: str) -> None:
    """Recomputes one attention weight of a run of CHECKPOINT in float64, and compares it with what ran."""
    checkpoint, trace = traced(replace(request, keep=KEEP), device)
    found = explain_cell(checkpoint.network, trace, site, head, query, key)
    click.echo(json.dumps(found.to_json()) if as_json else found.in_words())


@click.command()
@asks_for_a_run
@_names_a_cell
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


Runs: TypeAlias = Callable[[RunRequest], tuple[Runner, Trace]]
"""Runs requests about a model that is open, and says what ran them."""


def traced(request: RunRequest, device: str) -> tuple[Runner, Trace]:
    """The run of a request, and what ran it. Standard error tells how far a decode is."""
    return opened(request, device)(request)


def opened(request: RunRequest, device: str) -> Runs:
    """Opens the model of a request, with its settings and its precision, for runs that differ in other things."""
    on = best_device(device)
    with going_on(f"Opening {request.model}"):
        path = loader.locate(request.model, CHECKPOINTS)
        found = loader.load(path, dict(request.settings), on, precision=request.precision)
    lower = lowered(found, request.precision)

    def runs(request: RunRequest) -> tuple[Runner, Trace]:
        request = replace(request, model=pinned(request.model, path))
        with told("tokens that it may write") as count, ExitStack() as reading:
            reading.enter_context(going_on(f"Running {request.model}"))

            def report(make: Callable[[], Progress]) -> None:
                if (progress := make()).done:  # a translator reports once more, before its first token
                    reading.close()  # from here on the tokens tell how far it is
                    count(progress.done, progress.most)

            return lower, run_in(found, lower, request, on, str(on), report=report)

    return runs


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
