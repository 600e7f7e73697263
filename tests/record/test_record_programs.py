"""Whole programs: they run to the same bits, their sites are told apart, and a decode is joined."""

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import headlight


class Layer(nn.Module):
    """Attention with a fused projection, with a cache if asked, and the rest of a layer."""

    def __init__(self, width: int = 12, heads: int = 3, fused: bool = False) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.norm, self.memory_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.feed_forward = nn.Linear(width, width)
        self.cache: tuple[Tensor, Tensor] | None = None

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, memory: Tensor | None = None, *, causal: bool = False, cached: bool = False) -> Tensor:
        own = self.norm(x)
        q = self.split(self.q(own))
        k, v = map(self.split, self.kv(own if memory is None else self.memory_norm(memory)).chunk(2, -1))
        if cached:
            if self.cache is not None:
                k, v = (torch.cat(pair, 2) for pair in zip(self.cache, (k, v), strict=True))
            self.cache = k, v
        allowed = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2]) if causal else None
        if self.fused:
            context = functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        else:
            scores = q @ k.mT / q.shape[-1] ** 0.5
            scores = scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))
            context = functional.dropout(scores.softmax(-1), 0.1, self.training) @ v
        x = x + self.out(context.transpose(1, 2).flatten(2))
        return x + functional.gelu(self.feed_forward(x))


class Pair(nn.Module):
    """An encoder and a decoder of two layers each, written by hand."""

    def __init__(self, **kinds: Any) -> None:
        super().__init__()
        self.left = nn.ModuleList(Layer(**kinds) for _ in range(2))
        self.right = nn.ModuleList(Layer(**kinds) for _ in range(2))
        self.across = nn.ModuleList(Layer(**kinds) for _ in range(2))

    def encode(self, source: Tensor) -> Tensor:
        for layer in self.left:
            source = layer(source)
        return source

    def forward(self, source: Tensor, target: Tensor, memory: Tensor | None = None, cached: bool = False) -> Tensor:
        memory = self.encode(source) if memory is None else memory
        for own, across in zip(self.right, self.across, strict=True):
            target = across(own(target, causal=True, cached=cached), memory)
        return target


SOURCE, TARGET = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(2)), torch.randn(2, 4, 12)
NAMES = ["encoder.0.0.self", "encoder.0.1.self", *(f"decoder.0.{layer}.{kind}" for layer in (0, 1) for kind in ("self", "cross"))]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("fused", [False, True])
def test_an_encoder_and_a_decoder_are_told_apart_by_what_is_shared(fused: bool) -> None:
    model = Pair(fused=fused).eval()
    with headlight.record(model) as recording:
        model(SOURCE, TARGET)
    assert [site.name for site in recording.sites] == NAMES
    assert [site.module for site in recording.sites] == ["left.0", "left.1", "right.0", "across.0", "right.1", "across.1"]
    np.testing.assert_array_equal(recording["right.1"].mask, np.tril(np.ones((4, 4), bool)))
    assert recording["decoder.0.1.cross"].shape == (3, 4, 5)


def test_an_encoder_that_is_called_by_itself_is_still_the_encoder() -> None:
    model = Pair().eval()
    with headlight.record(model) as recording:
        memory = model.left[1](model.left[0](SOURCE))
        model(SOURCE, TARGET, memory)
    assert {site.name.split(".")[0] for site in recording.sites if site.module.startswith("left")} == {"encoder"}


def test_a_program_without_cross_attention_is_one_stack() -> None:
    layer = Layer()
    with headlight.record(layer) as recording:
        layer(SOURCE)
    assert [site.name for site in recording.sites] == ["program.0.0.self"]


def test_tensors_whose_origin_was_not_seen_are_unknown() -> None:
    with headlight.record() as recording:
        functional.scaled_dot_product_attention(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 2), torch.ones(1, 1, 3, 2))
    assert recording.sites[0].kind == "unknown"


def test_keys_that_hold_the_queries_and_more_are_unknown() -> None:
    layer = Layer()
    with headlight.record(layer) as recording:
        own = SOURCE * 2
        layer(own, torch.cat([own, TARGET], 1))
    assert recording.sites[0].kind == "unknown"


@pytest.mark.parametrize("fused", [False, True])
def test_the_steps_of_a_cached_decode_are_joined(fused: bool) -> None:
    model = Pair(fused=fused).eval()
    whole = copy.deepcopy(model)
    with torch.no_grad(), headlight.record(model, keep=["qkv"]) as recording:
        memory = model.encode(SOURCE)
        for step in (slice(0, 2), slice(2, 3), slice(3, 4)):
            model(SOURCE, TARGET[:, step], memory, cached=True)
    with torch.no_grad(), headlight.record(whole, keep=["qkv"]) as at_once:
        whole(SOURCE, TARGET)
    assert {site.module for site in recording.sites} == {site.module for site in at_once.sites}
    for site in at_once.sites:
        twin = recording[site.module]
        np.testing.assert_allclose(twin.written(), site.written(), atol=1e-5)
        np.testing.assert_array_equal(twin.mask, site.mask)
        for one, other in ((twin.q, site.q), (twin.k, site.k), (twin.v, site.v)):
            assert one is not None
            assert other is not None
            np.testing.assert_allclose(one, other, atol=1e-5)


class TwoStreams(nn.Module):
    """Two attentions in one call: the second also reads the keys of the first, and more, as in ProphetNet."""

    def forward(self, x: Tensor, more: Tensor) -> Tensor:
        wide = torch.cat([x, more], 1)
        return (x @ x.mT).softmax(-1) @ x + (more @ wide.mT).softmax(-1) @ wide


def test_two_attentions_in_one_call_of_a_module_are_not_joined() -> None:
    with headlight.record() as recording:
        TwoStreams()(SOURCE, SOURCE + 1)
    assert [site.shape for site in recording.sites] == [(1, 5, 5), (1, 5, 10)]


def test_two_calls_on_the_same_input_are_two_passes() -> None:
    model = Pair().eval()
    with torch.no_grad(), headlight.record(model) as recording:
        model(SOURCE, TARGET)
        model(SOURCE, TARGET)
    assert [site.name for site in recording.sites[6:]] == [name.replace(".0.", ".1.", 1) for name in NAMES]


def trained(model: nn.Module, step: Callable[[nn.Module], Tensor], steps: int = 2) -> list[Tensor]:
    torch.manual_seed(3)
    optimizer = torch.optim.AdamW(model.parameters())
    found = []
    for _step in range(steps):
        loss = step(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.detach())
    return [*found, *(parameter.detach() for parameter in model.parameters()), torch.get_rng_state()]


STEPS: dict[str, tuple[Callable[[], nn.Module], Callable[[Any], Tensor]]] = {
    "by hand": (Pair, lambda model: model(SOURCE, TARGET).pow(2).mean()),
    "fused": (lambda: Pair(fused=True), lambda model: model(SOURCE, TARGET).pow(2).mean()),
    "torch": (
        lambda: nn.Transformer(12, 2, 2, 2, 16, batch_first=True),
        lambda model: model(SOURCE, TARGET, tgt_mask=nn.Transformer.generate_square_subsequent_mask(4)).pow(2).mean(),
    ),
    "checkpointed": (Layer, lambda model: checkpoint(model, SOURCE, use_reentrant=False).pow(2).mean()),
    "autocast": (Pair, lambda model: autocast(model)),
}


def autocast(model: nn.Module) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        out: Tensor = model(SOURCE, TARGET).float().pow(2).mean()
    return out


@pytest.mark.parametrize("name", STEPS)
def test_a_training_runs_to_the_same_bits_with_a_recording(name: str) -> None:
    make, step = STEPS[name]
    alone = make()
    watched = copy.deepcopy(alone)
    expected = trained(alone, step)
    with headlight.record(watched) as recording:
        found = trained(watched, step)
    assert recording.sites
    assert recording.missing == {}
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", ["by hand", "fused", "torch"])
def test_inference_runs_to_the_same_bits_with_a_recording(name: str, mode: Any) -> None:
    model = STEPS[name][0]().eval()
    with mode():
        expected = model(SOURCE, TARGET)
        with headlight.record(model) as recording:
            found = model(SOURCE, TARGET)
        with headlight.record(model, calls="0") as first:
            model(SOURCE, TARGET)
            later = model(SOURCE, TARGET)
    assert len(recording.sites) == len(first.sites) == 6
    assert torch.equal(found, expected)
    assert torch.equal(later, expected)


def test_only_the_calls_that_were_asked_for_are_kept() -> None:
    model = Layer().eval()
    with headlight.record(model, calls="1:3") as recording:
        for scale in range(5):
            model(SOURCE * (scale + 1))
    assert [site.call for site in recording.sites] == [1, 2]
    assert [site.name for site in recording.sites] == ["program.0.0.self", "program.1.0.self"]


def test_calls_without_attention_do_not_count() -> None:
    layer, loss = Layer().eval(), nn.MSELoss()
    with headlight.record(calls="1") as recording:
        for _step in range(2):
            loss(layer(SOURCE), SOURCE)
    assert [site.call for site in recording.sites] == [1]


@pytest.mark.parametrize("calls", ["x", "3:2", "-1", "2:2"])
def test_calls_that_are_none_are_refused(calls: str) -> None:
    with pytest.raises(ValueError, match="START:STOP"):
        headlight.record(calls=calls)


def test_what_does_not_fit_is_named() -> None:
    model = Pair().eval()
    with headlight.record(model, limit=2000) as recording:
        model(SOURCE, TARGET)
    assert 0 < len(recording.sites) < 6
    assert "omitted: more than 0 MiB" in recording.missing["attention/across.1"]
    assert sum(site.nbytes for site in recording.sites) <= 2000


def test_an_example_that_is_not_there_is_named() -> None:
    layer = Layer()
    with headlight.record(layer, example=7) as recording:
        layer(SOURCE)
    assert not recording.sites
    assert "its batch has 2" in recording.missing["attention/Layer"]


def test_an_error_while_recording_never_reaches_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object) -> None:
        raise RuntimeError("oh")

    layer = Layer().eval()
    expected = layer(SOURCE)
    monkeypatch.setattr(headlight._Watch, "_recognize", broken)
    with headlight.record(layer) as recording:
        assert torch.equal(layer(SOURCE), expected)
    assert "an error while recording (RuntimeError): oh" in recording.missing["attention/Layer"]


def test_an_error_of_the_program_leaves_no_hook_and_no_mode() -> None:
    layer = Layer()
    with pytest.raises(RuntimeError, match="shape"), headlight.record(layer):
        layer(torch.ones(2, 3, 5))
    assert not nn.modules.module._global_forward_pre_hooks
    assert not nn.modules.module._global_forward_hooks
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_a_compiled_model_is_told_what_to_do() -> None:
    compiled: Any = torch.compile(Layer(), backend="eager")
    with pytest.warns(UserWarning, match="TORCH_COMPILE_DISABLE=1"):
        recording = headlight.record(compiled)
    assert "before it is compiled" in recording.missing["attention/*"]


class WithPart(nn.Module):
    """A model, one part of which is a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.part, self.last = Layer(), Layer()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.part(x))
        return found


def compiler(backend: str) -> str:
    """The backend, if this machine can compile for it."""
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor needs a C++ compiler: install g++")
    return backend


@pytest.fixture
def compiling() -> Iterator[None]:
    """Forgets afterwards what was compiled; code for one number at a time takes the C++ compiler a third less time."""
    torch._dynamo.reset()
    with torch._inductor.config.patch({"cpp.simdlen": 1}):
        yield
    torch._dynamo.reset()


BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]  # seconds of a C++ compiler


def test_steps_whose_cache_is_reordered_stay_apart_and_say_so() -> None:
    """As a beam search does: the example goes on from what another hypothesis had read."""
    model = Layer().eval()
    both = torch.cat([TARGET[:1], TARGET[:1] + 1])
    with torch.no_grad(), headlight.record(model) as recording:
        for step in range(3):
            model(both[:, step : step + 1], causal=True, cached=True)
            assert model.cache is not None
            keys, values = model.cache
            model.cache = keys.flip(0), values.flip(0)
    assert len(recording.sites) > 1
    assert recording.missing == {"attention/Layer": headlight.APART}


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, while it compiles
@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])  # the third compiles under a recording in the test of a training
def test_a_program_with_a_compiled_part_runs_as_ever_and_the_part_is_named(backend: str, warm: bool) -> None:
    model: Any = WithPart().eval()
    model.part = torch.compile(model.part, backend=compiler(backend), fullgraph=True)  # full: nothing of ours breaks its graph
    with torch.no_grad():
        first = model(SOURCE) if warm else None
        with headlight.record(model) as recording:
            found = model(SOURCE)
        assert torch.equal(found, model(SOURCE) if first is None else first)
    assert recording.missing == {"attention/part": headlight.COMPILED}
    assert "last" in [site.module for site in recording.sites]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("given", ["the model", "nothing", "compiled in place"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])  # the third compiles such a model in the test of a training
def test_a_compiled_model_runs_as_ever_and_is_told_once(backend: str, given: str) -> None:
    model: Any = WithPart().eval()
    compiled: Any = model
    if given == "compiled in place":
        model.compile(backend=compiler(backend), fullgraph=True)
    else:
        compiled = torch.compile(model, backend=compiler(backend), fullgraph=True)
    with torch.no_grad():
        expected = compiled(SOURCE)
        with headlight.record(None if given == "nothing" else model) as recording:
            assert torch.equal(compiled(SOURCE), expected)
    assert recording.missing == {"attention/*": headlight.COMPILED}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_training_of_a_compiled_model_is_the_same_to_the_bit(backend: str) -> None:
    """With dropout: what is compiled under a recording draws the same numbers."""

    def losses(is_recorded: bool) -> list[float]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), 1, enable_nested_tensor=False)
        model: Any = torch.compile(layers, backend=compiler(backend))
        optimizer, found = torch.optim.SGD(layers.parameters(), 0.1), list[float]()
        with headlight.record(layers) if is_recorded else nullcontext():
            for _step in range(3):
                optimizer.zero_grad()
                loss = model(torch.ones(2, 4, 8)).square().mean()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        return [*found, torch.rand(1).item()]

    assert losses(True) == losses(False)


def test_nothing_of_the_program_is_kept_alive() -> None:
    layer = Layer().eval()
    with headlight.record(layer) as recording:
        layer(SOURCE)
        assert len(recording.watch.nodes) < 30  # parameters and the input
        assert all(not node.parents for _tensor, node in recording.watch.nodes.values())
    assert not recording.watch.nodes
