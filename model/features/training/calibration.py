"""The end of a training: averages the phases' best weights, and calibrates the output layer on validation data."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from model.errors import BadSetting
from model.features.training.data import PAD_ID, Pair, batches


def mix(files: Sequence[Path], shares: Sequence[float]) -> dict[str, Tensor]:
    """The weighted mean of the weights in several files, as float32. Weights of one training are similar enough for this to help.

    Args:
        shares: weight of each file in the mean; they sum to 1.

    Source: Wortsman et al. 2022, "Model soups", section 2.
    """
    mixed: dict[str, Tensor] = {}
    for file, share in zip(files, shares, strict=True):
        if share:
            for name, value in load_file(file).items():
                mixed[name] = mixed.get(name, torch.zeros(())) + share * value.float()
    return mixed


def calibrate(
    network: nn.Module,
    weights: Mapping[str, Tensor],
    training: Sequence[Pair],
    pairs: Sequence[Pair],
    unk_id: int,
    device: torch.device,
) -> dict[str, Tensor]:
    """Calibrated weights: logits z become (z + a · log p + b · [unknown]) / T, so that probabilities match how often they are
    right.

    p is the frequency of a word in the training data: a network that has memorised its training data is too sure of rare words. b
    is for the unknown word only, which is rarer in training than elsewhere, since the vocabulary comes from the training data. T
    is a temperature. The numbers a, b and T are fitted to `pairs` and folded into the output layer, so the network keeps its spec.

    Args:
        network: a network that takes `weights`; its own weights are overwritten.
        weights: weights of a network whose output layer has a bias, and a weight that it does not share.
        training: examples that the weights were trained on.
        pairs: examples that they were not trained on.

    Raises:
        BadSetting: the output layer has no bias.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2, for T; Menon et al. 2021, "Long-Tail Learning
        via Logit Adjustment", section 4, for the words' frequencies.
    """
    if "output.bias" not in weights:
        raise BadSetting(name="calibrate", found=True, allowed="false where the output layer has no bias")
    network.load_state_dict(dict(weights))
    logits, targets = _predictions(network, pairs, device)
    counts = 1 + torch.bincount(torch.tensor([word for pair in training for word in pair.target[1:]]), minlength=logits.shape[1])
    frequencies, unknown = (counts / counts.sum()).log(), nn.functional.one_hot(torch.tensor(unk_id), len(counts)).float()
    # Three numbers and a loss without noise: LBFGS finds them in a few steps. The temperature is fitted as its
    # logarithm, so that it stays above 0. All three begin at 0, where they change nothing.
    fitted = torch.zeros(3, requires_grad=True)  # a, b, log T
    optimizer = torch.optim.LBFGS([fitted], max_iter=20, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy((logits + fitted[0] * frequencies + fitted[1] * unknown) / fitted[2].exp(), targets)
        value.backward()
        return value

    optimizer.step(loss)
    a, b, temperature = fitted[0].item(), fitted[1].item(), fitted[2].exp().item()
    # The words' frequencies and the unknown word only move the bias, and the temperature divides all: so the
    # network needs no new part.
    bias = weights["output.bias"]
    return {
        **weights,
        "output.weight": weights["output.weight"] / temperature,
        "output.bias": (bias + (a * frequencies + b * unknown).to(bias)) / temperature,
    }


def _predictions(network: nn.Module, pairs: Sequence[Pair], device: torch.device) -> tuple[Tensor, Tensor]:
    """Logits [prediction, vocab] and the correct tokens [prediction], on the CPU."""
    network.eval()
    logits, targets = [], []
    with torch.inference_mode():
        for batch in batches(pairs, 128):
            on = batch.to(device)
            real = on.following != PAD_ID
            logits.append(network(*on.fed)[real].float().cpu())
            targets.append(on.following[real].cpu())
    return torch.cat(logits).clone(), torch.cat(targets).clone()
