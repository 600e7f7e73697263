"""`python -m model view`: the app on this machine, with a file or folder opened by its path."""

import os
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import click
import httpx

from model.checkpoints import loader
from model.checkpoints.hub.cache import pinned
from model.checkpoints.hub.names import PREFIX
from model.checkpoints.layouts.given_answers import WEIGHT_FILES, parse_settings
from model.cli.options import SETTINGS
from model.engine.local import CHECKPOINTS
from model.engine.sent_files import FILE_SETTINGS, OPEN_VARIABLE, VOCABULARY_ENDINGS, opened_name, vocabulary_name
from model.errors import BadSetting, MissingSetting
from model.trace.trace_files import ENDING, is_trace_file, read_path

ROOT = Path(__file__).parents[2]
HOME = "127.0.0.1"
FIRST_PORT, LAST_PORT = 8501, 8600
PATIENCE = 120
"""Most seconds for starting the app."""


@click.command()
@click.argument("checkpoint")
@SETTINGS
@click.option(
    "--port", type=click.IntRange(1, 65535), help=f"the port to listen on [default: the first free one from {FIRST_PORT}]"
)
@click.option("--no-browser", is_flag=True, help="print the address and open no browser")
def view(checkpoint: str, settings: tuple[str, ...], port: int | None, no_browser: bool) -> None:
    """Starts the app, for this machine alone, with CHECKPOINT, a trace or a folder of traces; ends with Ctrl+C."""
    path, given = loader.locate(checkpoint, CHECKPOINTS), parse_settings(settings)
    words = {name: Path(value) for name, value in given.items() if name in FILE_SETTINGS}
    given |= {name: vocabulary_name(_content(name, file)) for name, file in words.items()}
    port = port or _free_port()
    recorded = traces_at(path)
    by_name = pinned(checkpoint, path)
    opened = recorded or ([] if by_name.startswith(PREFIX) else [path])
    page = "" if recorded else "checkpoint"
    address = f"http://{HOME}:{port}/{page}?{urlencode(query(by_name if not opened else opened_name(opened[0]), given))}"
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl+C: the app must not outlive this process
    app = subprocess.Popen(command(port), cwd=ROOT, env=environment(*opened, *words.values()))
    try:
        if _answers(app, port):
            click.echo(address)
            if not no_browser:
                webbrowser.open(address)
        status = app.wait()
    except KeyboardInterrupt:
        status = 0
    finally:
        app.terminate()
        app.wait()
        signal.signal(signal.SIGTERM, before)
    if status:
        raise click.ClickException(f"The app ended with the status {status}; what it said stands above.")


def traces_at(path: Path) -> list[Path]:
    """The trace at `path`, or the traces of a folder that holds nothing else to open; empty: it is no place of traces.

    Raises:
        BadTrace: one of them cannot be drawn.
    """
    if path.is_dir():
        others = any(file.is_dir() or (file.suffix in WEIGHT_FILES and not file.name.endswith(ENDING)) for file in path.iterdir())
        traces = [] if others else sorted(file for file in path.iterdir() if file.name.endswith(ENDING))
    else:
        traces = [path] if is_trace_file(path) else []
    for file in traces:
        read_path(file)
    return traces


def command(port: int) -> list[str]:
    """The command that starts the app, on loopback only. Its own greeting has an address without the file that is opened."""
    options = {"server.address": HOME, "server.port": port, "server.headless": "true", "logger.hideWelcomeMessage": "true"}
    return [sys.executable, "-m", "streamlit", "run", "app.py", *(f"--{name}={value}" for name, value in options.items())]


def environment(*paths: Path) -> dict[str, str]:
    """Environment variables for an app that runs networks itself, is not public and opens `paths`."""
    return os.environ | {
        OPEN_VARIABLE: os.pathsep.join(str(path.resolve()) for path in paths),
        "HEADLIGHT_PUBLIC": "",
        "HEADLIGHT_ENGINE": "",
    }


def query(model: str, given: Mapping[str, str]) -> dict[str, str]:
    """The URL parameters of the page for a model."""
    settings = " ".join(f"{name}={value}" for name, value in sorted(given.items()))
    return {"model": model} | ({"set": settings} if settings else {})


def _content(name: str, file: Path) -> bytes:
    """The bytes of a vocabulary.

    Raises:
        BadSetting: it cannot be read, or does not end like a vocabulary.
    """
    if file.suffix.lower() not in VOCABULARY_ENDINGS:
        raise BadSetting(name=name, found=str(file), allowed=f"a file that ends in {', '.join(VOCABULARY_ENDINGS)}")
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadSetting(name=name, found=str(file), allowed=f"a file that can be read ({type(error).__name__})") from error


def _free_port() -> int:
    """The first free port.

    Raises:
        MissingSetting: there is none.
    """
    for port in range(FIRST_PORT, LAST_PORT):
        with socket.socket() as tried:
            if tried.connect_ex((HOME, port)):
                return port
    raise MissingSetting(name="--port", needed=f"one, because all ports from {FIRST_PORT} to {LAST_PORT - 1} are taken")


def _answers(app: subprocess.Popen[bytes], port: int) -> bool:
    """Waits until the app answers; False: it ended, or took too long."""
    for _attempt in range(PATIENCE * 4):
        if app.poll() is not None:
            return False
        with suppress(httpx.TransportError):
            if httpx.get(f"http://{HOME}:{port}/_stcore/health", trust_env=False).is_success:
                return True
        time.sleep(0.25)
    return False
