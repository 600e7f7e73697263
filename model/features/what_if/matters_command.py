"""`python -m model matters`: what heads, words or edges of a run were for."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Literal, get_args

import click
import numpy as np

from model.cli.answer import show
from model.cli.asking import engine_for
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.errors import BadSetting
from model.features.what_if.questions import PERMUTATIONS, Attribution, Edges, Heads, Measure, Order, Prune, Words
from model.features.what_if.results import EdgeEffects, PruneCurve, Result, WordEffects, plain
from model.features.what_if.words import MEASURES, mean_correlation
from model.requests.request import RunRequest

COUNTED: Mapping[type[Attribution[Any]], str] = {
    Prune: "heads to silence one by one",
    Words: "edited copies and gradients of the run",
}
"""What is counted while a question is answered, where it is not copies alone."""


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
def matters(request: RunRequest, as_json: bool, device: str, **options: Any) -> None:
    """Measures what the heads of CHECKPOINT, or words or edges of attention, were for in one run."""
    question = _question(request, **options)
    with engine_for(request, device, COUNTED.get(type(question), "edited copies of the run")) as (engine, named):
        result = engine.ask(question.about(named))
    # Correlations take pandas and are no part of a result: they are made for whoever prints one.
    correlations = {"correlations": _correlations(result)} if isinstance(result, WordEffects) else {}
    show(result.to_json() | correlations, as_json, {"first": None, **_readable(result)})


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
    # Each of the three asks another question; without any of them it is about heads.
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


def _correlations(effects: WordEffects) -> dict[str, dict[str, float | None]]:
    """The mean rank correlation of each two measures over the inputs of each strip."""
    pairs = list(combinations(MEASURES, 2))
    return {
        strip: {f"{first}, {second}": plain(mean_correlation(effects, first, second, strip)) for first, second in pairs}
        for strip in dict.fromkeys(effects.strips)
    }


def _readable(result: Result) -> dict[str, Any]:
    """The tables of a result for people, which need more than one of its fields."""
    match result:
        case PruneCurve():
            return {"order": None, "pruning": list(_steps(result))}
        case WordEffects():
            names = ("inputs", "strips")
            return dict.fromkeys(names) | {"words": list(_words(result)), "integrated gradients": list(_integrated(result))}
        case EdgeEffects():
            return dict.fromkeys(("sites", "strips")) | {"edges": list(_edges(result))}
    return {}


def _steps(curve: PruneCurve) -> Iterator[dict[str, Any]]:
    """A row for each number of silenced heads."""
    for step, total in enumerate(curve.curve.sum(axis=1)):
        last = f"{curve.order[step - 1].site} head {curve.order[step - 1].head}" if step else ""
        broken = "the likeliest tokens are others from here on" if step == curve.breaks_at else ""
        yield {"silenced": step, "log-probability": float(total), "silenced last": last, "": broken}


def _words(effects: WordEffects) -> Iterator[dict[str, Any]]:
    """A row for each target token and each input that it depended on."""
    for row, token in enumerate(effects.tokens):
        for column, text in enumerate(effects.inputs):
            numbers = {name: plain(getattr(effects, name)[row, column]) for name in MEASURES}
            if any(number is not None for number in numbers.values()):
                yield {"token": token, "input": f"{effects.strips[column]} {text}"} | numbers


def _integrated(effects: WordEffects) -> Iterator[dict[str, Any]]:
    """How well the integrated gradients of each target token are known."""
    for row, token in enumerate(effects.tokens):
        numbers = {"difference": effects.difference, "residue": effects.residue, "largest change": effects.largest_change}
        yield {"token": token} | {name: plain(values[row]) for name, values in numbers.items()}


def _edges(effects: EdgeEffects) -> Iterator[dict[str, Any]]:
    """A row for each edge, with a note where its head had nothing else to read."""
    for row, (site, head) in enumerate(zip(effects.sites, effects.heads, strict=True)):
        for key, change in enumerate(effects.changes[row]):
            if not np.isnan(change):
                empty = "leaves a query without any key: the network's own rule decides" if effects.emptied[row, key] else ""
                of = {"site": site, "head": "all" if head < 0 else head, "strip": effects.strips[row], "key": key}
                yield of | {"change": float(change), "": empty}
