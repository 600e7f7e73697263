"""Command line: the engine without a browser. `python -m model --help` lists the commands."""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import click
import torch

from model import errors
from model.checkpoints import export as exporting
from model.checkpoints import loader
from model.checkpoints.layouts.given_answers import parse_settings
from model.checkpoints.loader import Runner
from model.cli.explain import Runs, explain, opened
from model.cli.fetch import fetch, list_
from model.cli.figure import draw, draws, save
from model.cli.options import AS_JSON, DEVICE, SETTINGS, asks_for_a_run
from model.cli.program import run_program, write_output
from model.cli.progress import still_working
from model.cli.view import view
from model.engine import environment
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS
from model.errors import BadSetting, in_english
from model.feature import attribute, features
from model.inference.recorded_trace import FROM_FLOAT32
from model.inspection.finite import warning_of_file, warning_of_run
from model.inspection.report import Inspection
from model.requests.request import KEEP, Keep, RunRequest
from model.trace import serialization
from model.trace.types import Trace, chat_of


class Program(click.Group):
    """The commands of this file, and those of features.

    These are found by name when they are wanted: features stand above this program's core, and some of theirs in viz, above the
    engine, where that is installed.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        commands = [item for feature in features() for item in feature.commands.items()]
        of_features = [name for name, path in commands if find_spec(path.partition(".")[0])]
        return sorted([*super().list_commands(ctx), *of_features])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name; None: there is none.

        Raises:
            ClickException: it draws, and what draws is not installed.
        """
        for feature in features():
            if cmd_name in feature.commands:
                try:
                    command: click.Command = attribute(path := feature.commands[cmd_name])
                except ModuleNotFoundError as error:
                    if not path.startswith("viz."):
                        raise
                    raise click.ClickException(f"{cmd_name} needs the app's packages, see requirements-web.txt: {error}") from error
                return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=Program)
def cli() -> None:
    """Runs, explains, inspects, exports, evaluates and trains the Transformers that Headlight shows."""
    if (threads := environment.threads()) is not None:
        torch.set_num_threads(threads)


@cli.command()
@asks_for_a_run
@click.option("--keep", default="", help=f"record more: {','.join(KEEP)}, or all")
@click.option("--out", type=click.Path(path_type=Path), help="the trace file to write: *.trace.safetensors")
@draws
@DEVICE
def run(
    request: RunRequest,
    keep: str,
    out: Path | None,
    archive: Path | None,
    figure: Path | None,
    site: str | None,
    head: int,
    figure_set: tuple[str, ...],
    device: str,
) -> None:
    """Runs CHECKPOINT on one source and prints what it writes; saves the trace, a figure, or everything in one archive."""
    runs = opened(request, device)
    checkpoint, trace = runs(replace(request, keep=_keep(keep)))
    if out is not None:
        write_output(out, serialization.to_bytes(serialization.written_out(trace)))
    if archive is not None:
        save(_with_answers(trace, runs, request, site, head), archive, site, head)
    click.echo(_written(checkpoint, trace))
    if figure is not None:
        draw(trace, figure, site, head, figure_set)
    _warn(warning_of_run(trace))
    if differences := trace.model.get(FROM_FLOAT32):
        differ = ", ".join(f"{name} {'not comparable' if value is None else f'{value:.1e}'}" for name, value in differences.items())
        click.echo(f"{trace.model['dtype']}, differs from float32 by at most: {differ}")


@cli.command()
@click.argument("checkpoint")
@SETTINGS
@AS_JSON
def inspect(checkpoint: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Says what CHECKPOINT is and why, what its weights file contains, and which questions it leaves open."""
    with still_working(f"Inspecting {checkpoint}"):
        report = loader.inspect(loader.locate(checkpoint, CHECKPOINTS), parse_settings(settings))
    if as_json:
        click.echo(json.dumps(json.loads(json.dumps(asdict(report)), object_hook=in_english), ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(report)))
    _warn(warning_of_file(report))
    if report.problem:
        raise errors.from_json(report.problem)


@cli.command()
@click.argument("checkpoint")
@SETTINGS
@click.option("--out", type=click.Path(path_type=Path), required=True, help="the folder to write; it must not be there yet")
def export(checkpoint: str, settings: tuple[str, ...], out: Path) -> None:
    """Writes CHECKPOINT, with all answers, as a folder of our own: its questions are answered once."""
    on = best_device("cpu")
    with still_working(f"Opening {checkpoint} and packing its weights"):
        files = exporting.files(loader.load(loader.locate(checkpoint, CHECKPOINTS), parse_settings(settings), on))
    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise BadSetting(name="--out", found=str(out), allowed=f"a folder that is not there yet ({error.strerror})") from error
    for name, data in files.items():
        write_output(out / name, data)
    click.echo(f"{out} runs as it is: python -m model run {out} --source … --out FILE")


def _lines(report: Inspection) -> Iterator[str]:
    """An inspection report as lines of text."""
    yield str(report.what)
    yield from (f"for it: {phrase}" for phrase in report.in_favour)
    yield from (f"against it: {phrase}" for phrase in report.against)
    yield from map(str, report.notes)
    for question in report.ask:
        answer = question.answer or ("MUST BE ANSWERED" if question.needed else "not answered")
        origin = f" from {question.origin}" if question.origin else ""
        yield f"--set {question.name}={answer}{origin}  ({question.allowed}) {question.consequence}"
    yield from _diagnoses(report)
    yield from _stacks(report)
    yield _counted(report)
    for tensor in report.tensors:
        bad = "".join(f"  {count:,} {what}" for count, what in ((tensor.nan, "NaN"), (tensor.infinite, "infinite")) if count)
        kind = tensor.dtype if tensor.bits is None else f"{tensor.dtype} ({tensor.bits:g} bits)"
        yield f"{tensor.status:10}  {kind:8}  {'×'.join(map(str, tensor.shape)):>12}  {tensor.name}{bad}"
    yield from (f"missing     {name}" for name in report.missing)


def _stacks(report: Inspection) -> Iterator[str]:
    """The size of each stack as a line of text."""
    for name in ("encoder", "decoder"):
        if stack := report.spec.get(name):
            ids = f", ids {stack['vocab']:,}" if stack["vocab"] else ""
            heads = f"layers × heads {stack['layers']} × {stack['attention']['heads']}"
            yield f"{name}: {heads}, width {stack['d_model']:,}{ids}, positions up to {stack['max_positions']:,}"


def _counted(report: Inspection) -> str:
    """The size of a file and of its network, which is not known while a needed answer is open."""
    if report.spec:
        return f"{report.parameters:,} parameters, {len(report.tensors)} tensors, {len(report.missing)} missing"
    numbers = sum(math.prod(tensor.shape) for tensor in report.tensors)
    return f"{numbers:,} numbers in {len(report.tensors)} tensors; the network is not known yet, nor are its parameters"


def _diagnoses(report: Inspection) -> Iterator[str]:
    """Diagnostics of a file's numbers as lines of text."""
    if fresh := report.freshness:
        draws = ", ".join(f"{count} {draw}" for draw, count in fresh.draws.items())
        yield (
            f"{'looks untrained' if fresh.untrained else 'looks trained'}: {fresh.untouched_norms} of {fresh.norms} norms are as "
            f"at the beginning, {fresh.fresh_matrices} of {fresh.matrices} matrices are like an initial draw"
            + (f" ({draws})" if draws else "")
        )
    yield from (f"same numbers: {' = '.join(names)}" for names in report.tied)
    for note in report.heads:
        twin = f" and head {note.other}: cosine of {note.product} products {note.value:.4f}"
        yield f"{note.kind}: {note.site} head {note.head}{twin if note.other is not None else f': norm {note.value:.3g}'}"
    yield from (f"{part.stack} {part.kind.replace('_', ' ')}: {part.parameters:,} parameters" for part in report.parts)


def _warn(sentence: str) -> None:
    """Prints a warning to standard error."""
    if sentence:
        click.echo(f"Warning: {sentence}", err=True)


def _written(checkpoint: Runner, trace: Trace) -> str:
    """The reply of a conversation, or the text of the last strip, without special tokens; of features, names of their positions."""
    if (chat := chat_of(trace)) is not None:
        return chat.reply
    strip = trace.tokens.get("target", trace.tokens["source"])
    tokenizer = checkpoint.tokenizers.get(strip.name)
    return " ".join(strip.texts) if tokenizer is None else tokenizer.text(strip.ids)


def _with_answers(trace: Trace, runs: Runs, request: RunRequest, site: str | None, head: int) -> Trace:
    """A trace with the answers that features add to an archive."""
    for feature in features():
        if feature.saved:
            trace = attribute(feature.saved)(trace, runs, request, site, head)
    return trace


def _keep(names: str) -> tuple[Keep, ...]:
    return KEEP if names == "all" else tuple(filter(None, names.split(",")))  # type: ignore[arg-type]  # RunRequest checks the names


cli.add_command(explain)
cli.add_command(fetch)
cli.add_command(list_)
cli.add_command(view)


def main(arguments: list[str] | None = None, program: str = "python -m model") -> int:
    """Runs the command line, started as `program`, and returns the exit status, 0 for success. Errors are one line."""
    return run_program(cli, program, arguments)


if __name__ == "__main__":
    sys.exit(main())
