"""The file of a recording opens as a trace; the command records a program that knows nothing of it; the picture needs no script."""

import base64
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import headlight
from model.errors import phrase
from model.trace.serialization import from_bytes
from model.trace.types import Trace
from viz.i18n import translate
from viz.widgets import recorded_run

ROOT = Path(__file__).parents[2]
SOURCE, TARGET = "Ein Hund läuft .".split(), "<s> a dog runs".split()


def pair() -> nn.Transformer:
    torch.manual_seed(0)
    return nn.Transformer(12, 2, 1, 1, 16, batch_first=True).eval()


def recorded(**options: object) -> headlight.Recording:
    model = pair()
    with torch.no_grad(), headlight.record(model, **options) as recording:  # type: ignore[arg-type]
        model(torch.ones(1, 4, 12), torch.ones(1, 3, 12))
    return recording


@pytest.fixture(scope="module")
def named() -> Trace:
    return from_bytes(recorded(source_tokens=SOURCE, target_tokens=TARGET, keep=["qkv", "context"]).to_bytes())


def test_the_file_is_a_trace_with_modules_strips_and_differences(named: Trace) -> None:
    assert [str(site) for site in named.attention] == ["encoder.0.0.self", "decoder.0.0.self", "decoder.0.0.cross"]
    assert named.module("decoder.0.0.cross") == "decoder.layers.0.multihead_attn"
    cross = named.at("decoder.0.0.cross")
    assert (cross.query_tokens, cross.key_tokens) == ("target", "source")
    assert named.tokens["source"].texts == tuple(SOURCE)
    assert named.recorded is not None
    assert (named.recorded.calls, named.recorded.given, named.recorded.torch) == ("0:1", ("source", "target"), torch.__version__)
    encoder = named.recorded.sites["encoder.0.0.self"]
    assert (encoder.origin, encoder.operation) == ("recomputed", "aten._transformer_encoder_layer_fwd")
    assert encoder.difference is not None
    assert encoder.difference < 1e-5
    assert cross.v is not None
    assert cross.context is not None
    np.testing.assert_allclose(cross.weights @ cross.v, cross.context, atol=1e-5)
    assert named.missing["attention/*/scores"] == phrase("not kept")


def test_without_texts_positions_are_shown_and_it_says_so() -> None:
    trace = from_bytes(recorded().to_bytes())
    assert trace.tokens["source"].texts == ("1", "2", "3", "4")
    assert trace.tokens["target"].texts == ("1", "2", "3")
    assert trace.recorded is not None
    assert trace.recorded.given == ()


def test_texts_that_do_not_fit_are_not_used() -> None:
    trace = from_bytes(recorded(source_tokens=["one", "two"]).to_bytes())
    assert trace.at("encoder.0.0.self").key_tokens == "positions-4"
    (note,) = trace.model["notes"]
    assert str(note) == "source_tokens has 2 tokens; attention layers with a different number of positions show positions instead."
    with translate.speaking("de"):
        assert translate.said(note).startswith("source_tokens hat 2 Tokens")


def test_reasons_of_the_recorder_are_said_in_the_language_of_the_page() -> None:
    """Where two reasons met, or one held a number, pages in German and Chinese said it in English."""
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    with torch.no_grad(), headlight.record(layer, example=7) as recording:
        layer(*[torch.ones(2, 3, 4)] * 3)
        layer(*[torch.ones(3, 3, 4)] * 3)
    trace = from_bytes(recording.to_bytes())
    said = trace.missing["attention/MultiheadAttention"]
    assert str(said) == recording.missing["attention/MultiheadAttention"]
    assert str(said).endswith("example 7 (from 0) was requested, but its batch has 3")
    assert str(said).count("; ") == 1
    with translate.speaking("zh-CN"):
        assert "请求的是第 7 个样本" in translate.said(said)
        assert not re.search("was requested|attention by", " ".join(recorded_run.not_recorded(trace)))


def test_sites_of_other_lengths_have_strips_of_their_own() -> None:
    with headlight.record() as recording:
        for count in (9, 4):
            x = torch.randn(1, 2, count, 3)
            functional.scaled_dot_product_attention(x, x, x)
    trace = from_bytes(recording.to_bytes())
    assert [own.key_tokens for own in trace.attention.values()] == ["source", "positions-4"]


def test_a_long_input_is_read_from_queries_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headlight, "LAZY", 1)
    with headlight.record() as recording:
        x = torch.randn(1, 2, 7, 3)
        functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    (own,) = from_bytes(recording.to_bytes()).attention.values()
    np.testing.assert_allclose(np.asarray(own.weights), recording.sites[0].written(), atol=1e-6)


def test_a_file_that_is_open_elsewhere_is_replaced_and_not_overwritten(tmp_path: Path) -> None:
    path, found = tmp_path / "x.trace.safetensors", recorded()
    path.write_bytes(b"older")
    with path.open("rb") as reader:
        found.save(path)
        assert reader.read() == b"older"
    assert from_bytes(path.read_bytes()).attention
    assert list(tmp_path.iterdir()) == [path]


def test_the_recording_says_what_it_holds() -> None:
    recording = recorded()
    assert "decoder.layers.0.multihead_attn" in repr(recording)
    assert recording["decoder.0.0.self"] is recording["decoder.layers.0.self_attn"]
    with pytest.raises(KeyError, match="There are: encoder"):
        recording["nothing"]


def test_the_picture_is_one_piece_of_html_without_a_script() -> None:
    model = pair()
    model.decoder.layers[0].self_attn._get_name()
    recording = recorded()
    recording.program = "<script>"
    page = recording._repr_html_()
    assert "<script" not in page
    assert "http" not in page
    assert page.count("<img ") == 2 * 3
    images = re.findall(r"data:image/png;base64,([^\"]+)", page)
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in images)
    assert "prefers-color-scheme:dark" in page


PROGRAM = """
import sys
import torch
from torch import nn
torch.manual_seed(0)
layer = nn.MultiheadAttention(8, 2, batch_first=True)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for step in range(3):
    x = torch.ones(2, 3 + step, 8)
    out, _weights = layer(x, x, x)
    out.pow(2).mean().backward()
    optimizer.step()
print(sys.argv, __name__, layer.in_proj_weight.sum().item())
"""


@pytest.mark.slow
def test_the_command_records_a_program_without_a_change_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "headlight.py").write_text((ROOT / "headlight.py").read_text())  # copied beside the program
    (tmp_path / "model.py").write_text("raise ImportError('a module of the same name as ours')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py", "--fast"])
    runpy.run_path("train.py", run_name="__main__")
    alone = capsys.readouterr().out
    command = [sys.executable, "headlight.py", "record", "--out", "x.trace.safetensors", "--calls", "1:3", "--example", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*command, "train.py", "--fast"], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == alone
    assert "2 attention sites in x.trace.safetensors" in done.stderr
    trace = from_bytes((tmp_path / "x.trace.safetensors").read_bytes())
    assert [own.mask.shape for own in trace.attention.values()] == [(4, 4), (5, 5)]
    assert trace.recorded is not None
    assert (trace.recorded.program, trace.recorded.calls, trace.recorded.example) == ("train.py", "1:3", 1)


def test_the_command_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        headlight.main(["record", "--out", "x", "--keep", "everything", "train.py"])
    assert "keep takes qkv and context, not 'everything'" in capsys.readouterr().err
