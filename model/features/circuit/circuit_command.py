"""`python -m model circuit` and `paths`: which earlier head each head used in a run, and which paths tell two sentences apart."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from model.cli.answer import STRONGEST, show
from model.cli.asking import engine_for
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.errors import BadSetting
from model.features.circuit.circuits import LONGEST_FILE, SIDES, Circuit, CircuitGraph, PathEffects, Paths, mean_of, read_pairs
from model.features.what_if.results import plain
from model.requests.request import RunRequest


@click.command()
@asks_for_a_run
@click.option("--least", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="list edges with at least this share")
@click.option("--row", type=click.IntRange(0), help="count only this row of the stack that writes, from 0 [default: all]")
@AS_JSON
@DEVICE
def circuit(request: RunRequest, least: float, row: int | None, as_json: bool, device: str) -> None:
    """Says which earlier head, and which other part, the queries, keys and values of each head of CHECKPOINT used in one run."""
    with engine_for(request, device, "heads") as (engine, named):
        graph = engine.ask(Circuit(named, row))
    values = graph.to_json()
    copying = [{"site": head["site"], "head": head["head"], "copying": head["copying"]} for head in values["heads"]]
    smaller = f"smaller ones have {graph.left_out(least):z.2f} of what heads used of heads"
    edges = {f"edges with a share of at least {least:g}; {smaller}": _edges(graph, least)}
    show(values, as_json, {"edges": None, **edges, "heads": copying})


def _edges(graph: CircuitGraph, least: float) -> list[dict[str, Any]]:
    """A row for each edge, the strongest of each side of a head first."""
    chance = dict(zip(graph.heads, graph.chance, strict=True))
    order = {head: number for number, head in enumerate(graph.heads)}
    edges = sorted(graph.edges(least), key=lambda edge: (order[edge.head], SIDES.index(edge.side), -edge.share))
    return [
        {
            "share": edge.share,
            "used": edge.used,
            "weights": plain(edge.composition),
            "chance": plain(chance[edge.head]) if edge.part.kind == "head" else None,
            "edge": f"{edge.part} → {edge.side} of {edge.head.site} head {edge.head.head}",
        }
        for edge in edges
    ]


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
def paths(request: RunRequest, corrupted: str | None, pairs: Path | None, as_json: bool, device: str, **options: Any) -> None:
    """Patches each path from a head to a later head of CHECKPOINT from a corrupted run, and measures what it carries."""
    if corrupted is None:
        raise BadSetting(name="--corrupted", found="nothing", allowed="a text of as many tokens as --source")
    site, head = _receiver(options.pop("receiver"))
    options["minus"] = "corrupted" if options["minus"] is None else options["minus"]
    texts = [(request.source, corrupted), *(() if pairs is None else _pairs(pairs))]
    with engine_for(request, device, "patched copies of the run") as (engine, named):
        effects = [
            engine.ask(Paths(replace(named, source=clean), other, site=site, head=head, **options)) for clean, other in texts
        ]
    show(_mean(effects), as_json, _readable(effects))


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
            # One byte more than is allowed shows that a file is too large, without reading all of it.
            return read_pairs(opened.read(LONGEST_FILE + 1), "--pairs")
    except OSError as error:
        raise BadSetting(name="--pairs", found=str(file), allowed=f"a file that can be read ({error.strerror})") from error


def _mean(effects: list[PathEffects]) -> dict[str, Any]:
    """One result as JSON; of several the means of their effects and estimates, and each pair's own numbers."""
    if len(effects) == 1:
        return effects[0].to_json()
    of_a_pair = ("tokens", "other_text", "clean", "corrupted", "kept", "kept_difference", "kept_log_probability")
    pairs = [{name: value for name, value in pair.to_json().items() if name in of_a_pair} for pair in effects]
    whole = mean_of(effects).to_json()
    return {name: whole[name] for name in ("rank", "paths")} | {"pairs": pairs}


def _readable(effects: list[PathEffects]) -> dict[str, Any]:
    """Logits of each pair, the strongest paths, and what remains if only some are kept, for people."""
    whole = _mean(effects)
    strongest = [
        {"effect": path["effect"], "estimate": path["estimate"]}
        | {"path": f"{_named(path['from'])} → {path['side']} of {_named(path['to'])}"}
        for path in whole["paths"][:STRONGEST]
    ]
    logits = [
        {"logit of": f"{pair.tokens[pair.token]} minus {pair.other_text}", "clean run": pair.clean, "corrupted run": pair.corrupted}
        for pair in effects
    ]
    kept = [
        {"paths kept": int(count), "logit difference": difference, "log-probability": log_probability}
        for pair in effects
        for count, difference, log_probability in zip(pair.kept, pair.kept_difference, pair.kept_log_probability, strict=True)
    ]
    hidden = dict.fromkeys(("tokens", "clean", "corrupted", "pairs", "token", "other", "other_text", "first", "log_probability"))
    return hidden | {"logits": logits, "paths": None, f"strongest of {len(whole['paths']):,} paths": strongest, "kept": kept}


def _named(head: dict[str, Any]) -> str:
    return f"{head['site']} head {head['head']}"
