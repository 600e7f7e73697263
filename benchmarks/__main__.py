"""`python -m benchmarks`: measures this machine and prints tables, at the end that of the aims."""

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path

import click
from playwright.sync_api import Error

from benchmarks import (
    aims,
    app_resources,
    batching,
    browsers,
    decoding,
    devices,
    drawing,
    enter,
    following,
    giving_way,
    growth,
    handling,
    images,
    known,
    live,
    load,
    memory,
    peers,
    programs,
    recording,
    sound,
    survey,
    training,
    whatif,
    why,
)
from benchmarks.timing import Row, line, table

PARTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "recording": recording.measure,
    "decoding": decoding.measure,
    "batching": batching.measure,
    "devices": devices.measure,
    "enter": enter.measure,
    "live": live.measure,
    "living": app_resources.measure,
    "memory": memory.measure,
    "load": load.measure,
    "giving": giving_way.measure,
    "class": following.measure,
    "drawing": drawing.measure,
    "handling": handling.measure,
    "growth": growth.measure,
    "training": training.measure,
    "whatif": whatif.measure,
    "programs": programs.measure,
    "known": known.measure,
    "images": images.measure,
    "survey": survey.measure,
    "why": why.measure,
    "sound": sound.measure,
}


@click.command()
@click.option("--repeats", type=click.IntRange(1, 100), default=5, show_default=True, help="turns of which the median is told")
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True, help="measure this part alone; more than once: these")
@click.option("--json", "out", type=click.Path(path_type=Path), help="write the numbers to this file, too")
@click.option("--markdown", type=click.Path(path_type=Path), help="write what is printed to this file, too")
def main(repeats: int, only: tuple[str, ...], out: Path | None, markdown: Path | None) -> None:
    """Measures what the app costs, and what it draws beside what others draw."""
    measured: dict[str, list[Row]] = {}
    said: list[str] = []

    def say(text: str) -> None:
        click.echo(f"{text}\n")
        said.append(text)

    say(f"{machine()}, medians of {repeats}.")
    for name in only or PARTS:
        began, found = time.monotonic(), measured.setdefault(name, [])
        try:
            for row in PARTS[name](repeats):
                found.append(row)
                click.echo(f"{name}, after {time.monotonic() - began:.0f} s: {line(row)}", err=True)
        except (browsers.NoBrowser, peers.NoPeers) as error:
            say(str(error))
        except (peers.TooMuch, Error) as error:  # one part that a machine is too busy for does not end the others
            say(f"The part {name} ended early: {str(error).splitlines()[0]}.")
        if found:
            say(f"**{name}**, {time.monotonic() - began:.0f} s\n\n{table(found)}")
    say(aims.table([row for rows in measured.values() for row in rows]))
    if markdown:
        markdown.write_text("\n\n".join(said) + "\n", encoding="utf-8")
    if out:
        rows = {name: [asdict(row) for row in part] for name, part in measured.items()}
        out.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def machine() -> str:
    """What the numbers are numbers of: the day, the machine, and the programs that matter."""
    told = [f"{date.today():%-d %B %Y}", f"{processor()}, {os.cpu_count()} cores", platform.platform()]
    told += [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in ("torch", "streamlit", "numpy"))]
    try:
        asked = subprocess.run([browsers.chromium(), "--version"], capture_output=True, text=True, timeout=60, check=False)
    except browsers.NoBrowser:
        return ", ".join([*told, "no browser"])
    return ", ".join([*told, re.sub(r" built on.*", "", asked.stdout.strip())])


def processor() -> str:
    """The name that the processor gives itself; where it gives none, its kind."""
    about = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", about.read_text(encoding="utf-8")) if about.is_file() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
