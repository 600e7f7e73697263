"""The command line: the same engine without a browser. `python -m model --help` lists what it does."""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import click

from model import exporting, finding, wire
from model.cells import explain_cell
from model.engine.base import KEEP, Decoding, Given, Keep, Method, RunRequest
from model.engine.local import CHECKPOINTS, best_device
from model.engine.serving import serve
from model.errors import BadSetting, HeadlightError
from model.features import FORM, read_features
from model.inspection import Inspection
from model.layouts.telling import parse_settings
from model.runner import Runner
from model.running import run as run_request
from model.trace import Trace

DEVICE = click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="where to compute")
DATA = click.option("--data", type=click.Path(path_type=Path), help="folder of the corpus; digits to be reversed need none")
SETTINGS = click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="what the file does not tell; repeatable")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON object")
RUN_OPTIONS = (
    click.argument("checkpoint"),
    click.option("--source", help="the source text"),
    click.option("--source-ids", help="the source as ids, taken as given: 2,5,3"),
    click.option("--source-features", help=f"the source of a network without an embedding: {FORM}"),
    click.option("--source-valid", type=int, help="source positions that are no padding [default: those that are not the pad id]"),
    click.option("--source-pad-to", type=int, help="pad the source to this many positions"),
    click.option("--target", help="a target text to be fed instead of decoding"),
    click.option("--target-ids", help="the decoder's input as ids, start token first: 2,7"),
    click.option("--target-features", help="the target of a network without an embedding, of the same form"),
    click.option("--decode", type=click.Choice(get_args(Method)), default="greedy", help="how the target is written"),
    click.option("--max-length", type=int, default=Decoding.max_length, show_default=True, help="tokens written at most"),
    click.option(
        "--beam-size", type=int, default=Decoding.beam_size, show_default=True, help="beginnings that beam search follows"
    ),
    click.option(
        "--hypothesis",
        type=int,
        default=Decoding.hypothesis,
        show_default=True,
        help="which of beam search's to show; 0: the best",
    ),
    click.option("--temperature", type=float, default=Decoding.temperature, show_default=True, help="of sampling"),
    click.option("--top-k", type=int, default=Decoding.top_k, show_default=True, help="of sampling; 0: all"),
    click.option("--top-p", type=float, default=Decoding.top_p, show_default=True, help="of sampling; 1: all"),
    click.option("--seed", type=int, default=Decoding.seed, show_default=True, help="of sampling"),
    SETTINGS,
)


def asks_for_a_run(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the argument CHECKPOINT and the options that describe a run; the command gets a RunRequest that keeps nothing more."""

    @functools.wraps(command)
    def with_request(
        checkpoint: str,
        source: str | None,
        source_ids: str | None,
        source_features: str | None,
        source_valid: int | None,
        source_pad_to: int | None,
        target: str | None,
        target_ids: str | None,
        target_features: str | None,
        decode: Method,
        max_length: int,
        beam_size: int,
        hypothesis: int,
        temperature: float,
        top_k: int,
        top_p: float,
        seed: int,
        settings: tuple[str, ...],
        **others: Any,
    ) -> None:
        read = _given("source", source, source_ids, source_features)
        if read is None:
            raise BadSetting(name="the source", found="left out", allowed="given (--source, --source-ids or --source-features)")
        request = RunRequest(
            model=checkpoint,
            source=read,
            target=_given("target", target, target_ids, target_features),
            decoding=Decoding(decode, max_length, temperature, top_k, top_p, seed, beam_size, hypothesis),
            source_valid=source_valid,
            source_pad_to=source_pad_to,
            settings=tuple(parse_settings(settings).items()),
        )
        command(request=request, **others)

    described: Callable[..., None] = with_request
    for option in reversed(RUN_OPTIONS):
        described = option(described)
    return described


@click.group()
def cli() -> None:
    """Runs, explains, inspects, exports, evaluates and trains the Transformers that Headlight shows."""


@cli.command()
@asks_for_a_run
@click.option("--keep", default="", help=f"record more: {','.join(KEEP)}, or all")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="the trace file to write: *.trace.safetensors")
@DEVICE
def run(request: RunRequest, keep: str, out: Path, device: str) -> None:
    """Runs CHECKPOINT on one source and writes the trace of it."""
    trace = _run(replace(request, keep=_keep(keep)), device)[1]
    _write(out, wire.to_bytes(trace.written_out()))
    strip = trace.tokens.get("target", trace.tokens["source"])
    click.echo(" ".join(strip.texts))


@cli.command()
@asks_for_a_run
@click.option("--site", required=True, help="the attention site: stack.pass.layer.kind, such as decoder.0.2.cross")
@click.option("--head", type=int, required=True, help="the head, counted from 0")
@click.option("--query", type=int, required=True, help="the query row, counted from 0")
@click.option("--key", type=int, required=True, help="the key, counted from 0")
@AS_JSON
@DEVICE
def explain(request: RunRequest, site: str, head: int, query: int, key: int, as_json: bool, device: str) -> None:
    """Recomputes one attention weight of a run of CHECKPOINT in float64, and compares it with what ran."""
    checkpoint, trace = _run(replace(request, keep=KEEP), device)
    found = explain_cell(checkpoint.network, trace, site, head, query, key)
    click.echo(json.dumps(found.to_json()) if as_json else found.in_words())


def _run(request: RunRequest, device: str) -> tuple[Runner, Trace]:
    on = best_device(device)
    checkpoint = finding.load(finding.locate(request.model, CHECKPOINTS), dict(request.settings), on)
    return checkpoint, run_request(checkpoint, request, on, str(on))


@cli.command()
@click.argument("checkpoint")
@SETTINGS
@AS_JSON
def inspect(checkpoint: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Says what CHECKPOINT is and why, what its weights file holds, and what must be told."""
    found = finding.inspect(finding.locate(checkpoint, CHECKPOINTS), parse_settings(settings))
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(found)))


@cli.command()
@click.argument("checkpoint")
@SETTINGS
@click.option("--out", type=click.Path(path_type=Path), required=True, help="the folder to write; it must not be there yet")
def export(checkpoint: str, settings: tuple[str, ...], out: Path) -> None:
    """Writes CHECKPOINT, with all answers, as a folder of our own: its questions are answered once."""
    on = best_device("cpu")
    found = exporting.files(finding.load(finding.locate(checkpoint, CHECKPOINTS), parse_settings(settings), on))
    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise BadSetting(name="--out", found=str(out), allowed=f"a folder that is not there yet ({error.strerror})") from error
    for name, data in found.items():
        _write(out / name, data)
    click.echo(f"{out} runs as it is: python -m model run {out} --source … --out FILE")


@cli.command()
@click.argument("checkpoint")
@DATA
@click.option("--split", required=True, help="part of the corpus, such as test_2016_flickr")
@click.option("--decode", type=click.Choice(get_args(Method)), default="beam", help="how targets are written  [default: beam]")
@click.option("--beam-size", type=int, default=Decoding.beam_size, show_default=True, help="beginnings that beam search follows")
@AS_JSON
@DEVICE
def evaluate(checkpoint: str, data: Path | None, split: str, decode: Method, beam_size: int, as_json: bool, device: str) -> None:
    """Prints the loss and perplexity of CHECKPOINT on one split of its corpus, and how good it is what it writes."""
    from model.training.evaluate import evaluate as scores_of

    on = best_device(device)
    network = finding.load(finding.locate(checkpoint, CHECKPOINTS), {}, on)
    scores = scores_of(network, data, split, Decoding(decode, beam_size=beam_size), on)
    if as_json:
        click.echo(json.dumps(scores))
    else:
        click.echo(" · ".join(f"{name} {round(score, 4):,}" for name, score in scores.items()))


@cli.command()
@click.argument("recipe")
@DATA
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="folder of the checkpoint; training goes on from what it holds"
)
@click.option("--snapshots", type=click.Choice(["log"]), help="keep weights on the way, too, ever more rarely")
@DEVICE
def train(recipe: str, data: Path | None, out: Path, snapshots: str | None, device: str) -> None:
    """Trains RECIPE, the name of a bundled recipe or a TOML file; can be killed and goes on where its last epoch ended."""
    from model.training import recipes
    from model.training.train import train as train_recipe

    trained = train_recipe(recipes.load(recipe), data, out, best_device(device), snapshots=snapshots is not None)
    click.echo(f"The best weights are in {trained}.")


def _lines(found: Inspection) -> Iterator[str]:
    """An inspection for people."""
    yield found.what
    yield from (f"for it: {phrase}" for phrase in found.in_favour)
    yield from (f"against it: {phrase}" for phrase in found.against)
    yield from found.notes
    for asked in found.ask:
        answer = asked.answer or ("MUST BE TOLD" if asked.needed else "not told")
        yield f"--set {asked.name}={answer}  ({asked.allowed}) {asked.consequence}"
    yield from _said_by_numbers(found)
    yield f"{found.parameters:,} parameters, {len(found.tensors)} tensors, {len(found.missing)} missing"
    for tensor in found.tensors:
        bad = "".join(f"  {count:,} {what}" for count, what in ((tensor.nan, "NaN"), (tensor.infinite, "infinite")) if count)
        yield f"{tensor.status:10}  {tensor.dtype:8}  {'×'.join(map(str, tensor.shape)):>12}  {tensor.name}{bad}"
    yield from (f"missing     {name}" for name in found.missing)


def _said_by_numbers(found: Inspection) -> Iterator[str]:
    """What the numbers of a file say, for people."""
    if fresh := found.freshness:
        draws = ", ".join(f"{count} {draw}" for draw, count in fresh.draws.items())
        yield (
            f"{'looks untrained' if fresh.untrained else 'looks trained'}: {fresh.untouched_norms} of {fresh.norms} norms are as "
            f"at the beginning, {fresh.fresh_matrices} of {fresh.matrices} matrices are like an initial draw"
            + (f" ({draws})" if draws else "")
        )
    yield from (f"same numbers: {' = '.join(names)}" for names in found.tied)
    for note in found.heads:
        twin = f" and head {note.other}: cosine of {note.product} products {note.value:.4f}"
        yield f"{note.kind}: {note.site} head {note.head}{twin if note.other is not None else f': norm {note.value:.3g}'}"
    yield from (f"{part.stack} {part.kind.replace('_', ' ')}: {part.parameters:,} parameters" for part in found.parts)


def _given(name: str, text: str | None, ids: str | None, features: str | None) -> Given | None:
    """What one of the two inputs is; at most one form of it is given."""
    forms = [form for form in (text, ids, features) if form is not None]
    if len(forms) > 1:
        raise BadSetting(name=f"--{name}", found="several forms", allowed=f"one of --{name}, --{name}-ids and --{name}-features")
    if features is not None:
        return read_features(f"--{name}-features", features)
    if ids is None:
        return text
    try:
        return tuple(int(part) for part in ids.split(","))
    except ValueError as error:
        raise BadSetting(name=f"--{name}-ids", found=ids, allowed="whole numbers with commas between, such as 2,5,3") from error


def _keep(names: str) -> tuple[Keep, ...]:
    return KEEP if names == "all" else tuple(filter(None, names.split(",")))  # type: ignore[arg-type]  # RunRequest checks the names


def _write(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all."""
    fresh = path.with_name(path.name + ".part")
    try:
        fresh.write_bytes(data)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise BadSetting(name="--out", found=str(path), allowed=f"a path that can be written ({error.strerror})") from error


cli.add_command(serve)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line. Returns the exit status: 0 only for success; an error is one line on standard error."""
    try:
        cli.main(arguments, prog_name="python -m model", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return 2
    except click.ClickException as error:
        click.echo(" ".join(error.format_message().split()), err=True)
        return 2
    except click.Abort:
        click.echo("Stopped.", err=True)
        return 130
    except HeadlightError as error:
        click.echo(str(error), err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
