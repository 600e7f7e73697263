"""`python -m model circuit` and `paths`: which earlier head each head used in a run, and which paths tell two sentences apart."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from model.checkpoints import loader
from model.checkpoints.loader import Runner, lowered
from model.cli.explain import traced
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.cli.telling import going_on, told
from model.engine import environment
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS
from model.errors import BadSetting
from model.features.circuit.answers import MEASUREMENTS
from model.features.circuit.circuit_parts import circuit as circuit_of
from model.features.circuit.circuits import LONGEST_FILE, SIDES, CircuitGraph, PathEffects, Paths, mean_of, read_pairs
from model.features.circuit.score_parts import kept
from model.features.circuit.sums_command import STRONGEST
from model.features.what_if.answers import answer
from model.features.what_if.example import forced_run
from model.inference.resources import Resources
from model.inference.run import run_in
from model.spec.request import RunRequest


@click.command()
@asks_for_a_run
@click.option("--least", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="list edges with at least this share")
@click.option("--row", type=click.IntRange(0), help="count only this row of the stack that writes, from 0 [default: all]")
@AS_JSON
@DEVICE
def circuit(request: RunRequest, least: float, row: int | None, as_json: bool, device: str) -> None:
    """Says which earlier head, and which other part, the queries, keys and values of each head of CHECKPOINT used in one run."""
    checkpoint, trace = kept(partial(traced, device=device), request)
    with told("heads") as on_count:
        found = circuit_of(checkpoint.network, trace, on_count, row)
    click.echo(json.dumps(found.to_json()) if as_json else "\n".join(_of_circuit(found, least)))


def _of_circuit(found: CircuitGraph, least: float) -> Iterator[str]:
    """A circuit for people: its edges, the strongest of each head first."""
    verdict = "agree" if found.agrees else "do not agree"
    yield f"{len(found.heads):,} heads; sums and recorded numbers {verdict}, difference {np.nanmax(found.difference):.1e}"
    yield f"edges with a share of at least {least:g}; smaller ones have {found.left_out(least):z.2f} of what heads used of heads"
    yield f"{'share':>7} {'used':>9} {'weights':>8} {'chance':>7}  edge"
    chance = dict(zip(found.heads, found.chance, strict=True))
    order = {head: place for place, head in enumerate(found.heads)}
    for edge in sorted(found.edges(least), key=lambda edge: (order[edge.head], SIDES.index(edge.side), -edge.share)):
        by_weights = f"{'–':>8} {'–':>7}" if np.isnan(edge.composition) else f"{edge.composition:z8.3f} {chance[edge.head]:z7.3f}"
        to = f"{edge.side} of {edge.head.site} head {edge.head.head}"
        yield f"{edge.share:z7.3f} {edge.used:z9.4f} {by_weights}  {edge.part} → {to}"
    for head, copying in zip(found.heads, found.copying, strict=True):
        if not np.isnan(copying):
            yield f"copying {copying:z6.3f}  {head.site} head {head.head}"


@click.command()
@asks_for_a_run
@click.option("--corrupted", help="the source of the corrupted run: as many tokens as --source")
@click.option(
    "--pairs",
    type=click.Path(path_type=Path, dir_okay=False),
    help="a file of further pairs, one a line, clean and corrupted text with a tab between: effects are then means",
)
@click.option("--token", type=click.IntRange(0), default=0, show_default=True, help="which measured token, counted from 0")
@click.option("--minus", type=click.IntRange(0), metavar="ID", help="the token whose logit is taken away, by its id")
@click.option("--receiver", default="", metavar="SITE:HEAD", help="measure only the paths to this head")
@click.option("--shared", is_flag=True, help="a path to a key or value is a path to all heads that share it")
@AS_JSON
@DEVICE
def paths(request: RunRequest, corrupted: str | None, pairs: Path | None, as_json: bool, device: str, **asked: Any) -> None:
    """Patches each path from a head to a later head of CHECKPOINT from a corrupted run, and measures what it carries."""
    if corrupted is None:
        raise BadSetting(name="--corrupted", found="nothing", allowed="a text of as many tokens as --source")
    site, head = _receiver(asked.pop("receiver"))
    minus = asked.pop("minus")
    both = [(request.source, corrupted), *(() if pairs is None else _pairs(pairs))]
    questions = [
        Paths(replace(request, source=clean), other, minus="corrupted" if minus is None else minus, site=site, head=head, **asked)
        for clean, other in both
    ]
    with going_on(f"Opening {request.model}"):
        on = best_device(device)
        base = loader.load(loader.locate(request.model, CHECKPOINTS), dict(request.settings), on)
    found = [_answered(question, base, device) for question in questions]
    if as_json:
        click.echo(json.dumps(_mean(found), ensure_ascii=False))
    else:
        click.echo("\n".join(_of_paths(found)))


def _receiver(text: str) -> tuple[str, int]:
    site, _, head = text.rpartition(":")
    if text and not (site and head.isdecimal()):
        raise BadSetting(name="--receiver", found=text, allowed="SITE:HEAD, such as decoder.0.1.self:0")
    return site, int(head) if text else -1


def _pairs(file: Path) -> tuple[tuple[str, str], ...]:
    """The pairs of texts in a file.

    Raises:
        BadSetting: it cannot be read, is too large, or a line is no pair.
    """
    try:
        with file.open("rb") as opened:
            return read_pairs(opened.read(LONGEST_FILE + 1), "--pairs")
    except OSError as error:
        raise BadSetting(name="--pairs", found=str(file), allowed=f"a file that can be read ({error.strerror})") from error


def _answered(question: Paths, base: Runner, device: str) -> PathEffects:
    """The result; standard error tells how far it is."""
    on, most = best_device(device), environment.most_positions()
    runner = lowered(base, question.request.precision or "float32")
    request, prompt = forced_run(base, question.request, on, most)
    trace = run_in(base, runner, request, on, str(on))
    with told("patched copies of the run") as on_count:
        resources = Resources(on, most=most, most_bytes=environment.batch_bytes(), on_count=on_count)
        found = answer(question, request, prompt, runner, trace, resources, MEASUREMENTS)
    assert isinstance(found, PathEffects)
    return found


def _mean(found: list[PathEffects]) -> dict[str, Any]:
    """One result as JSON; of several the means of their effects and estimates, and each pair's own numbers."""
    if len(found) == 1:
        return found[0].to_json()
    own = ("tokens", "other_text", "clean", "corrupted", "kept", "kept_difference", "kept_log_probability")
    pairs = [{name: value for name, value in one.to_json().items() if name in own} for one in found]
    whole = mean_of(found).to_json()
    return {name: whole[name] for name in ("rank", "paths")} | {"pairs": pairs}


def _of_paths(found: list[PathEffects]) -> Iterator[str]:
    """Effects of paths for people."""
    for one in found:
        gaps = f"{one.tokens[one.token]} minus {one.other_text}"
        yield f"logit of {gaps}: {one.clean:z.4f} in the clean run, {one.corrupted:z.4f} in the corrupted one"
    whole = _mean(found)
    count = f"{len(whole['paths']):,} paths"
    yield count if whole["rank"] is None else f"{count}; rank correlation of effects and estimates {whole['rank']:z.2f}"
    yield f"{'effect':>9} {'estimate':>9}  path"
    for path in whole["paths"][:STRONGEST]:
        since, to = path["from"], path["to"]
        names = f"{since['site']} head {since['head']} → {path['side']} of {to['site']} head {to['head']}"
        yield f"{path['effect']:z9.4f} {path['estimate']:z9.4f}  {names}"
    for one in found:
        for kept_paths, difference, log_probability in zip(one.kept, one.kept_difference, one.kept_log_probability, strict=True):
            yield f"{int(kept_paths):6,} paths kept: logit difference {difference:z.4f}, log-probability {log_probability:z.4f}"
