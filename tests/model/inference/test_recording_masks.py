"""Masks of a cached decode, whose steps see ever more keys, joined into one picture."""

import torch

from model.inference.recorder import Recorder

SITE = "attention/decoder.0.0.self"


def test_the_padding_part_says_of_each_key_the_same_in_every_row() -> None:
    recorder = Recorder()
    valid = torch.tensor([True, False, True, True])
    for read in range(1, 5):
        recorder(f"{SITE}/mask_padding", valid[:read].view(1, 1, 1, read))
        recorder(f"{SITE}/mask_causal", torch.ones(1, 1, 1, read, dtype=torch.bool))
        recorder(f"{SITE}/mask", valid[:read].view(1, 1, 1, read))
    found = recorder.arrays()
    assert found[f"{SITE}/mask_padding"].tolist() == [[valid.tolist()] * 4], "a later key is no padding because it came later"
    assert found[f"{SITE}/mask_causal"][0].tolist() == torch.ones(4, 4).tril().bool().tolist()
    assert (found[f"{SITE}/mask"] == (found[f"{SITE}/mask_padding"] & found[f"{SITE}/mask_causal"])).all()
