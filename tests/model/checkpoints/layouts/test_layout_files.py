"""Layouts that a reader tells: the file, its check by shapes, and the run, compared with the same network under its own names."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from model.checkpoints.layouts.loading import inspect, load
from model.engine.api import Describe, Inspect, Receive, Run
from model.engine.local import LocalEngine
from model.errors import BadLayoutFile, BadSetting, OpenQuestions
from model.inference.run import run
from model.requests.layout_file import BEHIND, GROUPED, LayoutFile, mistakes, parse, pattern_of, roles
from model.requests.request import Decoding, RunRequest
from model.transformer.stacks import CausalLM, EncoderDecoder
from tests.layout_files import PLAIN, ROTARY, foreign
from tests.llama_files import IDS, Llama, litgpt_state, meta_state
from tests.networks import VARIANTS, network

CPU = torch.device("cpu")
TOLD = {
    PLAIN: "n_heads=2 norm_order=post norm=standard norm_epsilon=1e-05 activation=relu embed_scale=sqrt causal=true",
    ROTARY: "n_heads=4 norm_order=pre norm=rms norm_epsilon=1e-05 activation=silu embed_scale=none causal=true "
    "positions=rotary-pairs rotary_base=50",
}


def settings(text: str, **more: str) -> dict[str, str]:
    return dict(item.split("=") for item in text.split()) | more


def written(folder: Path, state: dict[str, Tensor], told: LayoutFile) -> tuple[Path, str]:
    torch.save(state, folder / "weights.pt")
    (folder / "lab.layout.json").write_text(told.to_json(), encoding="utf-8")
    return folder / "weights.pt", str(folder / "lab.layout.json")


@pytest.mark.usefixtures("read_by_torch")
@pytest.mark.parametrize("variant", TOLD)
def test_a_program_that_nobody_here_knows_runs_by_what_was_told(tmp_path: Path, variant: str) -> None:
    state, told, built = foreign(variant)
    path, layout = written(tmp_path, state, told)
    loaded = load(path, settings(TOLD[variant], layout_file=layout), CPU)
    trace = run(loaded, RunRequest("x", (2, 5, 6, 4), decoding=Decoding(max_length=0)), CPU, "cpu")
    with torch.inference_mode():
        wanted = built(torch.tensor([[2, 5, 6, 4]]))[0]
    assert trace.logits is not None
    torch.testing.assert_close(torch.from_numpy(trace.logits.copy()), wanted, rtol=0, atol=1e-5)
    assert "The layout file our lab" in " ".join(map(str, trace.model["notes"]))
    with pytest.raises(OpenQuestions, match="norm_order"):
        load(path, {"layout_file": layout}, CPU)


@pytest.mark.usefixtures("read_by_torch")
def test_a_translator_with_stacked_projections_and_no_numbers(tmp_path: Path) -> None:
    stack = replace(VARIANTS["paper"].stacks["encoder"], layers=1)
    spec = replace(VARIANTS["paper"], encoder=stack, decoder=replace(stack, vocab=10))
    built = network(spec)
    assert isinstance(built, EncoderDecoder)
    own, told, state = built.state_dict(), dict[str, str](), dict[str, Tensor]()
    for name, tensor in own.items():
        stack_name, _, rest = name.partition(".")
        stem, _, kind = rest.removeprefix("layers.0.").rpartition(".")
        role = "vocabulary" if stack_name == "output" else f"{stack_name} {ROLES[stem]}"
        bias = " bias" if kind == "bias" or rest == "bias" else ""
        told[name.replace("layers.0.", "")] = role + bias
        state[name.replace("layers.0.", "")] = tensor
    for kind in ("weight", "bias"):  # the encoder's three projections in one tensor
        parts = [f"encoder.attention.{part}.{kind}" for part in ("query", "key", "value")]
        state[f"encoder.qkv.{kind}"] = torch.cat([state.pop(part) for part in parts])
        told = {name: role for name, role in told.items() if name not in parts}
        told[f"encoder.qkv.{kind}"] = "encoder query, key, value" + (" bias" if kind == "bias" else "")
    path, layout = written(tmp_path, state, LayoutFile("ours", "translator", told))
    facts = settings(TOLD[PLAIN], pad_id="1", layout_file=layout)
    loaded = load(path, facts, CPU)
    trace = run(loaded, RunRequest("x", (2, 5, 6, 4), (2, 4, 5), Decoding(max_length=0)), CPU, "cpu")
    with torch.inference_mode():
        wanted = built(torch.tensor([[2, 5, 6, 4]]), torch.tensor([[2, 4, 5]]))[0]
    assert trace.logits is not None
    torch.testing.assert_close(torch.from_numpy(trace.logits.copy()), wanted, rtol=0, atol=1e-5)


def test_a_layout_file_reads_a_tensor_by_groups_and_names_without_a_kind(tmp_path: Path) -> None:
    block = {"attn.attn.@": GROUPED, "attn.proj.@": "output", "norm_1.@": "attention norm", "norm_2.@": "feed-forward norm"}
    block |= {"mlp.fc_1.@": "feed-forward in", "mlp.fc_2.@": "feed-forward gate", "mlp.proj.@": "feed-forward out"}
    told = {"transformer.wte.weight": "embedding", "transformer.ln_f.@": "final norm", "lm_head.@": "vocabulary"}
    told |= {f"transformer.h.{{layer}}.{name}": role for name, role in block.items()}
    path, layout = written(tmp_path, litgpt_state("attn.attn"), LayoutFile("ours", "language model", told))
    facts = settings(TOLD[ROTARY], layout_file=layout, n_heads="6", positions="rotary", rotary_base="10000")
    found = load(path, facts, CPU).network
    assert isinstance(found, CausalLM)
    with torch.inference_mode():
        torch.testing.assert_close(found(torch.tensor([IDS]))[0], Llama(meta_state(), neighbors=False)(IDS), rtol=0, atol=2e-5)
    shapes = {name: tuple(tensor.shape) for name, tensor in litgpt_state("attn.attn").items()}
    lost = LayoutFile("ours", "language model", told | {"transformer.h.{layer}.attn.bias_of.@": "query"})
    assert "no tensor is called “transformer.h.{layer}.attn.bias_of.weight”" in [
        str(x.fields["detail"]) for x in mistakes(lost, shapes)
    ]
    biased = shapes | {"lm_head.bias": (7,)}
    assert "“lm_head.bias” has the shape [7]" in str(mistakes(LayoutFile("ours", "language model", told), biased)[0])


ROLES = {
    "embedding.token": "embedding",
    "embedding.positions": "positions",
    **{f"{part}attention.{name}": name for part in ("", "self_") for name in ("query", "key", "value", "output")},
    **{f"cross_attention.{name}": f"cross {name}" for name in ("query", "key", "value", "output")},
    "attention_residual.norm": "attention norm",
    "self_residual.norm": "attention norm",
    "cross_residual.norm": "cross norm",
    "feed_forward_residual.norm": "feed-forward norm",
    "feed_forward.expand": "feed-forward in",
    "feed_forward.contract": "feed-forward out",
}


def changed(**roles_: Any) -> LayoutFile:
    """The layout of the plain language model with some patterns changed; None: left out."""
    _state, told, _built = foreign(PLAIN)
    whole = {**told.roles, **roles_}
    return replace(told, roles={pattern: role for pattern, role in whole.items() if role is not None})


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (changed(**{"nothing.w": "final norm"}), "no tensor is called “nothing.w”"),
        (changed(**{"block.0.att.q.w": "key"}), "“block.0.att.q.w” has two roles, “query” and “key”"),
        (changed(**{"head.w": "embedding"}), "“head.w” and “words.w” both have the role “embedding” in layer 0"),
        (changed(**{"head.b": None}), "the tensor “head.b” has no role"),
        (changed(**{"head.b": None, "words.w": None}), "2 tensors have no role; the first is “words.w”"),
        (changed(**{"block.{layer}.att.q.w": None, "block.0.att.q.w": "query"}), "layer 1 has no tensor with the role “query”"),
        (
            changed(**{"block.{layer}.up.w": "embedding"}),
            "“block.{layer}.up.w” has the role “embedding”, which a network has only once, so its name must not have {layer}",
        ),
        (changed(**{"words.w": BEHIND}), "no tensor has the role “embedding”"),
        (
            changed(**{"block.{layer}.up.w": "feed-forward out", "block.{layer}.down.w": "feed-forward in"}),
            "“block.0.down.w” has the shape [8, 12], which does not fit its role “feed-forward in” beside “words.w” "
            "with the shape [17, 8]",
        ),
        (changed(**{"block.{layer}.n1.w": "output"}), "“block.0.n1.w” has 1 axes, and its role “output” needs 2"),
    ],
)
def test_each_mistake_of_a_layout_is_said(told: LayoutFile, said: str) -> None:
    state, right, _built = foreign(PLAIN)
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    assert mistakes(right, shapes) == []
    details = [str(one.fields["detail"]) for one in mistakes(told, shapes)]
    assert any(detail.startswith(said) for detail in details), details


@pytest.mark.usefixtures("read_by_torch")
def test_a_layout_with_a_mistake_runs_nothing(tmp_path: Path) -> None:
    state, _told, _built = foreign(PLAIN)
    path, layout = written(tmp_path, state, changed(**{"head.b": None}))
    with pytest.raises(BadLayoutFile, match=r"The layout our lab cannot be used: the tensor “head\.b” has no role"):
        load(path, settings(TOLD[PLAIN], layout_file=layout), CPU)
    path, layout = written(tmp_path, state | {"block.0.adapter.w": torch.ones(2, 2)}, foreign(PLAIN)[1])
    with pytest.raises(BadLayoutFile, match=r"“block.0.adapter.w” has no role"):
        inspect(path, {"layout_file": layout})
    _path, layout = written(tmp_path, state, replace(foreign(PLAIN)[1], facts={"activation": "mish"}))
    with pytest.raises(BadSetting, match=r"activation: “mish” is not accepted. Allowed: relu, gelu"):
        inspect(path, {"layout_file": layout})


GOOD = {"headlight_layout": 1, "name": "x", "network": "encoder", "facts": {}, "roles": {"a.w": "embedding"}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is not a JSON file"),
        (b"[" * 100_000, "it is not a JSON file"),
        (b'{"headlight_layout": 1, "headlight_layout": 1}', "“headlight_layout” occurs in it twice"),
        (b'{"roles": {"a": "query", "a": "key"}}', "“a” occurs in it twice"),
        (b" " * 10_000_000, "it has 10,000,000 bytes, and at most 1,048,576 are read"),
        (b"\xff\xfe\x00", "it is not a JSON file"),
        (b"[1]", 'it does not say "headlight_layout": 1'),
        (GOOD | {"headlight_layout": 2}, 'it does not say "headlight_layout": 1'),
        (GOOD | {"code": "import os"}, "it has a field “code”, which no layout has"),
        (GOOD | {"name": "<script>"}, "its name must have 1 to 80 letters"),
        (GOOD | {"network": "cnn"}, "its network is not language model, encoder, translator"),
        (GOOD | {"roles": {}}, "it has no table of 1 to 2,000 roles"),
        (GOOD | {"roles": {"a.w": "wings"}}, "“wings” is not a role of the network “encoder”"),
        (GOOD | {"roles": {"a.w": ["query"]}}, "“['query']” is not a role"),
        (GOOD | {"roles": {"{layer}.{layer}": "query"}}, "is not a name with at most one {layer} in it"),
        (GOOD | {"roles": {"a.@": "positions"}}, "“positions bias” is not a role of the network “encoder”"),
        (GOOD | {"roles": {"a@": "query"}}, "is not a name with at most one {layer} in it"),
        (GOOD | {"facts": {"heads": 3}}, "its fact “heads” is not one of norm_order"),
        (GOOD | {"facts": {"norm": {"a": 1}}}, "or has no plain value"),
    ],
)
def test_a_file_that_is_no_layout_is_refused_in_a_sentence(content: Any, said: str) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(BadLayoutFile) as caught:
        parse(data, "f.json")
    assert str(caught.value).startswith("The layout f.json cannot be used: ")
    assert said in str(caught.value)


def test_a_layout_comes_back_from_its_file_as_it_was() -> None:
    told = replace(foreign(ROTARY)[1], facts={"activation": "silu", "rotary_base": "50"})
    assert parse(told.to_json().encode(), "x") == told


def test_patterns_take_the_number_between_dots() -> None:
    assert pattern_of("h.0.attn.1.w") == "h.{layer}.attn.1.w"
    assert pattern_of("h.0.attn.1.w", -1) == "h.0.attn.{layer}.w"
    assert pattern_of("0.w") == "{layer}.w"
    assert pattern_of("fc1.w") == "fc1.w"
    assert pattern_of("h.0.w", 1) == "h.0.w"
    assert {"embedding", "query", "query bias", "final norm", "vocabulary"} <= roles("language model").keys()


def test_an_engine_takes_a_layout_that_was_sent(tmp_path: Path) -> None:
    engine, (state, told, _built) = LocalEngine(tmp_path, CPU), foreign(PLAIN)
    torch.save(state, tmp_path / "w.bin")
    name = engine.ask(Receive((tmp_path / "w.bin").read_bytes(), "w.pt"))
    listed = engine.ask(Inspect(name, (("layout", "custom"),)))
    assert (listed.layout, [asked.name for asked in listed.ask]) == ("custom", ["layout_file"])
    assert {tensor.name for tensor in listed.tensors} == state.keys()
    with_layout = settings(TOLD[PLAIN], layout_file=engine.ask(Receive(told.to_json().encode(), "lab.layout.json")))
    assert engine.ask(Describe(name, tuple(with_layout.items()))).problem == {}
    assert engine.ask(Run(RunRequest(name, (2, 5), settings=tuple(with_layout.items())))).at("decoder.0.1.self").heads == 2
    gone = engine.ask(Describe(name, (("layout_file", "words-0123456789abcdef"),))).problem
    assert gone["error"] == "BadSetting"
