"""`python -m model matters`: what heads, words or edges of a run were for."""

import json
from collections.abc import Iterator
from typing import Any, Literal, get_args

import click
import numpy as np

from model.checkpoints import loader
from model.checkpoints.loader import lowered
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.cli.telling import going_on, told
from model.engine import environment
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS
from model.errors import BadSetting
from model.features.what_if.answers import answer
from model.features.what_if.example import forced_run
from model.features.what_if.questions import PERMUTATIONS, Attribution, Edges, Heads, Measure, Order, Prune, Words
from model.features.what_if.results import EdgeEffects, HeadEffects, PruneCurve, Result, WordEffects
from model.features.what_if.words import MEASURES, mean_correlation
from model.inference.resources import Resources
from model.inference.run import run_in
from model.spec.request import RunRequest


@click.command()
@asks_for_a_run
@click.option("--measures", default=",".join(get_args(Measure)), show_default=True, help="of each head, separated by commas")
@click.option(
    "--permutations",
    type=click.IntRange(2, 1024),
    default=PERMUTATIONS,
    show_default=True,
    help="orders of heads from which a share is estimated, where a site has more than ten heads",
)
@click.option("--by", type=click.Choice(("zeros", "mean")), default="zeros", show_default=True, help="what silences a head")
@click.option("--prune", type=click.Choice(get_args(Order)), help="silence head after head, the one that costs least or most first")
@click.option("--quick", is_flag=True, help="with --prune least: measure only the most promising heads again after each")
@click.option("--words", is_flag=True, help="what each target token depended on")
@click.option("--edges", type=int, metavar="TOKEN", help="which edges this target token depended on, counted from 0")
@click.option("--site", default="", help="with --edges: each head of this site alone")
@AS_JSON
@DEVICE
def matters(request: RunRequest, as_json: bool, device: str, **asked: Any) -> None:
    """Measures what the heads of CHECKPOINT, or words or edges of attention, were for in one run."""
    found = _answer(_question(request, **asked), device)
    if as_json:
        more = {"correlations": _correlations(found)} if isinstance(found, WordEffects) else {}
        click.echo(json.dumps(found.to_json() | more, ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(found)))


def _question(
    request: RunRequest,
    measures: str,
    permutations: int,
    by: Literal["zeros", "mean"],
    prune: Order | None,
    quick: bool,
    words: bool,
    edges: int | None,
    site: str,
) -> Attribution[Any]:
    """The question that the options ask."""
    if (prune is not None) + words + (edges is not None) > 1:
        raise BadSetting(name="the question", found="several", allowed="one of --prune, --words and --edges, or none for heads")
    if site and edges is None:
        raise BadSetting(name="--site", found=site, allowed="left out without --edges")
    if prune is not None:
        return Prune(request, prune, every=not quick)
    if words:
        return Words(request)
    if edges is not None:
        if edges < 0:
            raise BadSetting(name="--edges", found=edges, allowed="0 or above")
        return Edges(request, edges, site)
    wanted = tuple(filter(None, measures.split(",")))
    if not wanted or set(wanted) - set(get_args(Measure)):
        raise BadSetting(name="--measures", found=measures, allowed=f"among {', '.join(get_args(Measure))}")
    return Heads(request, wanted, permutations, by=by)  # type: ignore[arg-type]  # checked above


def _answer(question: Attribution[Any], device: str) -> Result:
    """The result; standard error tells how far it is."""
    on = best_device(device)
    with going_on(f"Opening {question.request.model}"):
        asked, path = question.request, loader.locate(question.request.model, CHECKPOINTS)
        base = loader.load(path, dict(asked.settings), on, precision=asked.precision)
    runner = lowered(base, asked.precision)
    request, prompt = forced_run(base, question.request, on, environment.most_positions())
    trace = run_in(base, runner, request, on, str(on))
    counted = {Prune: "heads to silence one by one", Words: "edited copies and gradients of the run"}
    with told(counted.get(type(question), "edited copies of the run")) as on_count:
        resources = Resources(on, most=environment.most_positions(), most_bytes=environment.batch_bytes(), on_count=on_count)
        return answer(question, request, prompt, runner, trace, resources)


def _correlations(found: WordEffects) -> dict[str, dict[str, float | None]]:
    """The mean rank correlation of each two measures over the inputs of each strip."""
    pairs = [(a, b) for i, a in enumerate(MEASURES) for b in MEASURES[i + 1 :]]
    values = {strip: {f"{a}, {b}": mean_correlation(found, a, b, strip) for a, b in pairs} for strip in dict.fromkeys(found.strips)}
    return {strip: {pair: value if np.isfinite(value) else None for pair, value in own.items()} for strip, own in values.items()}


def _lines(found: Result) -> Iterator[str]:
    """A result as a table for people."""
    yield f"{' '.join(found.tokens)}: log-probability {found.total:z.4f} nats"
    match found:
        case HeadEffects():
            yield from _of_heads(found)
        case PruneCurve():
            yield from _of_pruning(found)
        case WordEffects():
            yield from _of_words(found)
        case EdgeEffects():
            yield from _of_edges(found)


def _of_heads(found: HeadEffects) -> Iterator[str]:
    names = [name for name in get_args(Measure) if getattr(found, name) is not None]
    yield f"{'site':22}{'head':>5}" + "".join(f"{name:>10}" for name in names)
    for row, head in enumerate(found.heads):
        error = "" if found.total_share_error is None else found.total_share_error[row]
        beside = f"  ± {error:z.4f}" if error else ""
        yield f"{head.site:22}{head.head:5}" + "".join(f"{getattr(found, name)[row].sum():z10.4f}" for name in names) + beside
    if found.none is not None:
        yield from (f"{site:22}{'none':>5}{total.sum():z10.4f}" for site, total in zip(found.sites, found.none, strict=True))


def _of_pruning(found: PruneCurve) -> Iterator[str]:
    yield f"{'silenced':>8}  {'log-probability':>15}  silenced last"
    for step, total in enumerate(found.curve.sum(axis=1)):
        last = f"{found.order[step - 1].site} head {found.order[step - 1].head}" if step else ""
        broken = "  the likeliest tokens are others from here on" if step == found.breaks_at else ""
        yield f"{step:8}  {total:z15.4f}  {last}{broken}"


def _of_words(found: WordEffects) -> Iterator[str]:
    yield f"{'token':12}{'input':18}" + "".join(f"{name:>11}" for name in MEASURES)
    for row, token in enumerate(found.tokens):
        for column, text in enumerate(found.inputs):
            numbers = [getattr(found, name)[row, column] for name in MEASURES]
            if not np.isnan(numbers).all():
                yield f"{token:12}{found.strips[column] + ' ' + text:18}" + "".join(map(_cell, numbers))
        residue = "no integrated gradients"
        if not np.isnan(found.residue[row]):
            residue = f"residue {found.residue[row]:z.4f}, words settled within {found.largest_change[row]:.1%} of the largest"
        yield f"{token:12}{'difference from ' + found.baseline}: {found.difference[row]:z.4f}, {residue}"
    yield from (f"{name}: {why}" for name, why in found.missing.items())
    for strip, own in _correlations(found).items():
        yield from (f"rank correlation over {strip}: {pair} {value:z.2f}" for pair, value in own.items() if value is not None)


def _cell(number: float) -> str:
    """A number in a column; a dash for a measure that is not there, whose reason stands below."""
    return f"{'-':>11}" if np.isnan(number) else f"{number:z11.4f}"


def _of_edges(found: EdgeEffects) -> Iterator[str]:
    yield f"for {found.tokens[found.token]}, which has {found.log_probabilities[found.token]:z.4f}"
    for row, (site, head) in enumerate(zip(found.sites, found.heads, strict=True)):
        keys = [(key, change) for key, change in enumerate(found.changes[row]) if not np.isnan(change)]
        numbers = " ".join(f"{key}:{change:z.4f}{'!' if found.emptied[row, key] else ''}" for key, change in keys)
        yield f"{site}{'' if head < 0 else f' head {head}'}  {found.strips[row]} {numbers}"
    if found.emptied.any():
        yield "!: this leaves a query without any key, which the network treats by its own rule."
