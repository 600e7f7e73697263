"""The five reference documents (docs/references.md): what our network computes from their files is what their own code computed.

Everything goes the public way: file -> layout -> network -> Trace. Each test names every tensor of its case, or fails.
"""

import numpy as np
import pytest
import torch

from model.trace.types import Trace
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.stacks import EncoderDecoder
from tests.networks import Notes
from tests.reference import (
    ATTENTION,
    SETTINGS,
    Comparison,
    assert_close,
    buffer,
    cases,
    described,
    expected,
    features,
    ids,
    opened,
    traced,
)

TRANSLATORS, MODELS, COURSE = ("000_tiny_a", "000_tiny_b"), ("001_tiny_a", "001_tiny_b"), ("004_tiny_a", "004_tiny_b")
SHARED = ("003_tiny_a", "003_tiny_b")


def layers(trace: Trace, stack: str) -> int:
    return 1 + max(site.layer for site in trace.attention if site.stack == stack)


@pytest.mark.parametrize(("name", "case", "row"), cases(*TRANSLATORS))
def test_document_000(name: str, case: str, row: int) -> None:
    source, target = expected(name)[f"{case}.src_ids"][row], expected(name)[f"{case}.trg_ids"][row]
    trace = traced(name, ids(source), ids(target))
    it = Comparison(name, case, row, trace)
    it.positions("encoder", name)
    it.positions("decoder", name)
    it.states("enc.emb", trace.embedded["encoder"])
    it.states("dec.emb", trace.embedded["decoder"])
    it.layers("enc.L{}", "encoder.0.{}", attn="self")
    for pass_ in range(2):
        it.layers(f"dec.P{pass_}.L{{}}", f"decoder.{pass_}.{{}}", self_attn="self", cross_attn="cross")
    it.weights("attention", f"decoder.1.{layers(trace, 'decoder') - 1}.cross")
    it.states("output", trace.logits)
    it.mask("src_mask", "encoder.0.0.self", "decoder.0.0.cross", "decoder.1.0.cross")
    it.mask("trg_mask", "decoder.0.0.self", "decoder.1.0.self")
    once = traced(name, ids(source), ids(target), decoder_passes="1")
    it.states("extra.single_pass_output", once.logits)
    assert once.logits is not None
    assert trace.logits is not None
    assert np.abs(once.logits - trace.logits).max() > 1e-2
    it.nothing_left("src_ids", "trg_ids", *(f"extra.greedy{i}.attention" for i in range(3)))


@pytest.mark.parametrize("name", TRANSLATORS)
def test_document_000_greedy(name: str) -> None:
    for case in described(name)["cases"]:
        for row in case["extra_greedy"]["rows"]:
            source = tuple(id_ for id_ in case["src_ids"][row["src_row"]] if id_ != 1)  # the document's loop leaves padding out
            trace = traced(name, source, max_length=20)
            assert trace.tokens["target"].ids == tuple(row["ids"])
            wanted = expected(name)[f"{case['name']}.extra.greedy{row['src_row']}.attention"]
            last = trace.at(f"decoder.1.{layers(trace, 'decoder') - 1}.cross").weights
            assert_close(last, wanted[0] if wanted.ndim == 4 else wanted, ATTENTION, f"{case['name']} {row['src_row']}")


@pytest.mark.parametrize(("name", "case", "row"), cases(*MODELS))
def test_document_001(name: str, case: str, row: int) -> None:
    trace = traced(name, ids(expected(name)[f"{case}.src_ids"][:, row]))
    it = Comparison(name, case, row, trace, sequence_first=("emb", "output", *(f"L{i}.out" for i in range(3))))
    rows, values = expected(name)["pos.rows"], expected(name)["pos.values"]
    table = buffer(name, "embedding.positions.table")
    assert_close(table[rows], values, 0, "the file's own table of positions")
    assert_close(trace.positions["decoder"], table[: len(trace.tokens["source"])], 0, "positions")
    it.states("emb", trace.embedded["decoder"])
    it.layers("L{}", "decoder.0.{}", attn="self")
    for i in range(layers(trace, "decoder")):
        assert (trace.at(f"decoder.0.{i}.self").mask == (it.tensors["src_mask"] == 0)).all()
    it.states("output", trace.logits)
    it.nothing_left("src_ids", "src_mask", "targets")


@pytest.mark.parametrize(("name", "case", "row"), cases("002_tiny_encoder"))
def test_document_002_encoder(name: str, case: str, row: int) -> None:
    trace = traced(name, features(expected(name)[f"{case}.input.src"][row]), valid=valid_of(name, case, row))
    it = Comparison(name, case, row, trace)
    it.states("input.src", trace.embedded["encoder"])
    it.layers("L{}", "encoder.0.{}", attn="self")
    it.states("output", trace.hidden["encoder.0.1"])
    if case == "masked":
        it.mask("src_mask", "encoder.0.0.self", "encoder.0.1.self")
    it.nothing_left()
    assert trace.logits is None
    assert trace.positions == {}


@pytest.mark.parametrize(("name", "case", "row"), cases("002_tiny_mha"))
def test_document_002_attention_module(name: str, case: str, row: int) -> None:
    trace = traced(name, features(expected(name)[f"{case}.input.src"][row]), valid=valid_of(name, case, row))
    it = Comparison(name, case, row, trace)
    it.weights("attn", "encoder.0.0.self")
    it.states("output", trace.at("encoder.0.0.self").output)
    it.states("output", trace.hidden["encoder.0.0"])
    if case == "masked":
        it.mask("src_mask", "encoder.0.0.self")
    it.nothing_left("input.src")


@pytest.mark.parametrize(("name", "case", "row"), cases("002_tiny_decoder_layer"))
def test_document_002_decoder_layer(name: str, case: str, row: int) -> None:
    target, memory = (features(expected(name)[f"{case}.input.{it}"][row]) for it in ("trg", "enc_src"))
    trace = traced(name, memory, target, valid=valid_of(name, case, row))
    it = Comparison(name, case, row, trace)
    it.weights("self_attn", "decoder.0.0.self")
    it.weights("cross_attn", "decoder.0.0.cross")
    it.states("output", trace.hidden["decoder.0.0"])
    it.states("input.trg", trace.embedded["decoder"])
    it.states("input.enc_src", trace.embedded["encoder"])
    if case == "masked":
        it.mask("src_mask", "decoder.0.0.cross")
    it.nothing_left()
    assert trace.at("decoder.0.0.self").mask.all()
    causal = traced(name, memory, target, valid=valid_of(name, case, row), causal="true")
    assert np.abs(causal.hidden["decoder.0.0"] - trace.hidden["decoder.0.0"]).max() > 1e-2


def valid_of(name: str, case: str, row: int) -> int | None:
    valid: list[int] | None = next(c["valid_lens"] for c in described(name)["cases"] if c["name"] == case)
    return None if valid is None else valid[row]


@pytest.mark.parametrize(("name", "case", "row"), cases(*COURSE))
def test_document_004(name: str, case: str, row: int) -> None:
    source, target, valid = (expected(name)[f"{case}.{what}"][row] for what in ("src_ids", "dec_ids", "valid_lens"))
    causal = str(case == "causal_tf").lower()
    trace = traced(name, ids(source), ids(target), valid=min(int(valid), len(source)), causal=causal)
    it = Comparison(name, case, row, trace)
    it.states("enc.emb", trace.embedded["encoder"])
    it.states("dec.emb", trace.embedded["decoder"])
    it.layers("enc.L{}", "encoder.0.{}", attn="self")
    it.layers("dec.L{}", "decoder.0.{}", self_attn="self", cross_attn="cross")
    it.states("output", trace.logits)
    it.nothing_left("src_ids", "dec_ids", "valid_lens", "loss")
    assert trace.at("decoder.0.0.self").mask.all() == (case == "eval_tf")
    assert (trace.at("decoder.0.0.cross").mask.sum(axis=1) == min(valid, len(source))).all()


@pytest.mark.parametrize("name", COURSE)
def test_document_004_positions_are_worked_out(name: str) -> None:
    rows, values = expected(name)["pos.rows"], expected(name)["pos.values"]
    table = buffer(name, "decoder.embedding.positions.table")
    for row, value in zip(rows, values, strict=True):
        assert_close(table[row], value, 2e-5 if row < 64 else 5e-4, f"position {row}")


PREDICTIONS = [(name, case) for name in COURSE for case in described(name)["cases"] if case["kind"] == "predict"]


@pytest.mark.parametrize(("name", "case"), PREDICTIONS, ids=lambda it: it if isinstance(it, str) else it["name"])
def test_document_004_predicts(name: str, case: dict[str, object]) -> None:
    wanted = {
        key.removeprefix(f"{case['name']}."): value for key, value in expected(name).items() if key.startswith(str(case["name"]))
    }
    source = ids(wanted["src_ids"][0])
    valid = min(int(wanted["valid_lens"][0]), len(source))
    trace = traced(name, source, max_length=len(source), valid=valid)
    assert trace.tokens["target"].ids == (2, *ids(wanted["pred_ids"]))
    assert trace.tokens["target"].ids[:-1] == ids(wanted["in_ids"])
    assert_close(trace.logits, wanted["logits"], 5e-5, "logits")
    for i in range(layers(trace, "decoder")):
        assert_close(trace.at(f"encoder.0.{i}.self").weights, wanted[f"enc.L{i}.attn"], ATTENTION, f"encoder {i}")
        assert_close(trace.at(f"decoder.0.{i}.self").weights, wanted[f"dec.L{i}.self_attn"], ATTENTION, f"self {i}")
        assert_close(trace.at(f"decoder.0.{i}.cross").weights, wanted[f"dec.L{i}.cross_attn"], ATTENTION, f"cross {i}")
    assert_close(trace.at("decoder.0.1.cross").weights[None], wanted["heatmap"], ATTENTION, "the document's heat map")
    running = traced(name, source, max_length=len(source), valid=valid, decode_positions="running")
    assert np.abs(running.positions["decoder"][-1] - trace.positions["decoder"][-1]).max() > 1e-2


@pytest.mark.parametrize(("name", "case", "row"), cases(*SHARED))
def test_document_003(name: str, case: str, row: int) -> None:
    source, target = (ids(expected(name)[f"{case}.{what}"][row]) for what in ("src_ids", "trg_ids"))
    trace = traced(name, source, target)
    it = Comparison(name, case, row, trace)
    it.positions("encoder", name)
    it.positions("decoder", name)
    it.states("enc.emb", trace.embedded["encoder"])
    it.states("dec.emb", trace.embedded["decoder"])
    it.layers("enc.L{}", "encoder.0.{}", attn="self")
    it.layers("dec.L{}", "decoder.0.{}", encself_attn="memory", cross_attn="cross")
    for i in range(layers(trace, "decoder")):
        it.states(f"dec.L{i}.value", trace.stages[f"decoder.0.{i}.memory/normed"])
    it.states("logits", trace.logits)
    it.mask("trg_mask", *(str(site) for site in trace.attention if site.kind == "memory"))
    it.nothing_left("src_ids", "trg_ids", "output")


@pytest.mark.parametrize("name", SHARED)
def test_document_003_decodes(name: str) -> None:
    """One token at a time, alone and at position 0; its softmax over the batch makes all tokens certain, the first is taken."""
    case = next(case for case in described(name)["cases"] if case["name"] == "decode_t1")
    source = tuple(case["src_ids"][0])
    trace = traced(name, source, max_length=len(source))
    assert list(trace.tokens["target"].ids) == [2, *case["labels"]]
    assert {step.chosen.log_probability for step in trace.steps} == {0.0}
    wanted = {key.removeprefix("decode_t1."): value[0] for key, value in expected(name).items() if key.startswith("decode_t1.")}
    for i in range(layers(trace, "encoder")):
        assert_close(trace.at(f"encoder.0.{i}.self").weights, wanted[f"enc.L{i}.attn"], ATTENTION, f"encoder {i}")
    for step in range(len(source)):
        assert trace.tokens["target"].ids[step] == wanted[f"step{step}.input_ids"][0]
        it = {key.removeprefix(f"step{step}.dec."): value for key, value in wanted.items() if key.startswith(f"step{step}.dec.")}
        for i in range(layers(trace, "decoder")):
            assert_close(trace.at(f"decoder.0.{i}.memory").weights, it[f"L{i}.encself_attn"], ATTENTION, f"memory {i}")
            cross = trace.at(f"decoder.0.{i}.cross").weights[:, step]
            assert_close(cross, it[f"L{i}.cross_attn"][:, -1], ATTENTION, f"cross {i}")
            assert_close(trace.hidden[f"decoder.0.{i}"][step], it[f"L{i}.out"][-1], 5e-5, f"hidden {i}")
        assert trace.logits is not None
        assert_close(trace.logits[step], wanted[f"step{step}.logits"][-1], 5e-5, "logits")
    meant = traced(name, source, max_length=len(source), output_softmax="vocab")
    assert list(meant.tokens["target"].ids) == [2, *case["extra_labels_if_softmax_were_dim_-1"]]


def test_document_003_goes_on_from_a_whole_target() -> None:
    """A first target as long as the source leaves its mask for the single tokens that follow."""
    name, case = "003_tiny_a", "decode_tS"
    wanted = {key.removeprefix(f"{case}."): value for key, value in expected(name).items() if key.startswith(f"{case}.")}
    built = opened(name, tuple(SETTINGS[name].items())).network
    assert isinstance(built, EncoderDecoder)
    source, target = torch.from_numpy(wanted["src_ids"]), torch.from_numpy(wanted["trg_ids"])
    cache, start = KVCache(), 0
    with torch.inference_mode():
        mask = built.source_mask(source)
        memory = built.encode(source, mask)
        for step in range(len(wanted["labels"])):
            notes = Notes()
            built.decode(target, memory, mask, Run(record=notes, cache=cache), start)
            for i in range(2):
                cross = notes[f"attention/decoder.0.{i}.cross/weights"].numpy()
                assert_close(cross, wanted[f"step{step}.dec.L{i}.cross_attn"], ATTENTION, f"cross {step} {i}")
                assert_close(notes[f"hidden/decoder.0.{i}"].numpy(), wanted[f"step{step}.dec.L{i}.out"], 5e-5, f"out {step} {i}")
                if not step:
                    memory_weights = notes[f"attention/decoder.0.{i}.memory/weights"].numpy()
                    assert_close(memory_weights, wanted[f"step0.dec.L{i}.encself_attn"], ATTENTION, f"memory {i}")
            assert_close(notes["logits"].numpy(), wanted[f"step{step}.logits"], 5e-5, f"logits {step}")
            start = target.shape[1]
            target = torch.cat([target, torch.zeros(1, 1, dtype=torch.int64)], dim=1)
