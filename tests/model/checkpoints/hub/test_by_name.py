"""A model by its name, wherever a model is named: after `fetch`, without the Hub."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from model.__main__ import cli
from model.checkpoints import loader
from model.checkpoints.hub import cache
from model.checkpoints.hub.names import HubName
from model.cli import view as viewing
from model.engine.api import Describe, Explain, Fetch, Find, Inspect, Meaning, Offered, Run
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import CannotRun, HubAway, MissingFile, NotFetched, UnknownModel
from model.requests.request import Decoding, RunRequest
from model.trace import serialization
from model.trace.progress import LISTENER, Progress
from tests.hub_server import COMMIT, Hub, Repo, serving
from tests.model.checkpoints.hub.conftest import NAME, use

pytestmark = pytest.mark.slow

PINNED = f"hub:{NAME}@{COMMIT}"
TEXT = "the dog dogs"


def said(*arguments: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


LECTURE = f"""---
title: A model by its name
language: en
minutes: 5
models: hub:gpt2
---
# One

view: /explore?model=hub:gpt2&text={TEXT.replace(" ", "+")}
"""


def test_fetched_models_run_by_name_after_the_hub_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: dict[str, bytes]
) -> None:
    with serving(Hub({NAME: Repo(dict(tiny))}, old={"gpt2": NAME})) as hub:
        use(hub, tmp_path / "home", monkeypatch)
        told = json.loads(said("fetch", "gpt2", "--json"))
    folder = Path(told["folder"])
    assert told == {"name": PINNED, "commit": COMMIT, "folder": str(folder), "bytes": sum(map(len, contents_of(folder).values()))}
    gone = CliRunner().invoke(cli, ["fetch", "another/model"])
    assert isinstance(gone.exception, HubAway), "nobody answers from here on"
    assert json.loads(said("fetch", PINNED, "--json")) == told, "what is there is kept"
    for name in ("gpt2", "hub:gpt2", NAME, f"{NAME}@main", f"hub:{NAME}", PINNED):
        assert loader.locate(name, CHECKPOINTS) == folder
    out = tmp_path / "run.trace.safetensors"
    by_name = said("run", "hub:gpt2", "--source", TEXT, "--max-length", "3", "--out", str(out))
    assert by_name == said("run", str(folder), "--source", TEXT, "--max-length", "3")
    trace = serialization.from_bytes(out.read_bytes())
    assert (trace.request["model"], trace.model["name"]) == (PINNED, PINNED)
    assert "gpt2" in said("inspect", PINNED)
    cell = ("--site", "decoder.0.1.self", "--head", "2", "--query", "2", "--key", "1")
    found = json.loads(said("explain", "gpt2", "--source", TEXT, "--max-length", "2", *cell, "--json"))
    assert found["site"] == "decoder.0.1.self"
    assert json.loads(said("matters", "gpt2", "--source", TEXT, "--max-length", "2", "--json"))
    listed = json.loads(said("list", "--json"))["cache"]
    assert [(each["name"], each["layers"], each["heads"]) for each in listed] == [(PINNED, 2, 3)]
    assert PINNED in said("list")
    lecture = tmp_path / "by-name.md"
    lecture.write_text(LECTURE, encoding="utf-8")
    assert "problems 0" in said("lecture", "check", str(lecture))
    addresses: list[str] = []
    monkeypatch.setattr(viewing, "_answers", lambda app, port: True)
    monkeypatch.setattr(viewing, "command", lambda port: ["true"])
    addresses.append(said("view", "gpt2", "--no-browser", "--port", "8599"))
    assert addresses == [f"http://127.0.0.1:8599/checkpoint?model=hub%3Aopenai-community%2Fgpt2%40{COMMIT}\n"]


def contents_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_not_here_is_told_with_the_command_that_brings_it(hub: Hub) -> None:
    with pytest.raises(NotFetched, match="python -m model fetch other/model"):
        loader.locate("hub:other/model", CHECKPOINTS)
    with pytest.raises(MissingFile, match="python -m model fetch"):
        loader.locate("other/model", CHECKPOINTS)
    done = CliRunner().invoke(cli, ["fetch", "not a name"])
    assert isinstance(done.exception, UnknownModel)
    hub.repos[NAME].files.pop("config.json")
    assert isinstance(CliRunner().invoke(cli, ["fetch", NAME]).exception, CannotRun)
    assert not hub.asked[1:], "nothing was asked of names that are none"


def test_an_engine_finds_fetches_and_runs_by_name(hub: Hub, tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path / "none", torch.device("cpu"))
    try:
        assert (engine.ask(Offered()).mode, engine.ask(Offered()).cached) == ("ask", ())
        found = engine.ask(Find(f"{hub.url}/{NAME}/tree/main"))
        assert found.plan is not None
        assert not found.model
        heard: list[Progress] = []
        LISTENER.set(heard.append)
        assert engine.ask(Fetch(found.plan)) == PINNED
        LISTENER.set(None)
        assert (heard[-1].done, heard[-1].most) == (found.plan.bytes, found.plan.bytes)
        (offer,) = engine.ask(Offered()).cached
        assert (offer.name, offer.title, offer.layers, offer.heads, offer.about) == (PINNED, NAME, 2, 3, "main")
        hub.fails, hub.asked = {"/": 503}, []
        assert engine.ask(Find("gpt2")) == Meaning(model=PINNED)
        info = engine.ask(Describe("hub:gpt2"))
        assert (info.name, info.title, info.problem) == (PINNED, NAME, {})
        request = RunRequest(f"hub:{NAME}", TEXT, decoding=Decoding(max_length=2))
        trace = engine.ask(Run(request))
        assert trace.request["model"] == PINNED
        assert engine.ask(Run(RunRequest(PINNED, TEXT, decoding=Decoding(max_length=2)))) is trace
        assert engine.ask(Inspect("hub:gpt2")).parameters == info.parameters
        assert engine.ask(Explain(request, "decoder.0.1.self", 2, 2, 1)).site == "decoder.0.1.self"
        assert not hub.asked
        place = cache.locate(HubName(NAME))
        (place / "model.safetensors").unlink()
        with pytest.raises(NotFetched):
            engine.ask(Describe(PINNED))
    finally:
        engine.scheduler.close()
