"""`python -m model fetch` and `list`: models onto this machine, from the catalogue or the Hub, and what can be run here."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from model import known_models
from model.checkpoints.hub import cache, fetching
from model.checkpoints.hub.fetching import OnBytes
from model.checkpoints.hub.names import COMMIT, HubName, parsed
from model.checkpoints.hub.plans import GB, Plan, Shape
from model.cli.options import AS_JSON
from model.engine.local import CHECKPOINTS
from model.engine.model_list import CheckpointStore
from model.errors import UnknownModel


@click.command()
@click.argument("name")
@AS_JSON
def fetch(name: str, as_json: bool) -> None:
    """Downloads NAME[@REVISION]: a model of the Hub, the address of its page, or a name of the catalogue (`list` says which).

    What is there already is kept; a broken download goes on where it was.
    """
    fetched = _from_catalogue(name) if name in known_models.catalogue() else _from_hub(name)
    fetched["bytes"] = sum(file.stat().st_size for file in Path(fetched["folder"]).rglob("*") if file.is_file())
    run = f"{fetched['name']}: python -m model view {fetched['name']}"
    click.echo(json.dumps(fetched) if as_json else f"{fetched['folder']} ({fetched['bytes']:,} bytes)\n{run}")


def _from_catalogue(name: str) -> dict[str, Any]:
    """Where a known model is, after its download if it was not there."""
    known = known_models.catalogue()[name]
    if name not in known_models.fetched():
        click.echo(f"Downloading {known.title}: {known.bytes:,} bytes, license {known.license} …", err=True)
    with _bar() as count:
        folder = known_models.fetch(name, count)
    return {"name": name, "folder": str(folder)}


def _from_hub(text: str) -> dict[str, Any]:
    """Where a model of the Hub is, after its download if the cache did not hold it."""
    if (name := parsed(text)) is None:
        raise UnknownModel(asked=text, there=", ".join([*known_models.catalogue(), *cache.repos()]))
    path = cache.find(name) if not name.revision or COMMIT.fullmatch(name.revision) else None
    if path is None:
        plan = fetching.plan(name)
        path = cache.find(HubName(plan.title, plan.commit))
        if path is None:
            click.echo(f"Downloading {_told(plan)}", err=True)
        with _bar() as count:
            path = fetching.fetch(plan, count)
    pinned = cache.name_of(path) or name
    return {"name": str(pinned), "commit": pinned.revision, "folder": str(path)}


def _told(plan: Plan) -> str:
    """A plan as one line of text."""
    shape, room = plan.shape, f"{plan.memory_there / GB:,.1f} GB of memory and {plan.disk_there / GB:,.1f} GB of disk are there"
    size = f"{len(plan.files)} files, {plan.bytes:,} bytes ({plan.missing:,} are missing)"
    return (
        f"{plan.title}, commit {plan.commit[:12]}: {size}, license {plan.license or 'unknown'}, {_size(shape)}. It runs in "
        f"{plan.memory / GB:,.1f} GB; {room}."
    )


def _size(shape: Shape) -> str:
    """Layers × heads and number type, as far as they are known."""
    parts = [shape.architecture, f"{shape.layers} × {shape.heads}" if shape.layers and shape.heads else "", shape.dtype]
    return ", ".join(filter(None, parts))


@contextmanager
def _bar() -> Iterator[OnBytes]:
    """A bar of bytes on a terminal, with the time left."""
    with tqdm(unit="B", unit_scale=True, disable=None, leave=False) as bar:

        def count(done: int, of: int) -> None:
            bar.total = of
            bar.update(done - bar.n)

        yield count


@click.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """Prints the models that can be run here: those of the folder, fetched ones, the Hub's cache; then what `fetch` can bring."""
    store, fetched, models = CheckpointStore(CHECKPOINTS), known_models.fetched(), cache.models()
    here = [{"name": name, "path": str(store.path(name))} for name in store.names()]
    away = [known for name, known in known_models.catalogue().items() if name not in fetched]
    if as_json:
        cached = [
            {"name": str(model.name), "path": str(model.path), "bytes": model.bytes, "refs": model.refs, **asdict(model.shape)}
            for model in models
        ]
        brings = [{**asdict(model), "about": str(model.about)} for model in away]
        click.echo(json.dumps({"here": here, "cache": cached, "fetch": brings}))
        return
    for entry in here:
        click.echo(f"{entry['name']:24}  {entry['path']}")
    for model in models:
        refs = f" ({', '.join(model.refs)})" if model.refs else ""
        click.echo(f"{model.name!s:24}  {_size(model.shape)}, {model.bytes / 1e6:,.0f} MB{refs}")
    for known in away:
        about = f"{known.about}, {known.layers} × {known.heads} heads, {known.bytes / 1e6:.0f} MB"
        click.echo(f"{known.name:24}  python -m model fetch {known.name}: {about}")
