"""`python -m model view`: the app starts on loopback alone, and the file is open where the printed address leads."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from click.testing import CliRunner

from model.__main__ import main
from model.cli import view
from model.engine import open_engine
from model.engine.api import Models, Run
from model.engine.sent_files import opened_name, vocabulary_name
from model.errors import NotACheckpoint
from model.requests.request import RunRequest
from tests import opened
from tests.patience import HANG_S
from tests.reference import GOLDEN, SETTINGS

ROOT = Path(__file__).parents[2]
FILE = GOLDEN / "000_tiny_a.pt"
WORDS = "\n".join(["<unk>", "<pad>", "<sos>", "<eos>", *(f"wort{i}" for i in range(24))])


APP = """
import http.server, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *said): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""
ANOTHER_APP = f"""
import sys
from model.__main__ import main
from model.cli import view
view.command = lambda port: [sys.executable, "-S", "-c", {APP!r}, str(port)]
sys.exit(main(sys.argv[1:]))
"""
"""The command with an app that starts at once."""


@pytest.mark.parametrize(("program", "whole"), [(["-m", "model"], True), (["-c", ANOTHER_APP], False)], ids=["ctrl-c", "command"])
def test_the_app_starts_opens_the_file_and_ends_with_ctrl_c_and_with_its_command(program: list[str], whole: bool) -> None:
    command = [sys.executable, *program, "view", str(FILE), "--set", "n_heads=2", "--no-browser"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as app:
        try:
            assert app.stdout
            address = next(line.strip() for line in app.stdout if "/checkpoint?" in line)
            parts = urlsplit(address)
            assert parts.hostname == "127.0.0.1"
            assert parse_qs(parts.query) == {"model": [opened_name(FILE)], "set": ["n_heads=2"]}
            assert httpx.get(address, trust_env=False).is_success
        finally:
            os.killpg(app.pid, signal.SIGINT) if whole else app.terminate()
        assert app.wait(HANG_S) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(address, trust_env=False)


def test_what_the_app_is_told_to_open_is_open_under_the_name_in_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    for name, value in view.environment(FILE, tmp_path / "words.txt").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HEADLIGHT_CHECKPOINTS", str(tmp_path))
    told = SETTINGS["000_tiny_a"] | {"source_vocab": vocabulary_name(WORDS.encode())}
    named = view.query(opened_name(FILE), told)
    assert f"source_vocab={told['source_vocab']}" in named["set"]
    engine = open_engine()
    trace = engine.ask(Run(RunRequest(named["model"], "wort3", (2, 3), settings=tuple(told.items()))))
    assert trace.tokens["source"].texts == ("<sos>", "wort3", "<eos>")
    monkeypatch.setenv("HEADLIGHT_OPEN", str(tmp_path / "nowhere.pt"))
    with pytest.raises(NotACheckpoint, match=r"nowhere\.pt was not found\. Check the path\."):
        open_engine()


def test_it_listens_on_loopback_and_computes_here_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    monkeypatch.setenv("HEADLIGHT_ENGINE", "http://elsewhere:1")
    told = view.environment(FILE)
    assert (told["HEADLIGHT_PUBLIC"], told["HEADLIGHT_ENGINE"], told["HEADLIGHT_OPEN"]) == ("", "", str(FILE))
    assert "--server.address=127.0.0.1" in view.command(8501)


def test_traces_are_opened_on_explore_and_bad_ones_start_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.trace.safetensors").write_bytes(opened.GREEDY.read_bytes())
    started: list[str] = []

    class App:
        def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
            started.append(env["HEADLIGHT_OPEN"])

        def wait(self) -> int:
            return 0

        terminate = wait

    monkeypatch.setattr(subprocess, "Popen", App)
    monkeypatch.setattr(view, "_answers", lambda app, port: True)
    paths = [tmp_path / f"{name}.trace.safetensors" for name in ("a", "b")]
    for asked in (tmp_path, paths[0]):
        told = CliRunner().invoke(view.view, [str(asked), "--no-browser", "--port", "8555"])
        assert told.output.strip() == f"http://127.0.0.1:8555/?model={opened_name(paths[0])}"
    assert started == [os.pathsep.join(map(str, paths)), str(paths[0])]
    monkeypatch.setenv("HEADLIGHT_OPEN", started[0])
    monkeypatch.setenv("HEADLIGHT_CHECKPOINTS", str(tmp_path / "none"))
    assert [info.name for info in open_engine().ask(Models()).models] == [opened_name(path) for path in paths]
    paths[1].write_bytes(b"nonsense")
    assert main(["view", str(tmp_path), "--no-browser"]) == 1
    assert len(started) == 2
    (tmp_path / "weights.pt").write_bytes(FILE.read_bytes())
    assert view.traces_at(tmp_path) == [], "a folder of weights is opened as one"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.pt"], "nowhere.pt is missing. Needed: model.safetensors, spec.json and tokenizer.json, or"),
        (
            [str(FILE), "--set", "source_vocab=nowhere.txt"],
            "source_vocab: “nowhere.txt” is not accepted. Allowed: a file that can be read",
        ),
        ([str(FILE), "--set", "source_vocab=w.exe"], "Allowed: a file that ends in .txt, .json, .vocab, .model, .spm"),
    ],
)
def test_what_cannot_be_opened_is_one_line_and_starts_nothing(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_arguments, **_more: pytest.fail("the app was started"))
    assert main(["view", *arguments]) == 1
    assert sentence in capsys.readouterr().err
