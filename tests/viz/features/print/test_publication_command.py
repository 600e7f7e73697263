"""`python -m viz figure` and `python -m model run --figure`: a picture of a run, from a terminal."""

import io
import sys
from pathlib import Path

import click
import pypdf
import pytest

from model.__main__ import cli
from model.__main__ import main as program
from model.cli import figure as handed_over
from model.errors import BadSetting, HeadlightError
from model.trace.serialization import to_bytes
from tests.traces import translation
from viz.__main__ import main


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.trace.safetensors"
    path.write_bytes(to_bytes(translation()))
    return path


def test_a_picture_of_a_trace_file_is_written_and_its_caption_printed(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace.with_name("lines.pdf")
    given = ["--picture=lines", "--site=decoder.0.1.cross", "--head=3", "--width=174", "--font-size=8", "--link=https://x.example"]
    assert main(["figure", str(trace), f"--out={out}", *given]) == 0
    text = pypdf.PdfReader(io.BytesIO(out.read_bytes())).pages[0].extract_text()
    assert "Cross-attention, layer 2, head 4" in text
    said = capsys.readouterr().out
    assert said.startswith("Cross-attention, layer 2, head 4. Model: German → English.")
    assert said.rstrip().endswith("https://x.example")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--out=x.gif"], "one that ends in svg, pdf, png"),
        (["--out=x.svg", "--picture=tree"], "one of head, lines, atlas"),
        (["--out=x.svg", "--width=2"], "a number from 40 to 400"),
        (["--out=x.svg", "--head=99"], "head"),
        (["--out=x.svg", "--site=nowhere"], "stack.pass.layer.kind"),
        (["--out=nowhere/x.svg"], "a path that can be written"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(
    trace: Path, given: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace.parent)
    assert main(["figure", str(trace), *given]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    assert main(["figure", str(tmp_path / "no.trace.safetensors"), "--out=x.svg"]) == 1


def test_a_run_hands_its_trace_and_options_to_the_command_that_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "head.svg"
    with click.Context(cli):
        handed_over.draw(translation(), out, "decoder.0.2.cross", 4, ("width=174", "title=no"))
        assert capsys.readouterr().out.startswith("Cross-attention, layer 3, head 5. Model: German → English. German: “zwei junge")
        drawn = out.read_text(encoding="utf-8")
        assert 'width="174mm"' in drawn
        assert "zwei" in drawn
        handed_over.draw(translation(), out, "decoder.0.2.cross", 4, ("width=174",))
        assert out.read_text(encoding="utf-8").count("head 5") == drawn.count("head 5") + 1, "title=no leaves the title out"
        with pytest.raises(HeadlightError, match=r"“nothing” is not accepted\. Allowed: one of head, lines, atlas"):
            handed_over.draw(translation(), out, None, 0, ("picture=nothing",))
        for setting in ("wide", "=174"):
            with pytest.raises(BadSetting, match="--figure-set"):
                handed_over.draw(translation(), out, None, 0, (setting,))


def test_without_the_packages_that_draw_the_engine_still_has_its_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "viz", None)
    monkeypatch.setitem(sys.modules, "viz.__main__", None)
    monkeypatch.setitem(sys.modules, "viz.features.lectures.command", None)
    assert program(["lecture", "check", "a.md"]) == 2
    assert capsys.readouterr().err.startswith("lecture needs the app's packages, see requirements-web.txt: ")
    assert program(["run", "--help"]) == 0
