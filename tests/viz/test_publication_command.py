"""`python -m viz figure` and `python -m model run --figure`: a picture of a run, from a terminal."""

import io
import subprocess
from pathlib import Path

import click
import pypdf
import pytest

from model.cli import figure as handed_over
from model.errors import BadSetting
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


@pytest.mark.slow
def test_a_run_hands_its_trace_to_the_program_that_draws(tmp_path: Path) -> None:
    out = tmp_path / "head.svg"
    caption = handed_over.draw(translation(), out, "decoder.0.2.cross", 4, ("colors=grayscale", "title=no"))
    assert caption.startswith("Cross-attention, layer 3, head 5. Model: German → English. German: “zwei junge hunde")
    assert "zwei" in out.read_text(encoding="utf-8")
    with pytest.raises(click.ClickException, match=r"“nothing” is not accepted\. Allowed: one of head, lines, atlas"):
        handed_over.draw(translation(), out, None, 0, ("picture=nothing",))


def test_the_options_of_a_figure_reach_the_program_that_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ran(command: list[object], **_how: object) -> subprocess.CompletedProcess[str]:
        asked.extend(map(str, command))
        return subprocess.CompletedProcess([], 0, "a caption\n", "")

    monkeypatch.setattr(subprocess, "run", ran)
    assert handed_over.draw(translation(), tmp_path / "x.pdf", None, 2, ("width=174", "labels=no")) == "a caption"
    assert asked[1:4] == ["-m", "viz", "figure"]
    assert asked[5:] == [f"--out={tmp_path / 'x.pdf'}", "--head=2", "--width=174", "--no-labels"]
    with pytest.raises(BadSetting, match="--figure-set"):
        handed_over.draw(translation(), tmp_path / "x.pdf", None, 2, ("wide",))
