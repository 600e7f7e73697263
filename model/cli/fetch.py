"""`python -m model fetch` and `list`: known models onto this machine, and what can be run here."""

import json
from dataclasses import asdict

import click

from model import known_models
from model.cli.options import AS_JSON
from model.engine.local import CHECKPOINTS
from model.engine.model_list import CheckpointStore


@click.command()
@click.argument("name")
@AS_JSON
def fetch(name: str, as_json: bool) -> None:
    """Downloads the known model NAME (`list` says which there are) and prints its folder; what is there already is kept."""
    known = known_models.catalogue().get(name)
    if known is not None and name not in known_models.fetched():
        click.echo(f"Downloading {known.title}: {known.bytes:,} bytes, license {known.license} …", err=True)
    place = known_models.fetch(name)
    found = {"name": name, "folder": str(place), "bytes": sum(file.stat().st_size for file in place.rglob("*") if file.is_file())}
    click.echo(json.dumps(found) if as_json else f"{found['folder']} ({found['bytes']:,} bytes): python -m model view {name}")


@click.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """Prints the names of the models that can be run here, then the known ones that `fetch` can bring."""
    there, fetched = CheckpointStore(CHECKPOINTS), known_models.fetched()
    away = [asdict(known) for name, known in known_models.catalogue().items() if name not in fetched]
    if as_json:
        click.echo(json.dumps({"here": [{"name": name, "path": str(there.path(name))} for name in there.names()], "fetch": away}))
        return
    for name in there.names():
        click.echo(f"{name:24}  {there.path(name)}")
    for known in away:
        click.echo(f"{known['name']:24}  python -m model fetch {known['name']}: {known['about']} ({known['bytes'] / 1e6:.0f} MB)")
