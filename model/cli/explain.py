"""`python -m model explain`: one cell of a run, calculated again; and how commands run a request."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

import click

from model.checkpoints import loader
from model.checkpoints.hub.cache import pinned
from model.checkpoints.loader import Runner, lowered
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.cli.telling import going_on, told
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS
from model.inference.cell import explain_cell
from model.inference.run import run_in
from model.spec.request import KEEP, RunRequest
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
    checkpoint, trace = traced(replace(request, keep=KEEP), device)
    found = explain_cell(checkpoint.network, trace, site, head, query, key)
    click.echo(json.dumps(found.to_json()) if as_json else found.in_words())


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
