"""SmolLM2 135M as a GGUF file: what runs is what the transformers library itself reads from the same file."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from model.checkpoints import loader
from model.checkpoints.loader import Runner
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.score_parts import score_sum
from model.features.circuit.sums import Why, Writes
from model.huggingface.loaded import Foreign
from model.inference.run import run
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import chat_of
from tests import chats, known
from tests.chats import LONG, ONE

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

CPU = torch.device("cpu")
TEXT = "The capital of France is"
TURN = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
TEXTS = (
    TEXT,
    "Gravity is caused by 1234567 things,  and it's\n\n\tnot “magic”.",
    "Ein Hund läuft über die Straße – schön! 数学很难。 🎉👩‍🚀",
    "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n",
    " leading and trailing ",
)


@pytest.fixture(scope="module")
def ours() -> Runner:
    return loader.load(known.smollm2(), {}, CPU)


@pytest.fixture(scope="module")
def library() -> Any:
    path = known.smollm2()
    return AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager", local_files_only=True
    ).eval()


@pytest.fixture(scope="module")
def own() -> Any:
    """The library's tokenizer."""
    path = known.smollm2()
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)


@torch.inference_mode()
def test_maps_logits_and_text_are_those_of_the_library(ours: Runner, library: Any) -> None:
    trace = run(ours, RunRequest("smollm2", source=TEXT, decoding=Decoding(max_length=20)), CPU, "cpu")
    strip = trace.tokens["source"]
    prompt = torch.tensor([strip.ids[: len(strip.ids) - len(trace.steps)]])
    written = library.generate(prompt, do_sample=False, max_new_tokens=20, attention_mask=torch.ones_like(prompt))[0].tolist()
    assert list(strip.ids) == written
    read = library(torch.tensor([written[:-1]]), output_attentions=True)
    assert len(trace.attention) == 30
    for attention, expected in zip(trace.attention.values(), read.attentions, strict=True):
        assert np.abs(attention.weights - expected[0].numpy()).max() < 1e-4
    assert trace.logits is not None
    assert np.abs(trace.logits - read.logits[0].numpy()).max() < 1e-4


@torch.inference_mode()
def test_each_weight_is_that_of_the_library(ours: Runner, library: Any) -> None:
    assert isinstance(ours, Foreign)
    found, expected = ours.network.library.state_dict(), library.state_dict()
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_texts_become_the_ids_of_the_library(ours: Runner, own: Any) -> None:
    for text in TEXTS:
        assert list(ours.tokenizers["source"].encode(text, "source").ids) == own.encode(text), text


def test_scores_and_logits_are_sums_of_what_ran(ours: Runner) -> None:
    """The example of docs/why.md: which head wrote *Paris*."""
    request = RunRequest("smollm2", source=TEXT, decoding=Decoding(max_length=2), keep=KEEP)
    trace = run(ours, request, CPU, "cpu")
    paris = logit_sum(ours.network, trace, Writes(request, 0, "runner-up"))
    assert paris.agrees
    assert (paris.text, paris.minus_text) == (" Paris", " the")
    part, key = np.unravel_index(np.nanargmax(paris.keys), paris.keys.shape)
    assert (str(paris.parts[part]), int(key)) == ("decoder.0.23.self head 4", 3)
    assert paris.logit == pytest.approx(2.4827, abs=2e-3)
    assert paris.keys[part, key] == pytest.approx(3.159, abs=2e-3)
    assert paris.values[part] == pytest.approx(3.155, abs=2e-3)
    chat = f"<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n{TURN}"
    request = replace(request, source=chat)  # the logits of the first two tokens differ by 0.08, and both are about 25
    trace = run(ours, request, CPU, "cpu")
    assert all(logit_sum(ours.network, trace, Writes(request, 0, minus)).agrees for minus in (None, "runner-up"))
    for layer, *cell in ((0, 0, 1, 0), (11, 5, 3, 2), (29, 8, 4, 4)):
        assert score_sum(ours.network, trace, Why(request, f"decoder.0.{layer}.self", *cell)).agrees


@torch.inference_mode()
def test_conversations_are_read_and_answered_as_in_the_library(ours: Runner, library: Any, own: Any) -> None:
    for turns in (ONE, LONG):
        trace = run(ours, RunRequest("smollm2", chats.chat(*turns), decoding=Decoding(max_length=10)), CPU, "cpu")
        prompt = own.apply_chat_template(chats.messages(*turns), add_generation_prompt=True)["input_ids"]
        ids = torch.tensor([prompt])
        written = library.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=10)[0].tolist()
        assert list(trace.tokens["source"].ids) == written
        found = chat_of(trace)
        assert found is not None
        assert found.reply == own.decode(written[len(prompt) :], skip_special_tokens=True)
