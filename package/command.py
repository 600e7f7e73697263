"""The command `headlight`: starts the app, or does what `python -m model` and `headlight.py` do.

Help and errors come before anything large is imported, since Streamlit and torch take seconds.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

TREE = Path(__file__).parent / "app"
"""app.py with its packages `model` and `viz`, which only the processes of this command can import by these names."""

HELP = """Usage: headlight [COMMAND] [OPTIONS]

Shows what every attention head of a Transformer computes.

  headlight, headlight app [--port N] [--host ADDRESS]
                          starts the app
  headlight view FILE_OR_FOLDER
                          starts it with a checkpoint or a trace that is opened
  headlight record --out FILE PROGRAM ARGS
                          runs a PyTorch program and records its attention

Commands for models and traces, each with --help:

  {commands}

In Python: import headlight; help(headlight)"""

COMMANDS = (
    "archive",
    "circuit",
    "evaluate",
    "explain",
    "export",
    "fetch",
    "figure",
    "head",
    "inspect",
    "lecture",
    "list",
    "matters",
    "paths",
    "run",
    "serve",
    "survey",
    "train",
    "view",
    "why",
    "writes",
)
"""The commands of `python -m model`; named here so that the help needs no torch."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status, 0 for success."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    first = words[0] if words else "app"
    if first in ("-h", "--help", "help"):
        print(HELP.format(commands=" ".join(COMMANDS)))
        return 0
    if first == "record":
        return run("torch", "headlight.recorder", words)
    if first == "app" or first.startswith("--"):
        return start_app(words[first == "app" :])
    if first not in COMMANDS:
        print(f"There is no command {first!r}. There are: app, record, {', '.join(COMMANDS)}; headlight --help.", file=sys.stderr)
        return 2
    sys.path.insert(0, str(TREE))
    return run("click", "model.__main__", words, "headlight")


def run(needed: str, module: str, *given: object) -> int:
    """Runs the function `main` of a module; without the package that it needs it says what to install."""
    if find_spec(needed) is None:
        extra = "torch" if needed == "torch" else "'headlight-attention[app]'"
        print(f"This needs packages that are not installed here, {needed} first: pip install {extra}", file=sys.stderr)
        return 1
    return import_module(module).main(*given) or 0


def start_app(words: list[str]) -> int:
    """Starts the app; other options are those of `streamlit run`, such as --server.headless=true."""
    parser = argparse.ArgumentParser(prog="headlight app", description="Starts the app.", allow_abbrev=False)
    parser.add_argument("--port", type=int, help="the port to listen on; default: 8501")
    parser.add_argument("--host", help="the address to listen on; default: this machine alone, 127.0.0.1")
    options, others = parser.parse_known_args(words)
    given = {"server.port": options.port, "server.address": options.host}
    flags = [f"--{name}={value}" for name, value in given.items() if value is not None]
    return run("streamlit", "streamlit.web.cli", ["run", str(TREE / "app.py"), *flags, *others])
