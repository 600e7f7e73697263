"""Networks of sounds: prepared and computed as the library does both, and refused what their folders do not say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

from model.__main__ import cli
from model.checkpoints import loader
from model.engine.api import Describe, Receive, Run
from model.engine.local import LocalEngine
from model.errors import BadSetting, BadSound, HeadlightError, UnknownSound, WireError
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignListener
from model.inference import sounds
from model.inference.run import run
from model.requests.edits import Forbid, Silence
from model.requests.request import Decoding, RunRequest
from model.trace.checks import check
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Trace
from tests.sounds import ENGLISH, GERMAN, NO_TIMES, RATE, START, TRANSCRIBE, extractor, saved_listener, sound_file, tones, wav

CPU = torch.device("cpu")
CLOSE = 1e-5
TARGET = (START, ENGLISH, TRANSCRIBE, NO_TIMES, 260, 261, 262)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shelf")
    saved_listener(path / "short")
    saved_listener(path / "whole", seconds=30)
    saved_listener(path / "english", several=False)
    return path


def own(folder: Path) -> Any:
    """The library's own network of a folder."""
    from transformers import WhisperForConditionalGeneration

    network: nn.Module = WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="eager")
    return network.eval()


def of_the_library(folder: Path, samples: np.ndarray, ids: tuple[int, ...]) -> Any:
    """What the library returns of a sound that it prepares itself, and of the ids that its decoder is fed."""
    seconds = 30 if folder.name == "whole" else 2
    features = extractor(seconds)(samples, sampling_rate=RATE, return_tensors="pt")["input_features"]
    with torch.inference_mode():
        return features, own(folder)(
            input_features=features,
            decoder_input_ids=torch.tensor([ids]),
            output_attentions=True,
            output_hidden_states=True,
            use_cache=False,
        )


def same_maps(trace: Trace, wanted: Any) -> None:
    for stack, kind, maps in (
        ("encoder", "self", wanted.encoder_attentions),
        ("decoder", "self", wanted.decoder_attentions),
        ("decoder", "cross", wanted.cross_attentions),
    ):
        sites = trace.of(stack, kind)  # type: ignore[arg-type]
        assert len(sites) == len(maps)
        for site, map_ in zip(sites, maps, strict=True):
            np.testing.assert_allclose(np.asarray(site.weights), map_[0].numpy(), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", ["short", "whole"])
def test_maps_states_and_logits_are_the_librarys(engine: LocalEngine, shelf: Path, name: str) -> None:
    features, wanted = of_the_library(shelf / name, tones()[:, 0], TARGET)
    source = engine.ask(Receive(sound_file(tones(), subtype="FLOAT"), "hello.wav"))
    trace = engine.ask(Run(RunRequest(name, source, TARGET, keep=("hidden",))))
    same_maps(trace, wanted)
    for layer, state in enumerate(wanted.encoder_hidden_states[1:-1]):
        np.testing.assert_allclose(trace.hidden[f"encoder.0.{layer}"], state[0].numpy(), rtol=0, atol=1e-4)
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, wanted.logits[0].numpy(), rtol=0, atol=1e-4)
    assert trace.spectrogram is not None
    np.testing.assert_array_equal(trace.spectrogram, features[0].numpy())
    assert trace.sound is not None
    np.testing.assert_allclose(trace.sound, tones()[:, 0], rtol=0, atol=1e-6)


def test_positions_are_named_by_their_seconds(engine: LocalEngine) -> None:
    trace = engine.ask(Run(RunRequest("short", engine.ask(Receive(wav(1.3), "a.wav")), TARGET)))
    tokens = trace.tokens["source"]
    assert tokens.texts[:3] == ("0.00 s", "0.02 s", "0.04 s")
    assert tokens.texts[-1] == "1.98 s"
    assert tokens.special == (False,) * 65 + (True,) * 35  # the silence that fills it up
    assert tokens.ids == ()


def test_a_decode_is_the_librarys(engine: LocalEngine, shelf: Path) -> None:
    source = engine.ask(Receive(sound_file(tones(), subtype="FLOAT"), "a.wav"))
    trace = engine.ask(Run(RunRequest("short", source, decoding=Decoding(max_length=12))))
    features = extractor(2)(tones()[:, 0], sampling_rate=RATE, return_tensors="pt")["input_features"]
    written = own(shelf / "short").generate(features, max_new_tokens=9)
    ids = trace.tokens["target"].ids
    assert ids[0] == START
    assert ids[1] in (ENGLISH, GERMAN)
    assert ids[2:4] == (TRANSCRIBE, NO_TIMES)
    assert list(ids[4:]) == written[0].tolist()
    detected = own(shelf / "short").detect_language(input_features=features)
    assert ids[1] == int(detected[0])
    assert {candidate.id for candidate in trace.steps[0].candidates} - {ENGLISH, GERMAN}  # all that it finds likely are shown


def test_a_language_can_be_given(engine: LocalEngine) -> None:
    source = engine.ask(Receive(wav(), "a.wav"))
    for language in (ENGLISH, GERMAN):
        trace = engine.ask(Run(RunRequest("short", source, decoding=Decoding(max_length=6), begin=(language,))))
        assert trace.tokens["target"].ids[:4] == (START, language, TRANSCRIBE, NO_TIMES)


def test_a_network_of_one_language_begins_without_one(engine: LocalEngine) -> None:
    for method in ("greedy", "beam"):
        decoding = Decoding(method=method, max_length=5, beam_size=3)
        trace = engine.ask(Run(RunRequest("english", engine.ask(Receive(wav(), "a.wav")), decoding=decoding)))
        assert trace.tokens["target"].ids[:2] == (START, NO_TIMES)


def test_a_moment_can_be_hidden_and_a_head_silenced(engine: LocalEngine) -> None:
    source = engine.ask(Receive(wav(), "a.wav"))
    hidden = engine.ask(Run(RunRequest("short", source, TARGET, edits=(Forbid(key=(30,), site="decoder.0.1.cross"),))))
    assert not hidden.at("decoder.0.1.cross").weights[:, :, 30].any()
    silenced = engine.ask(
        Run(RunRequest("short", source, TARGET, keep=("context",), edits=(Silence(site="encoder.0.0.self", head=(1,)),)))
    )
    context = silenced.at("encoder.0.0.self").context
    assert context is not None
    assert not context[1].any()


def test_a_long_sound_is_read_up_to_its_end_and_says_so(engine: LocalEngine) -> None:
    trace = engine.ask(Run(RunRequest("short", engine.ask(Receive(wav(3.5), "a.wav")), TARGET)))
    assert any("lasts 3.5 s, of which the first 2 s were read" in str(note) for note in trace.model["notes"])
    assert not any(trace.tokens["source"].special)
    assert trace.sound is not None
    assert len(trace.sound) == 2 * RATE


def test_several_channels_are_averaged_and_said(engine: LocalEngine) -> None:
    source = engine.ask(Receive(sound_file(tones(channels=8), kind="WAVEX", subtype="FLOAT"), "a.wav"))
    trace = engine.ask(Run(RunRequest("short", source, TARGET)))
    assert any("holds 8 channels, whose mean was read" in str(note) for note in trace.model["notes"])
    assert trace.sound is not None
    np.testing.assert_allclose(trace.sound, tones(channels=8).mean(axis=1), rtol=0, atol=1e-6)


def test_random_features_and_what_a_sound_cannot_have(engine: LocalEngine) -> None:
    assert len(engine.ask(Run(RunRequest("short", "100 3", TARGET))).tokens["source"]) == 100
    with pytest.raises(BadSetting, match="99 rows, and this network reads exactly 100 rows of 160 numbers"):
        engine.ask(Run(RunRequest("short", "99 3", TARGET)))
    source = engine.ask(Receive(wav(), "a.wav"))
    with pytest.raises(BadSetting, match="masks no part of a sound"):
        engine.ask(Run(RunRequest("short", source, TARGET, source_valid=3)))
    with pytest.raises(UnknownSound, match=r"a link names a sound but does not contain it"):
        engine.ask(Run(RunRequest("short", "sound-0123456789abcdef", TARGET)))
    with pytest.raises(BadSound, match=r"hello\.wav cannot be read"):
        engine.ask(Receive(b"no sound", "hello.wav"))


def test_a_trace_keeps_its_sound(engine: LocalEngine) -> None:
    trace = engine.ask(Run(RunRequest("short", engine.ask(Receive(wav(), "a.wav")), TARGET)))
    again = from_bytes(to_bytes(trace))
    check(again)
    np.testing.assert_array_equal(again.sound, trace.sound)
    np.testing.assert_array_equal(again.spectrogram, trace.spectrogram)
    with pytest.raises(WireError, match="spectrogram is not of the size"):
        check(replace(trace, spectrogram=np.zeros((80, 3), np.float32)))
    with pytest.raises(WireError, match="sound is not of a length"):
        check(replace(trace, sound=np.zeros(3 * RATE, np.float32)))
    with pytest.raises(WireError, match="sound holds NaN"):
        check(replace(trace, sound=np.full(100, np.nan, np.float32)))
    strip = trace.tokens["source"]
    with pytest.raises(WireError, match="not the moments of its sound"):
        check(replace(trace, tokens={**trace.tokens, "source": replace(strip, texts=strip.texts[::-1])}))
    model = {**trace.model, "spec": {**trace.model["spec"], "encoder": {**trace.model["spec"]["encoder"], "sound": None}}}
    with pytest.raises(WireError, match="its network reads none"):
        check(replace(trace, model=model))


WHISPER = {"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"the folder has no preprocessor_config\.json"),
        ("{", r"preprocessor_config\.json cannot be read"),
        (json.dumps({"feature_extractor_type": "Wav2Vec2FeatureExtractor"}), "Wav2Vec2FeatureExtractor"),
        (json.dumps(WHISPER | {"n_fft": 10**9}), r"n_fft in .* is 1000000000; allowed are whole numbers from 1 to 16,384"),
        (json.dumps(WHISPER | {"chunk_length": 30}), "the shape 80 × 3000, but the network reads 80 × 200"),
    ],
)
def test_a_folder_that_does_not_say_how_opens_and_refuses_sounds(tmp_path: Path, text: str | None, said: str) -> None:
    saved_listener(tmp_path / "w")
    settings = tmp_path / "w" / "preprocessor_config.json"
    settings.unlink() if text is None else settings.write_text(text)
    found = loader.load(tmp_path / "w", {}, CPU)
    assert isinstance(found, Foreign)
    assert isinstance(found.network, ForeignListener)
    with pytest.raises(HeadlightError, match=said):
        run(found, RunRequest("w", sounds.keep(wav(), "a.wav"), TARGET), CPU, "CPU")
    assert run(found, RunRequest("w", "100 1", TARGET), CPU, "CPU").tokens["source"].texts[:2] == ("1", "2")


def test_settings_of_a_whole_processor_are_read(tmp_path: Path) -> None:
    saved_listener(tmp_path / "w")
    own_settings = tmp_path / "w" / "preprocessor_config.json"
    (tmp_path / "w" / "processor_config.json").write_text(json.dumps({"feature_extractor": json.loads(own_settings.read_text())}))
    own_settings.unlink()
    found = loader.load(tmp_path / "w", {}, CPU)
    assert isinstance(found, Foreign)
    trace = run(found, RunRequest("w", sounds.keep(wav(), "a.wav"), TARGET), CPU, "CPU")
    assert trace.spectrogram is not None
    assert trace.spectrogram.shape == (80, 200)


def test_the_command_line_reads_a_sound(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "hello.flac").write_bytes(sound_file(tones(), kind="FLAC"))
    out = tmp_path / "hello.trace.safetensors"
    ids = ",".join(map(str, TARGET))
    arguments = ["run", str(shelf / "short"), "--sound", str(tmp_path / "hello.flac"), "--target-ids", ids, "--out", str(out)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    heard = from_bytes(out.read_bytes())
    assert heard.sound is not None
    _features, wanted = of_the_library(shelf / "short", heard.sound, TARGET)
    same_maps(heard, wanted)
    both = CliRunner().invoke(cli, ["run", str(shelf / "short"), "--sound", str(tmp_path / "hello.flac"), "--source", "100 0"])
    assert isinstance(both.exception, BadSetting)


def test_a_list_of_models_says_what_it_reads(engine: LocalEngine) -> None:
    info = engine.ask(Describe("whole"))
    assert info.problem == {}
    assert info.spec["encoder"]["sound"] == {"positions": 1500, "bands": 80, "joined": 2, "hop": 160, "rate": RATE}
    assert info.max_source == 1500
