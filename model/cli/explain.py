"""`python -m model explain`: one cell of a run, calculated again; and how commands run a request."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

import click

from model.checkpoints import loader
from model.checkpoints.hub.cache import pinned
from model.checkpoints.loader import Runner, lowered
from model.cli.answer import show
from model.cli.asking import engine_for
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.cli.progress import progress_of, still_working
from model.engine.api import Explain
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS
from model.inference.run import run_in
from model.requests.request import RunRequest
from model.trace.progress import Progress
from model.trace.types import Trace


def names_a_cell(command: Callable[..., None]) -> Callable[..., None]:
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
@names_a_cell
@AS_JSON
@DEVICE
def explain(request: RunRequest, site: str, head: int, query: int, key: int, as_json: bool, device: str) -> None:
    """Recomputes one attention weight of a run of CHECKPOINT in float64, and compares it with what ran."""
    with engine_for(request, device, "parts") as (engine, named):
        cell = engine.ask(Explain(named, site, head, query, key))
    show(cell.to_json(), as_json, {"moved": float(cell.moved[key])})


Runs: TypeAlias = Callable[[RunRequest], tuple[Runner, Trace]]
"""Runs requests about a model that is open, and says what ran them."""


def opened(request: RunRequest, device: str) -> Runs:
    """Opens the model of a request, with its settings and its precision, for runs that differ in other things."""
    on = best_device(device)
    with still_working(f"Opening {request.model}"):
        path = loader.locate(request.model, CHECKPOINTS)
        runner = loader.load(path, dict(request.settings), on, precision=request.precision)
    lower = lowered(runner, request.precision)

    def runs(request: RunRequest) -> tuple[Runner, Trace]:
        request = replace(request, model=pinned(request.model, path))
        with progress_of("tokens that it may write") as count, ExitStack() as reading:
            reading.enter_context(still_working(f"Running {request.model}"))

            def report(make: Callable[[], Progress]) -> None:
                if (progress := make()).done:  # a translator reports once more, before its first token
                    reading.close()  # from here on the tokens tell how far it is
                    count(progress.done, progress.most)

            return lower, run_in(runner, lower, request, on, str(on), report=report)

    return runs
