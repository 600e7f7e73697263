"""`python -m model evaluate` and `train`."""

import json
from pathlib import Path
from typing import get_args

import click

from model.checkpoints import loader
from model.cli.options import AS_JSON, BEAM_SIZE, DEVICE
from model.cli.progress import still_working
from model.engine.environment import best_device
from model.engine.local import CHECKPOINTS
from model.requests.request import Decoding, Method

DATA = click.option("--data", type=click.Path(path_type=Path), help="folder of the corpus; digits to be reversed need none")


@click.command()
@click.argument("checkpoint")
@DATA
@click.option("--split", required=True, help="part of the corpus, such as test_2016_flickr")
@click.option("--decode", type=click.Choice(get_args(Method)), default="beam", help="how targets are written  [default: beam]")
@BEAM_SIZE
@AS_JSON
@DEVICE
def evaluate(checkpoint: str, data: Path | None, split: str, decode: Method, beam_size: int, as_json: bool, device: str) -> None:
    """Prints the loss and perplexity of CHECKPOINT on one split of its corpus, and how good it is what it writes."""
    from model.features.training.evaluate import evaluate as scores_of

    on = best_device(device)
    with still_working(f"Opening {checkpoint}"):
        network = loader.load(loader.locate(checkpoint, CHECKPOINTS), {}, on)
    scores = scores_of(network, data, split, Decoding(decode, beam_size=beam_size), on)
    if as_json:
        click.echo(json.dumps(scores))
    else:
        click.echo(" · ".join(f"{name} {round(score, 4):,}" for name, score in scores.items()))


@click.command()
@click.argument("recipe")
@DATA
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="folder of the checkpoint; training goes on from what it holds"
)
@click.option("--snapshots", type=click.Choice(["log"]), help="keep weights on the way, too, ever more rarely")
@DEVICE
def train(recipe: str, data: Path | None, out: Path, snapshots: str | None, device: str) -> None:
    """Trains RECIPE, the name of a bundled recipe or a TOML file; can be killed and goes on where its last epoch ended."""
    from model.features.training import recipes
    from model.features.training.train import train as train_recipe

    trained = train_recipe(recipes.load(recipe), data, out, best_device(device), snapshots=snapshots is not None)
    click.echo(f"The best weights are in {trained}.")
