"""`python -m benchmarks`: measures this machine and prints a table."""

import json
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks import decoding, drawing, enter, living, load, peers, recording, training
from benchmarks.timing import Row, table

PARTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "recording": recording.measure,
    "decoding": decoding.measure,
    "enter": enter.measure,
    "living": living.measure,
    "load": load.measure,
    "drawing": drawing.measure,
    "training": training.measure,
}


@click.command()
@click.option("--repeats", type=click.IntRange(1, 100), default=5, show_default=True, help="turns of which the median is told")
@click.option("--only", type=click.Choice(list(PARTS)), help="measure one part")
@click.option("--json", "out", type=click.Path(path_type=Path), help="write the numbers to this file, too")
def main(repeats: int, only: str | None, out: Path | None) -> None:
    """Measures what the app costs, and what it draws beside what others draw."""
    click.echo(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, medians of {repeats}\n")
    measured: dict[str, list[Row]] = {}
    for name in [only] if only else list(PARTS):
        try:
            measured[name] = list(PARTS[name](repeats))
        except (enter.NoBrowser, peers.NoPeers) as error:
            click.echo(f"{error}\n")
        else:
            click.echo(f"{table(measured[name])}\n")
    if out:
        rows = {name: [asdict(row) for row in part] for name, part in measured.items()}
        out.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
